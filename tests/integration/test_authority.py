"""Every action × every door × every kind of actor, against what each of them may do.

What was done is read from the database, never from an answer. An action, an address, a page or a list action
that no row here knows fails.
"""

import inspect
import json
import pkgutil
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.contrib import admin
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from mcp import MCPError

import memory.curate
import memory.own
import runs.actions
import runs.context.agent_view
from groups.actors import CONFIRMED_AT, Actor, Via
from groups.models import Absence, Group, Membership, Project, ProposedChange, Role, Token
from groups.scopes import SCOPES
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from policy.authority import VERBS, NotAllowed, Verb
from policy.models import CapabilityRule, Grant
from runs.a2a.urls import RESOURCES
from runs.a2a.views import METHODS, STREAMING
from runs.actions import repeat
from runs.actions import schedule as schedules
from runs.execution import outside_agents
from runs.gate import deciders
from runs.mcp import offer
from runs.mcp import tasks as mcp_tasks
from runs.mcp.server import server as mcp_server
from runs.mcp.session import McpSession
from runs.models import (
    A2ATask,
    Approval,
    ApprovalDecision,
    Channel,
    ConnectedAccount,
    Conversation,
    McpServer,
    ModelKey,
    Rating,
    Run,
    RunEvent,
    Schedule,
    ToolCall,
    TriedModel,
    Wait,
    WebhookEndpoint,
)
from runs.web import urls as web_urls
from tests.acting import holder
from tests.admin_pages import PAGES
from tests.admin_world import person, superuser, url
from tests.factories import MembershipFactory, ProjectFactory, permit

pytestmark = pytest.mark.django_db

DECIDER = ("runs.view_run", "runs.view_approval", "runs.decide_approval")
CLERK = ("runs.view_run", "runs.view_approval")
OPERATOR = (*CLERK, "runs.start_run", "runs.cancel_run", "runs.resolve_review", "memory.view_memory",
            "memory.curate_memory", "runs.try_modelkey", "runs.add_modelkey", "groups.change_project",
            "groups.view_proposedchange")  # fmt: skip


ARRANGER = ("groups.add_group", "groups.add_groupmember", "groups.add_agentinstance", "groups.add_role",
            "groups.add_token")  # fmt: skip


@dataclass
class Who:
    """Somebody at a door: in a browser session, or by a token."""

    name: str
    user: Any
    client: Client | None = None
    secret: str = ""

    def post(self, made, path, body=None):
        """Over the API."""
        return self.send("post", made, path, body)

    def send(self, method, made, path, body=None):
        headers = {"Authorization": f"Token {self.secret}"} if self.secret else {}
        headers["X-Organization"] = made.organization.slug
        client = self.client or Client()
        return getattr(client, method)(
            f"/api/{path}", json.dumps(body or {}), content_type="application/json", headers=headers
        )


def at_the_pages(name, user, confirmed=True):
    user.is_staff = True
    user.save()
    client = Client()
    client.force_login(user)
    if not confirmed:
        session = client.session
        session[CONFIRMED_AT] = 0
        session.save()
    return Who(name, user, client)


def by_token(made, name, user, *scopes):
    """With these scopes, or all but speaking as the person."""
    reach = list(scopes) or sorted(set(SCOPES) - {"speak_as_person"})
    return Who(name, user, secret=Token.objects.issue(made.organization, user, scopes=reach)[1])


@pytest.fixture
def everybody(made):
    """Each kind of actor there is, by name."""
    owner = made.user
    permit(owner, *CLERK, "runs.start_run")
    decider = person(made, "ada", *DECIDER, "policy.add_grant", "policy.change_grant", "policy.view_grant")
    clerk = person(made, "carl", *CLERK)
    operator = person(made, "olga", *OPERATOR)
    robot, elsewhere, limited, left = (person(None, name) for name in ("robot", "ed", "lim", "leo"))
    MembershipFactory(organization=made.organization, user=robot, kind="service")
    MembershipFactory(organization=ProjectFactory().organization, user=elsewhere)
    MembershipFactory(organization=made.organization, user=limited, projects=["prj_other"])
    gone = MembershipFactory(organization=made.organization, user=left)
    some = person(None, "sam")
    MembershipFactory(organization=made.organization, user=some, projects=[made.project.pk])
    for user in (robot, elsewhere, limited, left):
        permit(user, *OPERATOR, "runs.decide_approval")
    found = [
        at_the_pages("owner", owner),
        by_token(made, "owner's token", owner),
        by_token(made, "owner's voice", owner, *SCOPES),
        at_the_pages("decider", decider),
        at_the_pages("decider, long ago", decider, confirmed=False),
        by_token(made, "decider's token", decider, *SCOPES),
        by_token(made, "decider's reader", decider, "runs:read", "approvals:read"),
        at_the_pages("clerk", clerk),
        at_the_pages("operator", operator),
        by_token(made, "operator's token", operator, *SCOPES),
        by_token(made, "robot", robot, *SCOPES),
        at_the_pages("robot at the pages", robot),
        at_the_pages("of another organization", elsewhere),
        at_the_pages("of another project", limited),
        by_token(made, "who has left", left, *SCOPES),
        at_the_pages("superuser", superuser()),
        at_the_pages("arranger", person(made, "arne", *ARRANGER)),
        at_the_pages("arranger of one project", permit(some, *ARRANGER)),
    ]
    Membership.objects.filter(pk=gone.pk).update(active=False)  # without the signal that ends the token
    ProposedChange.objects.filter(pk=made.proposal.pk).update(user=superuser(None, "boss"))
    made.own_channel = Channel(organization=made.organization, user=owner, kind="chat")
    made.own_channel.keep_address("ntfy://127.0.0.1:9/topic", "ntfy")  # which nobody has allowed
    made.own_channel.save()
    made.absence = Absence.objects.create(
        organization=made.organization,
        membership=Membership.objects.get(user=owner),
        stand_in=Membership.objects.get(user=decider),
        starts_at=Now(),
        ends_at=Now() + timedelta(days=1),
    )
    return {who.name: who for who in found}


OWNER = {"owner", "owner's token", "owner's voice"}
ROBOTS = {"robot", "robot at the pages"}
MAY_DECIDE = {"decider", "decider, long ago", "decider's token", "robot", "robot at the pages"}
STARTING = {"owner's token", "owner's voice", "operator's token", "robot"}  # programs
MAY_STEER = OWNER | {"operator", "operator's token", "robot", "robot at the pages"}
MAY_GRANT = {"decider", "decider, long ago", "decider's token"}
MAY_CURATE = {"operator", "operator's token", "robot", "robot at the pages"}
THE_PERSON = {"owner", "owner's voice"}
UNCONFIRMED = {"decider, long ago"}
NOBODY: set[str] = set()


# The doors. Each tries one thing; what it did is looked up afterwards.


def api_approve(who, made):
    digest = made.approval.arguments_digest
    who.post(made, f"approvals/{made.approval.pk}/approve/", {"arguments_digest": digest})


def api_reject(who, made):
    body = {"arguments_digest": made.approval.arguments_digest, "reason": "No."}
    who.post(made, f"approvals/{made.approval.pk}/reject/", body)


