"""Signals: word from outside that something a run waits for has come (seed 004)."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from common import ids, redact
from common.canonical import normalise
from common.db import execute, from_json, jsonb, row, rows
from groups import today
from groups.actors import Actor
from policy.authority import Verb, may
from policy.provenance import named
from policy.provenance.words import in_one_form
from policy.terms import APPROVAL_PREFIX
from runs.gate import repeats
from runs.gate.provenance import MOST_EARLIER, conversation, said_by_memories
from runs.log import waits
from runs.log.log import RunLog
from runs.models import Run
from runs.models.choices import FORMS, TASKS, EventType, RunKind, WaitKind, WaitOutcome
from runs.tools import forms

PLAIN = re.compile(r"[\w@]+")
SEVERAL = re.compile("[ @]")
MOST_WRITTEN = 1_000_000  # characters of messages in which addresses are looked for: two seconds
DIGIT = re.compile(r"\d")
QUESTION = f"{WaitKind.INPUT.value}-"  # begins the keys of what a run asks its person
RESERVED = (APPROVAL_PREFIX, "child-", "retry-", "review-", repeats.PREFIX, FORMS, TASKS)

FIND = """
SELECT resolved_at, payload, tool_call_id FROM runs_wait WHERE run_id = %s AND correlation_key = %s
"""
OFFERED = """
SELECT jsonb_array_elements_text(payload -> 'choices') FROM runs_runevent
WHERE run_id = %s AND type = %s AND payload ->> 'correlation_key' = %s
"""
OFFERED_IN_TREE = """
SELECT e.payload -> 'choices', e.payload -> 'form', e.payload ->> 'question'
FROM runs_run r JOIN runs_runevent e ON e.run_id = r.id
WHERE r.root_id = ANY(%s) AND e.type = %s AND e.payload ?| array['choices', 'form', 'question']
"""
# All that a conversation's pages and streams show is somebody else's, but what its person has said: in events
# of whatever kind. Results are judged as what they are; a goal stands in a message, too.
WRITTEN_IN_TREE = """
WITH tree AS (
    SELECT id, parent_run_id IS NULL AND kind = %(personal)s AS own
    FROM runs_run WHERE root_id = ANY(%(roots)s)
), said AS (
    SELECT e.payload, tree.own AND e.type = %(message)s AND e.payload ->> 'role' = 'user'
        AND NOT e.payload ?| array['outside', 'chosen', 'copied'] AS own
    FROM tree JOIN runs_runevent e ON e.run_id = tree.id
    WHERE e.type <> %(result)s AND NOT (
        e.type = %(answer)s AND e.payload ->> 'correlation_key' ^@ ANY(%(answers)s))
)
SELECT CASE WHEN own THEN payload -> 'content' ELSE payload - %(none_said)s::text[] END, own FROM said
UNION ALL SELECT to_jsonb(string_agg(w.text, '' ORDER BY w.id)), false
    FROM tree JOIN runs_shownwords w ON w.run_id = tree.id GROUP BY w.reply
UNION ALL SELECT jsonb_build_array(r.output, r.context, r.error), false FROM tree JOIN runs_run r USING (id)
UNION ALL SELECT to_jsonb(d.reason), false FROM tree JOIN runs_approval a ON a.run_id = tree.id
    JOIN runs_approvaldecision d ON d.approval_id = a.id
