"""ASGI entry point: the web processes, and any server that is pointed at `config.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

from launch import errors, postgres

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with errors.one_line():
    postgres.ensure()
    django = get_asgi_application()
    from runs.mcp.app import with_mcp  # needs the applications to be there

    application = with_mcp(django)