def api_edit(who, made):
    body = {"arguments_digest": made.approval.arguments_digest, "arguments": EDITED}
    who.post(made, f"approvals/{made.approval.pk}/approve/", body)


def signalled(who, made, path="runs", **more):
    payload = {"approved": True, "arguments_digest": made.approval.arguments_digest, **more}
    body = {"correlation_key": made.approval.correlation_key, "payload": payload}
    who.post(made, f"{path}/{made.run.pk}/signal/", body)


def signal(who, made):
    signalled(who, made)


def job_signal(who, made):
    signalled(who, made, "jobs")


def page(decision, **fields):
    def door(who, made):
        data = {"decision": decision, "arguments_digest": made.approval.arguments_digest, **fields}
        return who.client and who.client.post(url("runs_approval_change", made.approval.pk), data)

    return door


def list_action(decision):
    def door(who, made):
        data = {
            "action": f"{decision}_selected",
            "_selected_action": [made.approval.pk],
            "confirmed": "yes",
            "reason": "No.",
            f"digest-{made.approval.pk}": made.approval.arguments_digest,
        }
        return who.client and who.client.post(url("runs_approval_changelist"), data)

    return door


def api_say(who, made):
    who.post(made, f"runs/{made.asking.pk}/message/", {"content": "2026, they say"})


def page_say(who, made):
    if who.client:
        who.client.post(url("runs_run_say", made.asking.pk), {"content": "2026, they say"})


def answer_by_signal(who, made):
    key = Wait.objects.get(run=made.asking, resolved_at=None).correlation_key
    body = {"correlation_key": key, "payload": {"answer": "2026, they say"}}
    who.post(made, f"runs/{made.asking.pk}/signal/", body)


def answer_by_early_signal(who, made):
    body = {"correlation_key": "input-99.0", "payload": {"answer": "2026, they say"}}
    who.post(made, f"runs/{made.asking.pk}/signal/", body)


def plain_signal(who, made):
    body = {"correlation_key": "invoice-417", "payload": {"paid": True}}
    who.post(made, f"runs/{made.asking.pk}/signal/", body)


def api_cancel(who, made):
    who.post(made, f"runs/{made.run.pk}/cancel/")


def page_cancel(who, made):
    if who.client:
        who.client.post(url("runs_run_cancel", made.run.pk))


def api_start(who, made):
    who.post(made, "runs/", {"project": made.project.pk, "goal": "Count the chairs"})


def page_start(who, made):
    if who.client:
        who.client.post(url("runs_run_ask"), {"project": made.project.pk, "goal": "Count the chairs"})


def api_schedule(who, made):
    body = {"project": made.project.pk, "goal": "Count the chairs", "cron": "0 9 * * *", "time_zone": "UTC"}
    who.post(made, "schedules/", body)


def fill_in_schedule(who, made, address, goal):
    """As a person does without a script: its times are shown first, and then it is saved."""
    body = {"project": made.project.pk, "goal": goal, "repeat": "cron", "cron": "0 9 * * *"}
    body |= {"time_zone": "UTC", "on_missed": "skip"}
    shown = re.search(r'name="shown" value="(\w+)"', who.client.post(address, body).content.decode())
    who.client.post(address, {**body, "shown": shown[1] if shown else ""})


def page_schedule(who, made):
    if who.client:
        body = {"project": made.project.pk, "goal": "Count the chairs", "repeat": "cron", "cron": "0 9 * * *"}
        body |= {"time_zone": "UTC", "on_missed": "skip"}
        shown = re.search(
            r'name="shown" value="(\w+)"', str(who.client.post("/schedules/times/", body).content)
        )
        who.client.post("/schedules/new/", {**body, "shown": shown[1] if shown else ""})


def api_reschedule(who, made):
    address = f"schedules/{made.schedule.pk}/"
    who.send("patch", made, address, {"goal": "Count the tables"})


def page_reschedule(who, made):
    if who.client:
        address = f"/schedules/{made.schedule.pk}/edit/"
        body = {"project": made.project.pk, "goal": "Count the tables", "repeat": "cron", "cron": "0 9 * * *"}
        body |= {"time_zone": "UTC", "on_missed": "skip", "seen": schedules.mark(made.schedule.goal)}
        shown = re.search(
            r'name="shown" value="(\w+)"', str(who.client.post("/schedules/times/", body).content)
        )
        who.client.post(address, {**body, "shown": shown[1] if shown else ""})


def api_pause(who, made):
    who.post(made, f"schedules/{made.schedule.pk}/pause/")


def page_pause(who, made):
    if who.client:
        who.client.post(f"/schedules/{made.schedule.pk}/pause/")


def api_resume(who, made):
    Schedule.objects.filter(pk=made.schedule.pk).update(paused=True, next_at=None)
    who.post(made, f"schedules/{made.schedule.pk}/resume/")


def page_resume(who, made):
    Schedule.objects.filter(pk=made.schedule.pk).update(paused=True, next_at=None)
    if who.client:
        who.client.post(f"/schedules/{made.schedule.pk}/resume/")


def api_unschedule(who, made):
    who.send("delete", made, f"schedules/{made.schedule.pk}/")


def page_unschedule(who, made):
    if who.client:
        who.client.post(f"/schedules/{made.schedule.pk}/delete/", {"sure": "yes"})


def api_fork(who, made):
    who.post(made, f"runs/{made.run.pk}/fork/", {"seq": 2, "content": "Count the chairs"})


def page_fork(who, made):
    if who.client:
        who.client.post(url("runs_run_fork", made.run.pk, 2), {"content": "Count the chairs"})


def api_resolve(who, made):
    body = {"outcome": "failed", "message": "It was not sent."}
    who.post(made, f"runs/{made.run.pk}/tool-calls/{made.call.call_id}/resolve/", body)


def page_resolve(who, made):
    if who.client:
        body = {"call_id": made.call.call_id, "outcome": "failed", "message": "It was not sent."}
        who.client.post(url("runs_run_resolve", made.run.pk), body)


def api_drive(who, made):
    Run.objects.filter(pk=made.asking.pk).update(driver="external")
    body = {"call_id": "x", "name": "list_available_groups", "arguments": {}}
    who.post(made, f"runs/{made.asking.pk}/tool-calls/", body)


def api_fail(who, made):
    Run.objects.filter(pk=made.asking.pk).update(driver="external")
    who.post(made, f"runs/{made.asking.pk}/fail/", {"message": "No."})


def api_complete(who, made):
    from_outside(made)
    who.post(made, f"runs/{made.asking.pk}/complete/", {"output": "Done."})


def from_outside(made):
    """The run in the hands of an outside agent, with nothing open."""
    ToolCall.objects.filter(run=made.asking).delete()
    RunEvent.objects.filter(run=made.asking, seq__gt=2).delete()
    status = {"driver": "external", "status": "running", "waiting_reason": None, "last_seq": 2}
    Run.objects.filter(pk=made.asking.pk).update(**status)


def by_itself(act):
    """The action without a door: whoever calls it, it asks."""

    def door(who, made):
        from_outside(made)
        with suppress(NotAllowed):
            act(made.asking.pk, actor_of(who, made))

    return door


