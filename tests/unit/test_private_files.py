"""What Deputy writes is for its user alone."""

import os
import stat

import pytest
from django.core.mail import EmailMessage, get_connection

from launch import home, locks, place


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def loose():
    """The loosest umask there is."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_written_mail_and_its_folder(tmp_path):
    outbox = tmp_path / "outbox"
    connection = get_connection("common.mail.PrivateFiles", file_path=str(outbox))
    EmailMessage("s", "b", "a@example.com", ["b@example.com"], connection=connection).send()
    connection.close()

    assert mode(outbox) == 0o700
    assert [mode(file) for file in outbox.iterdir()] == [0o600]
    assert "b@example.com" in next(outbox.iterdir()).read_text()


def test_a_folder_of_mail_that_was_open_to_others_is_closed(tmp_path):
    outbox = tmp_path / "outbox"
    outbox.mkdir(mode=0o755)
    get_connection("common.mail.PrivateFiles", file_path=str(outbox))

    assert mode(outbox) == 0o700


def test_the_settings_write_mail_that_way(settings):
    from config import settings as own

    assert own.EMAIL_BACKEND == "common.mail.PrivateFiles"


def test_deputys_home_its_secret_and_its_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path / "home"))
    home.secret_key()
    os.close(locks.shared(tmp_path / "home" / "a.lock"))

    assert mode(tmp_path / "home") == (0o711 if os.geteuid() == 0 else 0o700)
    assert mode(tmp_path / "home" / "secret_key") == 0o600
    assert mode(tmp_path / "home" / "a.lock") == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_roots_database_runs_as_a_user_of_its_own(tmp_path, monkeypatch, capsys):
    made = place.Owner(4321, 4321, place.ACCOUNT)
    accounts = {place.NOBODY: place.Owner(65534, 65534, place.NOBODY)}
    monkeypatch.setattr(place, "_account", accounts.get)
    monkeypatch.setattr(place, "_owned", lambda folder, home: None)
    asked = []

    def useradd(command, **kwargs):
        asked.append(command)
        accounts[place.ACCOUNT] = made

    monkeypatch.setattr(place.subprocess, "run", useradd)
    place._add_account()
    assert asked[0][0] == "useradd" and asked[0][-1] == place.ACCOUNT and "/usr/sbin/nologin" in asked[0]
    assert place._owner(tmp_path, tmp_path) == made
    assert capsys.readouterr().out == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user")
def test_where_that_user_cannot_be_made_nobody_runs_it_and_a_line_says_so(tmp_path, monkeypatch, capsys):
    nobody = place.Owner(65534, 65534, place.NOBODY)
    monkeypatch.setattr(place, "_account", {place.NOBODY: nobody}.get)
    monkeypatch.setattr(place, "_owned", lambda folder, home: None)

    def refused(command, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(place.subprocess, "run", refused)
    place._add_account()
    assert place._owner(tmp_path, tmp_path) == nobody
    assert f"the user {place.ACCOUNT} could not be made" in capsys.readouterr().out
