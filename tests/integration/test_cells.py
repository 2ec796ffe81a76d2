"""Moving an organization to another cell: which rows go, whose, and that nobody else's do."""

from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connection
from django.test import override_settings
from django.utils import timezone

from common.db import is_locked, own_connection
from groups import bearer, cells
from groups.current import memberships_of
from groups.models import Cell, Move, MoveState, Organization, Project, Token
from memory.models import Memory
from runs.cells import copying, fence, move, tables
from runs.execution import executor
from runs.models import OutboundCall, QueueMessage, Rating, Run
from runs.queue.turns import TAKE, Turns
from runs.workers import sweep
from tests.factories import MembershipFactory, OrganizationFactory, UserFactory
from tests.scripted import by_role, call, say

pytestmark = pytest.mark.django_db(transaction=True)

OF_ANOTHER = "SELECT count(*) FROM {} WHERE organization_id <> %s"
LAST_ACCOUNT = "SELECT setval('auth_user_id_seq', 20000000)"


def say_done(messages, facts):
    return say("done")


def beside(name):
    """A connection to another database of the tests' server."""
    parameters = connection.get_connection_params()
    kept = {key: parameters[key] for key in ("host", "port", "user", "password") if key in parameters}
    return psycopg.connect(**kept, dbname=name, autocommit=True)


def emptied(own):
    full = own.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace "
        "AND relname NOT IN ('django_migrations', 'django_content_type', 'auth_permission')"
    ).fetchall()
    own.execute("TRUNCATE " + ", ".join(f'"{name}"' for (name,) in full) + " CASCADE")


@pytest.fixture(scope="module")
def empty_cell(django_db_setup, django_db_blocker):
    """A second cell, in a database made like this one before anything was in it."""
    with django_db_blocker.unblock():
        name = connection.settings_dict["NAME"]
        connection.close()
        with beside("postgres") as own:
            own.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            own.execute(f"DROP DATABASE IF EXISTS {name}_cell")
            own.execute(f"CREATE DATABASE {name}_cell TEMPLATE {name}")
        yield f"{name}_cell"
        with beside("postgres") as own:
            own.execute(f"DROP DATABASE {name}_cell WITH (FORCE)")


@pytest.fixture
def here():
    """This database is a cell's, and afterwards it is none."""
    call_command("cell", number=0, address="http://cell-0.test", verbosity=0)
    yield
    with closing(own_connection()) as own:
        fence.remove(own)


@pytest.fixture
def there(empty_cell, here):
    """A connection to the second cell, which has its number and is empty again afterwards."""
    sealed = Cell(number=2, address="http://cell-2.test")
    sealed.keep_check()
    with beside(empty_cell) as own:
        emptied(own)  # whatever was in the one it was made from
        own.execute(
            "INSERT INTO groups_cell (number, address, check_text) VALUES (2, %s, %s)",
            [sealed.address, sealed.check_text],
        )
        own.execute(LAST_ACCOUNT)
        fence.build(own)
        yield own


def moved(organization, there, **more):
    return move.move(organization.slug, there.info.dsn, **more)


def test_every_table_goes_along_or_says_why_it_stays():
    goes = set(tables.names(tables.tables()))
    fenced = set(fence.triggers())
    assert goes - fenced == {tables.EVENTS, tables.MESSAGES}  # their run's row is; decide nothing
    assert fenced <= goes
    assert {model._meta.label for model in tables.concrete()} >= set(tables.STAYS)  # no name is out of date


def test_a_model_that_says_nothing_is_an_error(monkeypatch):
    monkeypatch.setattr(tables, "STAYS", {})
    with pytest.raises(tables.Unknown):
        tables.moving()


