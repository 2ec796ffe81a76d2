"""What a decider is shown of an approval: what would run, for whom, why, and what is different this time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from common import times
from common.whom import host_of
from groups.actors import Actor
from policy.models import CapabilityRule
from runs.actions import decide
from runs.deciding import compare, edit, preview, words
from runs.deciding.sources import where_from
from runs.gate.approvals import ASKED_AGAIN
from runs.models import Approval, RunEvent
from runs.models.choices import ApprovalEffect, ApprovalStatus, EventType
from runs.tools import toolbox
from runs.tools.base import Tool

LONGEST_SEQ = 9  # digits
KEPT = "_tool"  # where an approval keeps its tool while it is shown
HEAVY = 50_000  # characters of arguments; the form to change more than these is made when it is asked for
EDIT = "edit"  # the parameter of the address that asks for it


@dataclass(frozen=True)
class Shown:
    """An approval as its page, the queue and the confirmation of many show it."""

    approval: Approval
    arguments: list[words.Line]
    exact: str
    why: str
    rule: CapabilityRule | None
    risk: str
    does: str
    goes_to: str  # the host of a server of others
    tone: str
    effect: preview.Effect
    takes: str  # what deciding takes beyond one decider's word
    kind: str = ""  # of the preview
    before: Approval | None = None  # what the marks among the arguments compare with
    callouts: tuple[str, ...] = ()

    @property
    def pending(self) -> bool:
        return self.approval.status == ApprovalStatus.PENDING

    @property
    def odd(self) -> list[tuple[str, str]]:
        """What is to be said of the characters of its arguments: (argument, words)."""
        return [(line.label, said) for line in self.arguments if line.mark != "gone" for said in line.odd]

    @property
    def heavy(self) -> bool:
        return sum(len(line.text) for line in self.arguments) > HEAVY


def shown(approvals: Sequence[Approval], seen: QuerySet[Approval] | None = None) -> list[Shown]:
    """Everything a decider needs; one query for all the rules. `seen`: the approvals that the reader sees,
    among which each is compared with earlier ones; without, none is compared.
    """
    ids = {approval.rule for approval in approvals}
    rules = {rule.pk: rule for rule in CapabilityRule.objects.select_related("capability").filter(pk__in=ids)}
    return [_shown(approval, rules.get(approval.rule), seen) for approval in approvals]


def _shown(approval: Approval, rule: CapabilityRule | None, seen: QuerySet[Approval] | None) -> Shown:
    arguments = approval.arguments
    tool = tool_of(approval)
    found = compare.Compared() if seen is None else compare.compared(approval, arguments, tool, seen)
    return Shown(
        approval=approval,
        arguments=_lines(arguments, tool, found),
        exact=json.dumps(arguments, indent=2, ensure_ascii=False),
        why=why(approval, rule),
        rule=rule,
        risk=risk_of(approval),
        does=_(tool.description) if tool and tool.description else "",
        goes_to=host_of(tool.address) if tool else "",  # the rest of an address may be a secret
        tone=words.tone(approval.status),
        effect=preview.effect(approval.tool_call.tool, tool, arguments),
        takes=takes(approval),
        kind=tool.preview.kind if tool and tool.preview else "",
        before=found.before,
        callouts=found.callouts,
    )


def _lines(arguments: Mapping[str, Any], tool: Tool | None, found: compare.Compared) -> list[words.Line]:
    """The arguments in the tool's order and words, marked against the call before."""
    schema = tool.parameters if tool else None
    lines = words.readable(arguments, schema)
    if found.before is not None:
        lines = words.marked(lines, words.readable(found.before.arguments, schema))
    targets = found.targets
    if tool is not None and not targets:
        targets = compare.targets_of(tool, arguments)
    return preview.counted(preview.arranged(lines, tool.preview if tool else None), targets, found.new)


def lines_of(approval: Approval) -> list[words.Line]:
    """What would run, for lists: in the tool's order and counted, compared with nothing."""
    return _lines(approval.arguments, tool_of(approval), compare.Compared())


def tool_of(approval: Approval) -> Tool | None:
    """The tool as it is now; looked up once for each approval that was read."""
    kept = vars(approval)
    if KEPT not in kept:
        kept[KEPT] = toolbox.find(approval.organization_id, approval.tool_call.tool)
    found: Tool | None = kept[KEPT]
    return found


