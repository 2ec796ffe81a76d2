"""The chat provider against a real HTTP server on loopback."""

import gzip
import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import pytest

from runs.providers import asking, loop
from runs.providers.base import Message, ModelSettings, ProviderError, Reply, ToolRequest, ToolSchema
from runs.providers.chat import ChatProvider
from tests.model_server import Answer, ModelServer, Received, asks_for, says

KEY = "sk-test-1234567890abcdef"
ASK = [Message("user", "What now?")]
SEARCH = ToolSchema(
    "memory_search",
    "Search the memories.",
    {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
)
DOTTED = ToolSchema("mcp.files/read", "Read a file.", {"type": "object"})


def ask(server: ModelServer, messages=ASK, tools=(SEARCH,), **settings) -> Reply:
    provider = ChatProvider(server.base_url, KEY)
    return provider.complete(messages, tools, ModelSettings(model="tiny", **{"timeout": 10, **settings}))


def failure(server: ModelServer, **settings) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(server, **settings)
    assert KEY not in caught.value.message
    return caught.value


def only_call(answer: Answer, tools=(SEARCH,)) -> ToolRequest:
    with ModelServer(answer) as server:
        (call,) = ask(server, tools=tools).tool_calls
    return call


class TestWhatIsSaid:
    def test_a_plain_answer_comes_with_its_usage_and_model(self):
        with ModelServer(says("Rest.")) as server:
            reply = ask(server)
        assert (reply.content, reply.tool_calls, reply.model) == ("Rest.", (), "tiny-1")
        assert (reply.usage.input_tokens, reply.usage.output_tokens) == (11, 7)
        assert not reply.truncated

    def test_one_call(self):
        call = only_call(says(None, asks_for("memory_search", {"query": "release"})))
        assert call == ToolRequest("memory_search", {"query": "release"}, id="call_x")

    def test_several_calls_keep_their_order_and_the_text_beside_them(self):
        calls = [asks_for("memory_search", {"query": str(n)}, f"c{n}") for n in range(5)]
        with ModelServer(says("Looking.", *calls)) as server:
            reply = ask(server)
        assert reply.content == "Looking."
        assert [call.arguments["query"] for call in reply.tool_calls] == ["0", "1", "2", "3", "4"]

    def test_an_unknown_tool_is_passed_through(self):
        assert only_call(says(None, asks_for("launch_rockets", {}))).name == "launch_rockets"

    def test_chinese_and_emoji_survive_both_ways(self):
        text = "發布計畫：先測試，再上線 🚀👩‍👩‍👧"
        with ModelServer(lambda request: says(request.body["messages"][0]["content"])) as server:
            assert ask(server, [Message("user", text)]).content == text
        assert only_call(says(None, asks_for("memory_search", {"query": text}))).arguments == {"query": text}

    def test_a_reply_cut_off_by_the_limit_keeps_its_text_and_says_so(self):
        with ModelServer(says("Once upon a", finish="length")) as server:
            reply = ask(server)
        assert (reply.content, reply.truncated) == ("Once upon a", True)

    def test_text_in_parts_is_joined(self):
        with ModelServer(says([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])) as server:
            assert ask(server).content == "ab"

    def test_a_refusal_in_words_is_what_the_model_said(self):
        answer = says(None)
        answer.body["choices"][0]["message"]["refusal"] = "I will not."
        with ModelServer(answer) as server:
            assert ask(server).content == "I will not."

    def test_text_that_cannot_be_stored_is_made_storable(self):
        with ModelServer(says("a\x00b\ud800c")) as server:
            assert ask(server).content == "a\ufffdb\ufffdc"

    def test_a_compressed_answer_is_read(self):
        packed = gzip.compress(json.dumps(says("Small.").body).encode())
        with ModelServer(Answer(packed, headers={"Content-Encoding": "gzip"})) as server:
            assert ask(server).content == "Small."


class TestWhatIsSent:
    def sent(self, messages, tools=(SEARCH,), **settings) -> Received:
        with ModelServer(says("ok")) as server:
            ask(server, messages, tools, **settings)
            return server.received[0]

    def test_a_whole_conversation(self):
        request = self.sent(
            [
                Message("system", "You are the PA."),
                Message("user", "Ship it", name="Ana"),
                Message(
                    "assistant", "", tool_calls=(ToolRequest("memory_search", {"query": "版"}, id="3.0"),)
                ),
                Message("tool", "", tool_call_id="3.0"),
                Message("assistant", "Nothing found."),
            ]
        )
        assert request.path == "/v1/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body["model"] == "tiny"
        assert request.body["messages"] == [
            {"role": "system", "content": "You are the PA."},
            {"role": "user", "content": "Ana: Ship it"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [asks_for("memory_search", {"query": "版"}, "3-0")],
            },
            {"role": "tool", "tool_call_id": "3-0", "content": ""},
            {"role": "assistant", "content": "Nothing found."},
        ]

    def test_tools_go_out_with_their_schema_and_none_without_tools(self):
        (tool,) = self.sent(ASK).body["tools"]
        assert tool["function"] == {
            "name": "memory_search",
            "description": "Search the memories.",
            "parameters": SEARCH.parameters,
        }
        assert "tools" not in self.sent(ASK, ()).body

    def test_a_schema_without_properties_gets_them(self):
        (tool,) = self.sent(ASK, (DOTTED,)).body["tools"]
        assert tool["function"]["parameters"] == {"type": "object", "properties": {}}

    def test_a_name_that_does_not_fit_goes_out_changed_and_comes_back_itself(self):
        def call_what_is_offered(request):
            return says(None, asks_for(request.body["tools"][0]["function"]["name"], {"path": "a"}))

        with ModelServer(call_what_is_offered) as server:
            (call,) = ask(server, tools=(DOTTED,)).tool_calls
            past = [
                *ASK,
                Message("assistant", "", tool_calls=(call,)),
                Message("tool", "x", tool_call_id="1.0"),
            ]
            ask(server, past, (DOTTED,))
        assert call.name == "mcp.files/read"
        offered = server.received[1].body["tools"][0]["function"]["name"]
        assert offered.replace("_", "").isalnum() and len(offered) <= 64
        assert server.received[1].body["messages"][1]["tool_calls"][0]["function"]["name"] == offered

    def test_settings_go_out_only_when_set(self):
        assert {"temperature", "max_tokens"}.isdisjoint(self.sent(ASK).body)
        body = self.sent(ASK, temperature=0.0, max_output_tokens=50).body
        assert (body["temperature"], body["max_tokens"]) == (0.0, 50)

    def test_the_facts_for_the_local_model_stay_here(self):
        assert "secret-goal" not in json.dumps(self.sent(ASK, facts={"goal": "secret-goal"}).body)

    def test_lone_surrogates_do_not_break_the_request(self):
        assert self.sent([Message("user", "a\ud83d")]).body["messages"][0]["content"] == "a\ufffd"

    def test_the_owner_s_organisation_is_not_told_to_other_servers(self, monkeypatch):
        monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
        assert "openai-organization" not in self.sent(ASK).headers

    def test_a_speaker_s_name_stays_on_one_line(self):
        (message,) = self.sent([Message("user", "hi", name="Ana\nsystem")]).body["messages"]
        assert message["content"] == "Ana system: hi"

    def test_a_server_on_this_machine_is_asked_directly_whatever_the_proxy(self, monkeypatch):
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, "http://127.0.0.1:1")
        assert self.sent(ASK).path == "/v1/chat/completions"

    def test_any_other_goes_through_the_environment_s_proxy(self, monkeypatch):
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with ModelServer(says("ok")) as proxy:
            monkeypatch.setenv("http_proxy", proxy.root_url)
            provider = ChatProvider("http://models.example/v1", KEY)
            assert provider.complete(ASK, (), ModelSettings(model="tiny", timeout=10)).content == "ok"
        assert proxy.received[0].path == "http://models.example/v1/chat/completions"


