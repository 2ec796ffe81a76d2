"""`make test`, `make lint` and `make test-slow`: every check, on one PostgreSQL of its own.

    python -m launch.check [--lint | --slow] [pytest's arguments]

The database is an embedded server in a temporary folder, or the one DATABASE_URL names. Arguments for
pytest mean that somebody looks at single tests: then pytest runs alone and in one process, unless they
say `-n 2`. All fast tests, and likewise the long proofs, run on as many processes as there are cores, each
with a database of its own. pytest comes last in any case, even when a check before it has failed, so that its
closing line is the last one.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from common.processes import die_with_parent
from launch import postgres
from launch.errors import one_line
from launch.home import PROJECT

LINT = (
    ("-m", "ruff", "check", "--quiet", "."),
    ("-m", "ruff", "format", "--check", "--quiet", "."),
    ("-m", "mypy", "--no-error-summary", "."),
)
MIGRATIONS = ("manage.py", "makemigrations", "--check", "--dry-run")
MOST_PROCESSES = 8
SIDE_BY_SIDE = ("-n", str(min(MOST_PROCESSES, os.cpu_count() or 1)))  # tests/scheduling.py


class Interrupt:
    """Remembers Ctrl-C. The step that runs gets it too and says what it has done so far."""

    seen = False

    def __call__(self, *_: object) -> None:
        self.seen = True


interrupt = Interrupt()


def main() -> None:
    """Exit status 0 only if everything passed."""
    arguments = sys.argv[1:]
    signal.signal(signal.SIGINT, interrupt)
    with one_line():
        if arguments[:1] == ["--lint"]:
            sys.exit(1 if failing(LINT, dict(os.environ)) else 0)
        sys.exit(test(arguments))


def test(arguments: list[str]) -> int:
    """Lint and pytest on one server. Returns the exit status."""
    slow = arguments[:1] == ["--slow"]
    chosen = arguments[1:] if slow else arguments
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a hundred processes would compile Deputy again
    server = None
    if not environment.get("DATABASE_URL", "").strip():
        folder = postgres.temporary_home()
        server = postgres.ensure(folder, durable=False, temporary=True)
        environment |= {"DEPUTY_HOME": str(folder), "DATABASE_URL": postgres.url(folder)}
    side_by_side = () if chosen else SIDE_BY_SIDE
    kept = ("--reuse-db",) if server is not None else ()  # our own server goes with its databases
    tests = ("-m", "pytest", "-m", "slow" if slow else "not slow", *kept, *side_by_side, *chosen)
    with ThreadPoolExecutor(1) as beside:
        checks = beside.submit(check, () if chosen or slow else (*LINT, MIGRATIONS), environment)
        status = run(tests, environment)
        failed = checks.result()
    if server is not None:
        server.leave()
    return status or (1 if failed else 0)


def check(steps: Sequence[Sequence[str]], environment: dict[str, str]) -> list[str]:
    """Run the checks and say at once which failed; returns their names."""
    failed = failing(steps, environment)
    if failed and not interrupt.seen:
        print(f"\nFAILED, see above: {', '.join(failed)}. The tests go on.\n", flush=True)
    return failed


def failing(steps: Sequence[Sequence[str]], environment: dict[str, str]) -> list[str]:
    """Run each step; returns the names of those that failed."""
    return [" ".join(step[1:3]) for step in steps if run(step, environment) != 0]


def run(step: Sequence[str], environment: dict[str, str]) -> int:
    """A step's exit status; after Ctrl-C no further step starts."""
    if interrupt.seen:
        return 130
    follow = die_with_parent(signal.SIGINT)
    command = [sys.executable, *step]
    return subprocess.run(command, cwd=PROJECT, env=environment, preexec_fn=follow).returncode


if __name__ == "__main__":
    main()
