"""`manage.py verify_run`: an honest log is whole, and a changed one is found at its first wrong event."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from common.db import execute
from runs.log.verify import verify
from runs.models import Run
from tests.acting import cancel, start
from tests.scripted import by_role, call, in_order, say

pytestmark = pytest.mark.django_db


@pytest.fixture
def done(ask):
    """A completed run with a group below it."""
    return ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "Compare prices"})), say("They charge 5.")],
            researcher=[say("EVIDENCE: Rival A charges 5.")],
            analyst=[say("PROPOSAL: Match it.")],
            lead=[say("DECISION: Charge 5.")],
        )
    )


def verify_run(*arguments, **options):
    said = StringIO()
    try:
        call_command("verify_run", *arguments, stdout=said, **options)
    except SystemExit as ended:
        return ended.code, said.getvalue()
    return 0, said.getvalue()


def test_what_happened_verifies(done):
    assert verify_run(done.pk) == (0, f"{done.pk}: completed, {done.last_seq} events, whole\n")
    assert verify_run(all=True) == (0, "2 runs checked, 0 broken.\n")


def test_so_do_runs_that_are_on_their_way(ask, world):
    waiting = ask(in_order(call(("ask_user", {"question": "Which?"}))))
    pending = start(user=world.user, project=world.project, goal="Later")
    failed = ask(lambda messages, facts: call(("list_available_groups", {})))
    cancelled = ask(in_order(), drive=False)
    cancel(cancelled.pk, by="mia")
    assert [verify(run).status for run in (waiting.pk, pending, failed.pk, cancelled.pk)] == [
        "waiting",
        "pending",
        "failed",
        "cancelled",
    ]
    assert verify_run(all=True)[0] == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            'UPDATE runs_runevent SET payload = payload || \'{"output": "They charge 6."}\' WHERE seq = 7',
            "event 7",
        ),
        ("UPDATE runs_runevent SET agent = 'agt_other' WHERE seq = 4", "event 4"),
        ("UPDATE runs_runevent SET created_at = created_at + interval '1 second' WHERE seq = 3", "event 3"),
        ("UPDATE runs_runevent SET type = 'run.resumed' WHERE seq = 3", "event 3 (run.resumed)"),
        ("UPDATE runs_runevent SET digest = md5('x') WHERE seq = 5", "event 5"),
        ("DELETE FROM runs_runevent WHERE seq = 2", "event 2 is missing"),
        (
            "DELETE FROM runs_runevent WHERE seq = (SELECT last_seq FROM runs_run WHERE id = run_id)",
            "is missing",
        ),
        ("UPDATE runs_run SET last_seq = last_seq - 1", "last_digest"),
        ("UPDATE runs_run SET output = 'They charge 6.'", "output"),
        ("UPDATE runs_run SET status = 'failed'", "status is failed, its events say completed"),
        ('UPDATE runs_run SET error = \'{"code": "X"}\'', "error"),
        (
            "INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, "
            "digest) SELECT organization_id, run_id, 1 + (SELECT last_seq FROM runs_run WHERE id = run_id), "
            "'memory.written', '', '{}', created_at, digest FROM runs_runevent WHERE seq = 1",
            "stands behind the end",
        ),
    ],
)
def test_a_change_is_found_where_it_was_made(done, change, named):
    table = "runs_run" if change.startswith("UPDATE runs_run ") else "runs_runevent"
    column = "id" if table == "runs_run" else "run_id"
    joined = "AND" if "WHERE" in change else "WHERE"
    assert execute(f"{change} {joined} {table}.{column} = %s", [done.pk]) == 1

    status, said = verify_run(done.pk)
    assert status == 1 and "BROKEN" in said and named in said
    status, said = verify_run(all=True)
    assert status == 1 and said.count("BROKEN") == 1 and said.endswith("2 runs checked, 1 broken.\n")


def test_two_events_that_changed_places_are_found(done):
    for seq, place in ((4, 1000), (5, 4), (1000, 5)):
        execute("UPDATE runs_runevent SET seq = %s WHERE run_id = %s AND seq = %s", [place, done.pk, seq])

    assert verify(done.pk).seq == 4


def test_a_log_longer_than_a_piece_is_read_whole(done, monkeypatch):
    from runs.log import verify as verifying

    for piece in (1, 2, done.last_seq - 1, done.last_seq):
        monkeypatch.setattr(verifying, "PIECE", piece)
        assert not verify(done.pk).broken
    execute("DELETE FROM runs_runevent WHERE run_id = %s AND seq = %s", [done.pk, done.last_seq])
    for piece in (1, 2, done.last_seq - 1, done.last_seq):
        monkeypatch.setattr(verifying, "PIECE", piece)
        assert verify(done.pk).seq == done.last_seq


def test_it_wants_to_know_which(done):
    for arguments, options in (((), {}), ((done.pk,), {"all": True})):
        with pytest.raises(CommandError, match="Name runs by their ids, or say --all"):
            verify_run(*arguments, **options)
    with pytest.raises(CommandError, match="There is no run 'run_x'"):
        verify_run("run_x")
    assert Run.objects.filter(pk=done.pk).exists()