def test_an_organization_moves_whole_and_nothing_else_does(ask, world, there):
    other = OrganizationFactory()
    MembershipFactory(organization=other, user=world.user)
    stranger = MembershipFactory(organization=other).user
    root = UserFactory(username="root", is_superuser=True, is_staff=True, password="hashed")
    MembershipFactory(organization=world.organization, user=root)
    there.execute(
        "INSERT INTO auth_user (id, username, password, first_name, last_name, email, is_superuser, "
        "is_staff, is_active, date_joined) VALUES (20000001, 'root', '', '', '', '', true, true, true, now())"
    )
    _, secret = Token.objects.issue(world.organization, world.user, scopes=["runs:read"])
    run = ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "g", "context": "c"})), say("done")],
            researcher=[say("EVIDENCE: e")],
            analyst=[say("PROPOSAL: p")],
            lead=[say("DECISION: six euro a seat")],
        ),
        session_key="s",
    )
    digests = dict(Run.objects.values_list("id", "last_digest"))
    done = moved(world.organization, there)

    assert done.rows["runs_run"] == len(digests) > 1 and done.rows["runs_runevent"] > 10
    assert dict(there.execute("SELECT id, last_digest FROM runs_run").fetchall()) == digests
    for each in tables.tables():
        if "organization_id" in each.columns:
            assert there.execute(OF_ANOTHER.format(each.name), [world.organization.pk]).fetchone() == (0,)
    powerful = "SELECT username FROM auth_user WHERE is_superuser OR is_staff"
    assert there.execute(powerful).fetchall() == [("root",)]  # the one that was there
    names = {name for (name,) in there.execute("SELECT username FROM auth_user")}
    assert names == {world.user.username, "root", f"root-{root.pk}"}
    assert done.arrived.renamed == {"root": f"root-{root.pk}"}
    assert there.execute("SELECT count(*) FROM groups_move").fetchone() == (0,)  # the target works for it

    assert list(Organization.objects.all()) == [other]
    assert not Run.objects.exists()
    assert bearer.live(secret) is None and cells.address_of_token(secret) == "http://cell-2.test"
    gone = [(world.organization.slug, world.organization.name, "http://cell-2.test")]
    assert cells.organizations_elsewhere(world.user) == gone
    assert cells.organizations_elsewhere(stranger) == []
    assert run.pk in digests


def test_what_happens_while_it_is_copied_goes_along(ask, world, there, monkeypatch):
    kept = ask(say_done, goal="before")
    rating = Rating.objects.create(organization=world.organization, run=kept, user=world.user, good=True)
    gone = MembershipFactory(organization=world.organization)
    waiting = ask(say_done, goal="goes on", drive=False)

    known = {"organization": world.organization, "project": world.project, "type": "archival"}
    Memory.objects.create(**known, content="of the project")

    def meanwhile(moving):
        Project.objects.filter(pk=world.project.pk).update(name="Renamed")
        executor.run(waiting.pk)
        ask(say_done, goal="new")
        Rating.objects.filter(pk=rating.pk).update(good=False)
        gone.delete()
        MembershipFactory(organization=world.organization, user__username="new")

    monkeypatch.setattr(move.Moving, "_leave", meanwhile)
    expected = set(Run.objects.values_list("goal", flat=True)) | {"new"}
    moved(world.organization, there)
    assert {goal for (goal,) in there.execute("SELECT goal FROM runs_run")} == expected
    assert there.execute("SELECT good FROM runs_rating").fetchall() == [(False,)]
    assert there.execute("SELECT name FROM groups_project").fetchall() == [("Renamed",)]
    kept = there.execute("SELECT count(*) FROM memory_memory WHERE content = 'of the project'")
    assert kept.fetchone() == (1,)
    members = "SELECT username FROM groups_membership m JOIN auth_user u ON u.id = m.user_id"
    assert {name for (name,) in there.execute(members)} == {"mia", "new"}
    whole = "SELECT r.last_seq = (SELECT count(*) FROM runs_runevent e WHERE e.run_id = r.id) FROM runs_run r"
    assert there.execute(whole).fetchall() == [(True,)] * 3