class TestArguments:
    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            ('{"query": "a" "b"}', "line 1, column 15"),
            ('{"query":', "not valid JSON"),
            ("search please", "near"),
            ('["a"]', "one JSON object, not an array"),
            ('"a"', "not a string"),
            ("null", "not null"),
            ("12", "not a number"),
            ('{"q": 1, "q": 2}', 'key "q" twice'),
            ('{"q": NaN}', "NaN"),
            ('{"q": -Infinity}', "-Infinity"),
            ('{"q": 1e999}', "too large"),
            ('{"q": ' + "9" * 5000 + "}", "too many digits"),
            ('{"q": "\\u0000"}', "NUL"),
            ('{"q": {"r": ["\\ud800"]}}', "$.q.r[0]: text holds a lone surrogate"),
            ('{"' + "k" * 9000 + '": "\\u0000"}', "$.kkk"),
            ('{"q": ' + "[" * 100 + "]" * 100 + "}", "nested deeper"),
            ('{"q": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deeply"),
        ],
    )
    def test_what_cannot_be_read_becomes_the_call_s_problem(self, raw, words):
        call = only_call(says(None, asks_for("memory_search", raw)))
        assert (call.name, call.arguments) == ("memory_search", {})
        assert words in call.problem
        assert len(call.problem) < 400

    @pytest.mark.parametrize("raw", ["", "  ", "{}"])
    def test_nothing_at_all_means_no_arguments(self, raw):
        call = only_call(says(None, asks_for("memory_search", raw)))
        assert (call.arguments, call.problem) == ({}, None)

    def test_an_object_instead_of_text_is_taken(self):
        call = asks_for("memory_search", {})
        call["function"]["arguments"] = {"query": "a"}
        assert only_call(says(None, call)).arguments == {"query": "a"}

    def test_arguments_cut_off_by_the_limit_say_so(self):
        answer = says(None, asks_for("memory_search", '{"query": "abc'), finish="length")
        assert "cut off at the output limit" in only_call(answer).problem

    @pytest.mark.parametrize(
        "call", [{}, {"function": None}, {"function": {"name": 3}}, {"id": 5, "function": {}}]
    )
    def test_a_call_without_a_name_is_a_problem_too(self, call):
        assert "names no tool" in only_call(says(None, call)).problem


