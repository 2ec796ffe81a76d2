"""ASGI entry point: the web processes, and any server that is pointed at `config.asgi:application`."""

import os

from django.core.asgi import get_asgi_application

from launch import errors, postgres

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with errors.one_line():
    postgres.ensure()
    application = get_asgi_application()