def actor_of(who, made):
    membership = made.organization.memberships.filter(user=who.user, active=True).first()
    if who.client:
        return Actor(who.user, membership, Via.SESSION, None, True)
    token = holder(who.secret)
    return Actor.of_token(token, membership)


def over_mcp(act):
    """As a client of MCP, whose address names the run."""

    def door(who, made):
        from_outside(made)
        if not who.secret:
            return
        actor = replace(actor_of(who, made), via=Via.MCP)
        token, run = holder(who.secret), made.asking.pk
        with suppress(offer.Refused):
            act(McpSession(who.user, actor.membership, token, actor, made.project, run))

    return door


def call_from_outside(run, by):
    outside_agents.request_call(run, by, "x", "list_available_groups", {})


def mcp_call(session):
    offer.ask(session, "list_available_groups", {}, {offer.CALL_ID_KEY: "x"})


def mcp_complete(session):
    offer.completed(session, {"output": "Done."})


def rearrange(who, made):
    body = {"operation": "createDetailPage", "arguments": {"parent": "task-0", "name": "n", "detail": "d"}}
    who.post(made, f"runs/{made.asking.pk}/context/", body)


def mcp_session(who, made):
    """As the entrance makes it; None where it lets nobody in."""
    token = holder(who.secret) if who.secret else None
    membership = made.organization.memberships.filter(user=who.user, active=True).first()
    if token is None or membership is None:
        return None
    actor = Actor.of_token(token, membership, Via.MCP)
    return McpSession(who.user, membership, token, actor, made.project)


def mcp_start(who, made):
    if session := mcp_session(who, made):
        with suppress(offer.Refused):
            offer.started(session, {"goal": "Count the chairs"})


def mcp_withdraw(who, made):
    Run.objects.filter(pk=made.run.pk).update(driver="external")
    if session := mcp_session(who, made):
        with suppress(MCPError):
            mcp_tasks._withdraw(session, made.call.pk)


def mcp_answer(who, made):
    Run.objects.filter(pk=made.asking.pk).update(driver="external")
    if session := mcp_session(who, made):
        key = Wait.objects.get(run=made.asking, resolved_at=None).correlation_key
        form = {key: {"action": "accept", "content": {"answer": "2026, they say"}}}
        with suppress(MCPError):
            mcp_tasks._take(session, ToolCall.objects.get(run=made.asking).pk, form)


def a2a(method, params, below=None):
    """As a client of A2A, at the address of the project."""

    def door(who, made):
        made.project.published = True
        made.project.save()
        for run in (made.run, made.asking):
            place = {"organization": made.organization, "project": made.project}
            A2ATask.objects.create(run=run, context_id="c", message_id="m", **place)
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params(made)}
        headers = {"A2A-Version": "1.0", **({"Authorization": f"Token {who.secret}"} if who.secret else {})}
        client, address = who.client or Client(), f"/a2a/projects/{made.project.pk}"
        client.post(address, json.dumps(body), content_type="application/json", headers=headers)

    return door


def a2a_say(words, task=None):
    """SendMessage, to this run or to begin one."""

    def params(made):
        to = {"taskId": getattr(made, task).pk} if task else {}
        message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": words}], **to}
        return {"message": message, "configuration": {"returnImmediately": True}}

    return a2a("SendMessage", params)


def a2a_push(made):
    return {"taskId": made.asking.pk, "url": "https://93.184.216.34/"}


def agui(who, made, thread, messages=(), resume=()):
    body = {"threadId": thread, "runId": "r", "messages": list(messages), "resume": list(resume)}
    who.post(made, f"ag-ui/{made.project.pk}/", body)


def agui_start(who, made):
    agui(who, made, "t", [{"id": "m", "role": "user", "content": "Count the chairs"}])


def agui_approve(who, made):
    payload = {"approved": True, "argumentsDigest": made.approval.arguments_digest}
    one = {"interruptId": made.approval.pk, "status": "resolved", "payload": payload}
    agui(who, made, made.run.pk, resume=[one])


def agui_answer(who, made):
    wait = Wait.objects.get(run=made.asking, resolved_at=None)
    one = {"interruptId": wait.pk, "status": "resolved", "payload": {"answer": "2026, they say"}}
    agui(who, made, made.asking.pk, resume=[one])


def api_grant(who, made):
    body = {"project": made.project.pk, "tool": "send_email", "any_arguments": True, "max_uses": 3}
    who.post(made, "policy/grants/", {**body, "reason": "tried"})


def page_grant(who, made):
    if who.client:
        body = {"organization": made.organization.pk, "project": made.project.pk, "tool": "send_email"}
        more = {"arguments": "{}", "any_arguments": "on", "max_uses": "3", "reason": "tried"}
        who.client.post(url("policy_grant_add"), {**body, **more})


def api_revoke(who, made):
    who.post(made, f"policy/grants/{made.grant.pk}/revoke/")


def list_revoke(who, made):
    if who.client:
        data = {"action": "revoke", "_selected_action": [made.grant.pk]}
        who.client.post(url("policy_grant_changelist"), data)


def knowledge(made):
    return Memory.objects.get(organization=made.organization, content="Ada likes tea.")


def api_retract(who, made):
    who.post(made, f"memories/{knowledge(made).pk}/retract/")


def list_retract(who, made):
    if who.client:
        data = {"action": "retract", "_selected_action": [knowledge(made).pk]}
        who.client.post(url("memory_depositedknowledge_changelist"), data)


def page_try(who, made):
    if who.client:
        who.client.post(url("runs_models_try"), {"organization": made.organization.pk, "model": "local"})


def page_key(who, made):
    if who.client:
        body = {"organization": made.organization.pk, "provider": "google", "key": "sk-0123456789"}
        who.client.post(url("runs_modelkey_add"), body)


def api_confirm(who, made):
    who.post(made, f"audit/proposed/{made.proposal.pk}/confirm/")


def page_confirm(who, made):
    if who.client:
        page = url("groups_proposedchange_decide", made.proposal.pk)
        who.client.post(page, {"decision": "confirm"})


def api_take_back(who, made):
    who.post(made, f"audit/proposed/{made.proposal.pk}/reject/")


def api_channel(method, path="{}/", **said):
    """One's own channels over the API; `path` is below `channels/`."""

    def door(who, made):
        who.send(method, made, "channels/" + path.format(made.own_channel.pk), said)

    return door


# People's own pages


def own(name, body=None, at=lambda made: ()):
    """A form of people's own pages, posted from a session."""

    def door(who, made):
        if who.client:
            said = body(made) if callable(body) else body
            who.client.post(reverse(f"web:{name}", args=at(made)), said or {})

    return door


def asking(made):
    return [made.asking.pk]


def needing(made):
    """The run's question is for what a call needs first."""
    Wait.objects.filter(run=made.asking).update(correlation_key="repeat-account:x-1-1")
    return {"run": made.asking.pk, "key": "repeat-account:x-1-1"}


def declined(made):
    return Wait.objects.filter(run=made.asking, outcome="rejected").exists()


