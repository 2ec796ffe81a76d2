"""ASGI entry point: the web processes, and any server that is pointed at `config.asgi:application`."""

import os

import django

from launch import errors, postgres

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with errors.one_line():
    postgres.ensure()
    django.setup(set_prefix=False)

    from common.bodies import limited  # what these import reads the settings
    from common.processes import many_files
    from common.web import Application
    from config.connections import check
    from runs.mcp.app import with_mcp

    check()
    many_files()

    application = limited(with_mcp(Application()))
