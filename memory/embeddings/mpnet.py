"""The network of all-mpnet-base-v2 (MPNet: Song and others, 2020), computed with numpy."""

import json
import math
from pathlib import Path
from typing import Any

import numpy

from memory.embeddings.word_pieces import pieces

MOST_PIECES = 128  # of a text, as in training; more would take a second and more
FIRST, LAST, UNKNOWN = 0, 2, "[UNK]"
OFFSET = 2  # positions are counted from here
LAYERS, HEADS = 12, 12
BUCKETS, FAR = 32, 128  # how distances between pieces are told apart
TINY = 1e-5


class Encoder:
    """The network: word pieces to one vector, the mean of what comes out for each (MPNet)."""

    def __init__(self, weights: Path, vocabulary: Path) -> None:
        self._weights = tensors(weights)
        lines = vocabulary.read_text(encoding="utf-8").split("\n")
        self._vocabulary = {piece: number for number, piece in enumerate(lines) if piece}

    def vector(self, text: str) -> list[float]:
        found = pieces(text, self._vocabulary, self._vocabulary[UNKNOWN], MOST_PIECES - 2)
        mean = self._run([FIRST, *found, LAST]).mean(axis=0)
        return [float(number) for number in mean / numpy.linalg.norm(mean)]

    def _run(self, numbers: list[int]) -> Any:
        words = self._weights["embeddings.word_embeddings.weight"][numbers]
        places = self._weights["embeddings.position_embeddings.weight"][OFFSET : OFFSET + len(numbers)]
        rows = self._normal(words + places, "embeddings.LayerNorm")
        near = self._weights["encoder.relative_attention_bias.weight"][distances(len(numbers))]
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}"
            heard = self._attention(rows, f"{at}.attention.attn", near.transpose(2, 0, 1))
            rows = self._normal(rows + heard, f"{at}.attention.LayerNorm")
            inner = bent(self._linear(rows, f"{at}.intermediate.dense"))
            rows = self._normal(rows + self._linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
        return rows

    def _attention(self, rows: Any, at: str, near: Any) -> Any:
        asked, known, said = (
            self._linear(rows, f"{at}.{each}").reshape(len(rows), HEADS, -1).transpose(1, 0, 2)
            for each in "qkv"
        )
        like = asked @ known.transpose(0, 2, 1) / math.sqrt(asked.shape[2]) + near
        share = numpy.exp(like - like.max(axis=2, keepdims=True))
        share /= share.sum(axis=2, keepdims=True)
        return self._linear((share @ said).transpose(1, 0, 2).reshape(rows.shape), f"{at}.o")

    def _linear(self, rows: Any, at: str) -> Any:
        return rows @ self._weights[f"{at}.weight"].T + self._weights[f"{at}.bias"]

    def _normal(self, rows: Any, at: str) -> Any:
        apart = rows - rows.mean(axis=1, keepdims=True)
        spread = numpy.sqrt((apart**2).mean(axis=1, keepdims=True) + TINY)
        return apart / spread * self._weights[f"{at}.weight"] + self._weights[f"{at}.bias"]


def tensors(path: Path) -> dict[str, Any]:
    """What a file of safetensors holds, by name. Mapped into memory, which all processes share."""
    mapped = numpy.memmap(path, dtype=numpy.uint8, mode="r")
    start = 8 + int.from_bytes(mapped[:8].tobytes(), "little")
    found = {}
    for name, said in json.loads(mapped[8:start].tobytes()).items():
        if said.get("dtype") == "F32":
            begin, end = (start + offset for offset in said["data_offsets"])
            found[name.removeprefix("mpnet.")] = mapped[begin:end].view("<f4").reshape(said["shape"])
    return found


def distances(count: int) -> Any:
    """Of each two of so many pieces the number of their distance: exact when small, then ever coarser."""
    places = numpy.arange(count)
    apart = places[:, None] - places[None, :]
    size, half = numpy.abs(apart), BUCKETS // 4
    coarse = numpy.log(numpy.maximum(size, 1) / half) / math.log(FAR / half) * (BUCKETS // 2 - half)
    far = numpy.minimum(half + coarse.astype(int), BUCKETS // 2 - 1)
    return numpy.where(apart < 0, BUCKETS // 2, 0) + numpy.where(size < half, size, far)


def bent(rows: Any) -> Any:
    """GELU, with the error function to seven digits (Abramowitz and Stegun 7.1.26), which numpy lacks."""
    size = numpy.abs(rows) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * size)
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return rows * (1 + numpy.copysign(1 - tail * numpy.exp(-size * size), rows)) / 2
