"""Runs that an earlier release began and parked go on after the upgrade; tests/upgrades.py keeps them."""

import json
import os
import re

import pytest
from django.core import mail
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from common import notifications, upgrades
from common.db import execute, own_connection
from config.health import unapplied
from groups.models import Membership
from launch import prepare
from launch.errors import LaunchError
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
TOO_OLD = [path for path in FILES if path.stem == "0.1.0a1"]
DATABASE = f"deputy_upgraded_{os.getpid()}"  # one for each test process

# The parts of a schema, by their names and how they are defined; the order of columns is left out.
SCHEMA = """
    SELECT 'column', format('%s.%s', table_name, column_name), format('%s %s %s %s', data_type,
        character_maximum_length, is_nullable, coalesce(column_default, generation_expression))
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT 'constraint', format('%s.%s', conrelid::regclass, conname), pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'function', proname, pg_get_functiondef(oid)
    FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname ~ '^(groups|memory|policy|runs)_'
    UNION ALL SELECT 'trigger', format('%s.%s', tgrelid::regclass, tgname), pg_get_triggerdef(oid)
    FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT 'table', relname, format('%s %s %s', relpersistence, relreplident, reloptions)
    FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'S')
"""


@pytest.fixture(params=[path for path in FILES if path not in TOO_OLD], ids=lambda path: path.stem)
def kept(request, django_db_setup, django_db_blocker):
    """The kept database in one of its own, as the new release finds it; the ids of its runs."""
    yield from database_of(request.param, django_db_blocker)


@pytest.fixture(params=TOO_OLD, ids=lambda path: path.stem)
def too_old(request, django_db_setup, django_db_blocker):
    yield from database_of(request.param, django_db_blocker)


def database_of(path, django_db_blocker):
    text = path.read_text("utf-8")
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


VECTORS = "memory_near_"


def schema():
    """Each part's definition by its kind and name, less the casts and brackets that a restored dump adds.

    Indexes of vectors are made for each embedding model while Deputy runs; other tests may have left one.
    """
    added = re.compile(r"::(text|character varying)(\[\])?|[\s()]")
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA)
        found = [one for one in cursor.fetchall() if not one[1].startswith(VECTORS)]
    return {(kind, name): added.sub("", text) for kind, name, text in found}


def test_there_are_databases_of_earlier_releases():
    assert len(FILES) > len(TOO_OLD) > 0


@pytest.fixture
def new(transactional_db):
    """The schema of a database that this version has made."""
    return schema()


def test_squashed_migrations_are_noted_as_applied_where_nothing_else_is_to_do(kept):
    for app, name in (each.split(".") for each in unapplied()):
        if "_squashed_" not in name:
            MigrationRecorder(connection).record_applied(app, name)
    assert unapplied()
    assert prepare.migrate() == 0
    assert unapplied() == []


def test_a_database_from_before_the_squash_is_refused_with_what_to_do_and_stays_as_it_is(too_old):
    before = schema(), MigrationRecorder(connection).applied_migrations().keys()
    with pytest.raises(SystemCheckError, match=f"Migrate it with {upgrades.OLDEST} first"):
        call_command("migrate", verbosity=0, skip_checks=False)
    with pytest.raises(LaunchError, match=upgrades.OLDEST):
        prepare.migrate()
    assert (schema(), MigrationRecorder(connection).applied_migrations().keys()) == before


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_migrated_database_has_the_schema_of_a_new_one_and_its_runs_go_on_and_complete(new, kept):
    call_command("migrate", verbosity=0)
    assert {kind for kind, _ in new} == {"column", "constraint", "index", "function", "trigger", "table"}
    assert schema() == new

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
