"""Texts to vectors, by `POST {base_url}/embeddings` as OpenAI, Ollama, vLLM and many more answer it.

Through the guarded client (common.outbound): one deadline for all of it, no redirects, a bounded body,
and no address but the one that was configured.
"""

import json
import math
from collections.abc import Sequence
from typing import Any

from common.outbound import Fetched, OutboundError, fetch
from memory.embeddings import embedded
from memory.embeddings.english import Unusable
from memory.embeddings.models import EmbeddingModel

MOST_CHARACTERS = 4_000  # of a text; models read a few hundred to a few thousand words
MOST_DIMENSIONS = 4_000  # what pgvector's index takes
MOST_BYTES = 32_000_000  # of an answer
WORDS = 200  # characters of a server's own words

Vector = list[float]


class EmbeddingFailed(Exception):
    """There are no vectors. `retryable`: the same may work later; otherwise these texts are refused."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        super().__init__(message)
        self.retryable = retryable


def embed(model: EmbeddingModel, texts: Sequence[str], timeout: float) -> list[Vector]:
    """A vector for each text, in order, all of one length; a long text counts by its beginning.

    Slow: never to be called inside a transaction. Raises EmbeddingFailed, with no key in it.
    """
    if model.embedded:
        return _embedded(model.asked, texts)
    asked = {"model": model.asked, "input": [text[:MOST_CHARACTERS] for text in texts]}
    headers = {"content-type": "application/json"}
    if model.api_key:
        headers["authorization"] = f"Bearer {model.api_key}"
    try:
        answer = fetch(
            f"{model.base_url}/embeddings",
            method="POST",
            headers=headers,
            content=json.dumps(asked | {"encoding_format": "float"}),
            timeout=timeout,
            max_bytes=MOST_BYTES,
            max_redirects=0,
            allow_private={model.server},
        )
    except OutboundError as error:
        raise EmbeddingFailed(
            f"The embedding server gave no answer: {error.message}.", retryable=True
        ) from None
    if answer.status != 200:
        raise _refusal(model, answer)
    return _vectors(answer.text, len(texts))


def _embedded(name: str, texts: Sequence[str]) -> list[Vector]:
    try:
        made = embedded.vectors(name, [text[:MOST_CHARACTERS] for text in texts])
    except Unusable as error:
        raise EmbeddingFailed(str(error), retryable=True) from None
    if not all(map(_usable, made)):
        raise EmbeddingFailed("The embedded model makes nothing of one of these texts.", retryable=False)
    return made


def _refusal(model: EmbeddingModel, answer: Fetched) -> EmbeddingFailed:
    said = " ".join(answer.text.split())
    if model.api_key:
        said = said.replace(model.api_key, "[key]")
    refused = answer.status in (400, 413, 422)  # these texts; any other status is about the server or the key
    return EmbeddingFailed(
        f"The embedding server answered {answer.status}: {said[:WORDS]}", retryable=not refused
    )


def _vectors(body: str, expected: int) -> list[Vector]:
    try:
        data: Any = json.loads(body)["data"]
        ordered = sorted(data, key=lambda entry: entry["index"])
        if [entry["index"] for entry in ordered] != list(range(expected)):
            raise ValueError
        vectors = [[float(number) for number in entry["embedding"]] for entry in ordered]
        if len({len(vector) for vector in vectors}) != 1 or not all(map(_usable, vectors)):
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        said = "The embedding server's answer is not a list with a usable vector for each text."
        raise EmbeddingFailed(said, retryable=True) from None
    return vectors


def _usable(vector: Vector) -> bool:
    return 0 < len(vector) <= MOST_DIMENSIONS and any(vector) and all(map(math.isfinite, vector))
