"""Where Deputy keeps what it makes: DEPUTY_HOME, by default `.deputy/` beside the code."""

import os
import secrets
from pathlib import Path

from common.env import text
from launch.errors import LaunchError

WEB_PROCESSES = 2  # of `make run`
ONLY_OURS, ONLY_THROUGH = 0o700, 0o711  # root's database runs as another user, who has to pass
PROJECT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """DEPUTY_HOME as an absolute path; a relative one counts from the project's folder."""
    return PROJECT / Path(text("DEPUTY_HOME", ".deputy")).expanduser()


def make_home() -> Path:
    """The folder, made if missing. Raises LaunchError where it cannot be written."""
    folder = home()
    try:
        folder.mkdir(ONLY_THROUGH if os.geteuid() == 0 else ONLY_OURS, parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"cannot make {folder}: {error.strerror}; DEPUTY_HOME moves it.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise LaunchError(f"cannot write to {folder}; DEPUTY_HOME moves it elsewhere.")
    return folder


def secret_key() -> str:
    """Deputy's own secret, generated once and readable by its owner alone."""
    path = make_home() / "secret_key"
    if not path.exists():
        write_private(path, secrets.token_urlsafe(50))
    try:
        key = path.read_text().strip()
    except OSError as error:
        raise LaunchError(f"cannot read {path}: {error.strerror}.") from None
    if len(key) < 32:
        raise LaunchError(f"{path} holds no usable key; remove it and a new one is made.")
    return key


def keep_address(host: str, port: int) -> None:
    """Let the programs beside `make run` know where it listens, for the links they show."""
    shown = "localhost" if host in ("0.0.0.0", "::") else host  # noqa: S104  (compared, not bound)
    write_private(make_home() / "address", f"http://{f'[{shown}]' if ':' in shown else shown}:{port}")


def address(default: str) -> str:
    """Where the latest `make run` listens, or `default` before the first."""
    try:
        return (home() / "address").read_text().strip() or default
    except OSError:
        return default


def write_private(path: Path, content: str) -> None:
    """Write a file only its owner reads, whole or not at all."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content)
        os.replace(draft, path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise LaunchError(f"cannot write {path}: {error.strerror}.") from None
