"""Live events: over a real ASGI server, as a browser or a program follows them."""

import asyncio
import json
import time
from contextlib import ExitStack, contextmanager

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from common import notifications
from common.api import slots
from common.db import own_connection
from groups.models import Membership, Token
from runs.api import stream
from runs.api.feed import Feed
from runs.execution import executor
from runs.log.log import RunLog
from runs.models import Follower, Run
from runs.models.choices import EventType
from runs.outbound import following
from tests.acting import cancel, message
from tests.factories import MembershipFactory
from tests.integration.api_client import Api
from tests.scripted import by_role, call, in_order, say
from tests.server import serving

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = call(("ask_user", {"question": "Which year?"}))
EVERY_ONE = httpx.Limits(max_connections=None)  # httpx itself keeps to 100


@pytest.fixture(scope="module")
def server():
    """The address of an ASGI server in a thread of this process."""
    with serving() as address:
        yield address


@pytest.fixture
def api(world):
    return Api(world.user, world.organization)


@pytest.fixture
def follow(server, api):
    """follow(run) yields (id, event or its name) of each message; leaves when the block ends."""

    @contextmanager
    def _follow(run, what="events", last="", timeout=8.0, query=""):
        headers = {**api.headers, **({"Last-Event-ID": last} if last else {})}
        path = f"{server}/api/runs/{run.pk}/{what}/stream/{query}"
        with httpx.Client(timeout=timeout) as client, client.stream("GET", path, headers=headers) as answer:
            yield answer, messages(answer)

    return _follow


def messages(answer):
    found = {}
    for line in answer.iter_lines():
        if line.startswith(":"):
            yield "", line
        elif line:
            name, _, value = line.partition(": ")
            found[name] = value
        elif found:
            if found.get("event") == "delta":
                yield "delta", json.loads(found["data"])
            elif "data" in found:
                yield found.get("id", ""), found.get("event") or json.loads(found["data"])
            found = {}


def ids_of(run_or_runs):
    runs = run_or_runs if isinstance(run_or_runs, list) else [run_or_runs]
    return [f"{run.pk}:{seq}" for run in runs for seq in range(1, Run.objects.get(pk=run.pk).last_seq + 1)]


def escalated(ask, **fields):
    return ask(
        by_role(
            Personal_agent=[call(("escalate_to_group", {"goal": "x"})), say("Done.")],
            researcher=[QUESTION, say("EVIDENCE: 5.")],
            analyst=[say("PROPOSAL: 5.")],
            lead=[say("DECISION: 5.")],
        ),
        **fields,
    )


def test_an_ended_run_is_told_from_the_beginning_and_then_ends(ask, follow):
    run = ask(in_order(say("Done.")))

    with follow(run) as (answer, told):
        assert answer.headers["Content-Type"] == "text/event-stream"
        heard = list(told)
    assert [id for id, _ in heard] == [*ids_of(run), ""]
    assert heard[-1][1] == "end"
    assert heard[-2][1]["payload"]["output"] == "Done."


def test_a_message_has_the_shape_of_the_events_list(ask, api, follow):
    run = ask(in_order(say("Done.")))

    with follow(run) as (_, told):
        heard = [event for _, event in told][:-1]
    assert heard == api.get(f"runs/{run.pk}/events/").json()["results"]


def test_what_happens_is_told_at_once(ask, follow):
    run = ask(in_order(QUESTION, say("Done.")))
    before = len(ids_of(run))

    with follow(run) as (_, told):
        for _ in range(before):
            next(told)
        started = time.monotonic()
        message(run.pk, "2026", "mia")
        _, event = next(told)
        delay = time.monotonic() - started
        executor.run(run.pk)
        rest = [id for id, _ in told]
    assert event["payload"]["content"] == "2026"
    assert delay < 0.5, delay  # by the hint, not by the poll
    assert rest == [*ids_of(run)[before + 1 :], ""]


def test_a_lost_hint_costs_a_second(ask, follow, monkeypatch):
    run = ask(in_order(QUESTION))
    before = len(ids_of(run))
    monkeypatch.setattr(notifications, "send", lambda channel, payload="": None)

    with follow(run) as (_, told):
        for _ in range(before):
            next(told)
        message(run.pk, "2026", "mia")
        assert next(told)[1]["payload"]["content"] == "2026"


def test_a_client_goes_on_where_it_left_off(ask, follow):
    run = ask(in_order(say("Done.")))
    ids = ids_of(run)

    with follow(run, last=ids[1]) as (_, told):
        assert [id for id, _ in told] == [*ids[2:], ""]


def test_a_client_that_has_heard_all_of_an_ended_run_need_not_come_again(ask, follow):
    run = ask(in_order(say("Done.")))

    with follow(run, last=ids_of(run)[-1]) as (answer, _):
        assert answer.status_code == 204


