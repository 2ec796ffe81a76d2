"""Runs that an earlier release began and parked go on after the upgrade; tests/upgrades.py keeps them."""

import json

import pytest
from django.core import mail
from django.core.management import call_command
from django.db import connection

from common import notifications
from common.db import execute, own_connection
from groups.models import Membership
from runs.execution import executor
from runs.log.verify import verify
from runs.models import Approval, Run, ToolCall
from runs.workers.sweep import sweep
from tests.acting import approve, complete, message
from tests.auditor import audit, unrest
from tests.factories import permit
from tests.upgrades import FOLDER, LETTER

from .outside import work_off

FILES = sorted(FOLDER.glob("*.sql"))
DATABASE = "deputy_upgraded"


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def kept(request, django_db_setup, django_db_blocker):
    """The kept database in one of its own, as the new release finds it; the ids of its runs."""
    text = request.param.read_text("utf-8")
    with django_db_blocker.unblock():
        beside = own_connection()
        beside.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
        beside.execute(f"CREATE DATABASE {DATABASE} TEMPLATE template0")
        before = connection.settings_dict["NAME"]
        connection.close()
        connection.settings_dict["NAME"] = DATABASE
        with own_connection() as there:
            there.execute(text)
        yield json.loads(text.splitlines()[1].removeprefix("-- "))
        if notifications._sender:
            notifications._wanted.set()
            notifications._sender[1].join(5)
        connection.close()
        connection.settings_dict["NAME"] = before
        beside.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
        beside.close()


def test_there_is_a_database_of_an_earlier_release():
    assert FILES


def test_runs_of_an_earlier_release_go_on_and_complete(kept):
    call_command("migrate", verbosity=0)
    organization = Run.objects.get(pk=kept["asks"]).organization_id
    assert not [run.pk for run in Run.objects.all() if verify(run.pk).broken]
    assert audit(organization) == []

    execute("UPDATE runs_run SET lease_expires_at = now() WHERE status = 'running' AND driver = 'internal'")
    assert sweep().leases == 1
    for name in ("started", "pending"):
        executor.run(kept[name])
    asking = Run.objects.get(parent_run=kept["asks"])
    message(asking.pk, "2026", "mia")
    executor.run(asking.pk)
    decider = permit(Membership.objects.get(user__username="ada").user, "decide_approval")
    for approval in Approval.objects.filter(status="pending"):
        approve(approval.pk, decider)
        executor.run(approval.run_id)
    work_off()
    complete(kept["outside"], "done")

    ended = dict(Run.objects.values_list("pk", "status"))
    assert set(ended.values()) == {"completed"}, ended
    assert "2026" in Run.objects.get(pk=kept["asks"]).output
    assert [letter.to for letter in mail.outbox] == [LETTER["to"]] * 2
    assert set(ToolCall.objects.values_list("status", flat=True)) == {"succeeded"}
    assert audit(organization) == unrest(organization) == []
