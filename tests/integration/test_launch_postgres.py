"""The embedded server's life: shared, outliving nobody, recovering from everything."""

import os
import signal
import subprocess
import sys
import time

import psycopg
import pytest

from launch import postgres
from launch.errors import LaunchError
from launch.home import PROJECT

USER = """
import sys, pathlib, time
from launch import postgres
server = postgres.ensure(pathlib.Path(sys.argv[1]), durable=False)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder():
    """A home of its own; the server's keeper removes what it can, the rest goes here."""
    home = postgres.temporary_home()
    yield home
    postgres.place.remove(home)


@pytest.fixture
def server(folder):
    server = postgres.ensure(folder, durable=False)
    yield server
    server.leave()


def ask(folder, sql="SELECT 1"):
    with psycopg.connect(postgres.url(folder), autocommit=True) as connection:
        cursor = connection.execute(sql)
        return cursor.fetchone() if cursor.description else None


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def answers(folder):
    try:
        return ask(folder) == (1,)
    except psycopg.OperationalError:
        return False


def postmaster(server):
    return int((server.place.data / "postmaster.pid").read_text().split()[0])


def other_program(folder):
    program = subprocess.Popen(
        [sys.executable, "-c", USER, str(folder)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert program.stdout.readline() == b"up\n"
    return program


def test_it_speaks_utf_8_and_listens_on_no_port(server, folder):
    assert ask(folder, "SHOW server_encoding") == ("UTF8",)
    assert ask(folder, "SHOW listen_addresses") == ("",)
    assert ask(folder, "SELECT datctype FROM pg_database WHERE datname = current_database()") == ("C.UTF-8",)
    assert server.place.socket_folder.stat().st_mode & 0o777 == 0o700


def test_a_second_program_shares_it_and_the_last_one_out_stops_it(folder):
    first, second = other_program(folder), other_program(folder)
    server = postgres.Server(folder)
    server.start()
    pid = postmaster(server)
    assert server.keeper is None
    first.communicate(timeout=20)  # the one that started the server leaves first
    assert answers(folder)
    assert postmaster(server) == pid
    second.communicate(timeout=20)
    assert answers(folder)
    assert server.leave() is True
    assert not answers(folder)
    assert not (server.place.data / "postmaster.pid").exists()


def test_leaving_while_another_program_uses_it_leaves_it_running(server, folder):
    other = other_program(folder)
    assert server.leave() is False
    assert answers(folder)
    other.communicate(timeout=20)


def test_it_stops_when_its_only_program_is_killed(folder):
    program = other_program(folder)
    assert answers(folder)
    program.kill()
    program.communicate()
    wait_until(lambda: not postgres.locks.held(folder / "postgres" / "keeper.lock"))
    assert not answers(folder)


def test_a_killed_server_is_started_again_with_all_that_was_acknowledged(folder):
    server = postgres.ensure(folder)
    ask(folder, "CREATE TABLE kept AS SELECT 7 AS number")
    before = postmaster(server)
    os.kill(before, signal.SIGKILL)
    wait_until(lambda: answers(folder) and postmaster(server) != before)
    assert ask(folder, "SELECT number FROM kept") == (7,)
    server.leave()


def test_a_killed_keeper_takes_the_server_with_it_and_the_next_start_recovers(server, folder):
    server.keeper.kill()
    server.keeper.wait()
    assert not server.kept()
    server.start()
    assert answers(folder)
    assert server.kept()


def test_a_pid_file_of_a_crash_with_a_reused_pid_does_not_stop_it(folder):
    server = postgres.ensure(folder, durable=False)
    server.leave()
    (server.place.data / "postmaster.pid").write_text(f"{os.getpid()}\n{server.place.data}\n")
    again = postgres.ensure(folder, durable=False)
    assert answers(folder)
    again.leave()


def test_a_set_up_that_was_cut_short_is_made_anew(folder):
    postgres.place.make(folder)
    half = folder / "postgres" / "data.new-half"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server = postgres.ensure(folder, durable=False)
    assert answers(folder)
    assert not half.exists()
    server.leave()


def test_data_of_another_version_is_refused_in_words_that_help(folder):
    server = postgres.ensure(folder, durable=False)
    server.leave()
    (server.place.data / "PG_VERSION").write_text("15\n")
    with pytest.raises(LaunchError, match=r"made by PostgreSQL 15 .* PG_BIN"):
        postgres.ensure(folder, durable=False)


def test_a_server_that_cannot_start_says_why(folder):
    server = postgres.ensure(folder, durable=False)
    server.leave()
    with open(server.place.data / "postgresql.conf", "a") as configuration:
        configuration.write("shared_buffers = nonsense\n")
    with pytest.raises(LaunchError, match=r"did not start: .*configuration file"):
        postgres.ensure(folder, durable=False)


def test_a_temporary_home_goes_with_its_last_program(tmp_path):
    folder = postgres.temporary_home()
    server = postgres.ensure(folder, durable=False, temporary=True)
    server.leave()
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another user for its server")
def test_roots_server_lies_elsewhere_when_its_user_cannot_reach_the_home(folder, capsys):
    folder.chmod(0o700)
    server = postgres.ensure(folder, durable=False)
    assert answers(folder)
    assert (folder / "postgres").is_symlink()
    assert str(server.place.folder) in capsys.readouterr().out
    assert folder.stat().st_mode & 0o777 == 0o700
    server.leave()