@pytest.mark.parametrize("last", ["nonsense", "run_x:1", "{run}:9999", "{run}:-1", "{run}:" + "9" * 30])
@pytest.mark.parametrize("what", ["events", "tree"])
def test_a_client_that_names_what_is_not_known_is_told_to_start_over(ask, follow, what, last):
    run = ask(in_order(say("Done.")))

    with follow(run, what, last=last.format(run=run.pk)) as (_, told):
        heard = list(told)
    assert heard[0] == ("", "resync")
    assert [id for id, _ in heard[1:-1]] == ids_of(run)


def test_a_quiet_stream_says_that_it_is_still_there(ask, follow, monkeypatch):
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.1)
    run = ask(in_order(QUESTION))

    with follow(run) as (_, told):
        assert any(event == ": still here" for _, event in told)


def test_a_stream_does_not_last_for_ever(ask, follow, monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_SECONDS", 0.3)
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.1)
    run = ask(in_order(QUESTION))

    with follow(run) as (_, told):
        assert "end" not in [event for _, event in told]


def test_a_tree_is_told_whole_and_every_run_in_its_order(ask, follow):
    run = escalated(ask)
    child = Run.objects.get(parent_run=run)
    heard = []

    with follow(run, "tree") as (_, told):
        for id, event in told:
            heard.append((id, event))
            if event != "end" and event["type"] == "run.waiting" and event["run"] == child.pk:
                message(child.pk, "2026", "mia")
                executor.run(child.pk)
    assert heard[-1] == ("", "end")
    assert sorted(id for id, _ in heard[:-1]) == sorted(ids_of([run, child]))
    for each in (run, child):
        assert [id for id, _ in heard if id.startswith(each.pk)] == ids_of(each)


def test_a_tree_goes_on_where_it_left_off_wherever_that_was(ask, follow):
    run = escalated(ask)
    cancel(run.pk)
    with follow(run, "tree") as (_, told):
        whole = [id for id, _ in told]

    for i, last in enumerate(whole[:-1]):
        with follow(run, "tree", last=last) as (answer, told):
            rest = [""] if answer.status_code == 204 else [id for id, _ in told]
        assert rest == whole[i + 1 :]


def test_a_branch_of_a_tree_is_told_alone(ask, follow):
    run = escalated(ask)
    child = Run.objects.get(parent_run=run)
    cancel(run.pk)

    with follow(child, "tree") as (_, told):
        assert [id for id, _ in told] == [*ids_of(child), ""]


def test_nothing_is_told_that_an_open_transaction_might_still_come_before(ask):
    run = escalated(ask)
    child = Run.objects.get(parent_run=run)

    async def read(cursor):
        source = Feed()
        try:
            return await cursor.read(source)
        finally:
            await source._close_reader()

    cursor = stream.TreeCursor(run.pk, run.root_id, run.user_id)
    assert len(asyncio.run(read(cursor)).rows) == len(ids_of([run, child]))
    late = own_connection()
    try:
        late.execute("BEGIN")
        late.execute("SELECT clock_timestamp()")
        message(child.pk, "2026", "mia")
        held = asyncio.run(read(cursor))
        assert (held.rows, held.held, held.ended) == ([], True, False)
        late.execute("COMMIT")
        assert [row[2] for row in asyncio.run(read(cursor)).rows] == ["message.created", "wait.completed"]
    finally:
        late.close()


def test_a_long_tree_is_told_page_by_page_in_one_order(ask, monkeypatch):
    run = escalated(ask)
    cancel(run.pk)

    async def told():
        cursor, source, found = stream.TreeCursor(run.pk, run.root_id, run.user_id), Feed(), []
        try:
            while True:
                batch = await cursor.read(source)
                found += [(row[0], row[1]) for row in batch.rows]
                if batch.ended:
                    return found
        finally:
            await source._close_reader()

    whole = asyncio.run(told())
    for size in (1, 2, 3, 5):
        monkeypatch.setattr(stream, "PAGE", size)
        assert asyncio.run(told()) == whole


def test_a_clock_that_ran_backwards_does_not_turn_a_run_around(ask, follow):
    run = ask(in_order(QUESTION))
    with transaction.atomic():
        log = RunLog.lock(run.pk)
        log.now = log.now.replace(year=2020)
        log.append(EventType.MESSAGE_CREATED, {"role": "user", "content": "x"})
        log.flush()
    cancel(run.pk)

    with follow(run, "tree") as (_, told):
        assert [id for id, _ in told] == [*ids_of(run), ""]


