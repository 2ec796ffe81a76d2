"""What each type of event says: the fields of its payload, as JSON Schema, and when it is written.

For whoever reads a log from outside; the OpenAPI document takes its schemas from here. Every payload also has
`v`, the version of its form. None of the fields is promised: a pruned event has `pruned` in their place,
and a field that has nothing to say is left out. New fields may come.
"""

from dataclasses import dataclass, field
from typing import Any

from runs.models.choices import EventType, MessageType, RunKind, WaitKind, WaitOutcome

Schema = dict[str, Any]


def text(description: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, **more}


def whole(description: str) -> Schema:
    return {"type": "integer", "description": description}


def truth(description: str) -> Schema:
    return {"type": "boolean", "description": description}


def anything(description: str) -> Schema:
    return {"description": description}


def record(description: str, **properties: Schema) -> Schema:
    known = {"properties": properties} if properties else {}
    return {"type": "object", "description": description, **known, "additionalProperties": True}


def several(items: Schema, description: str) -> Schema:
    return {"type": "array", "items": items, "description": description}


def names(description: str) -> Schema:
    return several({"type": "string"}, description)


def nullable(schema: Schema) -> Schema:
    return {**schema, "nullable": True}


@dataclass(frozen=True)
class Form:
    """When an event of the type is written, and the fields of its payload."""

    when: str
    fields: dict[str, Schema] = field(default_factory=dict)


CALL_ID = text("The call's id within the run.")
TOOL = text("The name of the tool.")
KEY = text("The key by which an answer finds what waits for it.")
APPROVAL = text("The id of the approval.")
ARGUMENTS = record("The tool's arguments, by name.")
GOAL = text("What is to be done.")
EFFECT = text("What policy does with the call.")
BY = text("Who did it.")
ERROR = record(
    "What went wrong.",
    code=text("Which error it is, for programs."),
    message=text("In a sentence, for people."),
)
DECISION = record(
    "What policy said, and by which rule.",
    effect=EFFECT,
    reason_code=text("Why, as a stable name."),
    rule=text("The id of the rule that decided; left out where none did."),
    grant=text("The id of the standing approval that let the call pass."),
    matched=names("Ids of the rules that fit."),
    policy=anything("The version of the policy that was asked."),
)
# Records that stand in several payloads, by the names of their schemas.
SHARED = {"EventError": ERROR, "EventDecision": DECISION}
SEAT = record(
    "A member of the run.",
    agent=text("The id of the agent."),
    role=text("The name of its role."),
    role_id=text("The id of its role."),
    seat=text("The id of its seat in the group."),
    ordinal=whole("Its turn within a round."),
    is_lead=truth("Whether it leads the group."),
)
REQUEST = record(
    "A call that the model asks for.",
    call_id=CALL_ID,
    name=TOOL,
    arguments=anything("The tool's arguments; a text where they are no JSON."),
    code=text("Why the call cannot be made."),
    problem=text("What is wrong with it."),
)
USAGE = record(
    "Tokens of the model.",
    input_tokens=whole("Tokens that the model read."),
    output_tokens=whole("Tokens that the model wrote."),
)
LIMITS = {"call_id": CALL_ID, "tool": TOOL, "error": ERROR}
ENDING = {"output": nullable(text("What the run answered.")), "error": nullable(ERROR)}

