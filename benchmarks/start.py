"""How long `make run` takes when everything is installed and the database is there.

    python -m benchmarks.start [STARTS]

Seconds from the start of `python -m launch.run` until /healthz answers, until /readyz does (the database is
there and migrated), until /readyz?all does (workers have said that they live), and from SIGTERM to its end.
The first start, which makes the database, migrates it and loads the demo, is told apart. What
`make run` does before, to see that nothing is to be installed, is timed by itself.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

from launch.home import PROJECT
from tests.ports import free_port

MARKS = {"answers": "/healthz", "ready": "/readyz", "working": "/readyz?all"}  # in this order
LOOK_SECONDS = 0.02
PATIENCE = 180  # seconds
HIDDEN = ("DATABASE_URL", "DJANGO_SETTINGS_MODULE", "MAKELEVEL", "SECRET_KEY")


def start(home: Path, port: int) -> dict[str, float]:
    """Seconds to each mark, and to stop."""
    environment = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment |= {"DEPUTY_HOME": str(home), "PORT": str(port)}
    began = time.monotonic()
    run = subprocess.Popen(
        [sys.executable, "-m", "launch.run"], cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL
    )
    try:
        seconds = {name: reached(port, path, run) - began for name, path in MARKS.items()}
    finally:
        told = time.monotonic()
        run.send_signal(signal.SIGTERM)
        run.wait(PATIENCE)
    return seconds | {"stopped": time.monotonic() - told}


def reached(port: int, path: str, run: "subprocess.Popen[bytes]") -> float:
    """When the address first answered 200, by the monotonic clock."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and run.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE):
                return time.monotonic()
        except (urllib.error.URLError, OSError):
            time.sleep(LOOK_SECONDS)
    raise SystemExit(f"{path} was not reached")


def install_check() -> float:
    """Seconds of launch.install where nothing is to be done; in a copy whose stamps say so."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(PROJECT / "launch", copy / "launch")
        for requirements in PROJECT.glob("requirements*.txt"):
            shutil.copy(requirements, copy)
        (copy / ".venv" / "bin").mkdir(parents=True)
        (copy / ".venv" / "bin" / "python").symlink_to(sys.executable)
        stamps = (
            "from launch import install as i; i.write('place', i.place()); i.write(i.RUN, i.digest(i.RUN))"
        )
        subprocess.run([sys.executable, "-c", stamps], cwd=copy, check=True)
        began = time.monotonic()
        subprocess.run([sys.executable, "-m", "launch.install"], cwd=copy, check=True)
        return time.monotonic() - began


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    home = Path(tempfile.mkdtemp(prefix="deputy-start-"))
    try:
        first = start(home, free_port())
        again = [start(home, free_port()) for _ in range(starts)]
    finally:
        shutil.rmtree(os.path.realpath(home / "postgres"), ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
    told = {name: round(median(one[name] for one in again), 2) for name in first}
    told["install_check"] = round(install_check(), 2)
    print({name: round(seconds, 2) for name, seconds in first.items()}, "the first time")
    for one in again:
        print({name: round(seconds, 2) for name, seconds in one.items()})
    print(json.dumps({"bench": "start", "first": {n: round(s, 2) for n, s in first.items()}, "second": told}))


if __name__ == "__main__":
    main()
