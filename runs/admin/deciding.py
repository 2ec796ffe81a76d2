"""What a decider is shown of an approval: what would run, for whom, why, and what is different this time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from groups.actors import Actor
from policy.models import CapabilityRule
from runs.actions import decide
from runs.admin import words
from runs.gate.origins import Origin, Origins, origins
from runs.gate.origins import shown as shown_to
from runs.models import Approval, RunEvent
from runs.models.choices import ApprovalEffect, ApprovalStatus, EventType
from runs.tools import toolbox

LONGEST_SEQ = 9  # digits


@dataclass(frozen=True)
class Shown:
    """An approval as its page and the confirmation of many show it."""

    approval: Approval
    arguments: list[words.Line]
    exact: str
    why: str
    rule: CapabilityRule | None
    risk: str
    does: str
    tone: str
    before: Approval | None = None  # what the marks among the arguments compare with

    @property
    def pending(self) -> bool:
        return self.approval.status == ApprovalStatus.PENDING


def shown(approvals: Sequence[Approval], compare: bool = False) -> list[Shown]:
    """Everything a decider needs; one query for all the rules, and one more each to `compare`."""
    ids = {approval.rule for approval in approvals}
    rules = {rule.pk: rule for rule in CapabilityRule.objects.select_related("capability").filter(pk__in=ids)}
    found = []
    for approval in approvals:
        arguments, before = arguments_of(approval), previous(approval) if compare else None
        lines = words.readable(arguments)
        tool = toolbox.find(approval.organization_id, approval.tool_call.tool)
        found.append(
            Shown(
                approval=approval,
                arguments=words.marked(lines, words.readable(arguments_of(before))) if before else lines,
                exact=json.dumps(arguments, indent=2, ensure_ascii=False),
                why=why(approval, rules.get(approval.rule)),
                rule=rules.get(approval.rule),
                risk=risk_of(approval),
                does=_(tool.description) if tool and tool.description else "",
                tone=words.tone(approval.status),
                before=before,
            )
        )
    return found


def arguments_of(approval: Approval) -> Any:
    """What would run: the call's effective arguments, or as a decider changed them."""
    if approval.replaced_arguments is not None:
        return approval.replaced_arguments
    if approval.edited_arguments is not None:
        return approval.edited_arguments
    return approval.tool_call.effective_arguments


def previous(approval: Approval) -> Approval | None:
    """The call of the same tool that was approved last before this one, in the same project."""
    return (
        Approval.objects.filter(
            organization_id=approval.organization_id,
            status=ApprovalStatus.APPROVED,
            pk__lt=approval.pk,
            tool_call__tool=approval.tool_call.tool,
            run__project_id=approval.run.project_id,
        )
        .select_related("tool_call", "decided_by")
        .order_by("-pk")
        .first()
    )


def why(approval: Approval, rule: CapabilityRule | None) -> str:
    """Why it needs a decision, in words."""
    human = approval.effect == ApprovalEffect.REQUIRE_HUMAN
    who = _("A person has to approve") if human else _("Somebody has to approve")
    if approval.deciders_needed > 1:
        count = approval.deciders_needed
        who = ngettext("{count} person has to approve", "{count} people have to approve", count)
        who = who.format(count=count)
    about = (
        _("every use of {capability}").format(capability=approval.capability)
        if approval.capability
        else _("every call of {tool}").format(tool=approval.tool_call.tool)
    )
    if rule is not None and rule.condition:
        about = _("a call where {condition}").format(condition=rule.condition)
    if rule is not None:
        return _("{who}: {about}.").format(who=who, about=about)
    if approval.rule == "risk_default":
        return _("{who}: the tool is of high risk, and neither a role nor a rule allows it.").format(who=who)
    return approval.explanation or who


def risk_of(approval: Approval) -> str:
    """The risk of its tool; a tool that is gone counts as high."""
    found = toolbox.find(approval.organization_id, approval.tool_call.tool)
    return found.risk_level if found else "high"


def where_from(approval: Approval, reader: Any) -> Origins:
    """Where the call's values came from, with invisible characters shown."""
    found = shown_to(origins(approval), own=approval.run.user_id == reader.pk)
    return replace(found, values=tuple(map(_visible, found.values)))


def _visible(value: Origin) -> Origin:
    passages = (
        replace(
            passage,
            before=words.visible(passage.before),
            marked=words.visible(passage.marked),
            after=words.visible(passage.after),
        )
        for passage in value.passages
    )
    return replace(value, value=words.visible(value.value), passages=tuple(passages))


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


def asking(approval: Approval) -> dict[str, Any]:
    """The payload of the message that asked for the call; its id begins with the message's event."""
    seq = approval.tool_call.call_id.partition(".")[0]
    if not (seq.isascii() and seq.isdigit() and len(seq) <= LONGEST_SEQ):
        return {}
    said = RunEvent.objects.filter(run=approval.run_id, seq=int(seq), type=EventType.MESSAGE_CREATED)
    payload: dict[str, Any] | None = said.values_list("payload", flat=True).first()
    return payload or {}