WHERE d.reason <> ''
"""
# An answer names these as its sources, each with its heading.
SOURCES_IN_TREE = """
SELECT DISTINCT jsonb_path_query(e.payload, path.to_ids) #>> '{}'
FROM runs_run r JOIN runs_runevent e ON e.run_id = r.id
CROSS JOIN (VALUES ('$.memories[*].id'::jsonpath), ('$.result.results[*].id')) AS path (to_ids)
WHERE r.root_id = ANY(%s) AND e.type = ANY(%s)
"""
WRITTEN = {
    "personal": RunKind.PERSONAL.value,
    "message": EventType.MESSAGE_CREATED.value,
    "result": EventType.TOOL_COMPLETED.value,
    "answer": EventType.WAIT_COMPLETED.value,
    "answers": [QUESTION, FORMS],
    # Policy's and the installation's own: nobody's words.
    "none_said": ["goal", "delegated_permissions", "decision", "session_key", "author", "by", "people"],
}
KEEP = """
INSERT INTO runs_wait
    (id, organization_id, run_id, kind, correlation_key, resolved_at, outcome, payload, created_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


class SignalRefused(Exception):
    """The signal cannot be taken. `code`: RUN_ENDED, RESERVED_KEY, SIGNAL_DIFFERS."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Delivered:
    """`state` is delivered, kept (nobody waits for it yet) or duplicate."""

    state: str


def signal(run_id: str, correlation_key: str, actor: Actor, payload: Any = None) -> Delivered:
    """Resolve the wait with this key, or keep the signal until the run comes to wait for it.

    The same signal again is a duplicate and changes nothing; another payload for a key that was
    resolved is refused. Decisions, children's ends, reviews and what calls need have ways of their own
    (RESERVED); what a run asks its person nobody else answers, by a signal either.
    Raises NotAllowed, RunGone, SignalRefused, NotJson.
    """
    if correlation_key.startswith(RESERVED):
        raise SignalRefused("RESERVED_KEY", f"'{correlation_key}' is not resolved by a plain signal.")
    payload = normalise(payload)
    asked = correlation_key.startswith(QUESTION)
    with transaction.atomic():
        log = RunLog.lock(run_id)
        actor = today.since(actor)
        may(actor, Verb.ANSWER if asked else Verb.STEER, log)
        if asked:
            payload = _answer(log.root_id, payload)
            may(today.since(actor), Verb.ANSWER, log)  # that may have taken a while
        found = row(FIND, [run_id, correlation_key])
        if found and found[0] is not None:
            return _again(correlation_key, payload, found[1])
        if log.ended:
            raise SignalRefused("RUN_ENDED", f"The run has already {log.status}.")
        if found:
            waits.resolve_open(log, correlation_key, WaitOutcome.COMPLETED.value, payload, found[2])
            waits.flush_and_enqueue(log)
            return Delivered("delivered")
        _keep(log, correlation_key, payload)
        return Delivered("kept")


def _answer(root_id: str, payload: Any) -> Any:
    """What answers a question: as in runs/actions/message.py, it says what of it is not the person's. Of
    several choices a front end may make an object, with the choices for names.
    """
    said = payload if isinstance(payload, dict) else {"answer": payload}
    marks = _marks(conversation([root_id]), said)
    return {**said, **marks} if marks else payload


def _words(value: Any) -> Iterator[str]:
    """Its texts, and those of the JSON in them: a client may write its answer as an object, which A2A hands
    on as a line of a message.
    """
    if isinstance(value, dict | list):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _words(one)
    elif isinstance(value, str | int | float):
        yield str(value)
    if isinstance(value, str):
        for text in dict.fromkeys((value, *value.splitlines())):
            with suppress(ValueError, RecursionError):
                if isinstance(found := json.loads(text), str | dict | list):
                    yield from _words(found)


def offered(run_id: str, correlation_key: str) -> list[str]:
    """The answers that the agent has put to a question: its own words, also where the person takes one."""
    return [choice for (choice,) in rows(OFFERED, [run_id, EventType.TOOL_WAITS.value, correlation_key])]


def marks(root_id: str, content: str) -> dict[str, bool]:
    """What the log says of a person's words that are not theirs alone. `chosen`: an agent, or a server in its
    form, has offered them as an answer in this tree's conversation, whatever blanks and line ends the door
    made of it: a browser sends every line break of a button as two characters. Nor does it matter which
    question it answers, if any: a client that names none answers the oldest of one run, and none of the
    forms, and the words may come in another turn, when the question's time is over. A key in one is masked
    wherever it is shown, so that the answer comes back without it. `copied`: they repeat an address that
    somebody else named there first.
    """
    return _marks(conversation([root_id]), content)


def marks_of_turn(turns: QuerySet[Run], content: str) -> dict[str, bool]:
    """The same of the words that begin a turn of the conversation that has these turns."""
    latest = turns.order_by("-id").values_list("pk", flat=True)[:MOST_EARLIER]
    return _marks(conversation(latest), content)


def _marks(trees: Collection[str], said: Any) -> dict[str, bool]:
    told = dict.fromkeys(_words(said))
    choices, questions, answers = list[str](), list[str](), [*told]
    fields = [words for words in told if ":" in words]  # the value of a single one is among them already
    for listed, form, question in rows(OFFERED_IN_TREE, [list(trees), EventType.TOOL_WAITS.value]):
        choices += from_json(listed) or []
        questions += [question] if question else []
        if asked := from_json(form):
            choices += forms.suggested(asked)
            answers += (value for words in fields for value in forms.values(asked, words))
    places = named.places(["\n".join(told)])
    # a client may put the question above the answer: what it names is not named by whoever says yes to it
    naming = (one for one in questions if DIGIT.search(one) or named.places([one]))
    offered = {_plain(words) for one in (*choices, *naming) for words in (one, redact.shown(one))}
    if named.held(places, choices) or any(_takes(_plain(words), offered) for words in answers):
        return {"chosen": True}
    return {"copied": True} if places and _named_before(trees, places, questions) else {}


def _named_before(trees: Collection[str], places: set[str], questions: Iterable[str]) -> bool:
    """Whether somebody else than the conversation's person has named one of them, and they themselves not, or
    only in what they forbid or quote. Of more than a request can look through, nobody knows.
    """
    roots = list(trees)
    said = rows(WRITTEN_IN_TREE, {**WRITTEN, "roots": roots})
    sources = rows(
        SOURCES_IN_TREE, [roots, [EventType.MESSAGE_CREATED.value, EventType.TOOL_COMPLETED.value]]
    )
    found = [("\n".join(_words(from_json(payload))), own) for payload, own in said]
    found += [(text, False) for _, text in said_by_memories([one for (one,) in sources])]
    if sum(len(words) for words, _ in found) > MOST_WRITTEN:
        return True
    others = named.held(places, [*questions, *(words for words, own in found if not own)])
    return bool(others) and not others <= named.own_places(words for words, own in found if own)


def _takes(said: str, offered: Collection[str]) -> bool:
    """Whether it holds an offered choice of several words, or somebody's `@name`, whatever a client puts
    beside it; or is one of a single word, or nothing but such, as a front end joins those that were ticked.
    """
    if said in offered or any(SEVERAL.search(words) and words in said for words in offered):
        return True
    left = said
    for words in sorted(offered, key=len, reverse=True):
        left = left.replace(words, " ")
    return bool(said) and not left.strip()


def _plain(text: str) -> str:
    """Its words alone: a client may leave out marks of Markdown, and what nobody sees."""
    return " ".join(PLAIN.findall(in_one_form(text).casefold())) or text


def _again(correlation_key: str, payload: Any, before: Any) -> Delivered:
    if from_json(before) != payload:
        raise SignalRefused("SIGNAL_DIFFERS", f"'{correlation_key}' was resolved with another payload.")
    return Delivered("duplicate")


def _keep(log: RunLog, correlation_key: str, payload: Any) -> None:
    values = [
        ids.wait_id(),
        log.organization_id,
        log.id,
        WaitKind.SIGNAL.value,
        correlation_key,
        log.now,
        WaitOutcome.COMPLETED.value,
        jsonb(payload),
        log.now,
    ]
    execute(KEEP, values)
