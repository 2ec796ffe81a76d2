"""A2A 1.0 as a client: one question to a remote agent, by the binding of its accepted card.

Through the guard that every outbound request takes: public addresses only, no redirects, bounded in time and
size. What comes back is read strictly and cut; nothing that it names is fetched.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.conf import settings

from common import redact
from common.outbound import Fetched, OutboundError, fetch
from common.sealed import Unreadable
from runs.models import RemoteAgent
from runs.tools import leaving
from runs.tools.a2a import cards

JSON = dict[str, Any]

MAX_ANSWER = 2_000_000  # bytes of one answer, unpacked
MAX_TEXT = 100_000  # characters of an answer that reach the log
MAX_SAID = 2_000  # characters of a status or an error
MAX_ID = 200
HOPS = "deputy/hops"  # in a message's metadata: how many Deputies its task has come through
SUBMITTED, WORKING = "TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"
COMPLETED = "TASK_STATE_COMPLETED"
FAILED, CANCELED, REJECTED = "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"
INPUT_REQUIRED, AUTH_REQUIRED = "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"
TERMINAL = frozenset({COMPLETED, FAILED, CANCELED, REJECTED})
STATES = TERMINAL | {SUBMITTED, WORKING, INPUT_REQUIRED, AUTH_REQUIRED}
REST = {  # method -> HTTP's, and the path below the interface's address
    "SendMessage": ("POST", "/message:send"),
    "GetTask": ("GET", "/tasks/{id}"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
}
ACTS = frozenset({"SendMessage"})  # of the methods
AWAY = frozenset({408, 425, 429, 500, 502, 503, 504})  # statuses of a server that may answer later


class PeerError(Exception):
    """The agent gave no usable answer. `code` is stable, the message can be shown; `passing`: it may give
    one later; `silent`: what it was asked has left, and may have been done.

    TIMEOUT, CONNECTION, ADDRESS_REFUSED and the other codes of common.outbound; A2A_UNAUTHORIZED,
    A2A_REFUSED (its own error), A2A_BAD_ANSWER, A2A_AWAY, A2A_SECRETS.
    """

    def __init__(self, code: str, message: str, passing: bool = False, silent: bool = False) -> None:
        super().__init__(message)
        self.code, self.message, self.passing, self.silent = code, message, passing, silent


@dataclass(frozen=True)
class Reply:
    """A task as the agent tells it, or a message without one (`task_id` is empty then, and it is completed).

    `text`: its artifacts, and else what it says last. `said`: the words of its status.
    """

    state: str
    text: str
    said: str = ""
    task_id: str = ""
    context_id: str = ""


def card_of(agent: RemoteAgent) -> cards.Card:
    """The card at its address, now. Raises PeerError, cards.BadCard."""
    answer = _asked(agent, "GET", agent.url, {"Accept": "application/json"}, None, False)
    _check(agent, answer)
    return cards.read(answer.text, agent.url)


def send(agent: RemoteAgent, text: str, message_id: str, hops: int, **placed: str) -> Reply:
    """Give it a task, or say something to one; `placed` are `contextId` and `taskId`. Raises PeerError.

    It is asked to answer at once: a task that lasts is asked about later.
    """
    message = {
        "messageId": message_id,
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        "metadata": {HOPS: hops},
        **{name: value for name, value in placed.items() if value},
    }
    wanted = {"returnImmediately": True, "acceptedOutputModes": ["text/plain", "application/json"]}
    said = _called(agent, "SendMessage", {"message": message, "configuration": wanted})
    if isinstance(said.get("message"), dict):
        return Reply(COMPLETED, _spoken(said["message"]), context_id=_id(agent, said["message"], "contextId"))
    return _task(agent, said.get("task"))


def look(agent: RemoteAgent, task_id: str) -> Reply:
    """The task as it stands. Raises PeerError."""
    return _same(agent, _task(agent, _called(agent, "GetTask", {"id": task_id})), task_id)


def cancel(agent: RemoteAgent, task_id: str) -> Reply:
    """Raises PeerError, also where the task cannot be cancelled any more."""
    return _same(agent, _task(agent, _called(agent, "CancelTask", {"id": task_id})), task_id)


def _same(agent: RemoteAgent, reply: Reply, task_id: str) -> Reply:
    if reply.task_id != task_id:
        raise _bad(agent, "it tells of another task than it was asked about")
    return reply


# The two bindings


def _called(agent: RemoteAgent, method: str, params: JSON) -> JSON:
    """The method's result. Raises PeerError."""
    interface = agent.accepted or {}
    if interface["tenant"]:
        params = {**params, "tenant": interface["tenant"]}
    try:
        if interface["binding"] == "JSONRPC":
            return _by_rpc(agent, interface["url"], method, params)
        return _by_rest(agent, interface["url"].rstrip("/"), method, params)
    except PeerError as error:
        error.silent = error.silent and method in ACTS
        raise


def _by_rpc(agent: RemoteAgent, url: str, method: str, params: JSON) -> JSON:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = _asked(agent, "POST", url, {"Content-Type": "application/json"}, body, method in ACTS)
    said = _json(agent, answer)
    if isinstance(said.get("error"), dict):
        raise _refused(agent, said["error"], answer.status)
    _check(agent, answer)
    if not isinstance(said.get("result"), dict):
        raise _bad(agent, "it holds neither a result nor an error")
    result: JSON = said["result"]
    return result


