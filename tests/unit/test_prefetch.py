"""Questions are embedded before a step; a slow server of embeddings does not stop the worker."""

import pytest

from runs.context import prefetch
from runs.providers.base import ToolRequest


@pytest.fixture
def server(monkeypatch, settings):
    """A server of embeddings whose answers take as long as `server.seconds` says; `server.asked`: by whom."""

    class Server:
        seconds, now, asked = 0.0, 100.0, []

        def warm(self, question):
            self.asked.append(question)
            self.now += self.seconds

    server = Server()
    server.asked = []
    settings.EMBEDDING_MODEL = "compatible:slow"
    monkeypatch.setattr(prefetch, "warm", server.warm)
    monkeypatch.setattr(prefetch, "_asked_again_at", 0.0)
    monkeypatch.setattr(prefetch.time, "monotonic", lambda: server.now)
    return server


def ask(*questions):
    prefetch.of_calls(ToolRequest("memory_search", {"query": question}) for question in questions)


def test_a_quick_server_is_asked_every_question(server):
    server.seconds = 0.1
    ask("one", "two")

    assert server.asked == ["one", "two"]


def test_a_worker_goes_on_without_a_slow_server_for_a_while(server):
    server.seconds = 2.0
    ask("one", "two", "three")
    assert server.asked == ["one"]

    server.now += 5.9
    ask("still too early")
    server.now += 0.2
    ask("four")
    assert server.asked == ["one", "four"]


def test_the_embedded_model_is_asked_every_question(server, settings):
    settings.EMBEDDING_MODEL = "embedded:multilingual"
    server.seconds = 2.0
    ask("one", "two")

    assert server.asked == ["one", "two"]
