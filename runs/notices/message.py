"""What a message says, in the language that is active: who wants what to whom, so that calls can be told
apart, and no secret.

Arguments are not shown; of addresses among them only so much that they can be told from others. An
organization may have its messages say less still (`thin_notices`).
"""

import re
from collections.abc import Sequence
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from common.links import link
from common.lookalikes import visible
from common.redact import shown
from common.whom import end_of, host_of
from runs.gate import demands
from runs.models import Approval, ApprovalNotice, Channel, NoticeKind
from runs.models.notices import TO_DECIDERS
from runs.notices.base import Item, Message
from runs.tools import previews, toolbox

MOST_SHOWN = 20  # in one message
MOST_TARGETS = 3
MOST_HOST = 80  # characters
SALT = "deputy.notices.link"
# What else may stand in a host, chats read as their own marks: `a@[Approve](https://…)` would be a link.
# It begins where its name does, or a long word without an address would be read from each of its letters.
ADDRESS = re.compile(r"(?<![^\s@<>\"',;])([^\s@<>\"',;]+)@([\w-]+(?:\.[\w-]+)+)")
PLACE = re.compile(r"[\w.:-]+")


def digest(notices: Sequence[ApprovalNotice], channel: Channel, thin: bool) -> Message:
    """One message of all of these; the oldest first."""
    items = [_item(notice, channel, thin) for notice in notices[:MOST_SHOWN]]
    left = len(notices) - len(items)
    more = _("… and {count} more: {link}").format(count=left, link=link("web:waiting")) if left > 0 else ""
    return Message(_subject(notices, thin), tuple(items), more)


def trial() -> Message:
    """What the button “Send me a test” sends."""
    item = Item(_("This is a test: messages from Deputy arrive here."), (), link("web:settings"))
    return Message(_("Deputy: a test"), (item,))


WORDS = {
    NoticeKind.ASKED: (
        gettext_noop("{tool} waits for your decision"),
        gettext_noop("{count} calls wait for your decision"),
    ),
    NoticeKind.REMINDER: (
        gettext_noop("{tool} still waits for your decision"),
        gettext_noop("{count} calls still wait"),
    ),
    NoticeKind.LAST_CALL: (
        gettext_noop("{tool} waits, and its time is nearly over"),
        gettext_noop("{count} calls wait, nearly over"),
    ),
    NoticeKind.ESCALATED: (
        gettext_noop("nobody has decided {tool} yet"),
        gettext_noop("{count} calls that nobody has decided"),
    ),
    NoticeKind.ALARM: (
        gettext_noop("nobody hears that {tool} waits"),
        gettext_noop("{count} calls wait and nobody hears"),
    ),
    NoticeKind.WAITING: (
        gettext_noop("your run waits for a decision about {tool}"),
        gettext_noop("{count} calls of your runs wait"),
    ),
    NoticeKind.DECIDED: (
        gettext_noop("{tool} of your run was decided"),
        gettext_noop("{count} calls of your runs were decided"),
    ),
    NoticeKind.ENDED: (
        gettext_noop("your run has ended"),
        gettext_noop("{count} runs of yours have ended"),
    ),
}


def _subject(notices: Sequence[ApprovalNotice], thin: bool) -> str:
    kinds = {NoticeKind(notice.kind) for notice in notices}
    if len(kinds) > 1:
        said = _("{count} calls wait for a decision, or were decided")
        return f"Deputy: {said.format(count=len(notices))}"
    one, several = WORDS[kinds.pop()]
    if len(notices) > 1:
        return f"Deputy: {_(several).format(count=len(notices))}"
    approval = notices[0].approval
    tool = approval.tool_call.tool if approval is not None and not thin else _("a call")
    return f"Deputy: {_(one).format(tool=tool)}"


