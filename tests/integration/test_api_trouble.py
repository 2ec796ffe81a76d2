"""A database that cannot write is said to be, in words a program understands; what only reads goes on."""

import pytest
from django.db import OperationalError, connection
from psycopg import errors

from common.api.errors import unavailable
from runs.models import Run
from tests.integration.api_client import Api
from tests.scripted import call, in_order

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = call(("ask_user", {"question": "?"}))


@pytest.fixture
def read_only(db):
    """Call it, and the database takes no changes until the test ends."""

    def begin(mode="ONLY"):
        with connection.cursor() as cursor:
            cursor.execute(f"SET SESSION CHARACTERISTICS AS TRANSACTION READ {mode}")

    yield begin
    begin("WRITE")


def test_a_read_only_database_is_told_apart_and_can_be_read(world, ask, read_only):
    run = ask(in_order(QUESTION))
    api = Api(world.user, world.organization)
    read_only()

    asked = {"project": world.project.pk, "goal": "Later"}
    for path, body in (("runs/", asked), (f"runs/{run.pk}/message/", {"content": "2026"})):
        refused = api.post(path, body)
        assert (refused.status_code, refused.json()["code"]) == (503, "READ_ONLY")
        assert refused.headers["Retry-After"] == "1"
    assert api.get(f"runs/{run.pk}/").json()["status"] == "waiting"
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("cause", "code"),
    [(errors.DiskFull(), "DISK_FULL"), (errors.AdminShutdown(), "UNAVAILABLE"), (None, "UNAVAILABLE")],
)
def test_what_the_database_cannot_do_has_a_code(cause, code):
    error = OperationalError("words of the server")
    error.__cause__ = cause

    problem = unavailable(error)
    assert (problem.status_code, problem.problem["code"]) == (503, code)
    assert "words of the server" not in str(problem.problem)