def decline_by_itself(who, made):
    said = needing(made)
    with suppress(NotAllowed):
        repeat.decline(said["run"], said["key"], actor_of(who, made))


def acting_as_the_person(made):
    there = {"issuer": "https://as.example", "authorization_endpoint": "https://as.example/a"}
    McpServer.objects.filter(pk=made.server.pk).update(as_person=True, client_id="deputy", **there)
    return [made.server.pk]


def connect_account(who, made):
    made.sent_to = ""
    if who.client:
        to = reverse("web:connect_account", args=acting_as_the_person(made))
        made.sent_to = who.client.post(to).headers.get("Location", "")


def sent_to_connect(made):
    return made.sent_to.startswith("https://as.example/a?")


def with_an_account(made):
    ConnectedAccount.objects.create(
        organization=made.organization, server=made.server, user=made.user, sealed_access="x", bound_to="x"
    )
    return acting_as_the_person(made)


def api_disconnect(who, made):
    (server_id,) = with_an_account(made)
    who.post(made, f"accounts/{server_id}/disconnect/")


def disconnected(made):
    return ConnectedAccount.objects.filter(ended_at__isnull=False).exists()


def ask_here(made):
    return {"goal": "Count the chairs", "project": made.project.pk}


def question(made):
    key = Wait.objects.get(run=made.asking, resolved_at=None).correlation_key
    return {"run": made.asking.pk, "key": key, "content": "2026, they say"}


def own_together(who, made):
    approval = made.approval
    said = {"id": approval.pk, "decision": "approve", f"digest-{approval.pk}": approval.arguments_digest}
    return who.client and who.client.post(reverse("web:together"), said)


def own_decision(decision, **fields):
    def body(made):
        return {"decision": decision, "arguments_digest": made.approval.arguments_digest, **fields}

    return own("approval", body, lambda made: [made.approval.pk])


def own_rate(who, made):
    finished(made)
    own("rate", {"good": "yes", "note": "Say less"}, asking)(who, made)


def own_go_on(who, made):
    own("go_on", {"content": "Count the chairs"}, lambda made: [made.run.pk])(who, made)


def own_correct(who, made):
    own("correct", {"content": "I like coffee."}, lambda made: [kept_of_owner(made).pk])(who, made)


def own_forget(who, made):
    own("forget", {}, lambda made: [kept_of_owner(made).pk])(who, made)


def own_group(who, made):
    body = {"project": made.project.pk, "name": "Of my own", "description": "d", "role-1": made.role.pk}
    own("new_group", body)(who, made)


def own_role(who, made):
    body = {"project": made.project.pk, "name": "Of my own", "description": "d", "name-1": "Mailer"}
    own("new_group", {**body, "prompt-1": "Send mail."})(who, made)


def finished(made):
    ended = {"status": "completed", "output": "6 euros", "ended_at": Now(), "waiting_reason": None}
    Run.objects.filter(pk=made.asking.pk).update(**ended)


def kept_of_owner(made):
    return Memory.objects.get(organization=made.organization, user=made.user, content="I like tea.")


EDITED = {"to": ["mallory@evil.example"], "subject": "x", "body": "y"}
HUMAN = {"effect": "require_human"}
TWO = {"deciders_needed": 2}


# What is seen to have been done.


def concluded(made):
    return Approval.objects.filter(run=made.run, status="approved").exists()


def rejected(made):
    return Approval.objects.get(pk=made.approval.pk).status == "rejected"


def voted(made):
    mine = ApprovalDecision.objects.filter(approval__run=made.run, approved=True)
    return mine.exclude(arguments_digest="of others").exists()


def replaced(made):
    return Approval.objects.get(pk=made.approval.pk).status == "superseded"


def edit_voted(made):
    new = Approval.objects.filter(replaces=made.approval).first()
    return new is not None and new.decisions.exists()


def answered(made):
    wait = Wait.objects.get(run=made.asking, kind="input")
    return wait.resolved_at is not None


def early_kept(made):
    return Wait.objects.filter(run=made.asking, correlation_key="input-99.0").exists()


def said(made):
    return RunEvent.objects.filter(run=made.asking, payload__content="2026, they say").exists()


def said_as_person(made):
    found = RunEvent.objects.filter(run=made.asking, payload__content="2026, they say")
    return any(not event.payload.get("outside") for event in found)


def kept(made):
    return Wait.objects.filter(run=made.asking, correlation_key="invoice-417").exists()


def cancelled(made):
    return Run.objects.get(pk=made.run.pk).status == "cancelled"


def started(made):
    return RunEvent.objects.filter(seq=2, payload__content="Count the chairs").exists()


def withdrawn(made):
    return Approval.objects.get(pk=made.approval.pk).status == "cancelled"


def started_as_person(made):
    found = RunEvent.objects.filter(seq=2, payload__content="Count the chairs")
    return any(not event.payload.get("outside") for event in found)


def scheduled(made):
    return Schedule.objects.filter(goal="Count the chairs").exists()


def scheduled_as_person(made):
    return Schedule.objects.filter(goal="Count the chairs", outside=False).exists()


def rescheduled(made):
    return Schedule.objects.filter(goal="Count the tables").exists()


def paused(made):
    return Schedule.objects.get(pk=made.schedule.pk).paused


def resumed(made):
    return not paused(made)


def unscheduled(made):
    return not Schedule.objects.filter(pk=made.schedule.pk).exists()


def forked(made):
    return (
        Run.objects.filter(goal=made.run.goal)
        .exclude(pk=made.run.pk)
        .filter(events__payload__content="Count the chairs")
        .exists()
    )


def forked_as_person(made):
    found = RunEvent.objects.filter(payload__content="Count the chairs")
    return any(not event.payload.get("outside") for event in found)


def resolved(made):
    return Wait.objects.filter(run=made.run, kind="review", resolved_at__isnull=False).exists()


def driven(made):
    return ToolCall.objects.filter(run=made.asking, call_id="x").exists()


def completed(made):
    return Run.objects.get(pk=made.asking.pk).status == "completed"


def failed(made):
    return Run.objects.get(pk=made.asking.pk).status == "failed"


def rearranged(made):
    return RunEvent.objects.filter(run=made.asking, type="context.changed").exists()


def pushed(made):
    return WebhookEndpoint.objects.filter(run=made.asking).exists()


def granted(made):
    return Grant.objects.filter(reason="tried").exists()


def revoked(made):
    return Grant.objects.get(pk=made.grant.pk).revoked_at is not None


def retracted(made):
    return knowledge(made).status == "retracted"


def tried(made):
    return TriedModel.objects.filter(organization=made.organization).exists()


def key_set(made):
    return ModelKey.objects.filter(organization=made.organization, provider="google").exists()


def confirmed(made):
    project = Project.objects.get(pk=made.project.pk)
    return project.review_deposits is made.proposal.after["review_deposits"]


def taken_back(made):
    return ProposedChange.objects.get(pk=made.proposal.pk).state == "rejected"


def rated(made):
    return Rating.objects.filter(run=made.asking).exists()


def renamed(made):
    return Conversation.objects.filter(title="Of my own").exists()


