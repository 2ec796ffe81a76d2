"""Anthropic's and Google's own formats over real HTTP on loopback, and pydantic-ai's stand-in models."""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.guard import ends

pytest.importorskip("pydantic_ai", reason="needs the extra: pip install -r requirements-models.txt")
pytest.importorskip("anthropic", reason="needs the extra: pip install -r requirements-models.txt")
pytest.importorskip("google.genai", reason="needs the extra: pip install -r requirements-models.txt")

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel as StandInModel

from runs.models import ModelKey
from runs.providers import keys, registry
from runs.providers.base import Message, ModelSettings, ProviderError, ToolRequest, ToolSchema
from runs.providers.native import NativeProvider
from tests.factories import OrganizationFactory
from tests.model_server import Answer, ModelServer, Received

KEY = "sk-test-1234567890abcdef"
KEY_HEADERS = ("x-api-key", "authorization", "x-goog-api-key")
ASK = [Message("system", "You are the PA."), Message("user", "什麼時候發布？🚀", name="Ana")]
SEARCH = ToolSchema(
    "memory_search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}}
)
DOTTED = ToolSchema("mcp.files/read", "Read a file.", {"type": "object"})
PAST = [
    *ASK,
    Message(
        "assistant",
        "Looking.",
        tool_calls=(ToolRequest("mcp.files/read", {"path": "a"}, id="3.0"), ToolRequest("x", {}, id="3.1")),
    ),
    Message("tool", "found", tool_call_id="3.0"),
    Message("tool", "", tool_call_id="3.1"),
]


def anthropic_says(*blocks: dict, stop: str = "end_turn") -> Answer:
    return Answer(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-tiny",
            "content": list(blocks),
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }
    )