FORMS = {
    EventType.RUN_CREATED: Form(
        "The run was made, with a snapshot of what it is.",
        {
            "kind": text("Whose run it is.", enum=RunKind.values),
            "goal": GOAL,
            "context": text("What else the agent is told."),
            "members": several(SEAT, "Who works on it."),
            "max_rounds": whole("How often every seat speaks at most."),
            "budgets": record("The most steps, tokens, seconds, children and depth."),
            "driver": text("Who drives it: `internal` or `external`."),
            "model": text("The model that is asked where a role names none."),
            "session_key": text("Runs with the same key continue one conversation."),
            "parent_run": text("The run that started it."),
            "group_id": text("The id of the group that works on it."),
            "group": text("The name of that group."),
            "delegated_permissions": record("What the run above passed on."),
            "roles_above": several(
                text("The id of a role."), "The roles that passed it on, from the root on."
            ),
            "groups_above": several(
                text("The id of a group."), "The groups that passed it on, from the root on."
            ),
            "escalate_to": record("The group that was wished for."),
            "inherited": several(record("A page."), "Pages of working memory that the run above passed on."),
            "forked_from": record(
                "The event that the run goes on from.",
                run=text("The id of the run."),
                seq=whole("The event's number."),
                digest=text("The event's digest."),
            ),
        },
    ),
    EventType.RUN_STARTED: Form("Work began.", {"attempt": whole("Which claim by a worker it is.")}),
    EventType.RUN_WAITING: Form(
        "The run waits, and no worker has it.",
        {
            "reason": text("For what.", enum=WaitKind.values),
            "waits": several(
                record("A wait.", call_id=CALL_ID, correlation_key=KEY, kind=text("For what.")),
                "Each call that waits.",
            ),
        },
    ),
    EventType.RUN_RESUMED: Form(
        "Work went on.",
        {
            "attempt": whole("Which claim by a worker it is."),
            "left_out": text("In a repeated run: the type of the event whose place it holds."),
            "outside": truth("Whether what is left out were words of others, put before the agent."),
        },
    ),
    EventType.RUN_COMPLETED: Form("The run ended well.", ENDING),
    EventType.RUN_FAILED: Form("The run failed.", ENDING),
    EventType.RUN_CANCELLED: Form("Somebody cancelled the run.", ENDING),
    EventType.RUN_RESTORED: Form("The database is a backup: what the run did after it is not in its log."),
    EventType.MESSAGE_CREATED: Form(
        "A person or an agent said something.",
        {
            "role": text("`user`: to the agents; `assistant`: an agent's.", enum=["user", "assistant"]),
            "author": text("Who said it: a person's name, or the agent's role."),
            "message_type": text("What kind of message it is.", enum=MessageType.values),
            "content": text("The words."),
            "outside": truth("Whether they are text from outside, not the person's own words."),
            "chosen": truth("Whether the person took an answer that the agent had offered."),
            "copied": truth("Whether they repeat an address that somebody else named first."),
            "tool_calls": several(REQUEST, "The calls that the model asks for."),
            "usage": USAGE,
            "model": text("The model that answered, by its own name."),
            "asked": text("The model that was asked, by the name in the settings that prices go by."),
            "round": whole("The round of the group."),
            "saw": whole("The `seq` of the latest event that the model had seen."),
            "memories": several(
                record("A memory.", id=text("Its id."), tier=whole("How close it is to the asker.")),
                "The memories that stood in the prompt.",
            ),
            "recalled_at": text("When they were looked up."),
            "prompt_digest": text("SHA-256 of the prompt."),
            "context": record("The working memory that the prompt showed."),
            "others_pages": truth("Whether others' pages stood there, where the run repeats another."),
        },
    ),
    EventType.MODEL_RETRIED: Form(
        "The model could not be reached.",
        {
            "code": text("Why, for programs."),
            "message": text("Why, for people."),
            "failures": whole("How often in a row."),
            "delay_ms": whole("Milliseconds until it is asked again."),
            "gave_up": truth("It is not asked again."),
            "correlation_key": KEY,
        },
    ),
    EventType.TOOL_CALLED: Form(
        "A call is about to run.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "arguments": ARGUMENTS,
            "idempotency_key": text("By which the other system knows a repeated call."),
            "decision": DECISION,
            "as_person": record(
                "Whose own authorization goes with the call; left out where none does.",
                user=text("The person's account at Deputy."),
                server=text("The name of the server that the person has authorized Deputy at."),
                exchanged_at=text(
                    "The provider for whose sign-in the authorization came in exchange; left out where the "
                    "person has connected an account."
                ),
            ),
        },
    ),
    EventType.TOOL_COMPLETED: Form(
        "A call ended well.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "result": anything("What the tool answered; left out where it is large."),
            "sha256": text("Of a large result."),
            "bytes": whole("The size of a large result."),
            "preview": text("The beginning of a large result."),
            "outside": truth("Whether a program has repeated it: no answer in it is the person's own."),
        },
    ),
    EventType.TOOL_FAILED: Form("A call failed, or was withdrawn.", LIMITS),
    EventType.TOOL_BLOCKED: Form("Policy denied a call.", {**LIMITS, "decision": DECISION}),
    EventType.TOOL_WAITS: Form(
        "A call waits for an answer.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "kind": text("For what.", enum=WaitKind.values),
            "correlation_key": KEY,
            "question": nullable(text("What is asked.")),
            "choices": names("Answers that are offered."),
            "repeats": truth("No answer is wanted: once what the call needs is there, it is made again."),
            "link": text("The page on which the run's person gives what the call needs."),
            "form": record("What somebody else's server asks to be filled in: its words, not Deputy's."),
            "server": text("The MCP server that has made a task of the call."),
        },
    ),
    EventType.TOOL_REQUIRES_APPROVAL: Form(
        "A call waits for a decision.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "arguments": ARGUMENTS,
            "approval": APPROVAL,
            "correlation_key": KEY,
            "effect": EFFECT,
            "decision": DECISION,
            "message": text("Why it is asked."),
            "expires_at": nullable(text("Until when it can be decided.", format="date-time")),
            "on_expiry": text("What happens when nobody decides."),
        },
    ),
    EventType.TOOL_APPROVED: Form(
        "The call was approved.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "approval": APPROVAL,
            "by": BY,
            "person": truth("Whether who decided last did so in their own person, and not a program."),
            "arguments": record("What the decider put in place of the arguments."),
        },
    ),
    EventType.APPROVAL_EDITED: Form(
        "A decider changed the arguments: the approval is asked for anew.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "approval": APPROVAL,
            "replaces": text("The approval before."),
            "by": BY,
            "arguments": ARGUMENTS,
            "effect": EFFECT,
            "deciders_needed": whole("How many different people have to approve."),
        },
    ),
    EventType.APPROVAL_FOLLOWED_UP: Form(
        "People were reminded of an approval, others were asked, or an alarm came or ended.",
        {
            "call_id": CALL_ID,
            "tool": TOOL,
            "approval": APPROVAL,
            "what": text("What was done."),
            "people": names("Who was told, at most twenty."),
        },
    ),
    EventType.TOOL_REJECTED: Form("The call was rejected.", LIMITS),
    EventType.TOOL_EXPIRED: Form("Nobody decided or answered in time.", LIMITS),
    EventType.TOOL_OUTCOME_UNKNOWN: Form(
        "A worker was lost while the call ran: a person says what became of it.",
        {"call_id": CALL_ID, "tool": TOOL, "correlation_key": KEY},
    ),
    EventType.WAIT_COMPLETED: Form(
        "What was waited for has come.",
        {
            "correlation_key": KEY,
            "outcome": text("How it turned out.", enum=WaitOutcome.values),
            "payload": anything("What came; its fields depend on what was waited for."),
        },
    ),
    EventType.CHILD_CREATED: Form(
        "The run started another.",
        {
            "call_id": CALL_ID,
            "correlation_key": KEY,
            "child_run": text("The id of the new run."),
            "group_id": text("The id of the group that works on it."),
            "group": text("The name of that group."),
            "goal": GOAL,
            "routing": several(record("A group, and how well it fits."), "How the group was chosen."),
            "tokens": whole("Tokens that are set aside for it."),
            "timeout_ms": whole("Milliseconds that it is waited for."),
        },
    ),
    EventType.MEMORY_WRITTEN: Form("A tool remembered something; the tool says what."),
    EventType.MEMORY_DEPOSITED: Form(
        "What a group has learnt was kept.",
        {
            "memories": names("Ids of the memories."),
            "review": truth("Whether a person looks at all of them first."),
            "pending": record("By id, why a person looks at one first."),
        },
    ),
    EventType.CONTEXT_CHANGED: Form(
        "The agent's working memory changed.",
        {
            "view": text("The id of the view."),
            "by": text("Who changed it, where the agent did not."),
            "changes": several(record("A change."), "What changed, in order."),
        },
    ),
}
ALWAYS = {
    "v": whole("The version of the payload's form."),
    "pruned": text("In a pruned event, in place of all else: the digest of what it said."),
}


def form(type: EventType) -> Form:
    """Of the type; an empty one where the table has none, so that nothing fails for a missing description."""
    return FORMS.get(type, Form(type.label))


def schema(type: EventType) -> Schema:
    """The payload of such an event, as OpenAPI has it."""
    return {
        "type": "object",
        "description": "What it says. A pruned event has only `v` and `pruned`.",
        "properties": {**ALWAYS, **form(type).fields},
        "additionalProperties": True,
    }