def stopped(made):
    return Run.objects.get(pk=made.asking.pk).status == "cancelled"


def asked_again(made):
    return Run.objects.filter(goal=made.asking.goal, session_key__startswith="web-").exists()


def corrected(made):
    return Memory.objects.filter(user=made.user, content="I like coffee.").exists()


def forgotten(made):
    return not Memory.objects.filter(user=made.user, content="I like tea.").exists()


def grouped(made):
    return Group.objects.filter(name="Of my own").exists()


def new_role(made):
    return Role.objects.filter(name="Mailer").exists()


def issued(made):
    return Token.objects.filter(name="made at one's page").exists()


def token_revoked(made):
    return Token.objects.get(pk=made.token.pk).revoked_at is not None


PEOPLE = {"owner", "decider", "decider, long ago", "clerk", "operator", "arranger", "arranger of one project",
          "of another project"}  # fmt: skip


def own_channel(made):
    return Channel.objects.filter(organization=made.organization, kind="chat", shown="ntfy://…").exists()


def channel_off(made):
    return not Channel.objects.get(pk=made.own_channel.pk).enabled


def channel_gone(made):
    return not Channel.objects.filter(pk=made.own_channel.pk).exists()


def channel_tried(made):
    return Channel.objects.get(pk=made.own_channel.pk).failing_since is not None


def away(made):
    there = Membership.objects.get(user=person(made, "stella", *DECIDER))
    return {"first": "2999-01-01", "last": "2999-01-02", "stand_in": there.pk}


def is_away(made):
    return Absence.objects.filter(ends_at__year=2999).exists()


def is_back(made):
    return not Absence.objects.filter(pk=made.absence.pk).exists()


OWN_PAGES = {  # of people: each form, and what it does
    "ask", "send", "answer", "stop", "again", "go_on", "rate", "rename", "approval", "correct", "forget",
    "forget_all", "new_group", "issue", "revoke", "new_schedule", "edit_schedule", "pause", "resume",
    "delete_schedule", "add_channel", "change_channel", "try_channel", "remove_channel", "be_away", "be_back",
    "together", "decline", "connect_account", "disconnect_account",
}  # fmt: skip
# the form stands where it goes to
WITH_A_PAGE = ("approval", "together", "new_group", "new_schedule", "edit_schedule")
OF_THE_BROWSER = {"choose", "confirm"}  # where one is, and that it is one
ASK_ONLY_AT_PAGES = {"times"}
SESSIONS = {"owner", "decider", "decider, long ago", "clerk", "operator", "robot at the pages",
            "of another organization", "of another project", "superuser"}  # fmt: skip
MEMBERS = (OWNER | MAY_DECIDE | MAY_STEER | {"decider's reader", "clerk"}) - NOBODY