class TestFailures:
    def test_an_empty_reply(self):
        for answer in (says(None), says("  \n"), Answer({"choices": []}), Answer({})):
            with ModelServer(answer) as server:
                error = failure(server)
            assert (error.code, error.retryable) == ("MODEL_EMPTY_REPLY", True)

    def test_an_empty_reply_at_the_output_limit_is_not_asked_again(self):
        with ModelServer(says("", finish="length")) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_EMPTY_REPLY", False)

    def test_rate_limited_says_how_long_to_wait(self):
        with ModelServer(Answer({"error": {"message": "Slow down"}}, 429, {"Retry-After": "7"})) as server:
            error = failure(server)
        assert (error.code, error.retryable, error.retry_after) == ("MODEL_RATE_LIMITED", True, 7.0)
        assert "Slow down" in error.message

    def test_rate_limited_until_a_date(self):
        with ModelServer(
            Answer({}, 429, {"Retry-After": formatdate(time.time() + 60, usegmt=True)})
        ) as server:
            assert 50 < failure(server).retry_after <= 60

    def test_spent_money_does_not_come_back_by_asking(self):
        body = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
        with ModelServer(Answer(body, 429)) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_RATE_LIMITED", False)

    @pytest.mark.parametrize("status", [408, 409, 500, 502, 503, 504, 529])
    def test_a_server_in_trouble(self, status):
        with ModelServer(Answer({"error": "busy"}, status)) as server:
            error = failure(server)
            assert len(server.received) == 1, "the SDK must not retry by itself"
        assert (error.code, error.retryable) == ("MODEL_UNAVAILABLE", True)

    @pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 307])
    def test_a_request_that_is_refused(self, status):
        message = f"Incorrect API key provided: {KEY}. Also Bearer abc.def and sk-other***key. " + "x" * 500
        headers = {"Location": "http://127.0.0.1:1/"} if status == 307 else {}
        with ModelServer(Answer({"error": {"message": message}}, status, headers)) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_REFUSED", False)
        assert "Incorrect API key provided: [key]" in error.message
        assert "abc.def" not in error.message and "other" not in error.message
        assert len(error.message) < 400

    def test_a_failure_inside_a_success(self):
        with ModelServer(Answer({"error": {"message": "upstream", "code": 429}})) as server:
            assert failure(server).code == "MODEL_RATE_LIMITED"

    def test_a_filtered_reply_is_a_refusal(self):
        with ModelServer(says("half a", finish="content_filter")) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_REFUSED", False)

    @pytest.mark.parametrize("body", [b'{"choices": [', b"<html>Gateway</html>", b"", b"[]", b"\xff\xfe"])
    def test_a_body_that_is_no_completion(self, body):
        with ModelServer(Answer(body)) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_UNAVAILABLE", True)

    def test_a_connection_dropped_in_the_middle(self):
        with ModelServer(Answer(says("A long answer").body, cut_after=40)) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_CONNECTION", True)

    def test_nobody_listens(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            url = f"http://user:{KEY}@127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(ProviderError) as caught:
            ChatProvider(url, KEY).complete(ASK, (), ModelSettings(model="tiny", timeout=5))
        assert (caught.value.code, caught.value.retryable) == ("MODEL_CONNECTION", True)
        assert KEY not in caught.value.message and "127.0.0.1" in caught.value.message

    def test_a_reply_that_never_ends_is_cut(self):
        with ModelServer(says("x" * (3 * 1024 * 1024))) as server:
            error = failure(server)
        assert (error.code, error.retryable) == ("MODEL_REFUSED", False)
        assert "larger than" in error.message

    def test_a_small_body_that_unpacks_to_a_huge_one_is_cut(self):
        bomb = gzip.compress(b" " * (64 * 1024 * 1024))
        for status in (200, 500):
            with ModelServer(Answer(bomb, status, {"Content-Encoding": "gzip"})) as server:
                assert "larger than" in failure(server).message

    def test_what_cannot_be_sent_is_a_provider_error_too(self):
        with ModelServer(says("never asked")) as server:
            error = failure(server, temperature=float("nan"))
            assert not server.received
        assert (error.code, error.retryable) == ("MODEL_REFUSED", False)

    def test_the_provider_does_not_show_its_key(self):
        assert KEY not in repr(ChatProvider("http://127.0.0.1/v1", KEY))


class TestDeadline:
    @pytest.mark.parametrize(
        "slow",
        [
            Answer(says("late").body, before=30),
            Answer(says("late").body, drip=0.05),
            Answer(says("late").body, drip_headers=0.05),
            Answer({"error": "late"}, 500, drip=0.2),
        ],
        ids=["silent", "dripping body", "dripping header", "dripping error"],
    )
    def test_the_whole_call_ends_in_time_however_slow_the_server(self, slow):
        with ModelServer(slow) as server:
            started = time.monotonic()
            error = failure(server, timeout=0.6)
            took = time.monotonic() - started
        assert (error.code, error.retryable) == ("MODEL_TIMEOUT", True)
        assert 0.5 < took < 15  # the answer would take longer

    def test_the_next_call_is_served_on_a_fresh_connection(self):
        with ModelServer(Answer(says("late").body, drip=0.05), says("in time")) as server:
            failure(server, timeout=2)  # it has come to the server by then, however busy the machine
            assert ask(server).content == "in time"
            assert len(server.connections) == 2

    def test_a_worker_told_to_stop_lets_go_of_the_call(self):
        class Stop(BaseException):
            pass

        def stop(*_):
            raise Stop

        before = signal.signal(signal.SIGALRM, stop)
        with ModelServer(Answer(says("late").body, before=30), says("in time")) as server:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                with pytest.raises(Stop):
                    ask(server)
            finally:
                signal.signal(signal.SIGALRM, before)
            assert ask(server).content == "in time"


class TestProcesses:
    def test_eight_threads_at_once(self):
        together = threading.Barrier(8, timeout=20)

        def answer(request):
            together.wait()  # passes only when all eight are being served at the same time
            return says(request.body["messages"][0]["content"])

        with ModelServer(answer) as server, ThreadPoolExecutor(8) as pool:
            replies = pool.map(lambda n: ask(server, [Message("user", str(n))], timeout=30).content, range(8))
            assert list(replies) == [str(n) for n in range(8)]

    def test_connections_are_kept_between_calls(self):
        with ModelServer(says("ok")) as server:
            for _ in range(5):
                ask(server)
            assert len(server.connections) == 1

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
    def test_a_fork_while_a_call_is_under_way_harms_neither(self):
        under_way = threading.Event()

        def answer(request):
            under_way.set()
            text = request.body["messages"][0]["content"]
            return Answer(says(text).body, before=0.5 if text == "slow" else 0)

        with ModelServer(answer) as server, ThreadPoolExecutor(1) as pool:
            slow = pool.submit(ask, server, [Message("user", "slow")])
            assert under_way.wait(10)
            child = os.fork()
            if child == 0:
                heard = ""
                try:
                    heard = ask(server, [Message("user", "child")]).content
                finally:
                    os._exit(0 if heard == "child" else 1)
            assert slow.result(10).content == "slow"
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
    def test_parent_and_forked_child_both_go_on_asking(self):
        with ModelServer(lambda request: says(request.body["messages"][0]["content"])) as server:
            assert ask(server, [Message("user", "before")]).content == "before"
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    os.write(writing, ask(server, [Message("user", "child")]).content.encode())
                finally:
                    os._exit(0)
            assert ask(server, [Message("user", "parent")]).content == "parent"
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                assert pipe.read() == b"child"
            os.waitpid(child, 0)
            assert ask(server, [Message("user", "after")]).content == "after"
            assert len(server.connections) == 2, "the child must not speak on the parent's connection"


@pytest.mark.parametrize("awaited", [False, True])
def test_as_many_calls_of_a_reply_are_kept_however_it_is_asked_for(awaited, monkeypatch, settings):
    settings.CALLS_IN_REPLY = 3
    calls = [asks_for("memory_search", {"query": str(n)}, f"c{n}") for n in range(7)]
    with ModelServer(says(None, *calls)) as server:
        monkeypatch.setenv("DEPUTY_MODEL_BASE_URL", server.base_url)
        asked = ("compatible:tiny", ASK, (SEARCH,), lambda name: ModelSettings(model=name, timeout=10))
        reply = loop.call(lambda: asking.answer(*asked), 20) if awaited else asking.ask(*asked)

    assert [call.arguments.get("query") for call in reply.tool_calls] == ["0", "1", "2", None]
    assert reply.tool_calls[-1].code == "TOO_MANY_CALLS"
