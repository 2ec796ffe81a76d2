"""WSGI entry point, for servers that know nothing else; streams want config.asgi."""

import os

from django.core.wsgi import get_wsgi_application

from launch import errors, postgres

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
with errors.one_line():
    postgres.ensure()
    application = get_wsgi_application()