def test_streams_share_two_connections_and_leave_none_behind(ask, follow):
    run = ask(in_order(QUESTION))

    def count():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend'"
            )
            return cursor.fetchone()[0]

    quiet, threads = count(), settings.WEB_THREADS  # which keep a connection each, stream or no stream
    held = [follow(run) for _ in range(2 * threads)]
    opened = [each.__enter__() for each in held]
    for _, told in opened:
        next(told)
    assert count() <= quiet + threads + 2
    for each in held:
        each.__exit__(None, None, None)
    until = time.monotonic() + 5
    while count() > quiet + threads and time.monotonic() < until:
        time.sleep(0.05)
    assert count() <= quiet + threads


def test_a_stream_of_somebody_else_is_not_found(ask, server):
    run = ask(in_order(QUESTION))
    answer = httpx.get(f"{server}/api/runs/{run.pk}/events/stream/")

    assert answer.status_code == 401
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_who_asks_the_same_at_the_same_moment_shares_one_read(db):
    async def ask_together():
        source = Feed()
        try:
            return await asyncio.gather(*(source.read("SELECT random()", []) for _ in range(50)))
        finally:
            await source._close_reader()

    found = {rows[0] for rows in asyncio.run(ask_together())}
    assert len(found) == 1


def test_nobody_shares_a_read_that_began_before_they_asked(db):
    async def ask_later():
        source = Feed()
        try:
            first = asyncio.create_task(source.read("SELECT clock_timestamp(), pg_sleep(0.01)", []))
            while not source._reading.locked() or source._to_come:
                await asyncio.sleep(0)
            second = await source.read("SELECT clock_timestamp(), pg_sleep(0.01)", [])
            return await first, second
        finally:
            await source._close_reader()

    first, second = asyncio.run(ask_later())
    assert first[0][0] < second[0][0]


# Who may follow, how many at once, and until when


def waiting(ask):
    return ask(in_order(QUESTION, say("Done.")))


def test_a_token_has_so_many_streams_and_others_follow_all_the_same(ask, server, world, settings):
    settings.STREAMS = 5
    run = waiting(ask)
    greedy, other = Api(world.user, world.organization), Api(colleague(world), world.organization)
    address = f"{server}/api/runs/{run.pk}/events/stream/"
    before = slots.count()
    with ExitStack() as held, httpx.Client(timeout=20, limits=EVERY_ONE) as client:
        answers = [
            held.enter_context(client.stream("GET", address, headers=greedy.headers)) for _ in range(300)
        ]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 295
        assert answers[-1].headers["Retry-After"] == "5"
        assert json.loads(answers[-1].read())["code"] == "TOO_MANY_STREAMS"
        mine = held.enter_context(client.stream("GET", address, headers=other.headers))
        assert mine.status_code == 200 and next(mine.iter_lines()) == "retry: 2000"
        assert other.get("runs/").status_code == 200
    while slots.count() > before:  # given back when their clients have left
        time.sleep(0.05)


def colleague(world):
    return MembershipFactory(organization=world.organization).user


def tokens(api, **columns):
    Token.objects.filter(pk=api.token.pk).update(**columns)


def memberships(api, **columns):
    Membership.objects.filter(user=api.user).update(**columns)


def accounts(user, **columns):
    type(user).objects.filter(pk=user.pk).update(**columns)


