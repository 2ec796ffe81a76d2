"""How rightly near-duplicates are found: precision and recall on pairs of texts that people judged."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memory.duplicates import near
from memory.embeddings import client
from memory.embeddings.models import configured
from memory.likeness import alike, may_be_alike
from memory.measure import BadSet, rows

BATCH = 64  # texts a model is asked for at once
TIMEOUT = 60.0  # seconds for a batch


@dataclass(frozen=True)
class Pair:
    """Two texts, and whether people say that they say the same."""

    one: str
    other: str
    same: bool


@dataclass(frozen=True)
class Found:
    """`joined`: pairs taken for duplicates; `right`: of these, those that are."""

    pairs: int
    same: int
    joined: int
    right: int

    def as_dict(self) -> dict[str, float]:
        """With `precision` and `recall` (0 where there is nothing to divide by)."""
        shares = {"precision": self.right / (self.joined or 1), "recall": self.right / (self.same or 1)}
        return {"pairs": self.pairs, "same": self.same, "joined": self.joined, "right": self.right} | shares


def report(path: Path) -> Found:
    """Judge every pair of a file of JSON lines. Raises BadSet, BadModel, EmbeddingFailed."""
    pairs = list(read(path))
    vectors = _vectors(pairs)
    joined = [pair for pair in pairs if alike(pair.one, pair.other, near(vectors, pair.one, pair.other))]
    right = sum(pair.same for pair in joined)
    return Found(len(pairs), sum(pair.same for pair in pairs), len(joined), right)


def read(path: Path) -> Iterator[Pair]:
    """The pairs of a file, one `{"one": …, "other": …, "same": true}` a line. Raises BadSet with the line."""
    for number, row in rows(path, ("one", "other", "same")):
        if not isinstance(row["one"], str) or not isinstance(row["other"], str):
            raise BadSet(f"{path}, line {number}: one and other are texts")
        yield Pair(row["one"], row["other"], row["same"])


def _vectors(pairs: Iterable[Pair]) -> dict[str, client.Vector]:
    """Of all texts of pairs that a model could decide; none where no model is set."""
    model = configured()
    if model is None:
        return {}
    asked = [pair for pair in pairs if may_be_alike(pair.one, pair.other)]
    texts = list(dict.fromkeys(text for pair in asked for text in (pair.one, pair.other)))
    vectors: dict[str, client.Vector] = {}
    for at in range(0, len(texts), BATCH):
        batch = texts[at : at + BATCH]
        vectors |= zip(batch, client.embed(model, batch, TIMEOUT), strict=True)
    return vectors