# (door, what the rule demands, what is looked for, who gets it done)
ROWS = {
    "approve over the API": (api_approve, {}, concluded, MAY_DECIDE),
    "approve by a signal": (signal, {}, concluded, MAY_DECIDE),
    "approve by a job's signal": (job_signal, {}, concluded, MAY_DECIDE),
    "approve on the page": (page("approve"), {}, concluded, MAY_DECIDE & SESSIONS),
    "approve in the list": (list_action("approve"), {}, concluded, MAY_DECIDE & SESSIONS),
    "approve for a person in the list": (list_action("approve"), HUMAN, concluded, NOBODY),  # on its own page
    "reject over the API": (api_reject, {}, rejected, MAY_DECIDE),
    "reject on the page": (page("reject", reason="No."), {}, rejected, MAY_DECIDE & SESSIONS),
    "reject in the list": (list_action("reject"), {}, rejected, MAY_DECIDE & SESSIONS),
    "approve for a person over the API": (api_approve, HUMAN, concluded, {"decider"}),
    "approve for a person by a signal": (signal, HUMAN, concluded, NOBODY),
    "approve for a person on the page": (page("approve"), HUMAN, concluded, {"decider"}),
    "reject for a person over the API": (api_reject, HUMAN, rejected, {"decider"}),
    "approve alone where two have to, over the API": (api_approve, TWO, concluded, NOBODY),
    "approve alone where two have to, on the page": (page("approve"), TWO, concluded, NOBODY),
    "be the first of two over the API": (api_approve, TWO, voted, MAY_DECIDE - ROBOTS),
    "allow such calls for ever where two have to": (
        page("approve_always", **{"remember-any_arguments": "on", "remember-uses": "3"}), TWO, voted, NOBODY
    ),
    "edit over the API": (api_edit, {}, edit_voted, MAY_DECIDE),
    "edit on the page": (
        page("approve_edited", arguments=json.dumps(EDITED)), {}, edit_voted, MAY_DECIDE & SESSIONS
    ),
    "edit where a person has to decide": (api_edit, HUMAN, replaced, {"decider"}),
    "edit alone where two have to": (api_edit, TWO, concluded, NOBODY),
    "answer over the API": (api_say, {}, answered, THE_PERSON),
    "answer on the page": (page_say, {}, answered, {"owner"}),
    "answer by a signal": (answer_by_signal, {}, answered, THE_PERSON),
    "answer by a signal that comes early": (answer_by_early_signal, {}, early_kept, THE_PERSON),
    "say something over the API": (api_say, {}, said, MAY_STEER),
    "say something on the page": (page_say, {}, said, MAY_STEER & SESSIONS),
    "be heard as the person over the API": (api_say, {}, said_as_person, THE_PERSON),
    "be heard as the person on the page": (page_say, {}, said_as_person, {"owner"}),
    "signal": (plain_signal, {}, kept, MAY_STEER),
    "cancel over the API": (api_cancel, {}, cancelled, MAY_STEER),
    "cancel on the page": (page_cancel, {}, cancelled, MAY_STEER & SESSIONS),
    "start over the API": (
        api_start, {}, started, STARTING | {"owner", "operator", "robot at the pages"}
    ),
    "start on the page": (page_start, {}, started, {"owner", "operator", "robot at the pages"}),
    "start as the person over the API": (
        api_start, {}, started_as_person,
        {"owner", "owner's voice", "operator", "operator's token", "robot"},
    ),
    "start by MCP": (mcp_start, {}, started, STARTING),
    "withdraw a call by MCP": (mcp_withdraw, {}, withdrawn, {"owner's token", "owner's voice"}),
    "answer in a form of an MCP client": (mcp_answer, {}, answered, {"owner's voice"}),
    "start as the person by MCP": (mcp_start, {}, started_as_person, NOBODY),
    "start over AG-UI": (
        agui_start, {}, started, STARTING | {"owner", "operator", "robot at the pages"}
    ),
    "start as the person over AG-UI": (
        agui_start, {}, started_as_person,
        {"owner", "owner's voice", "operator", "operator's token", "robot"},
    ),
    "answer over AG-UI": (agui_answer, {}, answered, THE_PERSON),
    "approve over AG-UI": (agui_approve, {}, concluded, MAY_DECIDE & SESSIONS),
    "approve for a person over AG-UI": (agui_approve, HUMAN, concluded, {"decider"}),
    "approve alone where two have to, over AG-UI": (agui_approve, TWO, concluded, NOBODY),
    "start over A2A": (a2a_say("Count the chairs"), {}, started, STARTING),
    "start as the person over A2A": (
        a2a_say("Count the chairs"), {}, started_as_person, {"owner's voice", "operator's token", "robot"}
    ),
    "say something over A2A": (a2a_say("2026, they say", "asking"), {}, said, MAY_STEER - SESSIONS),
    "be heard as the person over A2A": (
        a2a_say("2026, they say", "asking"), {}, said_as_person, {"owner's voice"}
    ),
    "answer over A2A": (a2a_say("2026, they say", "asking"), {}, answered, {"owner's voice"}),
    "approve by a message of A2A": (a2a_say("approve", "run"), {}, concluded, NOBODY),
    "cancel over A2A": (
        a2a("CancelTask", lambda made: {"id": made.run.pk}), {}, cancelled, MAY_STEER - SESSIONS
    ),
    "have a task's updates sent over A2A": (
        a2a("CreateTaskPushNotificationConfig", a2a_push), {}, pushed, MAY_STEER - SESSIONS
    ),
    "schedule over the API": (
        api_schedule, {}, scheduled, STARTING | {"owner", "operator", "robot at the pages"}
    ),
    "schedule on the page": (page_schedule, {}, scheduled, {"owner", "operator", "robot at the pages"}),
    "schedule the person's words over the API": (
        api_schedule, {}, scheduled_as_person,
        {"owner", "owner's voice", "operator", "operator's token", "robot"},
    ),
    "schedule the person's words on the page": (
        page_schedule, {}, scheduled_as_person, {"owner", "operator"}
    ),
    "change a schedule over the API": (api_reschedule, {}, rescheduled, THE_PERSON),
    "change a schedule on the page": (page_reschedule, {}, rescheduled, {"owner"}),
    "pause a schedule over the API": (api_pause, {}, paused, OWNER),
    "pause a schedule on the page": (page_pause, {}, paused, {"owner"}),
    "resume a schedule over the API": (api_resume, {}, resumed, THE_PERSON),
    "resume a schedule on the page": (page_resume, {}, resumed, {"owner"}),
    "delete a schedule over the API": (api_unschedule, {}, unscheduled, OWNER),
    "delete a schedule on the page": (page_unschedule, {}, unscheduled, {"owner"}),
    "run again over the API": (api_fork, {}, forked, OWNER),
    "run again on the page": (page_fork, {}, forked, {"owner"}),
    "run again with the person's words": (api_fork, {}, forked_as_person, THE_PERSON),
    "say what became of a call over the API": (
        api_resolve, {}, resolved, {"operator", "operator's token", "robot", "robot at the pages"}
    ),
    "say what became of a call on the page": (
        page_resolve, {}, resolved, {"operator", "robot at the pages"}
    ),
    "drive from outside": (api_drive, {}, driven, OWNER),
    "drive by itself": (by_itself(call_from_outside), {}, driven, OWNER),
    "drive over MCP": (over_mcp(mcp_call), {}, driven, OWNER - SESSIONS),
    "fail from outside": (api_fail, {}, failed, OWNER),
    "fail by itself": (by_itself(lambda run, by: outside_agents.fail(run, by, "No.")), {}, failed, OWNER),
    "complete from outside": (api_complete, {}, completed, OWNER),
    "complete by itself": (
        by_itself(lambda run, by: outside_agents.complete(run, by, "Done.")), {}, completed, OWNER
    ),
    "complete over MCP": (over_mcp(mcp_complete), {}, completed, OWNER - SESSIONS),
    "make a standing approval over the API": (api_grant, {}, granted, MAY_GRANT - UNCONFIRMED),
    "make a standing approval on the page": (
        page_grant, {}, granted, MAY_GRANT & SESSIONS - UNCONFIRMED
    ),
    "revoke a standing approval over the API": (api_revoke, {}, revoked, MAY_GRANT),
    "revoke a standing approval in the list": (
        list_revoke, {}, revoked, MAY_GRANT & SESSIONS | {"superuser"}
    ),
    "retract knowledge over the API": (api_retract, {}, retracted, MAY_CURATE),
    "retract knowledge in the list": (
        list_retract, {}, retracted, MAY_CURATE & SESSIONS | {"superuser"}
    ),
    "try a model on the page": (page_try, {}, tried, MAY_CURATE & SESSIONS | {"superuser"}),
    "set a provider's key on the page": (page_key, {}, key_set, MAY_CURATE & SESSIONS | {"superuser"}),
    "rearrange the view": (rearrange, {}, rearranged, MAY_STEER),
    "ask at one's own page": (
        own("ask", ask_here), {}, started, {"owner", "operator", "robot at the pages"}
    ),
    "ask as a person at one's own page": (
        own("ask", ask_here), {}, started_as_person, {"owner", "operator"}
    ),
    "ask for another's group at one's own page": (
        own("ask", lambda made: {**ask_here(made), "group": made.group.pk}), {}, started,
        {"owner", "operator", "robot at the pages"},
    ),
    "go on with a conversation": (own("send", {"goal": "2026, they say"}, asking), {}, said, {"owner"}),
    "answer at one's own page": (own("answer", question, asking), {}, answered, {"owner"}),
    "decline what a call needs": (own("decline", needing, asking), {}, declined, {"owner"}),
    "decline what a call needs by itself": (decline_by_itself, {}, declined, THE_PERSON),
    "be sent to connect an account": (connect_account, {}, sent_to_connect, PEOPLE | {"robot at the pages"}),
    "disconnect an account": (own("disconnect_account", {}, with_an_account), {}, disconnected, {"owner"}),
    "disconnect an account over the API": (api_disconnect, {}, disconnected, OWNER),
    "stop at one's own page": (own("stop", {}, asking), {}, stopped, {"owner"}),
    "ask again at one's own page": (own("again", {}, asking), {}, asked_again, {"owner"}),
    "go on from an answer": (own_go_on, {}, forked, {"owner"}),
    "rate an answer": (own_rate, {}, rated, {"owner"}),
    "rename a conversation": (own("rename", {"title": "Of my own"}, asking), {}, renamed, {"owner"}),
    "approve at one's own page": (own_decision("approve"), {}, concluded, MAY_DECIDE & SESSIONS),
    "reject at one's own page": (
        own_decision("reject", reason="No."), {}, rejected, MAY_DECIDE & SESSIONS
    ),
    "approve several at one's own page": (own_together, {}, concluded, MAY_DECIDE & SESSIONS),
    "approve several for a person at one's own page": (own_together, HUMAN, concluded, NOBODY),
    "approve for a person at one's own page": (own_decision("approve"), HUMAN, concluded, {"decider"}),
    "approve alone where two have to, at one's own page": (own_decision("approve"), TWO, concluded, NOBODY),
    "edit at one's own page": (
        own_decision("approve_fields", **{"argument-2": "x"}), {}, edit_voted, MAY_DECIDE & SESSIONS
    ),
    "correct what is known of one": (own_correct, {}, corrected, {"owner"}),
    "forget what is known of one": (own_forget, {}, forgotten, {"owner"}),
    "forget all of it": (own("forget_all", {"sure": "yes"}), {}, forgotten, {"owner"}),
    "make a group at one's own page": (own_group, {}, grouped, {"arranger", "arranger of one project"}),
    "make a role at one's own page": (own_role, {}, new_role, {"arranger"}),
    "confirm as a second person over the API": (api_confirm, {}, confirmed, {"operator"}),
    "confirm as a second person on the page": (page_confirm, {}, confirmed, {"operator"}),
    "reject as a second person": (api_take_back, {}, taken_back, {"operator"}),
    "issue a token at one's own page": (
        own("issue", {"name": "made at one's page", "scopes": ["runs:read"], "days": "9"}), {}, issued,
        {"arranger", "arranger of one project"},
    ),
    "be told by another channel": (
        own("add_channel", {"kind": "chat", "address": "ntfy://deputy-topic"}), {}, own_channel, PEOPLE
    ),
    "switch one's own channel off": (
        own("change_channel", {}, lambda made: [made.own_channel.pk]), {}, channel_off, {"owner"}
    ),
    "remove one's own channel": (
        own("remove_channel", {}, lambda made: [made.own_channel.pk]), {}, channel_gone, {"owner"}
    ),
    "try one's own channel": (
        own("try_channel", {}, lambda made: [made.own_channel.pk]), {}, channel_tried, {"owner"}
    ),
    "be told by another channel over the API": (
        api_channel("post", "", kind="chat", address="ntfy://deputy-topic"), {}, own_channel,
        PEOPLE | {"owner's voice", "decider's token", "operator's token", "robot"},
    ),
    "switch one's own channel off over the API": (
        api_channel("patch", enabled=False), {}, channel_off, THE_PERSON
    ),
    "remove one's own channel over the API": (api_channel("delete"), {}, channel_gone, THE_PERSON),
    "try one's own channel over the API": (
        api_channel("post", "{}/test/"), {}, channel_tried, THE_PERSON
    ),
    "say that one is away": (own("be_away", away), {}, is_away, PEOPLE - UNCONFIRMED),
    "say that one is back": (own("be_back"), {}, is_back, {"owner"}),
    "revoke a token at one's own page": (
        own("revoke", {}, lambda made: [made.token.pk]), {}, token_revoked, {"owner"}
    ),
}  # fmt: skip