def test_a_message_that_is_taken_while_all_else_is_frozen_stops_no_move(ask, world, there, monkeypatch):
    """Workers take messages until the switch, and what they do then waits or is refused: it is done there."""
    waiting = ask(say_done, goal="goes on", drive=False)
    whose = {"organization_id": world.organization.pk, "payload": "x"}
    QueueMessage.objects.create(queue="deputy", run_id=waiting.pk, **whose)
    bring = copying.changes

    def taken_once_it_was_brought(source, target, each, *more):
        count = bring(source, target, each, *more)
        if each.name == tables.MESSAGES:
            assert QueueMessage.objects.all().delete()[0] == 1
        return count

    monkeypatch.setattr(copying, "changes", taken_once_it_was_brought)
    moved(world.organization, there)
    assert there.execute("SELECT run_id FROM runs_queuemessage").fetchall() == [(waiting.pk,)]


def test_nothing_has_changed_where_it_fails_before_the_switch(world, there, monkeypatch):
    def refused(words, **more):
        with pytest.raises(move.CannotMove, match=words):
            moved(world.organization, there, **more)
        assert not Move.objects.exists()
        for each in tables.tables():
            assert there.execute(f"SELECT count(*) FROM {each.name}").fetchone() == (0,), each.name
        world.organization.save()  # nobody waits for a lock

    there.execute("UPDATE groups_cell SET number = 0")
    refused("Both databases are cell 0")
    there.execute("UPDATE groups_cell SET number = 2")
    with override_settings(SECRET_KEY="another" * 8):
        refused("another SECRET_KEY")
    there.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('runs', '9999_next', now())")
    refused("different releases")
    there.execute("DELETE FROM django_migrations WHERE name = '9999_next'")
    account = "INSERT INTO auth_user VALUES (%s, '', now(), false, 'x', '', '', '', false, true, now())"
    there.execute(account, [world.user.pk])
    refused("is somebody else there")
    there.execute("TRUNCATE auth_user CASCADE")
    OutboundCall.objects.create(
        organization=world.organization, run_id="run_x", root_id="run_x", attempt=1, kind="tool",
        call_id="c1", target="send_email", most=1, host_most=1, request="{}", wake="", seconds=1,
        holder="car_1",
    )  # fmt: skip
    refused("Still under way after 0 s: call c1 of run_x", drain=0)
    OutboundCall.objects.all().delete()
    with own_connection() as other, other.transaction():
        other.execute(
            "UPDATE groups_project SET name = 'x' WHERE organization_id = %s", [world.organization.pk]
        )
        monkeypatch.setattr(move, "LOCK_SECONDS", 0.01)
        monkeypatch.setattr(move, "ATTEMPTS", 2)
        with pytest.raises(move.CannotMove, match="Somebody writes"):
            moved(world.organization, there)
    monkeypatch.setattr(copying, "digest", lambda connection, *of: (id(connection), 0))
    refused("not what was sent")
    with own_connection() as other:
        other.execute(move.ALONE, [world.organization.pk])
        refused("Another command")
    with pytest.raises(CommandError, match="no organization 'nobody'"):
        call_command("move_organization", "nobody", to=there.info.dsn)


class Killed(BaseException):
    """The command is gone, and ends nothing."""


def killed(*_, **__):
    raise Killed


def test_a_move_that_was_cut_short_is_ended_by_the_next_call(ask, world, there, monkeypatch):
    run = ask(say_done)
    here = "SELECT state FROM groups_move"

    def cut_short(where, what):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(where, what, killed)
            moved(world.organization, there)

    cut_short(move.Moving, "_switch")  # arrived, and not there
    assert there.execute(here).fetchall() == [(MoveState.ARRIVING,)]
    with pytest.raises(psycopg.Error, match="is in another cell"):
        there.execute("UPDATE runs_run SET goal = 'x'")
    world.organization.save()
    cut_short(move, "_begin")  # neither here nor there
    assert Move.objects.get().state == MoveState.MOVED
    assert there.execute(here).fetchall() == [(MoveState.ARRIVING,)]
    with pytest.raises(DatabaseError, match="is in another cell"):
        world.organization.save()
    assert memberships_of(world.user) == []
    cut_short(move, "_remove")  # there, and not yet removed here
    assert there.execute(here).fetchall() == []
    there.execute("UPDATE runs_run SET goal = 'x'")
    moved(world.organization, there)
    assert not Run.objects.exists() and not Organization.objects.exists()
    assert there.execute("SELECT id FROM runs_run").fetchall() == [(run.pk,)]


