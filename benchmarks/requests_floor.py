"""The floor of the API's benchmark: bare Django views that do a request's statements and answer its bytes.

Served by the same server with the same threads. No middleware, no serializer, no check of anything: only what
Deputy's request asked of the database (benchmarks/requests_prepare.py), with an id of its own for each run.
"""

import itertools
import os
import pickle
from pathlib import Path
from typing import Any

import django
import psycopg
from django.conf import settings

from common import env

settings.configure(
    SECRET_KEY="only-for-benchmarks-" + "0123456789" * 4,
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            **env.database(os.environ["DATABASE_URL"]),
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
        }
    },
    WEB_THREADS=12,
)
django.setup(set_prefix=False)

from django.db import connection, transaction  # noqa: E402
from django.http import HttpRequest, HttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from psycopg.types.json import Jsonb  # noqa: E402

from common.ids import run_id as new_id  # noqa: E402
from common.web import Application  # noqa: E402

TOLD: dict[str, Any] = pickle.loads(Path(os.environ["REQUESTS_FILE"]).read_bytes())


def get(request: HttpRequest, run_id: str) -> HttpResponse:
    play(TOLD["get"], {})
    return HttpResponse(TOLD["get_body"], content_type="application/json")


def post(request: HttpRequest) -> HttpResponse:
    play(TOLD["post"], {TOLD["run"]: new_id()})
    return HttpResponse(TOLD["post_body"], content_type="application/json", status=202)


def play(statements: Any, ids: dict[str, str]) -> None:
    """The statements, in the transactions they were in."""
    connection.close_if_unusable_or_obsolete()
    connection.ensure_connection()
    for together, some in itertools.groupby(statements, lambda one: one[2]):
        if not together:
            execute(some, ids)
            continue
        with transaction.atomic():
            execute(some, ids)


def execute(statements: Any, ids: dict[str, str]) -> None:
    cursor = psycopg.Cursor(connection.connection)
    for sql, parameters, _ in statements:
        cursor.execute(sql, named(parameters, ids))
        if cursor.description:
            cursor.fetchall()


def named(value: Any, ids: dict[str, str]) -> Any:
    """The parameters with the new run's id wherever the recorded one's was."""
    if not ids:
        return value
    if isinstance(value, str):
        for old, new in ids.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, list | tuple):
        return type(value)(named(each, ids) for each in value)
    if isinstance(value, dict):
        return {name: named(each, ids) for name, each in value.items()}
    return Jsonb(named(value.obj, ids)) if isinstance(value, Jsonb) else value


urlpatterns = [path("api/runs/<str:run_id>/", get), path("api/runs/", post)]
application = Application()