class Undone(Exception):
    """Takes back what a try has done."""


ROWS_A_WORLD = 12  # a world of 18 people takes as long to make as a row to try


@pytest.mark.parametrize("first", range(0, len(ROWS), ROWS_A_WORLD))
def test_exactly_those_who_may_get_it_done(first, made, everybody):
    wrong = {}
    for name in list(ROWS)[first : first + ROWS_A_WORLD]:
        try:
            with transaction.atomic():
                did, may = who_gets_it_done(ROWS[name], made, everybody), ROWS[name][-1]
                if did != may:
                    wrong[name] = {"may not, and did": did - may, "may, and did not": may - did}
                raise Undone
        except Undone:
            continue
    assert wrong == {}


def who_gets_it_done(row, made, everybody):
    door, demand, seen, _ = row
    if "resolve" in door.__name__:
        interrupted(made)
    CapabilityRule.objects.filter(pk=made.rule.pk).update(**demand)
    Approval.objects.filter(pk=made.approval.pk).update(**demand)
    ApprovalDecision.objects.all().delete()
    made.approval.refresh_from_db()
    scope = Scope(made.organization.pk, project_id=made.project.pk)
    memory_write("Ada likes tea.", scope, type="archival")
    memory_write("I like tea.", Scope(made.organization.pk, user_id=made.user.pk), type="core")
    did = set()
    for who in everybody.values():
        try:
            with transaction.atomic():
                door(who, made)
                if seen(made):
                    did.add(who.name)
                raise Undone
        except Undone:
            continue
    return did


def interrupted(made):
    ToolCall.objects.filter(pk=made.call.pk).update(status="unknown")
    key = f"review-{made.call.call_id}"
    Wait.objects.create(
        organization=made.organization, run=made.run, kind="review", correlation_key=key, tool_call=made.call
    )
    RunEvent.objects.filter(run=made.run, type="tool.requires_approval").update(type="tool.outcome_unknown")


def test_lists_badges_and_mails_name_exactly_those_whose_decision_would_count(made, everybody):
    for demand in ({}, HUMAN, TWO):
        CapabilityRule.objects.filter(pk=made.rule.pk).update(effect="require_approval", deciders_needed=1)
        CapabilityRule.objects.filter(pk=made.rule.pk).update(**demand)
        Approval.objects.filter(pk=made.approval.pk).update(effect="require_approval", deciders_needed=1)
        Approval.objects.filter(pk=made.approval.pk).update(**demand)
        ApprovalDecision.objects.all().delete()
        for who in everybody.values():
            if who.client is None:
                continue
            listed = who.client.get(url("runs_approval_next")).headers.get("Location", "")
            counted = False
            try:
                with transaction.atomic():
                    who.client.get(reverse("web:confirm"))
                    session = who.client.session
                    session[CONFIRMED_AT] = 2**31
                    api_approve(who, made)
                    counted = voted(made)
                    raise Undone
            except Undone:
                pass
            may = counted or (who.name == "decider, long ago" and demand == HUMAN)
            assert (made.approval.pk in listed) == may, (who.name, demand)
        mailed = {one.username for one in deciders.addressed(Approval.objects.get(pk=made.approval.pk))}
        assert mailed == {"ada"}


# Asking the decision point, which decides nothing and changes nothing


def authzen(who, made, address, body):
    return who.client.post(f"/access/v1/{address}", json.dumps(body), content_type="application/json") if (
        who.client
    ) else Client().post(
        f"/access/v1/{address}",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Token {who.secret}"},
    )  # fmt: skip


MEMBERS_BY_TOKEN = {"owner's token", "owner's voice", "decider's token", "operator's token", "robot"}


def test_of_others_only_who_may_see_rules_asks_the_decision_point_and_nothing_changes(made, everybody):
    about = {
        "action": {"name": "send_email", "properties": {"arguments": EDITED}},
        "resource": {"type": "project", "id": made.project.pk},
    }
    counted = (RunEvent, Approval, ApprovalDecision, ToolCall, Grant, Run)
    before = [model.objects.count() for model in counted]
    of_themselves, of_the_owner = set(), set()
    for who in everybody.values():
        for found, name in ((of_themselves, who.user.get_username()), (of_the_owner, made.user.username)):
            answer = authzen(who, made, "evaluation", {**about, "subject": {"type": "user", "id": name}})
            if answer.status_code == 200 and "No such" not in answer.json()["context"].get("reason", ""):
                found.add(who.name)
        listed = authzen(who, made, "search/subject", {**about, "subject": {"type": "user"}})
        if listed.status_code == 200:
            assert {one["id"] for one in listed.json()["results"]} <= {who.user.get_username()}
    assert of_themselves == MEMBERS_BY_TOKEN
    assert of_the_owner == {"owner's token", "owner's voice"}
    assert [model.objects.count() for model in counted] == before


# Nothing without a row


