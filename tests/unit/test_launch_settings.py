"""Bad environment variables are refused by name, in words that never repeat the value."""

import os
import subprocess
import sys

import pytest

from common import env
from launch.home import PROJECT


def refuse(monkeypatch, name, value, read):
    monkeypatch.setenv(name, value)
    with pytest.raises(env.BadSetting) as refusal:
        read()
    words = str(refusal.value)
    assert words.startswith(name)
    assert "it takes" in words
    assert "\n" not in words
    return words


@pytest.mark.parametrize("value", ["ten", "-1", "1.5", "0", "²", "9" * 40 + "x", "1 000"])
def test_a_limit_is_a_whole_number_of_at_least_one(monkeypatch, value):
    refuse(monkeypatch, "RUN_STEPS", value, lambda: env.whole_number("RUN_STEPS", 25))


def test_an_unset_or_empty_variable_means_its_default(monkeypatch):
    monkeypatch.setenv("RUN_STEPS", "  ")
    monkeypatch.delenv("DEBUG", raising=False)
    assert env.whole_number("RUN_STEPS", 25) == 25
    assert env.flag("DEBUG", False) is False


@pytest.mark.parametrize("value", ["0", "65536", "http", "99999999999999999999999"])
def test_a_port_is_between_1_and_65535(monkeypatch, value):
    refuse(monkeypatch, "PORT", value, env.port)


def test_a_flag_says_yes_or_no(monkeypatch):
    monkeypatch.setenv("DEBUG", "Yes")
    assert env.flag("DEBUG", False) is True
    refuse(monkeypatch, "DEBUG", "maybe", lambda: env.flag("DEBUG", False))


@pytest.mark.parametrize("value", ["http://localhost", "a b", "a,b", "user@host"])
def test_a_host_is_one_bare_name(monkeypatch, value):
    refuse(monkeypatch, "HOST", value, env.host)


def test_hosts_are_bare_names_with_commas_between(monkeypatch):
    monkeypatch.setenv("ALLOWED_HOSTS", " one.example, .two.example,[::1] ,")
    assert env.names("ALLOWED_HOSTS", ("localhost",)) == ["one.example", ".two.example", "[::1]"]
    refuse(monkeypatch, "ALLOWED_HOSTS", "https://one.example", lambda: env.names("ALLOWED_HOSTS", ("x",)))
    refuse(monkeypatch, "ALLOWED_HOSTS", ",", lambda: env.names("ALLOWED_HOSTS", ("x",)))


def test_origins_have_a_scheme_and_a_host(monkeypatch):
    monkeypatch.setenv("CSRF_TRUSTED_ORIGINS", "https://one.example/, http://two.example:8080")
    assert env.origins("CSRF_TRUSTED_ORIGINS") == ["https://one.example", "http://two.example:8080"]
    refuse(monkeypatch, "CSRF_TRUSTED_ORIGINS", "one.example", lambda: env.origins("CSRF_TRUSTED_ORIGINS"))


@pytest.mark.parametrize(
    "url",
    ["mysql://u:hunter2@h/d", "hunter2", "postgresql://u:hunter2@h:port/d", "postgresql://u:hunter2@h/"],
)
def test_a_database_is_postgresql_and_its_password_is_never_shown(url):
    with pytest.raises(env.BadSetting) as refusal:
        env.database(url)
    assert "DATABASE_URL" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_a_database_may_be_behind_a_socket_in_a_folder_with_a_blank():
    described = env.database("postgresql://deputy@%2Fsome%20where%2Fsocket:5432/deputy")
    assert described["HOST"] == "/some where/socket"
    assert described["NAME"] == "deputy"


def test_a_database_may_be_on_several_hosts_each_with_its_port():
    described = env.database(
        "postgresql://deputy:pw@db1:5432,[fd00::2]:5433/deputy?target_session_attrs=read-write"
    )
    assert (described["HOST"], described["PORT"]) == ("db1,fd00::2", "5432,5433")
    assert described["OPTIONS"] == {"target_session_attrs": "read-write"}
    assert env.database("postgresql://deputy@db1,db2/deputy")["PORT"] == ""
    with pytest.raises(env.BadSetting, match="DATABASE_DIRECT_URL names ports for some"):
        env.database("postgresql://deputy@db1:5433,db2/deputy", variable="DATABASE_DIRECT_URL")


def test_the_options_of_a_url_go_before_the_default_ones():
    described = env.database(
        "postgresql://u@h/d?connect_timeout=9", {"OPTIONS": {"connect_timeout": 2, "a": 1}}
    )
    assert described["OPTIONS"] == {"connect_timeout": 9, "a": 1}


def test_a_command_goes_past_the_pooler(monkeypatch):
    pooler, server = "postgresql://u@pooler/d", "postgresql://u@server/d"
    monkeypatch.setenv("DATABASE_URL", pooler)
    monkeypatch.delenv("DATABASE_DIRECT_URL", raising=False)
    assert (env.go_direct(), os.environ["DATABASE_URL"]) == (False, pooler)
    monkeypatch.setenv("DATABASE_DIRECT_URL", server)
    assert env.is_pooled()
    assert (env.go_direct(), os.environ["DATABASE_URL"]) == (True, server)
    assert not env.is_pooled()
    monkeypatch.setenv("DATABASE_URL", "")
    refuse(monkeypatch, "DATABASE_DIRECT_URL", server, env.is_pooled)


def test_email_goes_where_its_url_says():
    assert env.email("smtp+tls://user:pw@mail.example:587")["EMAIL_HOST"] == "mail.example"
    with pytest.raises(env.BadSetting, match="EMAIL_URL"):
        env.email("carrier-pigeon://roof")


@pytest.mark.parametrize(
    ("name", "value"),
    [("RUN_STEPS", "0"), ("DATABASE_URL", "mysql://u:hunter2@h/d"), ("SECRET_KEY", "hunter2")],
)
def test_a_command_with_a_bad_variable_ends_in_one_line(name, value):
    environment = os.environ | {"DATABASE_URL": "postgresql://u@h/d", "SECRET_KEY": "x" * 40, name: value}
    command = [sys.executable, "manage.py", "version"]
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"deputy: {name} ")
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr
