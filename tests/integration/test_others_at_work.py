"""However much one organization has to be told, another one's work stays what it was: counted in statements,
rows read and places in the queue, which the machine that runs this does not change.
"""

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from common.db import execute, row
from runs.models import Approval, ApprovalNotice, Channel
from runs.models.queue import ErrandKind, lane
from runs.queue.turns import PEOPLE, PLAIN, TAKE, Turns
from tests.admin_world import tenant
from tests.scripted import say

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

MANY = 3_000
READ = "SELECT COALESCE(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables"
FILL = """
INSERT INTO runs_queuemessage (queue, payload, organization_id, priority, due_at)
SELECT %s, %s, %s, %s, clock_timestamp() - interval '1 minute' FROM generate_series(1, %s)
"""


def cost(act):
    """The statements that it takes, and the rows that the database reads for them; it is undone."""
    (before,) = row(READ)
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        act()
        transaction.set_rollback(True)
    return len(asked), int(row(READ)[0] - before)


def flood(approval, organization):
    """Three thousand people of the organization are to be told of an approval, all at once."""
    channels = Channel.objects.bulk_create(
        [Channel(organization=organization, kind="email", name=f"c{number}") for number in range(MANY)]
    )
    ApprovalNotice.objects.bulk_create(
        [
            ApprovalNotice(
                organization=organization, approval=approval, run=approval.run, channel=channel, kind="asked"
            )
            for channel in channels
        ]
    )
    execute(FILL, [lane(ErrandKind.MAIL), "theirs", organization.pk, PEOPLE, MANY])


def test_3000_notices_of_another_organization_change_nothing_of_a_run_and_a_page(world, ask):
    theirs = tenant(name="busy")
    client = Client()
    client.force_login(world.user)

    def run():
        assert ask(lambda *_: say("Done.")).status == "completed"

    def page():
        assert client.get("/").status_code == 200

    for act in (run, page):  # what is kept from one to the next is there
        act()
    before = [cost(act) for act in (run, page)]
    flood(Approval.objects.get(pk=theirs.approval.pk), theirs.organization)
    for (statements, rows_read), (then, read_then) in zip(
        before, [cost(act) for act in (run, page)], strict=True
    ):
        assert then == statements
        assert read_then <= rows_read * 1.2, (rows_read, read_then)


def test_nor_does_one_notice_wait_for_3000_of_another_organization(world):
    theirs, mail = tenant(name="busy"), lane(ErrandKind.MAIL)
    execute("DELETE FROM runs_queuemessage")
    execute(FILL, [mail, "theirs", theirs.organization.pk, PEOPLE, MANY])
    execute(FILL, [mail, "ours", world.organization.pk, PEOPLE, 1])
    execute(FILL, ["deputy", "our run", world.organization.pk, PEOPLE, 1])

    assert taken("deputy", 8) == ["our run"]  # errands are not what workers take
    assert "ours" in taken(mail, 2)


def taken(queue, room):
    """The payloads of what whoever has so much room takes next from a queue."""
    turns = Turns()
    execute(PLAIN)
    with connection.cursor() as cursor:
        cursor.execute(TAKE, {**turns.ask(room), "lease": 60, "holder": "car_test", "queue": queue})
        found, _ = turns.told(cursor.fetchall())
    return [payload for _, payload in found]
