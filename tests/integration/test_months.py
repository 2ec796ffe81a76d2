"""The log's months: partitions are made ahead, and go when no organization keeps anything of them."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import pairwise

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone

from common import ids, months
from common.db import execute, own_connection, row, rows
from runs.execution.outside_agents import OutsideRefused
from runs.log import months as log_months
from runs.log.months import TABLE
from runs.log.verify import verify
from runs.models import GoneMonth, Run, RunEvent
from tests.acting import complete
from tests.admin_world import client_of, superuser, url
from tests.scripted import say

from .api_client import Api

pytestmark = pytest.mark.django_db


def events(run_id, *seqs, table=TABLE):
    """Store bare events of a run that there need not be."""
    for seq in seqs:
        execute(
            f"INSERT INTO {table} (organization_id, run_id, seq, type, agent, payload, created_at, digest) "
            "VALUES ('org', %s, %s, 'run.started', '', '{}', now(), '')",
            [run_id, seq],
        )


def partition_of(run_id):
    return rows(f"SELECT DISTINCT tableoid::regclass::text FROM {TABLE} WHERE run_id = %s", [run_id])


def in_months(count):
    return ids.first_of("run", months.following(datetime.now(UTC), count) + timedelta(days=3))


def test_a_migrated_database_has_its_log_in_months_and_three_of_them_ahead():
    found = months.partitions(TABLE)
    assert (found[0].name, found[0].since) == (f"{TABLE}_old", "")
    assert all(before.until == after.since for before, after in pairwise(found))
    assert found[-1].until > ids.first_of("run", months.following(datetime.now(UTC), 3))
    assert months.missing(TABLE) == log_months.check(["default"]) == []
    assert months.create(TABLE) == []
    assert RunEvent.objects.create(
        organization_id="o", run_id=in_months(2), seq=1, type="run.started", created_at=timezone.now()
    ).pk


def test_a_month_made_late_takes_its_rows_out_of_the_default_partition():
    late, later = in_months(5), in_months(30)
    events(late, 1, 2)
    events(later, 1)
    assert partition_of(late) == [(f"{TABLE}_other",)]

    with pytest.raises(months.TooMany, match="holds 2 rows"):
        months.create(TABLE, 6, moved=1)
    made = months.create(TABLE, 6)

    assert partition_of(late) == [(f"{TABLE}_{months.following(datetime.now(UTC), 5):%Y_%m}",)]
    assert partition_of(later) == [(f"{TABLE}_other",)]
    assert len(made) == len(set(made)) >= 2
    events(late, 3)
    with pytest.raises(Exception, match="duplicate key"), months.short_locks():
        events(late, 3)


def test_a_check_says_that_a_month_is_missing_and_upkeep_makes_it():
    last = months.partitions(TABLE)
    for one in last[1:]:
        months.detach(TABLE, one.name, drop=True)
    execute(f"ALTER TABLE {TABLE} DETACH PARTITION {TABLE}_old")
    bound = ids.first_of("run", months.month(datetime.now(UTC)))
    months.attach(TABLE, f"{TABLE}_old", f"FOR VALUES FROM (MINVALUE) TO ('{bound}')")
    events(ids.run_id(), 1)  # nothing is refused

    (warning,) = log_months.check(["default"])
    assert (warning.id, f"{datetime.now(UTC):%Y_%m}" in warning.msg) == ("deputy.W001", True)
    log_months.keep_up()
    assert log_months.check(["default"]) == []
    assert row(f"SELECT count(*) FROM {TABLE}_other") == (0,)


@pytest.mark.django_db(transaction=True)
def test_who_holds_the_lock_keeps_upkeep_from_nothing_but_this(monkeypatch, caplog):
    monkeypatch.setattr(months, "LOCK_MS", 50)
    monkeypatch.setattr(months.create, "__defaults__", (4, months.MOVED))
    there = months.partitions(TABLE)
    with own_connection() as other, other.transaction():
        other.execute(f"LOCK TABLE {TABLE}_other IN ROW EXCLUSIVE MODE")  # as who appends there
        log_months.keep_up()
    assert "its next month is made later" in caplog.text
    assert months.partitions(TABLE) == there


@pytest.fixture
def old(ask, world):
    """An ended run in a month that is over, in a partition of its own, pruned; its record is not kept."""
    run = ask(lambda messages, facts: say("x"), drive=False, driver="external")
    complete(run.pk, "done")
    made = datetime(2020, 2, 29, 23, 59, tzinfo=UTC)
    split(made)
    name = ids.first_of("run", made)[:-6] + "000abc"
    for table, column in (("runs_run", "id"), ("runs_run", "root_id"), (TABLE, "run_id")):
        execute(f"UPDATE {table} SET {column} = %s WHERE {column} = %s", [name, run.pk])
    world.organization.retention_days, world.organization.record_days = 30, 300
    world.organization.save()
    Run.objects.filter(pk=name).update(ended_at=timezone.now() - timedelta(days=400))
    call_command("prune", "--organization", world.organization.slug, stdout=StringIO())
    return Run.objects.get(pk=name)


def split(made):
    """Give what came before the end of that month a partition of its own, as on an older installation."""
    first = months.partitions(TABLE)[0]
    bound = ids.first_of("run", months.following(made))
    execute(f"ALTER TABLE {TABLE} DETACH PARTITION {TABLE}_old")
    execute(f"CREATE TABLE {TABLE}_2020_02 (LIKE {TABLE} INCLUDING ALL)")
    months.attach(TABLE, f"{TABLE}_2020_02", f"FOR VALUES FROM (MINVALUE) TO ('{bound}')")
    months.attach(TABLE, f"{TABLE}_old", f"FOR VALUES FROM ('{bound}') TO ('{first.until}')")


def pruned(*arguments):
    said = StringIO()
    call_command("prune", *arguments, stdout=said)
    return next((line for line in said.getvalue().splitlines() if "2020_02" in line), "")


KEPT = [
    ("not ended", {"status": "waiting", "waiting_reason": "approval", "ended_at": None}, {}),
    ("not pruned", {"pruned_at": None}, {}),
    ("ended lately", {"ended_at": timezone.now() - timedelta(days=299)}, {}),
    ("its record is kept for ever", {}, {"record_days": None}),
]


def test_a_month_stays_while_anything_of_it_is_kept(old, world, ask):
    assert partition_of(old.pk) == [(f"{TABLE}_2020_02",)]
    before = Run.objects.filter(pk=old.pk).values("ended_at", "pruned_at", "status", "waiting_reason").get()
    for why, of_run, of_organization in KEPT:
        type(world.organization).objects.update(
            retention_days=None, **{"record_days": 300, **of_organization}
        )
        Run.objects.filter(pk=old.pk).update(**{**before, **of_run})
        assert f"kept, by {old.pk} of {world.organization.slug}" in pruned(), why
        assert RunEvent.objects.filter(run=old).exists(), why
    Run.objects.filter(pk=old.pk).update(**before)
    type(world.organization).objects.update(record_days=300)

    assert "would be removed" in pruned("--dry-run")
    assert verify(old.pk).gone is False
    assert pruned("--organization", world.organization.slug) == ""  # a month is not one organization's
    assert RunEvent.objects.filter(run=old).exists()


@pytest.mark.parametrize("detach", [False, True])
def test_a_month_that_is_gone_is_known_and_its_runs_stay(old, world, detach):
    there = RunEvent.objects.filter(run=old).count()
    assert ("detached" if detach else "removed") in pruned(*["--detach"] * detach)
    assert not RunEvent.objects.filter(run=old).exists()
    left = row("SELECT to_regclass(%s)::text", [f"{TABLE}_2020_02"])[0]
    assert (left is not None) == detach
    if detach:
        assert row(f"SELECT count(*) FROM {left}") == (there,)
    assert GoneMonth.objects.values_list("name", "runs", "detached").get() == (f"{TABLE}_2020_02", 1, detach)

    verdict = verify(old.pk)
    assert (verdict.broken, verdict.pruned, verdict.gone) == ("", True, True)
    said = StringIO()
    call_command("verify_run", old.pk, stdout=said)
    assert "pruned, its month is gone" in said.getvalue()
    assert months.partitions(TABLE)[0].name == f"{TABLE}_old"  # nothing keeps it but that it is not over
    api = Api(world.user, world.organization)
    assert api.get(f"runs/{old.pk}/").status_code == 200
    assert api.get(f"runs/{old.pk}/events/").json()["results"] == []
    assert api.post(f"runs/{old.pk}/fork/", {"seq": 1}).status_code in (404, 409, 422)
    assert client_of(world.user).get(reverse("web:conversation", args=[old.pk])).status_code == 200
    client = client_of(superuser())
    for page in (url("runs_run_change", old.pk), url("runs_run_changelist"), url("runs_decisions")):
        assert client.get(page).status_code == 200, page
    with pytest.raises(OutsideRefused) as refused:
        complete(old.pk, "done again")
    assert refused.value.code == "RUN_ENDED"


def test_events_that_are_missing_elsewhere_are_found_all_the_same(old, ask):
    pruned()
    other = ask(lambda messages, facts: say("x"))
    Run.objects.filter(pk=other.pk).update(pruned_at=timezone.now())
    RunEvent.objects.filter(run=other).delete()
    assert verify(other.pk).broken == "event 1 is missing"
    for change in ({"pruned_at": None}, {"status": "pending", "ended_at": None}):
        kept = {name: getattr(old, name) for name in change}
        Run.objects.filter(pk=old.pk).update(**change)
        assert verify(old.pk).broken == "event 1 is missing", change
        Run.objects.filter(pk=old.pk).update(**kept)
    events(old.pk, old.last_seq + 1)
    assert "stands behind the end" in verify(old.pk).broken
