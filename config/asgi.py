"""ASGI entry point: the web processes, and any server that is pointed at `config.asgi:application`."""

import os

import django

from launch import errors, postgres

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with errors.one_line():
    postgres.ensure()
    django.setup(set_prefix=False)

    from common.web import Application  # what it imports reads the settings
    from config.connections import check
    from runs.mcp.app import with_mcp

    check()

    application = with_mcp(Application())
