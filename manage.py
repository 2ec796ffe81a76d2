#!/usr/bin/env python
"""Django's command line for Deputy."""

import os
import sys
from importlib import import_module

# these live long, with a connection for each thread: a pooler is for them
THROUGH_POOLER = {"cluster", "carrier", "runserver"}
# these never ask the database, so the embedded server need not run for them
WITHOUT_DATABASE = {"help", "version", "collectstatic", "compilemessages", "makemessages", "startapp"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("deputy: this Python has no Django; use .venv/bin/python, which `make run` sets up.")
    from common import env
    from launch import errors, postgres

    with errors.one_line():
        if not THROUGH_POOLER & set(sys.argv[1:2]):
            env.go_direct()
        if asks_database(sys.argv[1:]):
            postgres.ensure()
        import_module(os.environ["DJANGO_SETTINGS_MODULE"])  # a bad variable is one line, before any command
        execute_from_command_line(sys.argv)


def asks_database(arguments: list[str]) -> bool:
    """Whether a command line may need the database: all do but those that say they do not."""
    return (
        bool(arguments)
        and arguments[0].lstrip("-") not in WITHOUT_DATABASE
        and not {"-h", "--help", "--version"} & set(arguments)
    )


if __name__ == "__main__":
    main()
