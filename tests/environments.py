"""Environments with other people's packages, each of its own: made once, and kept for the next time.

They lie in `DEPUTY_TEST_CACHE`, or `~/.cache/deputy-tests`. Nothing of Deputy is in them.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNREACHABLE = ("Retrying (", "Network is unreachable", "Temporary failure in name resolution", "ProxyError")


def cache() -> Path:
    """Where environments are kept."""
    return Path(os.environ.get("DEPUTY_TEST_CACHE") or Path.home() / ".cache" / "deputy-tests")


def python_with(requirements: list[str]) -> str:
    """The interpreter of an environment with exactly these. Skips the test where no registry is reached."""
    named = "\n".join([sys.version, *requirements])
    folder = cache() / hashlib.sha256(named.encode()).hexdigest()[:16]
    python = str(folder / "bin" / "python")
    if not (folder / "complete").exists():
        _make(folder, python, requirements)
    return python


def _make(folder: Path, python: str, requirements: list[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of one that was interrupted
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    said = done.stdout + done.stderr
    if done.returncode and any(words in said for words in UNREACHABLE):
        pytest.skip(f"no registry is reached for {requirements[0]}")
    assert done.returncode == 0, said[-3000:]
    (folder / "complete").write_text("\n".join(requirements))


def node_with(packages: list[str]) -> Path:
    """The folder with these npm packages installed. Skips the test without node 20 or a registry."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("this needs node and npm")
    folder = cache() / hashlib.sha256("\n".join(["node", *packages]).encode()).hexdigest()[:16]
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "package.json").write_text("{}")
        command = [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--omit=optional",
            *packages,
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
        if done.returncode and any(
            word in done.stderr for word in ("ENOTFOUND", "ECONNREFUSED", "ETIMEDOUT")
        ):
            pytest.skip(f"no registry is reached for {packages[0]}")
        assert done.returncode == 0, done.stderr[-3000:]
        (folder / "complete").write_text("\n".join(packages))
    return folder
