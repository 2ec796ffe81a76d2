"""The database at start: migrated, and with the demo in it if it knew nobody."""

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core import management

from config.health import known
from launch import prepare
from launch.errors import LaunchError


@pytest.fixture
def demo(monkeypatch, tmp_path):
    """A stand-in for the demo command: one user, one line with a password. Returns its calls."""
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path))
    calls = []

    def call(name, stdout):
        calls.append(name)
        get_user_model().objects.create_user("ada")
        stdout.write("ada / a password\n")

    monkeypatch.setattr(management, "get_commands", lambda: {"demo": "runs"})
    monkeypatch.setattr(management, "call_command", call)
    return calls


@pytest.mark.django_db
def test_the_demo_is_loaded_once_and_what_it_said_is_kept_privately(demo, tmp_path, capsys):
    prepare.load_demo()
    prepare.load_demo()
    assert demo == ["demo"]
    assert capsys.readouterr().out == "ada / a password\n"
    kept = tmp_path / prepare.ACCOUNTS
    assert kept.read_text() == "ada / a password\n"
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.django_db
def test_a_database_that_knows_somebody_gets_no_demo(demo, tmp_path):
    get_user_model().objects.create_user("grace")
    prepare.load_demo()
    assert demo == []


@pytest.mark.django_db
def test_a_demo_that_fails_leaves_nobody_behind(demo, monkeypatch):
    def fail(name, stdout):
        get_user_model().objects.create_user("ada")
        raise RuntimeError

    monkeypatch.setattr(management, "call_command", fail)
    with pytest.raises(RuntimeError):
        prepare.load_demo()
    assert not get_user_model().objects.exists()


@pytest.mark.django_db
def test_a_migrated_database_is_left_alone():
    assert prepare.migrate() == 0


@pytest.fixture
def own_demo(monkeypatch):
    monkeypatch.setenv("DEMO", "yes")


def test_the_files_of_migrations_are_those_that_django_knows():
    assert prepare.migration_files(settings.INSTALLED_APPS) == known()


@pytest.mark.django_db(transaction=True)
def test_a_migrated_database_that_knows_somebody_is_seen_without_django(own_demo):
    assert not prepare.nothing_to_do()
    get_user_model().objects.create_user("grace")
    assert prepare.nothing_to_do()


@pytest.mark.django_db(transaction=True)
def test_an_empty_database_needs_nothing_where_no_demo_is_wanted(monkeypatch):
    monkeypatch.setenv("DEMO", "no")
    assert prepare.nothing_to_do()


@pytest.mark.django_db(transaction=True)
def test_a_migration_the_database_has_not_seen_is_work(own_demo, monkeypatch):
    get_user_model().objects.create_user("grace")
    unseen = prepare.migration_files(settings.INSTALLED_APPS) | {("runs", "9999_tomorrow")}
    monkeypatch.setattr(prepare, "migration_files", lambda apps: unseen)
    assert not prepare.nothing_to_do()


@pytest.mark.django_db
def test_a_database_that_does_not_answer_is_for_django_to_explain(monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "PORT", "1")
    assert not prepare.nothing_to_do()


@pytest.mark.django_db
def test_a_database_that_is_too_old_is_refused(monkeypatch):
    prepare.check_database()
    monkeypatch.setattr(prepare, "OLDEST", 99)
    with pytest.raises(LaunchError, match="needs 99 or newer"):
        prepare.check_database()
