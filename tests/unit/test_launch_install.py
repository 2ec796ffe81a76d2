"""Setting up .venv: what stands in the way is one line, what is done is not done again."""

import re
import sys
from pathlib import Path

import pytest

from launch import install


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project with requirements, and a record of the commands instead of their effects."""
    for name in (install.RUN, install.DEV):
        (tmp_path / name).write_text("package==1\n")
    monkeypatch.setattr(install, "PROJECT", str(tmp_path))
    monkeypatch.setattr(install, "VENV", str(tmp_path / ".venv"))
    monkeypatch.setattr(install, "PYTHON", str(tmp_path / ".venv" / "bin" / "python"))
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["install"])
    commands = []

    def run(command, reason):
        commands.append(" ".join(command))
        (tmp_path / ".venv" / "bin").mkdir(parents=True, exist_ok=True)
        (tmp_path / ".venv" / "bin" / "python").touch()

    monkeypatch.setattr(install, "run", run)
    return tmp_path, commands


def refusal():
    with pytest.raises(SystemExit) as stop:
        install.main()
    assert str(stop.value).startswith("deputy: ")
    assert "\n" not in str(stop.value)
    return str(stop.value)


def test_a_second_call_with_the_same_requirements_does_nothing(project):
    _, commands = project
    install.main()
    assert [("venv" in commands[0]), ("ensurepip" in commands[1]), ("pip install" in commands[2])] == [
        True
    ] * 3
    install.main()
    assert len(commands) == 3


def test_changed_requirements_are_installed_into_the_same_environment(project):
    folder, commands = project
    install.main()
    (folder / install.RUN).write_text("package==2\n")
    install.main()
    assert sum("-m venv" in command for command in commands) == 1
    assert sum("pip install" in command for command in commands) == 2


def test_what_tests_need_contains_what_running_needs(project, monkeypatch):
    _, commands = project
    monkeypatch.setattr(sys, "argv", ["install", "--dev"])
    install.main()
    monkeypatch.setattr(sys, "argv", ["install"])
    install.main()
    assert sum("pip install" in command for command in commands) == 1


def test_an_environment_of_another_python_is_made_anew(project, monkeypatch):
    _, commands = project
    install.main()
    monkeypatch.setattr(install, "place", lambda: "elsewhere")
    install.main()
    assert sum("-m venv" in command for command in commands) == 2


def test_a_python_without_ensurepip_is_told_what_to_install(project, monkeypatch):
    monkeypatch.setattr(
        install.importlib.util, "find_spec", lambda name: None if name == "ensurepip" else name
    )
    assert "python3-venv" in refusal()


def test_a_python_that_is_too_old_is_refused(project, monkeypatch):
    monkeypatch.setattr(install, "OLDEST", (99, 0))
    assert "needs 3.11 or newer" in refusal()


def test_a_folder_that_cannot_be_written_is_refused(project, monkeypatch):
    monkeypatch.setattr(install.os, "access", lambda path, mode: False)
    assert "cannot write to" in refusal()


@pytest.mark.parametrize("home", ["", None])
def test_pip_gets_a_home_where_there_is_none(monkeypatch, home):
    monkeypatch.setenv("HOME", "")
    if home is None:
        monkeypatch.delenv("HOME")
    assert install.environment()["HOME"] == install.VENV


def test_a_failing_command_is_told_by_its_last_error(project, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(SystemExit, match=r"deputy: it failed: ERROR: no such package"):
        install.run(["/bin/sh", "-c", "echo ERROR: no such package; echo more; exit 3"], "it failed")


def test_what_the_lock_file_has_is_installed_by_digest_and_nothing_else(project):
    folder, _ = project
    for name in (install.RUN, install.DEV):
        (folder / install.lock_of(name)).write_text("package==1 \\\n    --hash=sha256:0\n")

    assert install.source(install.RUN) == ["--require-hashes", "-r", str(folder / "requirements.lock")]


def test_a_lock_file_that_is_too_old_is_not_used_and_that_is_said(project, capsys):
    folder, _ = project
    (folder / install.lock_of(install.RUN)).write_text("package==0 \\\n    --hash=sha256:0\n")

    assert install.source(install.RUN) == ["-r", str(folder / "requirements.txt")]
    assert "lacks package==1" in capsys.readouterr().out


@pytest.mark.parametrize("name", [install.RUN, install.DEV, "requirements-container.txt"])
def test_every_requirement_is_locked_with_digests(name):
    lock = Path(install.PROJECT) / install.lock_of(name)
    entries = re.split(r"\n(?=[a-z0-9])", lock.read_text())

    assert install.pinned(name) and install.pinned(name) <= install.pinned(install.lock_of(name))
    assert [entry for entry in entries[1:] if "--hash=sha256:" not in entry] == []