def google_says(*parts: dict, finish: str = "STOP") -> Answer:
    return Answer(
        {
            "candidates": [
                {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
            ],
            "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18},
            "modelVersion": "gemini-tiny",
            "responseId": "r1",
        }
    )


def says(kind, text, **more):
    return (
        anthropic_says({"type": "text", "text": text}, **more)
        if kind == "anthropic"
        else google_says({"text": text}, **more)
    )


def asks_for(kind, name, arguments):
    if kind == "anthropic":
        return {"type": "tool_use", "id": f"toolu_{name[:8]}", "name": name, "input": arguments}
    return {"functionCall": {"name": name, "args": arguments}}


def ask(kind, server: ModelServer, messages=ASK, tools=(SEARCH,), **settings):
    provider = NativeProvider(kind, KEY, server.root_url)
    name = "claude-haiku-4-5" if kind == "anthropic" else "gemini-2.5-flash"
    return provider.complete(messages, tools, ModelSettings(model=name, **{"timeout": 10, **settings}))


def failure(kind, server, **settings) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(kind, server, **settings)
    assert KEY not in caught.value.message
    return caught.value


both = pytest.mark.parametrize("kind", ["anthropic", "google"])


@both
class TestOverHttp:
    def test_a_plain_answer(self, kind):
        with ModelServer(says(kind, "明天 🚀")) as server:
            reply = ask(kind, server)
        assert (reply.content, reply.tool_calls, reply.truncated) == ("明天 🚀", (), False)
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
        assert "tiny" in reply.model

    def test_calls_keep_their_order_and_the_text_beside_them(self, kind):
        words = {"type": "text", "text": "Both."} if kind == "anthropic" else {"text": "Both."}
        blocks = [words, asks_for(kind, "memory_search", {"query": "a"}), asks_for(kind, "unheard_of", {})]
        answer = anthropic_says(*blocks, stop="tool_use") if kind == "anthropic" else google_says(*blocks)
        with ModelServer(answer) as server:
            reply = ask(kind, server)
        assert reply.content == "Both."
        assert [(call.name, call.arguments) for call in reply.tool_calls] == [
            ("memory_search", {"query": "a"}),
            ("unheard_of", {}),
        ]

    def test_a_name_that_does_not_fit_comes_back_itself(self, kind):
        def call_what_is_offered(request: Received) -> Answer:
            tool = request.body["tools"][0]
            name = tool["name"] if kind == "anthropic" else tool["functionDeclarations"][0]["name"]
            block = asks_for(kind, name, {"path": "a"})
            return anthropic_says(block, stop="tool_use") if kind == "anthropic" else google_says(block)

        with ModelServer(call_what_is_offered) as server:
            (call,) = ask(kind, server, tools=(DOTTED,)).tool_calls
        assert call.name == "mcp.files/read"

    def test_arguments_that_cannot_be_stored_are_a_problem(self, kind):
        block = asks_for(kind, "memory_search", {"query": "a\x00b"})
        answer = anthropic_says(block, stop="tool_use") if kind == "anthropic" else google_says(block)
        with ModelServer(answer) as server:
            (call,) = ask(kind, server).tool_calls
        assert call.arguments == {} and "NUL" in call.problem

    def test_a_reply_cut_off_by_the_limit_says_so(self, kind):
        cut = {"stop": "max_tokens"} if kind == "anthropic" else {"finish": "MAX_TOKENS"}
        with ModelServer(says(kind, "Once", **cut)) as server:
            reply = ask(kind, server, max_output_tokens=1)
        assert (reply.content, reply.truncated) == ("Once", True)

    def test_an_empty_reply(self, kind):
        with ModelServer(anthropic_says() if kind == "anthropic" else google_says()) as server:
            error = failure(kind, server)
        assert (error.code, error.retryable) == ("MODEL_EMPTY_REPLY", True)

    @pytest.mark.parametrize(
        ("status", "code", "retryable"),
        [
            (429, "MODEL_RATE_LIMITED", True),
            (500, "MODEL_UNAVAILABLE", True),
            (529, "MODEL_UNAVAILABLE", True),
            (400, "MODEL_REFUSED", False),
            (401, "MODEL_REFUSED", False),
            (404, "MODEL_REFUSED", False),
        ],
    )
    def test_a_status(self, kind, status, code, retryable):
        body = {
            "type": "error",
            "error": {"type": "x", "code": status, "message": f"No, {KEY}", "status": "X"},
        }
        with ModelServer(Answer(body, status, {"Retry-After": "7"})) as server:
            error = failure(kind, server)
            assert len(server.received) == 1, "the SDK must not retry by itself"
        assert (error.code, error.retryable) == (code, retryable)
        assert "No, [key]" in error.message
        assert error.retry_after == (7.0 if retryable else None)

    @pytest.mark.parametrize("body", [b'{"content": [', b"<html>Gateway</html>", b"[]", b"{}"])
    def test_a_body_that_is_no_answer_is_a_provider_error(self, kind, body):
        with ModelServer(Answer(body)) as server:
            assert failure(kind, server).code in {"MODEL_UNAVAILABLE", "MODEL_EMPTY_REPLY"}

    def test_a_connection_dropped_in_the_middle(self, kind):
        answer = says(kind, "A long answer")
        answer.cut_after = 40
        with ModelServer(answer) as server:
            error = failure(kind, server)
            assert len(server.received) == 1
        assert (error.code, error.retryable) == ("MODEL_CONNECTION", True)

    def test_a_reply_that_never_ends_is_cut(self, kind):
        with ModelServer(says(kind, "x" * (3 * 1024 * 1024))) as server:
            error = failure(kind, server)
        assert (error.code, error.retryable) == ("MODEL_REFUSED", False)
        assert "larger than" in error.message

    def test_the_whole_call_ends_in_time_however_slow_the_server(self, kind):
        ask_once = says(kind, "warm")
        for slow in (Answer(ask_once.body, before=30), Answer(ask_once.body, drip=0.05)):
            with ModelServer(ask_once, slow) as server:
                ask(kind, server)
                with ends():
                    error = failure(kind, server, timeout=0.5)
            assert (error.code, error.retryable) == ("MODEL_TIMEOUT", True)

    def test_eight_threads_and_a_forked_child(self, kind):
        with ModelServer(says(kind, "ok")) as server:
            with ThreadPoolExecutor(8) as pool:
                assert list(pool.map(lambda _: ask(kind, server).content, range(8))) == ["ok"] * 8
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(writing, ask(kind, server).content.encode())
                finally:
                    os._exit(0)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                assert pipe.read() == b"ok"
            os.waitpid(child, 0)
            assert ask(kind, server).content == "ok"


class TestAnthropicFormat:
    def test_a_conversation_goes_out_in_its_form(self):
        with ModelServer(says("anthropic", "ok")) as server:
            ask("anthropic", server, PAST, (DOTTED,), temperature=0.0, max_output_tokens=50)
            request = server.received[0]
        assert request.path.startswith("/v1/messages")
        assert KEY in {
            request.headers.get("x-api-key"),
            request.headers["authorization"].removeprefix("Bearer "),
        }
        assert (request.body["max_tokens"], request.body["temperature"]) == (50, 0.0)
        assert "You are the PA." in str(request.body["system"])
        told, said, answered = request.body["messages"]
        assert told["role"] == "user" and "Ana: 什麼時候發布？🚀" in str(told["content"])
        assert [block["type"] for block in said["content"]] == ["text", "tool_use", "tool_use"]
        assert said["content"][1]["name"] == request.body["tools"][0]["name"] != "mcp.files/read"
        assert said["content"][1]["input"] == {"path": "a"}
        assert [block["tool_use_id"] for block in answered["content"]] == ["3-0", "3-1"]
        assert "found" in str(answered["content"][0]["content"])

    def test_a_limit_is_always_sent_and_nothing_is_streamed(self):
        with ModelServer(says("anthropic", "ok")) as server:
            ask("anthropic", server)
            ask("anthropic", server, max_output_tokens=64_000)
            sent = [
                (request.body["max_tokens"], request.body.get("stream", False)) for request in server.received
            ]
        assert sent == [(8192, False), (64_000, False)]


class TestGoogleFormat:
    def test_a_conversation_goes_out_in_its_form(self):
        with ModelServer(says("google", "ok")) as server:
            ask("google", server, PAST, (DOTTED,), max_output_tokens=50)
            request = server.received[0]
        assert "gemini-2.5-flash:generateContent" in request.path
        assert request.headers["x-goog-api-key"] == KEY
        assert "You are the PA." in str(request.body["systemInstruction"])
        assert [turn["role"] for turn in request.body["contents"]] == ["user", "model", "user"]
        answers = [part["functionResponse"]["name"] for part in request.body["contents"][2]["parts"]]
        assert answers[0] == request.body["tools"][0]["functionDeclarations"][0]["name"]


@both
@pytest.mark.django_db
class TestKeysOfAnOrganization:
    """A key set on the page of models, through the SDK, to a server that speaks the provider's format."""

    ADDRESSES = {"anthropic": "ANTHROPIC_BASE_URL", "google": "GOOGLE_GEMINI_BASE_URL"}
    VARIABLES = {"anthropic": ("ANTHROPIC_API_KEY",), "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY")}

    def asked(self, kind, organization, monkeypatch):
        """What the server received from a model of the organization, with another key in the environment."""
        name = "claude-haiku-4-5" if kind == "anthropic" else "gemini-2.5-flash"
        with ModelServer(says(kind, "Yes, I am here.")) as server:
            monkeypatch.setenv(self.ADDRESSES[kind], server.root_url)
            for variable in self.VARIABLES[kind]:
                monkeypatch.setenv(variable, "sk-of-the-environment")
            model = f"{kind}:{name}"
            provider, named = registry.get(model, keys.of(organization.pk, model))
            reply = provider.complete(ASK, (SEARCH,), ModelSettings(model=named, timeout=10))
            assert reply.content == "Yes, I am here."
            sent = server.received[0].headers
            return {sent.get(name, "").removeprefix("Bearer ") for name in KEY_HEADERS} - {""}

    def test_its_own_key_is_sent_and_the_environments_for_everybody_else(self, kind, monkeypatch):
        mine, theirs = OrganizationFactory(), OrganizationFactory()
        row = ModelKey(organization=mine, provider=kind)
        row.keep_key(KEY)
        row.save()
        assert self.asked(kind, mine, monkeypatch) == {KEY}
        assert self.asked(kind, theirs, monkeypatch) == {"sk-of-the-environment"}


