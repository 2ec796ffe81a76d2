"""Vectors for tests: an OpenAI-like server whose vectors say which of a few matters a text is about."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from memory.embeddings import filling, questions
from tests.model_server import Answer, ModelServer, Received

# words of one matter, in two languages: texts of one matter are near each other without sharing a word
MATTERS = (
    ("car", "automobile", "vehicle", "汽车", "轿车"),
    ("holiday", "vacation", "leave", "假期", "休假"),
    ("price", "charge", "cost", "价格", "定价"),
)


def vector(text: str) -> list[float]:
    """One number for each matter, and a little of everything."""
    text = text.lower()
    return [float(sum(text.count(word) for word in words)) for words in MATTERS] + [0.01]


def answers(request: Received) -> Answer:
    """What `POST /embeddings` gets."""
    assert request.path.endswith("/v1/embeddings")
    data = [
        {"object": "embedding", "index": index, "embedding": vector(text)}
        for index, text in enumerate(request.body["input"])
    ]
    return Answer({"object": "list", "model": request.body["model"], "data": data})


@contextmanager
def embedding(settings: Any, monkeypatch: pytest.MonkeyPatch, name: str = "compatible:tiny") -> Iterator[ModelServer]:
    """Deputy with EMBEDDING_MODEL set, and its server."""
    with ModelServer(answers) as server:
        settings.EMBEDDING_MODEL = name
        monkeypatch.setenv("EMBEDDING_BASE_URL", server.base_url)
        monkeypatch.setenv("EMBEDDING_API_KEY", "secret-key")
        monkeypatch.setattr(filling, "PAUSES", ())
        questions.forget()
        yield server
        questions.forget()
