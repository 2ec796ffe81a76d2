"""Runs, approvals and tool calls in a few words: what waits, streams and repeats is done here."""

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from deputy_client.errors import DeputyError, TimedOut, raise_problem
from deputy_client.rest import AuthenticatedClient
from deputy_client.rest.api.approvals import approve_approval, list_approvals, reject_approval
from deputy_client.rest.api.runs import (
    call_tool,
    cancel_run,
    complete_run,
    fail_run,
    get_run,
    get_tool_call,
    send_message,
    start_run,
)
from deputy_client.rest.models import (
    Approval,
    ApproveRequest,
    CallRequestRequest,
    CompleteRequest,
    EventPage,
    FailRequest,
    ListApprovalsStatusItem,
    MessageRequest,
    ReasonRequest,
    RejectRequest,
    Run,
    StartRequest,
)
from deputy_client.transport import Patient

ENDED = ("completed", "failed", "cancelled")
POLL_SECONDS = 30  # that one request waits for a call


@dataclass(frozen=True)
class Call:
    """A tool call that has ended: its result, or the error it ended with."""

    id: str
    status: str
    result: Any
    error: dict[str, Any] | None


class Deputy:
    """A Deputy, as the person a token belongs to. `rest` is what the operations in `deputy_client.rest` take.

    Every answer of 400 and above raises a DeputyError.
    """

    def __init__(self, url: str, token: str, *, transport: httpx.BaseTransport | None = None) -> None:
        self.rest = AuthenticatedClient(
            base_url=url.rstrip("/"),
            token=token,
            prefix="Token",
            timeout=httpx.Timeout(POLL_SECONDS + 30.0),
            httpx_args={
                "transport": Patient(transport or httpx.HTTPTransport()),
                "event_hooks": {"response": [raise_problem]},
            },
        )

    def start(self, project: str, goal: str, **more: Any) -> Run:
        """Start a run of the person's own agent. `more`: `context`, `session_key`, `group`."""
        body = StartRequest(project=project, goal=goal, **more)
        return _known(start_run.sync(client=self.rest, body=body, idempotency_key=_key()))

    def drive(self, project: str, goal: str) -> Run:
        """Start a run that this program drives: it calls tools, and says how the run ended."""
        body = StartRequest.from_dict({"project": project, "goal": goal, "driver": "external"})
        return _known(start_run.sync(client=self.rest, body=body, idempotency_key=_key()))

    def run(self, run: str) -> Run:
        """The run as it is now."""
        return _known(get_run.sync(run, client=self.rest))

    def wait(self, run: str, timeout: float | None = None) -> Run:
        """The run once it has ended, followed and not polled. Raises TimedOut after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        for _ in self.events(run, timeout=timeout):
            if until is not None and time.monotonic() > until:
                break
        found = self.run(run)
        if found.status not in ENDED:
            raise TimedOut(f"{run} is still {found.status}")
        return found

    def events(
        self, run: str, *, tree: bool = False, last: str = "", timeout: float | None = None
    ) -> Iterator[Any]:
        """What has happened and what happens, event by event, until the run has ended or `timeout` seconds
        are over. Connects again where the connection breaks, after the event it heard last.
        """
        path = f"/api/runs/{run}/{'tree' if tree else 'events'}/stream/"
        until = None if timeout is None else time.monotonic() + timeout
        while until is None or time.monotonic() < until:
            left = None if until is None else max(0.1, until - time.monotonic())
            try:
                with self._stream(path, last, left) as answer:
                    if answer.status_code == 204:
                        return
                    for name, id, data in blocks(answer.iter_lines()):
                        if name == "end":
                            return
                        if name == "message":
                            last = id
                            yield event_of(data)
            except httpx.TransportError:
                if until is None or time.monotonic() < until:
                    time.sleep(1.0)

    def say(self, run: str, content: str, correlation_key: str = "") -> None:
        """Answer a question of the run, or tell its agent something."""
        body = MessageRequest(content=content, correlation_key=correlation_key)
        send_message.sync(run, client=self.rest, body=body, idempotency_key=_key())

    def cancel(self, run: str, reason: str = "") -> Run:
        """End the run and everything below it."""
        return _known(cancel_run.sync(run, client=self.rest, body=ReasonRequest(reason=reason)))

    def approvals(self, run: str | None = None) -> list[Approval]:
        """What waits for a decision and is this person's to see, of one run or of all."""
        only = {} if run is None else {"root": run}
        found = list_approvals.sync(client=self.rest, status=[ListApprovalsStatusItem.PENDING], **only)
        return list(_known(found).results)

    def approve(self, approval: Approval, reason: str = "") -> Approval:
        """Let the call run with exactly the arguments that the approval shows."""
        body = ApproveRequest(arguments_digest=approval.arguments_digest, reason=reason)
        return _known(approve_approval.sync(approval.id, client=self.rest, body=body))

    def reject(self, approval: Approval, reason: str) -> Approval:
        """Refuse the call; the agent is told why."""
        body = RejectRequest(arguments_digest=approval.arguments_digest, reason=reason)
        return _known(reject_approval.sync(approval.id, client=self.rest, body=body))

    def call(self, run: str, name: str, arguments: dict[str, Any], *, call_id: str = "",
             timeout: float | None = None) -> Call:  # fmt: skip
        """Call a tool in a run that this program drives, and wait until it has ended, however long somebody
        takes to approve it. The same `call_id` with the same words is the same call, so that a program that
        was stopped asks again and nothing happens twice.

        Raises NotAllowed where policy denies it, Invalid for arguments that do not fit, TimedOut.
        """
        until = None if timeout is None else time.monotonic() + timeout
        asked = call_id or uuid.uuid4().hex
        body = CallRequestRequest.from_dict({"call_id": asked, "name": name, "arguments": arguments})
        answer = call_tool.sync_detailed(run, client=self.rest, body=body)
        while answer.status_code == 202:
            if until is not None and time.monotonic() >= until:
                raise TimedOut(f"the call {asked} has not ended")
            wait = POLL_SECONDS if until is None else max(1, min(POLL_SECONDS, int(until - time.monotonic())))
            answer = get_tool_call.sync_detailed(run, asked, client=self.rest, wait=wait)
        told = json.loads(answer.content)
        return Call(asked, told["status"], told["result"], told["error"])

    def complete(self, run: str, output: str) -> Run:
        """Say that a run that this program drives is done."""
        return _known(complete_run.sync(run, client=self.rest, body=CompleteRequest(output=output)))

    def fail(self, run: str, code: str, message: str) -> Run:
        """Say that a run that this program drives has failed."""
        return _known(fail_run.sync(run, client=self.rest, body=FailRequest(code=code, message=message)))

    def close(self) -> None:
        self.rest.get_httpx_client().close()

    def __enter__(self) -> "Deputy":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stream(self, path: str, last: str, timeout: float | None) -> Any:
        headers = {"Last-Event-ID": last} if last else {}
        read = httpx.Timeout(30.0, read=60.0 if timeout is None else min(60.0, timeout))
        http = self.rest.get_httpx_client()
        return http.stream("GET", path, params={"deltas": "no"}, headers=headers, timeout=read)


def blocks(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Server-sent events as (name, id, data)."""
    name, id, data = "message", "", []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "id":
            id = value
        elif field == "data":
            data.append(value)
        elif not line and data:
            yield name, id, "\n".join(data)
            name, data = "message", []


def event_of(data: str) -> Any:
    """The event, as the class of its type: `RunCreatedEvent` and so on."""
    return EventPage.from_dict({"results": [json.loads(data)], "next": None}).results[0]


def _key() -> str:
    return str(uuid.uuid4())


def _known(answer: Any) -> Any:
    """What was asked for: problems have been raised before."""
    if answer is None or type(answer).__name__ == "Problem":
        raise DeputyError(
            0, {"code": "", "detail": "Deputy answered with something this client does not know."}
        )
    return answer