def page(
    approval: Approval, actor: Actor, reader: Any, seen: QuerySet[Approval], request: Any
) -> dict[str, Any]:
    """What the page of one approval has at every door. `seen`: the approvals that the reader sees."""
    (found,) = shown([approval], seen)
    code, refused = refusal(approval, actor)
    tool = tool_of(approval)
    posted = request.POST if request.method == "POST" else {}
    # The form holds every argument once more: for very long ones it comes when somebody wants to change them.
    form = not found.heavy or EDIT in request.GET or posted.get("decision") in (edit.FIELDS, edit.AS_JSON)
    return {
        "approval": approval,
        "run": approval.run,
        "shown": found,
        "refused": refused,
        "confirm_first": code == "CONFIRM_FIRST",
        "fate": fate(approval),
        "said": words.visible(str(asking(approval).get("content", ""))),
        "sources": where_from(approval, reader),
        "decisions": list(approval.decisions.select_related("user").order_by("id")),
        "fields": edit.fields(approval.arguments, tool.parameters if tool else None) if form else [],
        "form": form,
        "editing": EDIT in request.GET,
        "posted": posted,
        "reason": posted.get("reason", ""),
    }


def takes(approval: Approval) -> str:
    """What a decision takes where one decider's word is not enough; empty otherwise."""
    if approval.deciders_needed > 1:
        count = approval.deciders_needed
        said = ngettext("{count} person has to approve", "{count} people have to approve", count)
        return said.format(count=count)
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        return _("A person has to approve, signed in to Deputy's own pages")
    return ""


def why(approval: Approval, rule: CapabilityRule | None) -> str:
    """Why it stopped here, in words."""
    about = (
        _("every use of {capability}").format(capability=approval.capability)
        if approval.capability
        else _("every call of {tool}").format(tool=approval.tool_call.tool)
    )
    if rule is not None and rule.condition:
        about = _("a call where {condition}").format(condition=rule.condition)
    again = "".join(approval.explanation.partition(ASKED_AGAIN)[1:])
    if rule is not None:
        return _("The rule {name} asks: {about}.").format(name=rule, about=about) + again
    if approval.rule == "risk_default":
        return _("The tool is of high risk, and neither a role nor a rule allows it.") + again
    return approval.explanation


def risk_of(approval: Approval) -> str:
    """The risk of its tool; a tool that is gone counts as high."""
    found = tool_of(approval)
    return found.risk_level if found else "high"


def alike(approval: Approval) -> list[str]:
    """The other calls of the tool that the run waits for: one question, asked several times."""
    waiting = Approval.objects.filter(
        run_id=approval.run_id, status=ApprovalStatus.PENDING, tool_call__tool=approval.tool_call.tool
    )
    return list(waiting.exclude(pk=approval.pk).order_by("pk").values_list("pk", flat=True))


def single_only(approval: Approval, like: bool = False) -> str:
    """Why this cannot be approved together with others; empty when it can. `like`: they are calls of one
    tool in one run, which makes them one question.
    """
    if approval.effect == ApprovalEffect.REQUIRE_HUMAN:
        return _("a person has to decide it on its own page")
    if approval.deciders_needed > 1:
        return _("{count} people have to decide it, each on its own page").format(
            count=approval.deciders_needed
        )
    if not like and risk_of(approval) == "high":
        return _("{tool} is of high risk: decide it on its own page").format(tool=approval.tool_call.tool)
    return ""


def refusal(approval: Approval, actor: Actor) -> tuple[str, str]:
    """The code of why this person cannot decide this, and the words; empty when they can."""
    try:
        decide.check_entitled(approval, actor)
    except decide.DecisionRefused as refused:
        return refused.code, _(refused.message)
    return "", ""


def fate(approval: Approval) -> str:
    """What became of it, in one line; empty while it is pending."""
    if approval.status == ApprovalStatus.PENDING:
        return ""
    said = str(approval.get_status_display())
    if approval.decided_by:
        said = _("{status} by {who}").format(status=said, who=approval.decided_by)
    when = f", {times.exact(approval.decided_at)}" if approval.decided_at else ""
    why = f" {_('Reason: {reason}').format(reason=approval.reason)}" if approval.reason else ""
    return f"{said}{when}.{why}"


def asking(approval: Approval) -> dict[str, Any]:
    """The payload of the message that asked for the call; its id begins with the message's event."""
    seq = approval.tool_call.call_id.partition(".")[0]
    if not (seq.isascii() and seq.isdigit() and len(seq) <= LONGEST_SEQ):
        return {}
    said = RunEvent.objects.filter(run=approval.run_id, seq=int(seq), type=EventType.MESSAGE_CREATED)
    payload: dict[str, Any] | None = said.values_list("payload", flat=True).first()
    return payload or {}