def actions():
    """The public functions that take an actor, by module and name."""
    modules = [
        import_module(f"runs.actions.{one.name}") for one in pkgutil.iter_modules(runs.actions.__path__)
    ]
    return {
        f"{module.__name__}.{name}"
        for module in [*modules, memory.curate, memory.own, runs.context.agent_view, outside_agents]
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and any("Actor" in str(p.annotation) for p in inspect.signature(function).parameters.values())
    }


DRIVING = ("request_call", "came_before", "complete", "fail")
KNOWN_ACTIONS = {
    "runs.actions.cancel.cancel",
    *(f"runs.actions.channels.{name}" for name in (
        "add_own", "change_own", "remove_own", "own", "with_email", "try_channel", "be_away", "be_back",
        "stand_ins",
    )),
    "runs.actions.decide.approve",
    "runs.actions.decide.reject",
    "runs.actions.decide.check_entitled",
    "runs.actions.fill.fill",  # behind `message`, which has asked
    "runs.actions.fork.fork",
    "runs.actions.fork.point",
    "runs.actions.message.message",
    "runs.actions.message.said",
    "runs.actions.models.try_model",
    "runs.actions.rate.rate",
    "runs.actions.repeat.decline",
    "runs.context.agent_view.operate",
    *(f"runs.execution.outside_agents.{name}" for name in DRIVING),
    *(f"memory.own.{name}" for name in ("correct", "forget", "forget_all")),
    *(f"runs.actions.make.{name}" for name in ("make_group", "may_make", "may_make_roles")),
    "runs.actions.resolve.resolve",
    "runs.actions.second.confirm",
    "runs.actions.second.reject",
    *(f"runs.actions.schedule.{name}" for name in ("create", "change", "pause", "resume", "remove")),
    "runs.actions.signal.signal",
    "runs.actions.start.again",
    "runs.actions.start.start",
    "runs.actions.withdraw.withdraw",
    *(f"memory.curate.{name}" for name in (
        "approve", "retract", "restore", "edit", "supersede", "promote", "merge"
    )),
}  # fmt: skip


def test_every_action_is_known_and_takes_an_actor():
    assert actions() == KNOWN_ACTIONS


def unsafe_addresses(patterns, prefix=""):
    """(address, method) of everything below /api/ that changes something."""
    for pattern in patterns:
        address = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from unsafe_addresses(pattern.url_patterns, address)
            continue
        methods = getattr(pattern.callback, "actions", None) or {}
        yield from (f"{pattern.name}.{method}" for method in methods if method not in ("get", "head"))


# What arranges things takes Django's permission for the model: test_api_arranging, test_api_rules.
THINGS = ("group", "member", "role", "rule", "capability", "binding", "webhook")
ENDS = ("list.post", "detail.patch", "detail.delete")
ARRANGE = {
    *(f"api-{thing}-{end}" for thing in THINGS for end in ENDS),
    "api-example-list.post", "api-example-detail.delete", "api-project-list.post", "api-project-detail.patch",
    "api-token-list.post", "api-token-revoke.post", "api-webhook-ping.post", "api-webhook-rotate.post",
    "api-delivery-redeliver.post",
}  # fmt: skip
VERBS_OF_CURATORS = ("approve", "retract", "restore", "promote", "merge", "supersede")
CURATE = {
    "api-memory-list.post",
    "api-memory-detail.patch",
    *(f"api-memory-{verb}.post" for verb in VERBS_OF_CURATORS),
}
DECIDED_HERE = {
    "api-run-list.post", "api-run-cancel.post", "api-run-fork.post", "api-run-message.post",
    "api-run-signal.post", "api-job-signal.post", "api-run-context.post", "api-run-complete.post",
    "api-run-fail.post", "api-run-calls.post", "api-call-resolve.post", "api-approval-approve.post",
    "api-approval-reject.post", "api-grant-list.post", "api-grant-revoke.post",
    "api-schedule-list.post", "api-schedule-detail.patch", "api-schedule-detail.delete",
    "api-schedule-pause.post", "api-schedule-resume.post", "api-agui.post",
    "api-channel-list.post", "api-channel-detail.patch", "api-channel-detail.delete", "api-channel-test.post",
    "api-proposal-confirm.post", "api-proposal-reject.post", "api-account-disconnect.post",
}  # fmt: skip
ASK_ONLY = {"api-policy-evaluate.post", "api-schedule-times.post", "api-group-route.post"}


def test_every_address_that_changes_something_has_a_row():
    found = {one for one in unsafe_addresses(get_resolver().url_patterns) if one.startswith("api-")}
    assert found == ARRANGE | CURATE | DECIDED_HERE | ASK_ONLY


DECIDE_IN_LISTS = {"approve_selected", "reject_selected", "revoke"}
CURATE_IN_LISTS = {"approve", "promote", "merge", "retract", "restore"}
ARRANGE_IN_LISTS = {  # test_admin_mcp, _webhooks, test_heard, test_sign_in
    *("accept_selected", "refresh", "ping", "redeliver", "rotate", "send_test", "remove_factors"),
}


def test_every_list_action_of_the_admin_is_known():
    found = {
        getattr(action, "__name__", action)
        for model_admin in admin.site._registry.values()
        for action in (model_admin.actions or ())
    }
    assert found == DECIDE_IN_LISTS | CURATE_IN_LISTS | ARRANGE_IN_LISTS


def test_every_form_of_peoples_own_pages_has_a_row():
    found = {
        pattern.name
        for pattern in web_urls.urlpatterns
        if Client().get(reverse(f"web:{pattern.name}", args=["x"] if "<" in str(pattern.pattern) else []))
        .status_code == 405 or pattern.name in (*WITH_A_PAGE, *OF_THE_BROWSER)
    }  # fmt: skip
    assert found == OWN_PAGES | OF_THE_BROWSER | ASK_ONLY_AT_PAGES


def test_the_admins_own_pages_are_known_to_the_matrix():
    assert "runs_run_say" in PAGES


def test_an_mcp_client_can_start_complete_look_and_take_back_and_nothing_else():
    assert {name for name in mcp_server._request_handlers if name.startswith("tasks/")} == {
        "tasks/get", "tasks/update", "tasks/cancel"
    }  # fmt: skip
    assert set(offer.OWN) == {"deputy_start_run", "deputy_call_result", "deputy_complete_run"}


def test_an_a2a_client_can_do_what_the_table_tries_and_otherwise_looks():
    tried = {"SendMessage", "SendStreamingMessage", "CancelTask", "CreateTaskPushNotificationConfig"}
    looks = {"GetTask", "ListTasks", "SubscribeToTask", "GetExtendedAgentCard"}
    of_configs = {f"{what}TaskPushNotificationConfig" for what in ("Get", "Delete")}
    known = tried | looks | of_configs | {"ListTaskPushNotificationConfigs"}
    assert {*METHODS, *STREAMING, "SendMessage"} == known
    routed = {method for methods in RESOURCES.values() for method in methods.values()}
    assert routed == known


def test_every_verb_says_what_it_takes():
    assert set(VERBS) == set(Verb)
    assert all(need.does and need.refused for need in VERBS.values())
