"""Secrets do not reach people or logs."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from common import current, logs, redact
from common.trace_ids import trace_id

CANARY = "canary-5f0c1e7a9d"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def known(monkeypatch):
    """The environment holds the canary as a model's key."""
    found = redact.secrets_of({"OPENAI_API_KEY": CANARY, "HOME": "/home/ada", "MY_TOKEN": "short"})
    monkeypatch.setattr(redact, "environment_secrets", lambda: found)
    return found


def record(message, *arguments, **more):
    return logging.LogRecord("runs.x", logging.WARNING, __file__, 1, message, arguments, more.get("exc_info"))


@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "db_password", "api_key", "apiKey", "API-Key", "Authorization", "accessToken",
     "client_secret", "token", "Cookie", "credentials", "private_key", "your password", "api key", "@token",
     "password2", "ａｐｉ＿ｋｅｙ", "ＰＡＳＳＷＯＲＤ", "ｓecret", "TO\u212aEN", "p\u0430ssw\u043erd"],
)  # fmt: skip
def test_fields_named_like_secrets_are_masked(name):
    assert redact.masked({"x": [{name: CANARY}]}) == {"x": [{name: redact.MASK}]}


@pytest.mark.parametrize(
    "name",
    ["idempotency_key", "correlation_key", "input_tokens", "tokenizer", "secretary", "key", "passport"],
)
def test_other_fields_are_left_alone(name):
    value = {name: "plain", "n": [1, None]}
    assert redact.masked(value) is value


def test_a_number_named_token_counts_and_is_no_secret():
    assert redact.masked({"token": 12, "password": None, "secret": ""}) == {
        "token": 12, "password": None, "secret": "",
    }  # fmt: skip


def test_a_password_with_signs_of_its_own_is_known_as_written_and_as_it_is():
    found = redact.secrets_of({"DATABASE_URL": "postgresql://deputy:data%40base@pass@db:5432/deputy"})
    assert set(found) == {"data%40base@pass", "data@base@pass"}


def test_secrets_are_found_in_the_environment_by_name_and_inside_urls():
    found = redact.secrets_of(
        {
            "DATABASE_URL": "postgresql://deputy:database-pass@db:5432/deputy",
            "EMAIL_URL": "smtp://nobody@host",
            "A_PASSWORD": "a-long-password",
            "PATH": "/usr/bin:/bin:/sbin",
        }
    )
    assert found == ("a-long-password", "database-pass")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted]"),
        ("postgresql://ada:open-sesame@db/x", "postgresql://ada:[redacted]@db/x"),
        ("postgresql://ada:open@sesame@now@db/x", "postgresql://ada:[redacted]@db/x"),
        ("smtp://ada@example.org:open-sesame@mail", "smtp://ada@example.org:[redacted]@mail"),
        ('{"to":"pg://ada:sesame@db","cc":"bo@x"}', '{"to":"pg://ada:[redacted]@db","cc":"bo@x"}'),
        ("made dpt_abcdefghijkl for ada", "made [redacted] for ada"),
        ("key sk-proj-abcdefgh12345678 refused", "key [redacted] refused"),
        ("http://db:5432/x and 10:30@noon", "http://db:5432/x and 10:30@noon"),
        ("a token of thanks", "a token of thanks"),
    ],
)
def test_what_looks_like_a_secret_is_masked_in_text(line, shown):
    assert redact.text(line) == shown


@pytest.mark.parametrize("form", [logs.Plain(), logs.Json()])
def test_a_row_that_the_database_quotes_is_in_no_log_line(form):
    quoted = (
        'new row violates check constraint "memory_content"\n'
        "DETAIL:  Failing row contains (mem_1, allergic (very)\nto walnuts, 0.5).",
        "duplicate key\nDETAIL:  Key (name, kind)=(walnuts, a) already exists.",
        'invalid json\nCONTEXT:  JSON data, line 1: {"allergic": walnuts...',
    )
    for said in quoted:
        try:
            raise ValueError(said)
        except ValueError as error:
            line = form.format(record("failed", exc_info=(type(error), error, error.__traceback__)))
        assert "walnuts" not in line and redact.MASK in line and said.split("\n")[0].split('"')[0] in line


@pytest.mark.parametrize("form", [logs.Plain(), logs.Json()])
def test_a_secret_of_the_environment_is_in_no_log_line(form, known):
    try:
        raise ValueError(f"the server said: bad key {CANARY}")
    except ValueError as error:
        line = form.format(
            record("asked with %s", CANARY, exc_info=(type(error), error, error.__traceback__))
        )

    assert CANARY not in line
    assert line.count(redact.MASK) >= 2
    assert "short" in form.format(record("a short word"))


IN_A_WEB_PROCESS = """
from gunicorn.config import Config
from gunicorn.glogging import Logger
server = Logger(Config())  # which gunicorn makes before it loads an application
import config.asgi
server.error("a stream failed: the key dpt_abcdefghijkl12345")
"""


def test_the_web_server_masks_what_it_says_of_a_request_that_failed():
    asked = [sys.executable, "-c", IN_A_WEB_PROCESS]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "a stream failed: the key [redacted]" in done.stderr and "dpt_" not in done.stderr


def test_a_json_line_says_which_run_it_is_about():
    with current.working_for("run_child", "run_root", "org_1"):
        line = json.loads(logs.Json().format(record("let go of %s", "run_child")))
    outside = json.loads(logs.Json().format(record("idle")))

    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "warning",
        "logger": "runs.x",
        "message": "let go of run_child",
        "run_id": "run_child",
        "trace_id": f"{trace_id('run_root'):032x}",
        "organization_id": "org_1",
    }
    assert outside.keys() == {"time", "level", "logger", "message"}


def test_a_line_of_json_stays_one_line():
    assert "\n" not in logs.Json().format(record("first\nsecond"))


def test_a_text_that_says_what_a_mask_says_loses_no_key():
    """Of two that look alike only one hides something: whichever is left out, nobody can tell."""
    stored = "Ask [redacted] with ghp_Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56Qr78"
    assert redact.kept("Ask [redacted] with [redacted]", stored) == stored
    with pytest.raises(redact.Hidden):
        redact.kept("Ask [redacted] with it", stored)
    assert redact.kept("Ask nobody", stored) == "Ask nobody"
    assert redact.kept("Tell [redacted]", "Ask [redacted]") == "Tell [redacted]"
