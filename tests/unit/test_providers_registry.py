"""Which provider answers for a model's name, and when a failed call is tried again."""

import subprocess
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from runs.providers import failures, registry, retry
from runs.providers.base import ProviderError
from runs.providers.chat import ChatProvider

KEY = "sk-test-1234567890abcdef"
VARIABLES = """
OPENAI_API_KEY OPENAI_BASE_URL OLLAMA_BASE_URL OLLAMA_API_KEY DEPUTY_MODEL_BASE_URL DEPUTY_MODEL_API_KEY
ANTHROPIC_API_KEY ANTHROPIC_BASE_URL GOOGLE_API_KEY GEMINI_API_KEY GOOGLE_GEMINI_BASE_URL
"""


class Scripted:
    """Named in DEPUTY_PROVIDERS by the tests below."""

    def complete(self, messages, tools, settings):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for variable in VARIABLES.split():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(registry, "settings", SimpleNamespace(DEPUTY_PROVIDERS={}))


@pytest.fixture
def added(monkeypatch):
    def add(**paths):
        monkeypatch.setattr(registry, "settings", SimpleNamespace(DEPUTY_PROVIDERS=paths))

    return add


def refused(model: str) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        registry.check(model)
    assert not caught.value.retryable
    return caught.value


class TestNames:
    def test_openai(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
        assert registry.get("openai:gpt-5") == (ChatProvider("https://api.openai.com/v1", KEY), "gpt-5")

    def test_openai_s_address_may_be_another_s_who_asks_for_no_key(self, monkeypatch):
        monkeypatch.setenv("OPENAI_BASE_URL", "http://10.0.0.1:8000/v1/")
        assert registry.get("openai:qwen") == (ChatProvider("http://10.0.0.1:8000/v1", ""), "qwen")

    def test_ollama_needs_nothing_and_its_tags_have_a_colon_of_their_own(self):
        assert registry.get("ollama:qwen3:8b") == (ChatProvider("http://127.0.0.1:11434/v1", ""), "qwen3:8b")

    def test_ollama_elsewhere(self, monkeypatch):
        monkeypatch.setenv("OLLAMA_BASE_URL", "http://gpu:11434/v1")
        assert registry.get("ollama:a")[0] == ChatProvider("http://gpu:11434/v1", "")

    def test_any_compatible_server(self, monkeypatch):
        monkeypatch.setenv("DEPUTY_MODEL_BASE_URL", "https://models.example/v1")
        monkeypatch.setenv("DEPUTY_MODEL_API_KEY", KEY)
        assert registry.get("compatible:org/model") == (
            ChatProvider("https://models.example/v1", KEY),
            "org/model",
        )

    def test_the_local_model(self, monkeypatch):
        monkeypatch.setattr(registry, "LOCAL", f"{__name__}.Scripted")
        provider, name = registry.get("local")
        assert (type(provider).__name__, name) == ("Scripted", "local")

    def test_a_provider_of_one_s_own(self, added):
        added(scripted=f"{__name__}.Scripted")
        assert registry.get("scripted:some:plan")[1] == "some:plan"
        provider, name = registry.get("scripted")
        assert (type(provider).__name__, name) == ("Scripted", "scripted")

    def test_a_provider_of_one_s_own_may_stand_in_for_a_built_in_one(self, added):
        added(openai=f"{__name__}.Scripted")
        assert type(registry.get("openai:gpt-5")[0]).__name__ == "Scripted"


class TestMistakes:
    @pytest.mark.parametrize("model", ["", " ", "gpt-5", "opnai:gpt-5", "local:x", ":x", "x" * 500])
    def test_an_unknown_name_is_told_what_is_known(self, model):
        error = refused(model)
        assert error.code == "MODEL_UNKNOWN"
        assert "'local'" in error.message and "'ollama:NAME'" in error.message
        assert len(error.message) < 400

    @pytest.mark.parametrize("model", ["openai", "openai:", "ollama: "])
    def test_a_prefix_without_a_name(self, model):
        error = refused(model)
        assert error.code == "MODEL_UNKNOWN" and ":NAME'" in error.message

    def test_a_missing_key_names_its_variable(self):
        error = refused("openai:gpt-5")
        assert error.code == "MODEL_REFUSED" and "set OPENAI_API_KEY" in error.message

    def test_a_missing_address_names_its_variable(self):
        assert "Set DEPUTY_MODEL_BASE_URL" in refused("compatible:x").message

    @pytest.mark.parametrize(
        "url", ["models.example/v1", "ftp://secret", "http://:80", "http://secret:99999/", "http://[::1"]
    )
    def test_an_address_that_is_none_is_not_shown(self, monkeypatch, url):
        monkeypatch.setenv("DEPUTY_MODEL_BASE_URL", url)
        error = refused("compatible:x")
        assert "DEPUTY_MODEL_BASE_URL is not a URL" in error.message and url not in error.message

    @pytest.mark.parametrize("key", ["sk-abc\ndef", "sk-abc def", "sk-ключ"])
    def test_a_key_that_no_header_can_carry_is_not_shown(self, monkeypatch, key):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        error = refused("openai:gpt-5")
        assert "OPENAI_API_KEY" in error.message and "sk-" not in error.message

    def test_a_path_that_leads_nowhere(self, added):
        added(mine="nowhere.at.All")
        assert "nowhere.at.All" in refused("mine:x").message

    @pytest.mark.parametrize("prefix", ["anthropic", "google"])
    def test_a_native_model_without_its_packages_says_what_to_install(self, monkeypatch, prefix):
        from runs.providers import native

        monkeypatch.setattr(native, "find_spec", lambda _: None)
        assert "pip install -r requirements-models.txt" in refused(f"{prefix}:some-model").message

    def test_the_sdk_is_not_imported_until_a_model_is_asked(self):
        code = (
            "import sys; from django.conf import settings; settings.configure(DEPUTY_PROVIDERS={});"
            "from runs.providers import registry; registry.get('ollama:x');"
            "print([m for m in ('openai', 'httpx2', 'pydantic', 'pydantic_ai') if m in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"


class TestRetry:
    busy = ProviderError("MODEL_UNAVAILABLE", "busy", retryable=True)

    def test_what_passes_is_asked_again_as_long_as_the_caller_has_time(self):
        assert None not in [retry.delay(n, self.busy, "run_1") for n in (1, 4, 5, 40, 4000)]
        assert retry.delay(40, self.busy, "run_1") <= retry.MAX_DELAY

    def test_what_may_never_pass_gets_four_attempts(self):
        silent = ProviderError("MODEL_EMPTY_REPLY", "nothing", retryable=True)
        assert [retry.delay(n, silent) is None for n in (1, 2, 3, 4, 5)] == [False] * 3 + [True] * 2

    def test_what_is_not_retryable_is_given_up_at_once(self):
        assert retry.delay(1, ProviderError("MODEL_REFUSED", "bad key", retry_after=1)) is None

    def test_the_wait_doubles_within_its_jitter(self):
        for attempt, longest in ((1, 1), (2, 2), (3, 4)):
            assert longest / 2 <= retry.delay(attempt, self.busy, "run_1") <= longest

    def test_the_server_s_wish_is_the_least(self):
        limited = ProviderError("MODEL_RATE_LIMITED", "slow", retryable=True, retry_after=30.0)
        assert 30 <= retry.delay(1, limited, "run_1") <= 31

    def test_a_wish_of_an_hour_is_not_waited_for(self):
        limited = ProviderError("MODEL_RATE_LIMITED", "slow", retryable=True, retry_after=3600.0)
        assert retry.delay(1, limited) is None

    def test_a_limit_without_a_wish_waits_longer_than_a_hiccup(self):
        limited = ProviderError("MODEL_RATE_LIMITED", "slow", retryable=True)
        assert retry.delay(1, limited, "a") > retry.delay(1, self.busy, "a")

    def test_the_same_run_waits_the_same_and_another_does_not(self):
        assert retry.delay(2, self.busy, "run_1") == retry.delay(2, self.busy, "run_1")
        assert len({retry.delay(2, self.busy, f"run_{n}") for n in range(50)}) == 50


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({}, None),
            ({"retry-after": "3"}, 3.0),
            ({"retry-after": "0.5"}, 0.5),
            ({"retry-after": "-1"}, 0.0),
            ({"retry-after": "soon"}, None),
            ({"retry-after": "nan"}, None),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ],
    )
    def test_seconds(self, headers, seconds):
        assert failures.retry_after(headers) == seconds

    def test_a_date_is_counted_from_now_and_a_past_one_is_now(self):
        now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
        date = format_datetime(now, usegmt=True)
        assert failures.retry_after({"retry-after": date}, now.timestamp() - 20) == 20
        assert failures.retry_after({"retry-after": date}, now.timestamp() + 20) == 0


class TestServersWords:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            ('{"error": {"message": "No such model"}}', "No such model"),
            ('{"error": "no such model"}', "no such model"),
            ('{"detail": "Not Found"}', "Not Found"),
            ('[{"error": {"code": 400, "message": "From Google"}}]', "From Google"),
            ('{"message": "plain"}', "plain"),
            ("<html><h1>502 Bad\n Gateway</h1></html>", "502 Bad Gateway"),
            ("", "no reason given"),
        ],
    )
    def test_are_found_wherever_a_server_puts_them(self, body, words):
        assert failures.words(body) == words

    def test_hold_no_key(self):
        said = failures.words(f'{{"error": "key {KEY} with x-api-key: topsecret and Bearer abc"}}', KEY)
        assert said == "key [key] with [key] and [key]"
        assert failures.words("sent Authorization: Bearer abc to us") == "sent [key] to us"
