"""How much of the database an organization takes, what its page says, and when it takes no more runs."""

import re
from hashlib import sha256

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from common.api import slots
from common.db import execute, row
from groups.models import Organization, Role, StorageUse
from runs.observe import storage
from runs.observe.in_use import in_use
from tests.admin_world import client_of, url
from tests.factories import MembershipFactory, OrganizationFactory, UserFactory
from tests.integration.api_client import Api, problem
from tests.scripted import in_order, say

pytestmark = pytest.mark.django_db


def measured_as(organization, size):
    StorageUse.objects.update_or_create(organization=organization, defaults={"size": size})


def test_what_tables_take_is_shared_out_by_the_rows_of_each(ask, world):
    ask(in_order(say("x" * 100_000)))
    other = OrganizationFactory()
    found = storage.measure()

    kept = {use.organization_id: use.size for use in StorageUse.objects.all()}
    assert kept == {world.organization.pk: found[world.organization.pk], other.pk: found.get(other.pk, 0)}
    assert kept[world.organization.pk] > 10 * kept[other.pk]
    whole = row("SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind IN ('r', 'p')")[0]
    assert sum(kept.values()) < whole


def roles(organization, many, description):
    one = Role.objects.create(organization=organization, name="r0", description=description)
    names = [field.column for field in Role._meta.concrete_fields if field.name not in ("id", "name")]
    columns = ", ".join(f'"{name}"' for name in names)
    execute(
        f"INSERT INTO groups_role (id, name, {columns}) SELECT left(id, 20) || n, 'r' || n, {columns} "
        "FROM groups_role, generate_series(1, %s) n WHERE id = %s",
        [many - 1, one.pk],
    )


def test_long_texts_count_as_much_as_they_take(world):
    """They are kept aside of their rows, compressed: a row alone would say little of them."""
    quiet = OrganizationFactory()
    roles(quiet, 20, "short")
    roles(world.organization, 20, "".join(sha256(bytes([n])).hexdigest() for n in range(250)))

    shares = dict(storage._shares(Role))
    assert shares[world.organization.pk] > 20 * shares[quiet.pk]


def test_of_a_large_table_some_blocks_tell_the_shares(world, monkeypatch):
    other = OrganizationFactory()
    roles(world.organization, 7_500, "x" * 100)
    roles(other, 2_500, "x" * 100)
    monkeypatch.setattr(storage, "BLOCKS", 150)
    with CaptureQueriesContext(connection) as asked:
        shares = dict(storage._shares(Role))

    percent = float(re.search(r"SYSTEM \(([\d.]+)\)", asked[-1]["sql"])[1])
    assert 20 < percent < 80
    assert shares[other.pk] / sum(shares.values()) == pytest.approx(0.25, abs=0.15)


@pytest.mark.django_db(transaction=True)
def test_it_is_measured_by_one_and_not_again_at_once(world, monkeypatch):
    seen = []
    monkeypatch.setattr(storage, "measure", lambda: seen.append(1))
    storage.keep_up()
    measured_as(world.organization, 5)
    storage.keep_up()
    assert seen == [1]
    execute("UPDATE groups_storageuse SET measured_at = now() - interval '1 hour'")
    storage.keep_up()
    assert seen == [1, 1]


def test_an_organization_over_its_limit_starts_no_run_and_others_do(ask, world):
    Organization.objects.filter(pk=world.organization.pk).update(storage_limit=3)
    api = Api(world.user, world.organization)
    body = {"project": world.project.slug, "goal": "x"}
    assert api.post("runs/", body).status_code == 202  # not measured yet
    measured_as(world.organization, 3 * 1_048_576)
    assert api.post("runs/", body).status_code == 202
    measured_as(world.organization, 5 * 1_048_576)

    refused = api.post("runs/", body)
    assert problem(refused) == (409, "STORAGE_FULL")
    assert "5 MB" in refused.json()["detail"]


def test_the_page_of_an_organization_says_what_it_has_in_use(world):
    root = client_of(UserFactory(is_superuser=True, is_staff=True))
    page = url("groups_organization_change", world.organization.pk)
    assert "Storage: not measured yet" in root.get(page).content.decode()
    measured_as(world.organization, 5 * 1_048_576)
    Organization.objects.filter(pk=world.organization.pk).update(storage_limit=3, queue_limit=7)
    shown = root.get(page).content.decode().replace("\xa0", " ")
    assert 'Storage: 5.0 MB of 3.0 MB (<time class="dp-when"' in shown
    assert "Runs that wait for a worker: 0 of 7" in shown
    assert "Calls of models and tools under way: 0 of 1000" in shown


def test_no_administrator_raises_the_limits_of_their_own(world):
    administrator = MembershipFactory(
        organization=world.organization, role="administrator", user__is_staff=True
    ).user
    page = url("groups_organization_change", world.organization.pk)
    client = client_of(administrator)
    sent = {"name": "Renamed", "slug": world.organization.slug}
    sent |= {"queue_limit": "9", "calls_limit": "9", "storage_limit": "9"}
    assert client.post(page, sent).status_code == 302
    now = Organization.objects.get(pk=world.organization.pk)
    assert (now.name, now.queue_limit, now.calls_limit, now.storage_limit) == ("Renamed", None, None, None)


@override_settings(STREAMS_ORGANIZATION=2)
def test_an_organization_has_so_many_open_answers_whoever_asks(world):
    slots._open.clear()
    people = [MembershipFactory(organization=world.organization).user for _ in range(3)]
    held = [slots.take(user, None, world.organization.pk) for user in people[:2]]
    assert in_use(world.organization.pk).streams == (2, 2)
    with pytest.raises(Exception, match="2 streams"):
        slots.take(people[2], None, world.organization.pk)
    assert slots.take(people[2], None, OrganizationFactory().pk)
    held.pop().give_back()
    assert slots.take(people[2], None, world.organization.pk)
    slots._open.clear()
