"""Organizations take turns, what people wait for goes first, and nothing waits for ever."""

import json
from collections import Counter

import pytest

from common.db import execute, own_connection, rows
from runs.models import QueueMessage
from runs.queue import put
from runs.queue.broker import Taker
from runs.queue.turns import BACKGROUND, PEOPLE, PLAIN, TAKE, Turns

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 100_000
FILL = """
INSERT INTO runs_queuemessage (queue, payload, organization_id, priority, due_at)
SELECT 'deputy', %s, %s, %s, now() - interval '1 minute' FROM generate_series(1, %s)
"""


@pytest.fixture
def taker():
    taker = Taker("deputy")
    yield taker
    taker.leave()


def fill(organization, count, priority=PEOPLE):
    execute(FILL, [f"{organization}{priority}", organization, priority, count])


def take(taker, count):
    """The payloads of the next messages, taken one at a time."""
    taker._connect()
    found = []
    for _ in range(count):
        messages, _ = taker._fetch(1)
        found += [payload for _, payload in messages]
    return found


def test_one_message_of_another_organization_does_not_wait_for_a_thousand(taker):
    fill("a", 1000)
    fill("b", 1)
    fill("c", 2)

    assert sorted(take(taker, 3)) == ["a0", "b0", "c0"]
    assert sorted(take(taker, 2)) == ["a0", "c0"]
    assert take(taker, 3) == ["a0"] * 3


def test_those_taken_together_are_shared_and_come_in_turn(taker):
    fill("a", 100)
    fill("b", 3)
    taker._connect()
    messages, more_in = taker._fetch(8)

    assert [payload for _, payload in messages] == ["a0", "b0", "a0", "b0", "a0", "b0", "a0"]
    assert more_in == 0.0  # a has taken all its places and may have more


def test_every_place_is_filled_in_the_end(taker):
    fill("a", 100)
    taker._connect()
    assert len(taker._fetch(64)[0]) == 64


def test_what_people_wait_for_goes_first_and_the_rest_gets_its_share(taker):
    fill("a", 1000, BACKGROUND)
    fill("a", 1000, PEOPLE)
    fill("b", 1000, PEOPLE)
    first = take(taker, 40)

    assert first[:3] in (["a0", "b0", "a0"], ["b0", "a0", "b0"])
    counted = Counter(first)
    assert counted["a1"] == 10
    assert abs(counted["a0"] - counted["b0"]) <= 1


def test_the_background_is_taken_whole_where_nobody_waits(taker):
    fill("a", 5, BACKGROUND)
    assert take(taker, 6) == ["a1"] * 5


def test_a_message_says_whose_it_is_by_its_run(ask, world, settings):
    settings.QUEUE_ENABLED = True
    run = ask(lambda messages, facts: None, drive=False)
    put.enqueue(run.pk)
    put.enqueue_task("notify", "apr_1", turn=put.for_people("org_1"))
    put.enqueue_task("embed_memories")

    assert list(QueueMessage.objects.order_by("id").values_list("organization_id", "priority")) == [
        (world.organization.pk, PEOPLE),  # of the step that started it
        (world.organization.pk, PEOPLE),
        ("org_1", PEOPLE),
        ("-", BACKGROUND),
    ]


def test_a_message_of_a_childs_run_is_of_the_background(ask, world, settings):
    settings.QUEUE_ENABLED = True
    run = ask(lambda messages, facts: None, drive=False)
    type(run).objects.filter(pk=run.pk).update(depth=1, kind="group")
    put.enqueue(run.pk)

    assert QueueMessage.objects.latest("id").priority == BACKGROUND


def test_taking_reads_a_few_pages_however_many_messages_an_organization_has():
    fill("a", MANY)
    fill("b", 1)
    execute("ANALYZE runs_queuemessage")
    values = Turns().ask(2) | {"lease": 60, "holder": "here", "queue": "deputy"}
    with own_connection() as own:
        own.execute(PLAIN)
        (plan,) = own.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {TAKE}", values).fetchone()
    whole = json.dumps(plan)
    read = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]

    assert "queue_in_turn" in whole
    assert "Seq Scan" not in whole
    assert read < 200, f"{read} pages"
    assert Counter(rows("SELECT organization_id FROM runs_queuemessage WHERE holder = 'here'")) == {
        ("a",): 1,
        ("b",): 1,
    }
