"""Make `.venv` and put the packages into it. Runs with the system's Python and nothing else.

    python3 -m launch.install [--dev]

A stamp remembers what was installed: a second call with the same requirements does nothing. Written
for old Pythons too, down to the line that says one is too old.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from typing import NoReturn

OLDEST = (3, 11)
PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(PROJECT, ".venv")
PYTHON = os.path.join(VENV, "bin", "python")
RUN = "requirements.txt"
DEV = "requirements-dev.txt"  # contains the other


def main() -> None:
    """Install what is missing; exit with one line where that cannot be done."""
    if sys.version_info < OLDEST:
        stop(f"this is Python {sys.version.split()[0]}; Deputy needs 3.11 or newer.")
    if os.name != "posix":
        stop("Deputy runs on Linux and macOS; on Windows use WSL.")
    wanted = DEV if "--dev" in sys.argv else RUN
    try:
        with turn():
            if not installed(wanted):
                install(wanted)
    except OSError as error:
        stop(f"cannot write {error.filename or VENV}: {error.strerror}.")
    except KeyboardInterrupt:
        sys.exit(130)


def install(wanted: str) -> None:
    """A fresh environment, unless there is one of this Python in this place, and the packages."""
    if not os.access(PROJECT, os.W_OK):
        stop(f"cannot write to {PROJECT}, where .venv belongs; use a copy in a folder of yours.")
    uv = shutil.which("uv")
    if not uv and not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        stop("this Python lacks venv or ensurepip; install them (Debian: apt install python3-venv).")
    if read("place") != place():
        say(f"making .venv with Python {sys.version.split()[0]}")
        shutil.rmtree(VENV, ignore_errors=True)
        run([sys.executable, "-m", "venv", "--without-pip", VENV], "the environment could not be made")
        write("place", place())
    say("installing packages (the first time takes a minute)")
    if not (uv and with_uv(uv, wanted)):
        with_pip(wanted)
    for name in {RUN, wanted}:
        write(name, digest(name))


def installed(wanted: str) -> bool:
    """Whether the stamps say that these very requirements are in this very environment."""
    return os.path.exists(PYTHON) and read("place") == place() and read(wanted) == digest(wanted)


def with_uv(uv: str, wanted: str) -> bool:
    """uv is quick, but knows nothing of pip's settings (an own index, say): where it fails, pip tries."""
    command = [uv, "pip", "install", "-q", "--python", PYTHON, *source(wanted)]
    return subprocess.run(command, env=environment(), capture_output=True, check=False).returncode == 0


def with_pip(wanted: str) -> None:
    """Plain pip, which is put into the environment first."""
    reason = "pip could not be set up in .venv"
    run([PYTHON, "-m", "ensurepip", "--default-pip"], reason)
    pip = [PYTHON, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check"]
    run([*pip, *source(wanted)], "the packages could not be installed")


def source(wanted: str) -> "list[str]":
    """Where pip and uv read what to install: the lock file, by which every file has a known digest, where it
    has all that is wanted. (After a change of the requirements it has not, until `make lock`.)
    """
    lock = lock_of(wanted)
    missing = pinned(wanted) - pinned(lock)
    if not missing:
        return ["--require-hashes", "-r", os.path.join(PROJECT, lock)]
    say(f"{lock} lacks {sorted(missing)[0]}: installing without digests; `make lock` makes it anew")
    return ["-r", os.path.join(PROJECT, wanted)]


def lock_of(wanted: str) -> str:
    return wanted[: -len(".txt")] + ".lock"


def pinned(name: str) -> "set[str]":
    """The packages and versions that a file names, and those of the files it includes."""
    found: set[str] = set()
    try:
        with open(os.path.join(PROJECT, name)) as file:
            lines = file.read().splitlines()
    except OSError:
        return found
    for line in lines:
        words = line.split("#")[0].split(";")[0].split()
        if words[:1] == ["-r"]:
            found |= pinned(words[1])
        elif words and "==" in words[0]:
            package, _, version = words[0].partition("==")
            found.add(re.sub("[-_.]+", "-", package.split("[")[0]).lower() + "==" + version)
    return found


def run(command: "list[str]", reason: str) -> None:
    """Run quietly. What fails is told in one line, all of its words are in a log."""
    done = subprocess.run(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode == 0:
        return
    said = done.stdout.decode(errors="replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["it gave no reason"]
    errors = [line for line in lines if "error" in line.lower()]
    words = (errors or lines)[-1]
    if os.path.isdir(VENV):
        write("log", said)
        words += " (all of it: .venv/deputy-log)"
    stop(f"{reason}: {words}")


def environment() -> "dict[str, str]":
    """pip and uv need a home for their caches, and must not be told to install elsewhere."""
    kept = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PIP_TARGET", "PIP_USER")
    }
    if not kept.get("HOME"):
        kept["HOME"] = VENV
    return kept


def place() -> str:
    """What an environment is bound to: its folder and its Python."""
    return f"{VENV} {sys.version.split()[0]} {os.path.realpath(sys.executable)}"


def digest(name: str) -> str:
    """What the stamp of a requirements file says: everything it asks for."""
    names = [RUN, DEV] if name == DEV else [RUN]
    total = hashlib.sha256()
    for part in [*names, lock_of(name)]:
        if not os.path.exists(os.path.join(PROJECT, part)):
            continue
        with open(os.path.join(PROJECT, part), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def read(name: str) -> str:
    """A stamp's content, empty where there is none."""
    try:
        with open(os.path.join(VENV, "deputy-" + name)) as file:
            return file.read()
    except OSError:
        return ""


def write(name: str, content: str) -> None:
    """For its user alone: pip's words may hold the password of an index."""
    path = os.path.join(VENV, "deputy-" + name)
    with open(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w"
    ) as file:  # pip may say secrets
        file.write(content)


class turn:
    """One installation at a time: `make run` and `make test` may come together."""

    def __enter__(self) -> None:
        import fcntl

        self.folder = os.open(PROJECT, os.O_RDONLY)
        fcntl.flock(self.folder, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)


def say(words: str) -> None:
    print("deputy: " + words)
    sys.stdout.flush()


def stop(words: str) -> NoReturn:
    sys.exit("deputy: " + words)


if __name__ == "__main__":
    main()