ENDS = {
    "its token is revoked": lambda api: tokens(api, revoked_at=timezone.now()),
    "its token loses the scope": lambda api: tokens(api, scopes=["runs:write"]),
    "its token expires": lambda api: tokens(api, expires_at=timezone.now()),
    "the membership ends": lambda api: memberships(api, active=False),
    "the membership leaves the project": lambda api: memberships(api, projects=[]),
    "the account is switched off": lambda api: accounts(api.user, is_active=False),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("what", ["events", "tree"])
def test_an_open_stream_tells_nothing_more_once(ask, server, world, monkeypatch, end, what):
    monkeypatch.setattr(stream, "FRESH_SECONDS", 0.0)
    run = waiting(ask)
    reader = Api(colleague(world), world.organization)
    path = f"{server}/api/runs/{run.pk}/{what}/stream/"
    with (
        httpx.Client(timeout=30) as client,
        client.stream("GET", path, headers=reader.headers) as answer,
    ):
        told = messages(answer)
        for _ in range(len(ids_of(run))):
            next(told)
        end(reader)
        message(run.pk, "2026", "mia")
        assert [found for found in told if found[0]] == []  # neither the event nor an end: the line is cut
    assert client.is_closed


def test_nor_what_a_model_is_saying(ask, server, world, monkeypatch):
    monkeypatch.setattr(stream, "FRESH_SECONDS", 0.0)
    run = waiting(ask)
    reader = Api(colleague(world), world.organization)
    path = f"{server}/api/runs/{run.pk}/events/stream/"
    with httpx.stream("GET", path, headers=reader.headers, timeout=30) as answer:
        told = messages(answer)
        for _ in ids_of(run):
            next(told)
        until_followed(run)
        memberships(reader, active=False)
        speak(run, "Nine ")
        assert [found for found in told if found[0]] == []


SESSION_ENDS = {
    "it is ended": lambda user, key: Session.objects.filter(session_key=key).delete(),
    "its account has a new password": lambda user, key: accounts(user, password=make_password("another one")),
}


@pytest.mark.parametrize("end", SESSION_ENDS.values(), ids=SESSION_ENDS.keys())
def test_a_session_that_ends_takes_its_stream_along(ask, server, world, monkeypatch, end):
    monkeypatch.setattr(stream, "RIGHTS_SECONDS", 0.2)
    monkeypatch.setattr(stream, "FRESH_SECONDS", 0.0)
    run = waiting(ask)
    browser = Client()
    browser.force_login(world.user)
    key = browser.cookies["sessionid"].value
    path = f"{server}/api/runs/{run.pk}/events/stream/"
    with httpx.stream("GET", path, cookies={"sessionid": key}, timeout=30) as answer:
        lines = answer.iter_lines()
        for _ in range(len(ids_of(run))):
            next(lines)
        end(world.user, key)
        list(lines)  # ends by itself


def test_each_block_of_a_stream_holds_an_event(ask, server, api):
    run = ask(in_order(say("Done.")))
    for last in ("", "nonsense"):
        path = f"{server}/api/runs/{run.pk}/events/stream/"
        raw = httpx.get(path, headers={**api.headers, "Last-Event-ID": last}, timeout=20).text
        blocks = raw.removesuffix("\n\n").split("\n\n")

        assert raw.startswith("retry: 2000\n")
        assert [block for block in blocks if "data: " not in block] == []


def test_who_has_heard_all_of_a_tree_is_told_not_to_come_again(ask, server, api):
    run = escalated(ask)
    child = Run.objects.get(parent_run=run)
    message(child.pk, "2026", "mia")
    executor.run(child.pk)
    assert Run.objects.get(pk=run.pk).status == "completed"
    path = f"{server}/api/runs/{run.pk}/tree/stream/"
    with httpx.stream("GET", path, headers=api.headers, timeout=20) as answer:
        heard = [id for id, _ in messages(answer) if id]

    again = [
        httpx.get(path, headers={**api.headers, "Last-Event-ID": last}, timeout=20).status_code
        for last in (heard[-1], heard[-2], f"{child.pk}:1", "")
    ]
    assert again == [204, 200, 200, 200]


def speak(run, text, after=2, root=None):
    """A carrier tells words of the run's model."""
    said = json.dumps([root or run.root_id, run.pk, after, "agt_x", text])
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [following.CHANNEL, said])


@pytest.mark.parametrize("what", ["events", "tree"])
def test_what_a_model_is_just_saying_is_told_without_an_id(ask, follow, what):
    run = ask(in_order(QUESTION))

    with follow(run, what) as (_, told):
        for _ in ids_of(run):
            next(told)
        until_followed(run)
        speak(run, "Nine ")
        kind, said = next(told)
    assert (kind, said) == ("delta", {"run": run.pk, "agent": "agt_x", "after": 2, "text": "Nine "})


def until_followed(run):
    deadline = time.monotonic() + 10
    while not Follower.objects.filter(pk=run.root_id).exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_words_come_after_the_events_their_model_had_seen(ask, follow):
    run = ask(in_order(QUESTION, say("Done.")))
    before = len(ids_of(run))

    with follow(run) as (_, told):
        for _ in range(before):
            next(told)
        until_followed(run)
        speak(run, "too early", after=before + 1)
        message(run.pk, "2026", "mia")
        kinds = [next(told)[0], next(told)[0], next(told)[0]]
    assert kinds[0] == f"{run.pk}:{before + 1}"
    assert "delta" in kinds[1:]


def test_who_wants_no_words_gets_none_and_nobody_hears_those_of_other_runs(ask, follow):
    run, other = ask(in_order(QUESTION, say("Done."))), ask(in_order(QUESTION))

    with follow(run, query="?deltas=no") as (_, without), follow(run, "tree") as (_, told):
        for _ in ids_of(run):
            next(told)
        until_followed(run)
        speak(other, "secret", root=run.root_id)
        speak(run, "Nine ")
        assert next(told)[1]["text"] == "Nine "
        cancel(run.pk)
        assert "delta" not in [id for id, _ in without]


def test_a_parameter_that_says_neither_yes_nor_no_is_refused(ask, api):
    run = ask(in_order(QUESTION))

    assert api.get(f"runs/{run.pk}/events/stream/?deltas=perhaps").status_code == 400