class TestStandIns:
    """pydantic-ai's own models, to see what every one of its adapters is given."""

    def complete(self, model, messages=ASK, tools=(SEARCH,)):
        class StandIn(NativeProvider):
            def model(self, name):
                return model

        settings = ModelSettings(model=f"stand-in-{id(model)}", timeout=10)
        return StandIn("anthropic", KEY, "http://127.0.0.1").complete(messages, tools, settings)

    def seen(self, messages):
        received = []

        def answer(turns, _):
            received.extend(turns)
            return ModelResponse(parts=[TextPart("ok")])

        self.complete(FunctionModel(answer), messages)
        return [(type(turn).__name__, [part.part_kind for part in turn.parts]) for turn in received]

    def test_the_test_model_calls_every_tool(self):
        (call,) = self.complete(StandInModel()).tool_calls
        assert call.name == "memory_search" and call.problem is None

    def test_turns_alternate_and_the_model_is_always_asked_something(self):
        told, said = ModelRequest.__name__, ModelResponse.__name__
        assert self.seen(PAST) == [
            (told, ["system-prompt", "user-prompt"]),
            (said, ["text", "tool-call", "tool-call"]),
            (told, ["tool-return", "tool-return"]),
        ]
        only_system = [Message("system", "a")]
        assert self.seen(only_system) == [(told, ["system-prompt", "user-prompt"])]
        own_words_last = [Message("assistant", "a"), Message("assistant", "b")]
        assert self.seen(own_words_last) == [
            (told, ["user-prompt"]),
            (said, ["text", "text"]),
            (told, ["user-prompt"]),
        ]
        assert self.seen([]) == [(told, ["user-prompt"])]
        late_system = [*ASK, Message("assistant", "a"), Message("system", "b")]
        assert self.seen(late_system)[-1] == (told, ["user-prompt"])

    @pytest.mark.parametrize("raw", ['{"query": ', "[1]", '{"q": 1, "q": 2}', '{"q": NaN}'])
    def test_arguments_left_as_text_are_read_as_strictly_as_elsewhere(self, raw):
        model = FunctionModel(lambda *_: ModelResponse(parts=[ToolCallPart("memory_search", raw)]))
        (call,) = self.complete(model).tool_calls
        assert call.arguments == {} and call.problem