def _item(notice: ApprovalNotice, channel: Channel, thin: bool) -> Item:
    approval = notice.approval
    if approval is None:
        return _of_run(notice, thin)
    to_decide = notice.kind in TO_DECIDERS
    prepared = {}
    if to_decide and channel.kind == "email" and channel.user_id is not None:
        prepared = {f"{what}_link": prepared_link(notice, what) for what in ("approve", "reject")}
    if to_decide and not thin and demands.of_approval(approval, False).grantable:
        prepared |= {"approval": approval.pk, "digest": approval.arguments_digest}
    said = link("web:approval", approval.pk)
    if thin:
        title = _("An approval in {project}").format(project=approval.run.project)
        return Item(title, _state(notice, approval), said, **prepared)
    return Item(_title(approval), (*_told(approval), *_state(notice, approval)), said, **prepared)


def _title(approval: Approval) -> str:
    tool, capability = approval.tool_call.tool, approval.capability
    named = tool if capability in ("", tool) else f"{tool} ({capability})"
    said = _("{call}, for {who} in {project}")
    return said.format(call=named, who=approval.run.user.get_username(), project=approval.run.project)


def _told(approval: Approval) -> list[str]:
    """To whom, why, and until when."""
    targets = targets_of(approval)
    names, more = ", ".join(targets[:MOST_TARGETS]), len(targets) - MOST_TARGETS
    if more > 0:
        names = _("{names} and {count} more").format(names=names, count=more)
    until = f"{approval.expires_at:%Y-%m-%d %H:%M} UTC" if approval.expires_at else ""
    lines = [
        _("To {names}").format(names=names) if targets else "",
        approval.explanation,
        _("Open until {time}").format(time=until) if until else "",
    ]
    return [line for line in lines if line]


def _state(notice: ApprovalNotice, approval: Approval) -> tuple[str, ...]:
    """What is new about it, where it is not the first word."""
    if notice.kind == NoticeKind.DECIDED:
        status = approval.get_status_display()
        if not approval.decided_by_id:
            return (_("Decided: {status}.").format(status=status),)
        return (_("Decided: {status} by {who}.").format(status=status, who=approval.decided_by),)
    if notice.kind == NoticeKind.ALARM and hasattr(approval, "watch"):
        return (f"{approval.watch.get_alarm_display()}.",)
    if notice.kind == NoticeKind.ESCALATED:
        return (_("Those who may decide it have not, with three quarters of its time gone."),)
    return ()


def _of_run(notice: ApprovalNotice, thin: bool) -> Item:
    run: Any = notice.run
    goal = " ".join(shown(run.goal).split())[:80]
    if thin:
        title = _("Your run in {project} has ended: {status}").format(
            project=run.project, status=run.get_status_display()
        )
    else:
        title = _("“{goal}” has ended: {status}").format(goal=goal, status=run.get_status_display())
    return Item(title, (), link("web:conversation", run.pk))


def targets_of(approval: Approval) -> list[str]:
    """Where the call would go, as much of it as tells one from another: `s…@example.org`, a URL's host."""
    call, arguments = approval.tool_call, approval.arguments
    found: list[str] = []
    tool = toolbox.find(approval.organization_id, call.tool)
    for name in previews.targets_among(tool.preview if tool else None, arguments):
        value = arguments.get(name)
        for text in value if isinstance(value, list) else [value]:
            found += _targets(text.strip()) if isinstance(text, str) else []
    return list(dict.fromkeys(found))


def _targets(text: str) -> list[str]:
    """A web address goes to its host, whatever address of mail stands in it."""
    if "://" in text:
        host = host_of(text)
        return [end_of(host, MOST_HOST)] if PLACE.fullmatch(host) else []
    if addresses := ADDRESS.findall(text):
        return [f"{visible(name[:1])}…@{end_of(visible(host), MOST_HOST)}" for name, host in addresses]
    return [visible(f"{text[:2]}…{text[-2:]}")] if len(text) > 6 else []


def prepared_link(notice: ApprovalNotice, what: str) -> str:
    """The address that opens the approval with this decision prepared, once, for the person it is sent to."""
    token = signing.dumps([notice.pk, what], salt=SALT, compress=False)
    return link("web:prepared", token)
