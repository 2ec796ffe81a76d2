"""One database for all acceptance tests; every test starts the clusters it needs."""

import importlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
from django.db import connection
from django.test import override_settings
from psycopg.conninfo import make_conninfo

from runs.models import QueueMessage
from runs.tools import registry
from tests.acceptance.house import MODEL, House, status, until
from tests.acting import start
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory
from tests.integration.conftest import no_notifications_left  # noqa: F401  (these tests commit too)
from tests.upgrades import dump

ENDED = ("completed", "failed", "cancelled")


@pytest.fixture(scope="session")
def whole_house(django_db_setup: None) -> Iterator[House]:
    """With a copy of the migrated database, where another of the chosen tests has asked for one."""
    migrated = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    server = make_conninfo(**{name: migrated[name] for name in names if migrated.get(name)})
    dumped = dump(server)
    # where no other tests run, nobody has asked for the tests' own database, and nothing is in it
    house = House(dumped=dumped if "CREATE TABLE" in dumped else "")
    yield house
    house.close()


@pytest.fixture
def house(whole_house: House, django_db_blocker) -> Iterator[House]:
    """The database of the real processes, for the test's own queries as well."""
    before = dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(whole_house.settings())
    with django_db_blocker.unblock(), override_settings(QUEUE_ENABLED=True):
        QueueMessage.objects.all().delete()
        yield whole_house
        whole_house.end_clusters()
        connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(before)


@pytest.fixture
def world(house: House) -> SimpleNamespace:
    project = ProjectFactory()
    membership = MembershipFactory(organization=project.organization)
    group = GroupFactory(project=project, name="Depths", max_rounds=1)
    MemberFactory(group=group, role__name="scout", ordinal=0)
    MemberFactory(group=group, role__name="lead", ordinal=1, is_lead=True)
    return SimpleNamespace(project=project, user=membership.user, group=group)


@pytest.fixture
def ask(world: SimpleNamespace) -> Callable[..., str]:
    """Start a run whose goal names its play (tests/plays); returns its id."""

    def _ask(goal: str, **settings: int) -> str:
        with override_settings(DEPUTY_MODEL=MODEL, **settings):
            return start(user=world.user, project=world.project, goal=goal, context=world.group.pk)

    return _ask


@pytest.fixture
def ended(house: House) -> Callable[..., str]:
    """Wait for a run's end; returns its status."""

    def _ended(run_id: str, seconds: float = 60) -> str:
        def over() -> str | None:
            found = status(run_id)
            return found if found in ENDED else None

        return until(over, seconds, said=lambda: house.report(run_id))

    return _ended


@pytest.fixture
def their_tools() -> Iterator[None]:
    """The gate of this process knows the tools of the cluster's, while a test lasts."""
    before = dict(registry.all_tools())
    importlib.reload(importlib.import_module("tests.acceptance.tools"))
    yield
    registry._tools.clear()
    registry._tools.update(before)