def test_who_writes_waits_while_it_is_frozen_and_others_do_not(here, world, monkeypatch):
    others = OrganizationFactory()
    with own_connection() as mover:
        mover.execute(f"SELECT pg_advisory_lock({cells.LOCK.format('%s')})", [world.organization.pk])
        others.save()
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = 20")
        with pytest.raises(OperationalError) as refused:
            world.organization.save()
        assert is_locked(refused.value)
        assert Organization.objects.filter(pk=world.organization.pk).exists()  # who reads does not wait
    world.organization.save()


def test_the_doors_name_the_cell_of_what_has_moved(world, there, client):
    _, secret = Token.objects.issue(world.organization, world.user, scopes=["runs:read"])
    Cell.objects.update(address="http://cell-0.test")
    by_token = {"HTTP_AUTHORIZATION": f"Token {secret}"}
    assert client.get("/cells/where/", **by_token)["X-Deputy-Cell"] == "http://cell-0.test"
    moved(world.organization, there)
    answer = client.get("/api/runs/", **by_token)
    assert answer.status_code == 421
    assert answer.json()["code"] == "MOVED" and answer.json()["cell"] == "http://cell-2.test"
    assert client.get("/cells/where/", **by_token)["X-Deputy-Cell"] == "http://cell-2.test"
    issued_there = {"HTTP_AUTHORIZATION": "Token dpt_2_made-there"}
    assert client.get("/cells/where/", **issued_there)["X-Deputy-Cell"] == "http://cell-2.test"
    assert client.get("/api/runs/", **issued_there).json()["cell"] == "http://cell-2.test"
    unknown = {"HTTP_AUTHORIZATION": "Token dpt_nothing"}
    assert client.get("/cells/where/", **unknown)["X-Deputy-Cell"] == "http://cell-0.test"
    assert client.get("/api/runs/", **unknown).status_code == 401
    client.force_login(world.user)
    assert client.get("/", follow=False)["Location"] == "http://cell-2.test/"


def test_nobody_takes_the_work_of_what_is_frozen_and_no_errand_of_what_leaves(ask, world):
    run = ask(say_done, drive=False)
    Run.objects.update(queued_at=None)
    whose = {"organization_id": world.organization.pk, "payload": "{}"}
    QueueMessage.objects.create(queue="deputy", run_id=run.pk, due_at=timezone.now(), **whose)
    QueueMessage.objects.create(queue="deputy.mail", **whose)
    until = timezone.now() + timedelta(minutes=1)
    Move.objects.create(
        organization_id=world.organization.pk, slug="s", name="n", state=MoveState.FROZEN, until=until
    )

    def taken(queue):
        with own_connection() as own, own.transaction(force_rollback=True):
            values = Turns().ask(1) | {"lease": 1, "holder": "h", "queue": queue}
            return len([one for one, *_ in own.execute(TAKE, values).fetchall() if one])

    assert (taken("deputy"), taken("deputy.mail")) == (0, 0)
    QueueMessage.objects.filter(queue="deputy").delete()
    assert not sweep.anything_due() and sweep.sweep().requeued == 0
    Move.objects.update(state=MoveState.LEAVING)
    assert sweep.anything_due() and taken("deputy.mail") == 0
    Move.objects.update(until=timezone.now())  # whoever moved it has not come back
    assert taken("deputy.mail") == 1
