"""A tree of runs in the events of AG-UI. Pure.

Each event is one of the top run's, or has the `subagentRunId` of the run of a group below it. What begins is
ended: texts, steps and subagents, also where the stream stops in between.
"""

import json
from collections.abc import Mapping
from typing import Any

from common import redact
from runs.models.choices import EventType
from runs.outbound.following import Delta

JSON = dict[str, Any]

RESULTS = frozenset(
    {
        EventType.TOOL_COMPLETED.value,
        EventType.TOOL_FAILED.value,
        EventType.TOOL_BLOCKED.value,
        EventType.TOOL_REJECTED.value,
        EventType.TOOL_EXPIRED.value,
    }
)
ENDS = frozenset({EventType.RUN_COMPLETED.value, EventType.RUN_FAILED.value, EventType.RUN_CANCELLED.value})


def tool_call_id(run_id: str, call_id: str) -> str:
    """A call's name in AG-UI, where threads have several runs."""
    return f"{run_id}:{call_id}"


def outcome_of_call(payload: Mapping[str, Any]) -> str:
    """What a tool's result event says, as text."""
    if "error" in payload:
        return _json({"error": payload["error"]})
    result = payload.get("result", payload.get("preview"))
    return result if isinstance(result, str) else _json(result)


def calls_of(run_id: str, seq: int, payload: Mapping[str, Any]) -> list[JSON]:
    """The calls that a message asks for, as an assistant message has them."""
    return [
        {
            "id": tool_call_id(run_id, asked.get("call_id") or f"{seq}.{place}"),
            "type": "function",
            "function": {"name": asked["name"], "arguments": _json(asked["arguments"])},
        }
        for place, asked in enumerate(payload.get("tool_calls") or ())
    ]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class Translation:
    """One stretch of a thread: the run `top` and what is below it. `names`: of the groups of runs below."""

    def __init__(self, top: str, names: Mapping[str, str]) -> None:
        self.top, self.names = top, dict(names)
        self.texts: dict[str, tuple[str, str]] = {}  # by run: the message being said, and what has been said
        self.steps: dict[tuple[str, str], str] = {}
        self.subagents: list[str] = []

    def words(self, delta: Delta) -> list[JSON]:
        """What a model is just saying."""
        told = self._entered(delta.run_id)
        if delta.run_id not in self.texts:
            id = f"{delta.run_id}:{delta.after}.words"
            self.texts[delta.run_id] = (id, "")
            told.append(self._of(delta.run_id, "TEXT_MESSAGE_START", messageId=id, role="assistant"))
        id, before = self.texts[delta.run_id]
        self.texts[delta.run_id] = (id, before + delta.text)
        shown = redact.shown(delta.text)
        return [*told, self._of(delta.run_id, "TEXT_MESSAGE_CONTENT", messageId=id, delta=shown)]

    def event(self, run_id: str, seq: int, type: str, payload: Mapping[str, Any]) -> list[JSON]:
        """What an event of the log says; `payload` as its reader may see it."""
        entered = self._entered(run_id)
        if type == EventType.MESSAGE_CREATED and payload.get("role") == "assistant":
            return [*entered, *self._message(run_id, seq, payload)]
        if type == EventType.MODEL_RETRIED:
            return [*entered, *self._said(run_id)]
        if type == EventType.TOOL_CALLED:
            return [*entered, self._begun(run_id, payload)]
        if type in RESULTS:
            return [*entered, *self._result(run_id, seq, payload)]
        if type == EventType.CHILD_CREATED:
            self.names[payload["child_run"]] = payload.get("group") or "group"
        if type in ENDS and run_id != self.top:
            return [*entered, *self._left(run_id, type, payload)]
        return entered

    def close(self) -> list[JSON]:
        """The end of all that is open: nothing begins in one stretch and ends in another."""
        told = [one for run_id in list(self.texts) for one in self._said(run_id)]
        told += [self._of(run_id, "STEP_FINISHED", stepName=name) for (run_id, _), name in self.steps.items()]
        self.steps.clear()
        told += [
            self._of(run_id, "SUBAGENT_FINISHED", outcome={"type": "suspended"})
            for run_id in reversed(self.subagents)
        ]
        self.subagents.clear()
        return told

    def _of(self, run_id: str, type: str, **fields: Any) -> JSON:
        below = {} if run_id == self.top else {"subagentRunId": run_id}
        return {"type": type, **fields, **below}

    def _entered(self, run_id: str) -> list[JSON]:
        if run_id == self.top or run_id in self.subagents:
            return []
        self.subagents.append(run_id)
        return [self._of(run_id, "SUBAGENT_STARTED", name=self.names.get(run_id, "group"))]

    def _left(self, run_id: str, type: str, payload: Mapping[str, Any]) -> list[JSON]:
        self.subagents.remove(run_id)
        told = self._said(run_id)
        if type == EventType.RUN_COMPLETED:
            return [*told, self._of(run_id, "SUBAGENT_FINISHED", outcome={"type": "success"})]
        error = payload.get("error") or {}
        words = {
            "message": str(error.get("message") or "The group's run has ended."),
            "code": error.get("code"),
        }
        return [*told, self._of(run_id, "SUBAGENT_ERROR", **{k: v for k, v in words.items() if v})]

    def _message(self, run_id: str, seq: int, payload: Mapping[str, Any]) -> list[JSON]:
        content = str(payload.get("content") or "")
        id, before = self.texts.get(run_id, (f"{run_id}:{seq}", ""))
        told: list[JSON] = []
        if run_id in self.texts:
            rest = content[len(before) :] if content.startswith(before) else ""
            told = self._said(run_id, rest)
        elif content:
            told.append(self._of(run_id, "TEXT_MESSAGE_START", messageId=id, role="assistant"))
            told.append(self._of(run_id, "TEXT_MESSAGE_CONTENT", messageId=id, delta=content))
            told.append(self._of(run_id, "TEXT_MESSAGE_END", messageId=id))
        for call in calls_of(run_id, seq, payload):
            told += self._asked(run_id, id, call)
        return told

    def _said(self, run_id: str, rest: str = "") -> list[JSON]:
        """The end of what a model was saying, if it was."""
        if run_id not in self.texts:
            return []
        id, _ = self.texts.pop(run_id)
        more = [self._of(run_id, "TEXT_MESSAGE_CONTENT", messageId=id, delta=rest)] if rest else []
        return [*more, self._of(run_id, "TEXT_MESSAGE_END", messageId=id)]

    def _asked(self, run_id: str, message_id: str, call: JSON) -> list[JSON]:
        id, function = call["id"], call["function"]
        name = {"toolCallName": function["name"], "parentMessageId": message_id}
        return [
            self._of(run_id, "TOOL_CALL_START", toolCallId=id, **name),
            self._of(run_id, "TOOL_CALL_ARGS", toolCallId=id, delta=function["arguments"]),
            self._of(run_id, "TOOL_CALL_END", toolCallId=id),
        ]

    def _begun(self, run_id: str, payload: Mapping[str, Any]) -> JSON:
        """A tool that runs is a step; no two open steps have one name."""
        tool, call_id = str(payload.get("tool", "")), str(payload["call_id"])
        name = f"{tool} ({call_id})" if tool in self.steps.values() else tool
        self.steps[run_id, call_id] = name
        return self._of(run_id, "STEP_STARTED", stepName=name)

    def _result(self, run_id: str, seq: int, payload: Mapping[str, Any]) -> list[JSON]:
        call_id = str(payload["call_id"])
        step = self.steps.pop((run_id, call_id), None)
        told = [self._of(run_id, "STEP_FINISHED", stepName=step)] if step else []
        about = {"messageId": f"{run_id}:{seq}", "toolCallId": tool_call_id(run_id, call_id), "role": "tool"}
        return [*told, self._of(run_id, "TOOL_CALL_RESULT", content=outcome_of_call(payload), **about)]
