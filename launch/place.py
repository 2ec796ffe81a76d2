"""Where the embedded server's files lie and who owns its process.

PostgreSQL refuses to run as root. Started by root it runs as another user, who must be able to reach
its files; a folder below root's own home is out of that user's reach, and parent folders are never
changed to let it in. Then the files lie elsewhere and `postgres` in DEPUTY_HOME is a link to them.
"""

import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.errors import LaunchError

ELSEWHERE = ("/var/lib", "/var/tmp", "/tmp")  # noqa: S108  (mkdtemp makes the folder below)
# a Unix socket's path holds 107 bytes (103 on macOS) and PostgreSQL adds /.s.PGSQL.5432.lock
SOCKET_FOLDER_BYTES = 80
ACCOUNT = "deputy-postgres"  # root's server runs as this user, who owns nothing else
NOBODY = "nobody"  # where that user can be neither found nor made
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")


@dataclass(frozen=True)
class Owner:
    """The user a server runs as, where that is not the user who starts it."""

    uid: int
    gid: int
    name: str

    def popen(self) -> dict[str, Any]:
        """Arguments for subprocess that make a child this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []}


@dataclass(frozen=True)
class Place:
    """An embedded server's folder and its owner (None: whoever starts it)."""

    folder: Path
    owner: Owner | None

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "postgres.log"

    @property
    def users_lock(self) -> Path:
        """Held, shared, by every program that uses the server."""
        return self.folder / "users.lock"

    @property
    def start_lock(self) -> Path:
        """Held by the one that is starting it."""
        return self.folder / "start.lock"

    @property
    def keeper_lock(self) -> Path:
        """Held by the keeper as long as it lives."""
        return self.folder / "keeper.lock"

    def popen(self) -> dict[str, Any]:
        return self.owner.popen() if self.owner else {}

    def own(self, path: Path) -> None:
        """Give a path to the server's user."""
        if self.owner:
            os.chown(path, self.owner.uid, self.owner.gid)

    @property
    def socket_folder(self) -> Path:
        """Inside the folder, or below /tmp where a socket's path would be too long or need quoting."""
        inside = self.folder / "socket"
        if len(os.fsencode(inside)) <= SOCKET_FOLDER_BYTES and PLAIN_PATH.fullmatch(str(inside)):
            return inside
        name = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:16]
        return Path("/tmp") / f"deputy-{name}"  # noqa: S108  (made 0700 and checked before use)


def existing(home: Path) -> Place:
    """The place below `home` as it is, or as it would be by default. Touches nothing."""
    folder = Path(os.path.realpath(home / "postgres"))
    return Place(folder, _owner(folder, home))


def make(home: Path) -> Place:
    """The place below `home`, made if missing. Raises LaunchError where it cannot be."""
    link = home / "postgres"
    try:
        if not link.is_dir():
            link.unlink(missing_ok=True)  # a link to what is gone
            if os.geteuid() == 0 and _owned(link, home) is None:
                _add_account()
            _make(link, _owner(link, home))
        place = existing(home)
        _check(place)
        _private_folder(place, place.socket_folder)
    except OSError as error:
        raise LaunchError(f"cannot make {error.filename or link}: {error.strerror}.") from None
    return place


def remove(home: Path) -> None:
    """Remove `home` with everything in it, and the folder its link leads to."""
    place = existing(home)
    for folder in (place.socket_folder, place.folder, home):
        shutil.rmtree(folder, ignore_errors=True)


def may_enter(folder: Path, owner: Owner) -> bool:
    """Whether the server's user reaches a folder, asked of the kernel as that user."""
    question = ["/bin/sh", "-c", 'test -x "$1"', "sh", str(folder)]
    return subprocess.run(question, cwd="/", **owner.popen()).returncode == 0


def _make(link: Path, owner: Owner | None) -> None:
    if owner is None or may_enter(link.parent, owner):
        link.mkdir(mode=0o755)
        link.chmod(0o711 if owner else 0o700)
        return
    for base in ELSEWHERE:
        if os.access(base, os.W_OK | os.X_OK) and may_enter(Path(base), owner):
            folder = Path(tempfile.mkdtemp(prefix="deputy-", dir=base))
            folder.chmod(0o711)
            link.symlink_to(folder)
            print(f"deputy: {owner.name} cannot reach {link.parent}: PostgreSQL's files are in {folder}")
            return
    raise LaunchError(f"no folder found that {owner.name} can reach for PostgreSQL's files.")


def _check(place: Place) -> None:
    if place.owner:
        if not may_enter(place.folder, place.owner):
            raise LaunchError(
                f"PostgreSQL's files in {place.folder} are out of reach of {place.owner.name}, the user it "
                "runs as; name a folder it can reach in DEPUTY_HOME."
            )
        return
    for path in (place.folder, place.data):
        if path.exists() and path.stat().st_uid != os.geteuid():
            raise LaunchError(
                f"{path} belongs to another user; run Deputy as that user, or name another DEPUTY_HOME."
            )


def _owner(folder: Path, home: Path) -> Owner | None:
    """Root's server runs as who owns its data; new data belongs to who owns `home`, or to ACCOUNT."""
    if os.geteuid() != 0:
        return None
    found = _owned(folder, home) or _account(ACCOUNT) or _account(NOBODY)
    if found is None:
        raise LaunchError(
            f"PostgreSQL does not run as root and there is no user {ACCOUNT}; run Deputy as another user."
        )
    return found


def _owned(folder: Path, home: Path) -> Owner | None:
    """Whose the data is, or `home`, where that is not root's."""
    for path in (folder / "data", home):
        try:
            if owner := path.stat().st_uid:
                entry = pwd.getpwuid(owner)
                return Owner(entry.pw_uid, entry.pw_gid, entry.pw_name)
        except (OSError, KeyError):  # missing, or a user without a name, whom initdb refuses
            continue
    return None


def _account(name: str) -> Owner | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Owner(entry.pw_uid, entry.pw_gid, entry.pw_name)


def _add_account() -> None:
    """Make ACCOUNT, which cannot log in. Where that is not possible, `nobody` does, and a line says so."""
    if _account(ACCOUNT):
        return
    make = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    make += ["--shell", "/usr/sbin/nologin", ACCOUNT]
    with suppress(OSError, subprocess.TimeoutExpired):  # no such program, or the list of users is locked
        subprocess.run(make, check=False, capture_output=True, timeout=30)
    if not _account(ACCOUNT):
        print(
            f"deputy: the user {ACCOUNT} could not be made: PostgreSQL runs as {NOBODY}, whom other programs "
            f"may share; make it (useradd --system {ACCOUNT}) before the first start to keep them apart."
        )


def _private_folder(place: Place, folder: Path) -> None:
    """Make a folder only the server's user enters; one that somebody else made is refused."""
    try:
        folder.mkdir(mode=0o700)
        place.own(folder)
    except FileExistsError:
        pass
    found = folder.lstat()
    expected = place.owner.uid if place.owner else os.geteuid()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != expected or stat.S_IMODE(found.st_mode) & 0o077:
        raise LaunchError(f"{folder} is not a private folder of the server's user; remove it.")