def _by_rest(agent: RemoteAgent, url: str, method: str, params: JSON) -> JSON:
    verb, path = REST[method]
    task = quote(str(params.get("id", "")), safe="")
    tenant = f"/{quote(params['tenant'], safe='')}" if params.get("tenant") else ""
    body = {name: value for name, value in params.items() if name not in ("id", "tenant")}
    answer = _asked(
        agent,
        verb,
        url + tenant + path.format(id=task),
        {"Content-Type": "application/json"} if verb == "POST" else {},
        body if verb == "POST" else None,
        method in ACTS,
    )
    if answer.status in AWAY:
        _check(agent, answer)
    said = _json(agent, answer)
    if isinstance(said.get("error"), dict):
        raise _refused(agent, said["error"], answer.status)
    _check(agent, answer)
    return said


def _asked(
    agent: RemoteAgent, method: str, url: str, headers: dict[str, str], body: Any, acts: bool
) -> Fetched:
    """Raises PeerError; ToolError where the request `acts` and policy does not let it leave any more."""
    try:
        own = agent.headers
    except Unreadable as error:
        raise PeerError("A2A_SECRETS", str(error)) from None
    try:
        return fetch(
            url,
            method=method,
            headers={"Accept": "application/json", **own, **headers, "A2A-Version": "1.0"},
            content=None if body is None else json.dumps(body, ensure_ascii=False).encode(),
            timeout=float(agent.timeout_seconds),
            max_bytes=MAX_ANSWER,
            max_redirects=0,
            allow_private=frozenset(settings.A2A_ALLOW),
            before=leaving.once_more if acts else None,
        )
    except OutboundError as error:
        said = f"The remote agent '{agent}' gave no answer: {error.message}."
        passing = error.code in ("CONNECTION", "TIMEOUT")
        raise PeerError(error.code, said, passing, error.silent) from None


def _check(agent: RemoteAgent, answer: Fetched) -> None:
    """Raises PeerError for any other answer than a whole one of status 2xx."""
    said = f"The remote agent '{agent}'"
    if answer.status in (401, 403):
        raise PeerError("A2A_UNAUTHORIZED", f"{said} refuses Deputy's credentials ({answer.status}).")
    if 300 <= answer.status < 400:
        raise PeerError("A2A_BAD_ANSWER", f"{said} answers with a redirect, which is not followed.")
    if answer.status in AWAY:
        raise PeerError("A2A_AWAY", f"{said} cannot answer now ({answer.status}).", passing=True)
    if not 200 <= answer.status < 300:
        raise PeerError("A2A_REFUSED", f"{said} answered with the status {answer.status}.")
    if answer.truncated:
        raise _bad(agent, f"it is larger than {MAX_ANSWER} bytes")


def _json(agent: RemoteAgent, answer: Fetched) -> JSON:
    try:
        if answer.truncated:
            raise _bad(agent, f"it is larger than {MAX_ANSWER} bytes")
        return cards.parsed(answer.text)
    except cards.BadCard:
        _check(agent, answer)
        raise _bad(agent, "it is no JSON object") from None


def _refused(agent: RemoteAgent, error: JSON, status: int) -> PeerError:
    said = cut(str(error.get("message", "")), 500)
    if status in (401, 403):
        return PeerError("A2A_UNAUTHORIZED", f"The remote agent '{agent}' refuses Deputy ({status}): {said}")
    passing = status in AWAY and status != 500
    return PeerError("A2A_REFUSED", f"The remote agent '{agent}' answered: {said}", passing)


def _bad(agent: RemoteAgent, why: str) -> PeerError:
    return PeerError("A2A_BAD_ANSWER", f"The answer of the remote agent '{agent}' cannot be used: {why}.")


# What it says


def _task(agent: RemoteAgent, said: Any) -> Reply:
    if not isinstance(said, dict) or not isinstance(said.get("status"), dict):
        raise _bad(agent, "it holds neither a task nor a message")
    state = said["status"].get("state")
    if not isinstance(state, str) or state not in STATES:
        raise _bad(agent, "its task is in no state of A2A's")
    task_id = _id(agent, said, "id")
    if not task_id:
        raise _bad(agent, "its task has no id")
    words = said["status"].get("message")
    spoken = _spoken(words) if isinstance(words, dict) else ""
    text = "\n\n".join(filter(None, (_spoken(one) for one in _dicts(said.get("artifacts")))))
    return Reply(state, cut(text or spoken), spoken, task_id, _id(agent, said, "contextId"))


def _id(agent: RemoteAgent, said: JSON, name: str) -> str:
    value = said.get(name) or ""
    if not isinstance(value, str) or len(value) > MAX_ID or not value.isprintable():
        raise _bad(agent, f"its {name} is no text of at most {MAX_ID} printable characters")
    return value


def _spoken(said: JSON) -> str:
    """A message's or an artifact's parts: texts as they are, data as JSON, files by name alone."""
    return cut("\n".join(filter(None, map(_part, _dicts(said.get("parts"))))))


def _part(part: JSON) -> str:
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    if "raw" in part or "url" in part:
        name = part.get("filename") or part.get("url") or part.get("mediaType") or "without a name"
        return f"[a file that was not fetched: {str(name)[:MAX_ID]}]"
    return ""


def _dicts(value: Any) -> list[JSON]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def cut(words: str, most: int = MAX_TEXT) -> str:
    """Somebody else's words as the log can keep them: no NUL, no lone surrogate, not too long."""
    kept = words[:most].replace("\x00", "\ufffd").encode(errors="replace").decode()
    return kept if len(words) <= most else kept + "…"


def quoted(words: str, most: int = MAX_SAID) -> str:
    """The same as a quotation: each line shows that it is not Deputy's. Without what looks like a secret."""
    return "\n".join(f"> {line}" for line in cut(redact.shown(words), most).splitlines())
