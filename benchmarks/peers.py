"""The peers' environment: made on demand, so that their packages never mix with Deputy's."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from launch.home import PROJECT, make_home

REQUIREMENTS = PROJECT / "requirements-bench.txt"


def python() -> str | None:
    """The Python of `bench-venv` in DEPUTY_HOME with requirements-bench.txt installed.

    None where it cannot be had, with the reason on stderr: benchmarks go on without peers.
    """
    folder = make_home() / "bench-venv"
    interpreter = folder / "bin" / "python"
    stamp = folder / "requirements.sha256"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return str(interpreter)
    print("installing the peers, once …", file=sys.stderr)
    for command in _commands(folder, interpreter):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            print(f"no peers: {reason}", file=sys.stderr)
            return None
    stamp.write_text(wanted)
    return str(interpreter)


def _commands(folder: Path, interpreter: Path) -> list[list[str]]:
    if uv := shutil.which("uv"):
        install = [uv, "pip", "install", "--python", str(interpreter), "-r", str(REQUIREMENTS)]
        return [[uv, "venv", "--clear", "--python", sys.executable, str(folder)], install]
    return [
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [str(interpreter), "-m", "pip", "install", "-q", "-r", str(REQUIREMENTS)],
    ]
