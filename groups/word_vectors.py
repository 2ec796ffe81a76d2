"""A text as the sum of its words' vectors: which English words mean nearly the same, without a model.

word_vectors.npz holds the stems of 20,000 frequent words, each with 128 small numbers and a weight, which is
mostly less the more common the word is. `python -m benchmarks.quality.word_vectors` made it. Needs numpy.
"""

from functools import cache
from pathlib import Path
from typing import Any

import numpy

from common.text import terms

TABLE = Path(__file__).with_name("word_vectors.npz")
LIMIT = 8_000  # characters of a text that are read
KNOWN = 0.5  # of a goal's terms more than this: of others the vector would say too little


def vector(text: str, least: float = KNOWN) -> list[float] | None:
    """128 numbers, of any length; None where no more than `least` of the terms is known, as in Chinese."""
    numbers, vectors = _table()
    said = terms(text[:LIMIT])
    known = [numbers[term] for term in said if term in numbers]
    if len(known) <= least * len(said):
        return None
    total: list[float] = vectors[known].sum(axis=0).tolist()
    return total


@cache
def _table() -> tuple[dict[str, int], Any]:
    """Each stem's row, and the rows: (stems, 128)."""
    with numpy.load(TABLE, allow_pickle=False) as kept:
        rows = kept["vectors"].astype("float32")
        rows *= (kept["weights"] / numpy.linalg.norm(rows, axis=1))[:, None]
        stems = kept["stems"].tobytes().decode().split("\n")
    return {stem: row for row, stem in enumerate(stems)}, rows
