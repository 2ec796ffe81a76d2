"""What makes an organization's rules, rights or oversight weaker: what its second person has to confirm; and
what who asks has to confirm alone (groups/changes.py).

Each judge gets a row's columns before and after a change, None where there is or will be no row, and says in
a few words what the change weakens; nothing where it does not.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_noop

from groups import changes, member_permissions, members
from groups.accounts import SIGNS_IN
from groups.models import (
    Change,
    ChangeAction,
    CustomRole,
    Project,
    ProposalState,
    ProposedChange,
    Role,
)
from groups.models.organizations import ApprovalProfile
from groups.scopes import DEFAULT
from groups.sign_in.providers import rules_of
from policy.authority import OWNER
from policy.evaluate import fits
from policy.loosening import asks_less, taken_over
from policy.models import Capability, CapabilityRule, Grant, ToolBinding, ToolDeclaration
from policy.models.capabilities import bindings_of
from policy.models.rules import Effect
from policy.terms import RUN_USER

Row = Mapping[str, Any] | None
UNASKED = "allow"
NAMED = gettext_noop("somebody else is whom rules name as deciders")
OWN_RUNS = gettext_noop("people decide about their own runs")
ASKS = gettext_noop("when a project's calls ask")
ANOTHER_ROLE = gettext_noop("an agent gets another role")
ANOTHER_GROUP = gettext_noop("agents act in a group where the rules of another do not hold")
NO_LISTS: Mapping[str, Any] = {"allowed_tools": None, "delegable_tools": None, "denied_tools": []}
EXCHANGE = ("exchange_at", "url", "audience", "resource", "scopes", "with_actor")
SCOPE = ("project_id", "group_id", "role_id", "capability_id", "tool", "condition")


def register() -> None:
    changes.judged_by(why)


def why(model: str, before: Row, after: Row) -> str:
    """What the change of the row weakens."""
    judge = JUDGES.get(model)
    return judge(before, after) if judge else ""


def _rule(before: Row, after: Row) -> str:
    """At once goes what takes an allow back, and what asks for as much of the same calls."""
    was, will = _applied(before), _applied(after)
    if was is not None and was["effect"] != UNASKED and (less := _asks_less(was, will)):
        return less
    if will is None:
        return ""
    freed = was is not None and was.get("limited") and not will.get("limited")
    if was is None or freed or _differs(SCOPE, was, will):
        return _new_rule(will)
    return _own_runs(will) if was["effect"] == UNASKED else ""


def _asks_less(was: Mapping[str, Any], will: Row) -> str:
    if will is None:
        return gettext_noop("a rule does not hold any more")
    if _differs(SCOPE, was, will):
        return gettext_noop("a rule speaks of something else")
    less = asks_less(CapabilityRule(**will), CapabilityRule(**was))
    return gettext_noop("a rule asks for less, for fewer people, or for others") if less else ""


def _new_rule(will: Mapping[str, Any]) -> str:
    """The most specific rule decides, so that one for a project may ask for less than one for all of them."""
    if will["effect"] == UNASKED:
        return gettext_noop("a rule that allows what was asked for")
    if taken_over(CapabilityRule(**will)):
        return gettext_noop("a rule asks for less than another")
    return _own_runs(will)


def _own_runs(rule: Mapping[str, Any]) -> str:
    """A profile asks, and so does a tool's risk, for the decision of somebody who may decide approvals. Where
    a rule that asks as well names the run's user, it is theirs.
    """
    asks = rule["effect"] not in (UNASKED, Effect.DENY)
    return OWN_RUNS if asks and RUN_USER in rule["deciders"] else ""


def _applied(rule: Row) -> Row:
    """The rule where it is applied: None for one that is off or in shadow."""
    return rule if rule is not None and rule["active"] and not rule["shadow"] else None


def _binding(before: Row, after: Row) -> str:
    """What has a capability falls to its rules, and so comes out of the less specific ones about the tool."""
    if before is not None:
        return gettext_noop("rules about a capability speak of fewer tools") if before != after else ""
    if after is None:
        return ""
    about = CapabilityRule.objects.filter(capability=after["capability_id"])
    ruled = _is_ruled(about, Q(model="policy.capabilityrule", after__capability_id=after["capability_id"]))
    return gettext_noop("a rule speaks of more tools") if ruled else ""


def _is_ruled(rules: QuerySet[CapabilityRule], proposed: Q) -> bool:
    """Whether one of the rules does more than deny, or may come to: one that is off, or is proposed."""
    asked_for = _proposed().filter(proposed | Q(object_id__in=rules.values("pk")))
    return rules.exclude(effect=Effect.DENY).exists() or asked_for.exists()


def _proposed(**about: Any) -> QuerySet[ProposedChange]:
    return ProposedChange.objects.filter(state=ProposalState.OPEN, **about)


def _may_become(model: str, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The row as it is, and as it is proposed to be: who confirms that has looked at what it means today."""
    proposed = _proposed(model=model, object_id=row.get("id", ""), action=ChangeAction.CHANGED)
    return [row, *({**row, **after} for after in proposed.values_list("after", flat=True))]


def spoken_of(organization_id: str, tool: str, capabilities: Collection[str] = ()) -> bool:
    """Whether a rule, a standing approval, an agent's role or a declaration says of a tool of this name more
    than that it is denied, or may come to: one that is off, or is proposed. It has `capabilities` by itself.

    Of two rules that ask, one may ask for less in the place of the other, which nobody could see before there
    was a tool that both are about.
    """
    here = {"organization": organization_id}
    bound = [binding.capability for binding in bindings_of(organization_id) if fits(tool, binding.tool)]
    named = Capability.objects.filter(**here, name__in=[*bound, *capabilities])
    of = [*named.values_list("pk", flat=True), *_to_be_bound(organization_id, tool)]
    if Grant.objects.filter(**here, tool=tool, revoked_at=None).exists():
        return True
    if Role.objects.filter(**here, allowed_tools__contains=[tool]).exists():
        return True
    if ToolDeclaration.objects.filter(**here, tool=tool).exists():
        return True
    rules = CapabilityRule.objects.filter(Q(tool=tool) | Q(capability__in=of), **here)
    proposed = Q(after__tool=tool) | Q(after__capability_id__in=of)
    return _is_ruled(rules, proposed | Q(after__allowed_tools__contains=[tool]))


def _to_be_bound(organization_id: str, tool: str) -> Iterator[str]:
    """The capabilities that it is proposed to bind to the tool."""
    proposed = _proposed(organization=organization_id, model="policy.toolbinding")
    for change in proposed.exclude(action=ChangeAction.REMOVED):
        row = ToolBinding.objects.filter(pk=change.object_id).values("pattern", "capability_id").first()
        binding = {**(row or {}), **change.after}
        if fits(tool, binding.get("pattern", "")):
            yield binding["capability_id"]


def _declaration(before: Row, after: Row) -> str:
    return gettext_noop("what is known of a tool's arguments and results") if before != after else ""


def _entity(before: Row, after: Row) -> str:
    """What an application's subject or resource is. Rules about outside actions read it, and speak of no
    subject that Deputy does not keep before it is declared.
    """
    row = after or before or {}
    if before == after:
        return ""
    here = {"organization": row.get("organization_id")}
    bound = ToolBinding.objects.filter(**here, pattern__contains=":").values_list("capability_id", flat=True)
    about = CapabilityRule.objects.filter(Q(tool__contains=":") | Q(capability__in=bound), **here)
    names = Q(after__tool__icontains=":") | Q(after__pattern__icontains=":")
    proposed = Q(**here) & (names | Q(after__capability_id__in=[*bound]))
    ruled = _is_ruled(about, proposed)
    return gettext_noop("what rules read of a subject or a resource") if ruled else ""


def _grant(before: Row, after: Row) -> str:
    if before is None:
        return gettext_noop("calls are approved in advance")
    if after is None:
        return ""
    revived = before["revoked_at"] is not None and after["revoked_at"] is None
    longer = more(before["expires_at"], after["expires_at"]) or more(before["max_uses"], after["max_uses"])
    other = _differs(("project_id", "tool", "arguments", "free", "any_arguments"), before, after)
    return gettext_noop("more calls are approved in advance") if revived or longer or other else ""


def _membership(before: Row, after: Row) -> str:
    if after is None or not after["active"]:
        return ""
    there = before if before is not None and before["active"] else None
    same = there is not None and there["custom_role_id"] == after["custom_role_id"]
    given = [_custom(after)] if same else _customs(after)
    was = _carried(there, _custom(there)) if there is not None else member_permissions.of_role("member")
    if any(_carried(after, one) - was for one in given):
        return gettext_noop("a member may do more")
    called = {_called(after, one) for one in given} - ({_called(there, _custom(there))} if there else set())
    if any(_is_named(after, f"role:{name}") for name in called):
        return NAMED
    was_one = _was_removed(after) if before is None else not before["active"]
    if was_one:
        return gettext_noop("a member is one again")
    if before is None:
        return ""
    if members.wider(before["projects"], after["projects"]) or members.wider(
        before["allowed_tools"], after["allowed_tools"]
    ):
        return gettext_noop("a member reaches further")
    return (
        gettext_noop("a member reaches further")
        if {*before["denied_tools"]} - {*after["denied_tools"]}
        else ""
    )


def _was_removed(membership: Mapping[str, Any]) -> bool:
    """Whether the account was a member before, perhaps with limits."""
    gone = Change.objects.filter(model="groups.membership", action=ChangeAction.REMOVED)
    here = gone.filter(organization=membership.get("organization_id"))
    return here.filter(before__user_id=membership.get("user_id")).exists()


def _custom(membership: Mapping[str, Any]) -> Row:
    custom = membership["custom_role_id"]
    return CustomRole.objects.filter(pk=custom).values().first() if custom else None


def _customs(membership: Mapping[str, Any]) -> list[Row]:
    """The member's role as it is, and as it may come to be."""
    custom = _custom(membership)
    return [None] if custom is None else [*_may_become("groups.customrole", custom)]


def _carried(membership: Mapping[str, Any], custom: Row) -> frozenset[str]:
    return member_permissions.of_role(membership["role"], custom["permissions"] if custom else None)


def _called(membership: Mapping[str, Any], custom: Row) -> str:
    """The name of the member's role, as rules name it."""
    return str(custom["name"] if custom else membership["role"])


def _is_named(row: Mapping[str, Any], name: str) -> bool:
    """Whether a rule of the row's organization names deciders so, or is proposed to."""
    here = {"organization": row.get("organization_id")}
    rules = CapabilityRule.objects.filter(**here, deciders__contains=[name])
    return rules.exists() or _proposed(**here, after__contains={"deciders": [name]}).exists()


def _custom_role(before: Row, after: Row) -> str:
    """By its name providers of identities give it, to whoever signs in next."""
    if after is None:
        return ""
    renamed = before is None or before.get("name") != after.get("name")
    if renamed and any(rule["role"] == after.get("name") for rule in _given(after.get("organization_id"))):
        return SIGNS_IN
    if before is None:
        return ""
    if renamed and _is_named(after, f"role:{after['name']}"):
        return NAMED
    more = {*after["permissions"]} - {*before["permissions"]}
    return gettext_noop("a member role carries more") if more else ""


def _given(organization_id: str | None) -> list[dict[str, Any]]:
    """The rules by which providers make people members, or are proposed to."""
    proposed = _proposed(organization=organization_id, model="groups.identityprovider")
    coming = [after.get("rules") or () for after in proposed.values_list("after", flat=True)]
    return [*rules_of(organization_id), *(rule for rules in coming for rule in rules)]


def _role(before: Row, after: Row) -> str:
    """An agent's: a list of its own vouches for the tools in it. By its name people's own agents get one.
    Once it is gone, a seat in another may come after one in it, and nobody sees that it is freer.
    """
    if before is not None and after is None:
        others = Role.objects.filter(organization=before.get("organization_id")).exclude(pk=before.get("id"))
        if any(_freer(before, other) for other in (NO_LISTS, *others.values())):
            return gettext_noop("an agent's role that restricts is gone")
    if before is None and after is not None and _vouched(after):
        return gettext_noop("an agent's role vouches for tools")
    if before is not None and after is not None and _freer(before, after):
        return gettext_noop("an agent's role may use more")
    was, will = (
        row if row and row.get("name") == settings.PERSONAL_ROLE else None for row in (before, after)
    )
    return _in_place_of(was, will) if (was is None) != (will is None) else ""


def _freer(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether an agent in the role may use or pass on more, or more of it unasked."""
    wider = members.wider(before["allowed_tools"], after["allowed_tools"])
    passes_on = members.wider(_passed_on(before), _passed_on(after))
    vouches = bool(_vouched(after) - _vouched(before))
    return wider or passes_on or vouches or bool({*before["denied_tools"]} - {*after["denied_tools"]})


def _passed_on(role: Mapping[str, Any]) -> Collection[str] | None:
    """What a role without a list of what it passes on passes on is what it may use itself."""
    listed: Collection[str] | None = role["delegable_tools"]
    return role["allowed_tools"] if listed is None else listed


def _vouched(role: Mapping[str, Any]) -> set[str]:
    """What a list of the role's names, and so may be used unasked there or below."""
    return {*(role["allowed_tools"] or ()), *(role["delegable_tools"] or ())}


def _in_place_of(was: Row, will: Row) -> str:
    """Of a person's own agent, which has its rights from nobody above it: what its role's list names it may
    use unasked, and rules that speak of the role, or are proposed to, decide about it. None is the role of
    people's own agents where there is none of that name: one without any list is made then.
    """
    roles = [row["id"] for row in (was, will) if row is not None]
    rules = CapabilityRule.objects.filter(role__in=roles)
    proposed = _proposed(model="policy.capabilityrule", after__role_id__in=roles)
    ruled = was != will and (rules.exists() or proposed.exists())
    mine = [will or NO_LISTS] if will is None or was == will else _may_become("groups.role", will)
    return ANOTHER_ROLE if ruled or any(_freer(was or NO_LISTS, one) for one in mine) else ""


def _seat(before: Row, after: Row) -> str:
    """Of a group. A new one may come after one in a role that may do less, or is asked about more, or in a
    group that is.
    """
    if before is not None or after is None:
        return _role_changed(before, after)
    mine = _may_become("groups.role", Role.objects.filter(pk=after["role_id"]).values().first() or NO_LISTS)
    others = Role.objects.filter(organization=after["organization_id"]).exclude(pk=after["role_id"])
    ruled = _rules_speak_of("role_id", after)
    if ruled or any(_freer(other, one) for other in others.values() for one in mine):
        return ANOTHER_ROLE
    return ANOTHER_GROUP if _rules_speak_of("group_id", after) else ""


def _group(before: Row, after: Row) -> str:
    """One without seats does nothing; one that has them is switched on."""
    on = before is not None and after is not None and after["active"] and not before["active"]
    return ANOTHER_GROUP if on and after and _rules_speak_of("group_id", after) else ""


def _rules_speak_of(scope: str, row: Mapping[str, Any]) -> bool:
    """Whether a rule of the row's organization holds in one role, group or project alone, or is to."""
    here = {"organization": row.get("organization_id")}
    proposed = _proposed(**here, model="policy.capabilityrule").values_list("after", flat=True)
    ruled = CapabilityRule.objects.filter(**here, **{f"{scope}__isnull": False})
    return ruled.exists() or any(after.get(scope) for after in proposed)


def _role_changed(before: Row, after: Row) -> str:
    changed = before is not None and after is not None and _differs(("role_id",), before, after)
    return ANOTHER_ROLE if changed else ""


def _agent(before: Row, after: Row) -> str:
    """Whoever has no agent of their own gets one in the role of that name, once they ask for something."""
    if changed := _role_changed(before, after):
        return changed
    whose = [row["user_id"] if row is not None else None for row in (before, after)]
    if whose[0] == whose[1]:
        return ""
    row = before or after or {}
    roles = Role.objects.filter(organization=row["organization_id"])
    usual = roles.filter(name=settings.PERSONAL_ROLE).values().first()
    lost, got = (None if user is None else roles.filter(pk=row["role_id"]).values().first() for user in whose)
    return (_in_place_of(lost, usual) if lost else "") or (_in_place_of(usual, got) if got else "")


def _project(before: Row, after: Row) -> str:
    """A new one, in which no other one's rules and profile hold, may take its place; so may one that gets the
    name by which programs ask for another.
    """
    if after is None:
        return ""
    was = before or {"approval_profile": "off", "allow_self_approval": False, "owner_id": None}
    profiles = was["approval_profile"], after["approval_profile"]
    # any profile asks for less than none in something
    another = profiles[0] != profiles[1] and profiles != ("balanced", "careful")
    called = before is None or before.get("slug") != after.get("slug")
    if another or (called and _is_freer(after)):
        return ASKS
    if after["allow_self_approval"] and not was["allow_self_approval"]:
        return OWN_RUNS
    if after["owner_id"] != was["owner_id"] and (was["owner_id"] is not None or _is_named(after, OWNER)):
        return gettext_noop("somebody else is whom rules mean by a project's owner")
    given = (rule.get("projects") or () for rule in _given(after.get("organization_id"))) if called else ()
    if any(after.get("slug") in slugs for slugs in given):
        return SIGNS_IN
    reviewed = before is not None and before["review_deposits"] and not after["review_deposits"]
    return gettext_noop("what groups learn is not reviewed any more") if reviewed else ""


def _is_freer(project: Mapping[str, Any]) -> bool:
    """Whether less may be asked in it than in another one."""
    others = Project.objects.filter(organization=project.get("organization_id"))
    asking = others.exclude(approval_profile=ApprovalProfile.OFF)
    return asking.exists() or _rules_speak_of("project_id", project)


def _organization(before: Row, after: Row) -> str:
    if before is None or after is None:
        return ""
    if before["second_person"] and not after["second_person"]:
        return gettext_noop("no second person is asked any more")
    if before.get("slug") != after.get("slug"):
        return gettext_noop("browsers that name an organization may reach another one")
    if more(after["record_days"], before["record_days"]):
        return gettext_noop("the record of runs is removed sooner")
    sooner = more(after["retention_days"], before["retention_days"])
    return gettext_noop("what runs said is removed sooner") if sooner else ""


def _channel(before: Row, after: Row) -> str:
    row = before or after
    if row is None or row["user_id"] is not None:  # a person's own
        return ""
    if after is not None and after["kind"] == "slack" and _differs(("kind", "sealed_address"), before, after):
        return gettext_noop("somebody who knows a chat's secret decides there")
    if before is None or not before["enabled"]:
        return ""
    if after is None or not after["enabled"] or {*before["topics"]} - {*after["topics"]}:
        return gettext_noop("a channel is told less")
    moved = _differs(("kind", "sealed_address", "project_id"), before, after)
    return gettext_noop("a channel tells somebody else") if moved else ""


def _provider(before: Row, after: Row) -> str:
    """Of identities: it says who is whom, and what they are here."""
    if before is None or after is None:
        return SIGNS_IN if after is not None or (before and before["only"]) else ""
    return SIGNS_IN if before != after else ""


def _server(before: Row, after: Row) -> str:
    """One that acts as the person, and then is asked with what everybody shares: also by being taken away,
    for one of the same name may come after it.
    """
    if after is not None and after["as_person"] and after["exchange_at"]:
        changed = _differs(EXCHANGE, before, after) or not (before and before["as_person"])
        return gettext_noop("what people's sign-ins are exchanged for") if changed else ""
    if before is None or not before["as_person"] or (after is not None and after["as_person"]):
        return ""
    return gettext_noop("a server is not asked in people's own names any more")


def _token(before: Row, after: Row) -> str:
    """It weakens nothing by itself. But what a browser's session has to confirm first a program does unasked,
    also when the browser is closed.
    """
    beyond = {*after["scopes"]} - {*DEFAULT} if after is not None else set()
    if before is not None and after is not None and beyond <= {*before["scopes"]}:
        beyond = beyond if more(before["expires_at"], after["expires_at"]) else set()
    return gettext_noop("a program that does more than read") if beyond else ""


def _differs(names: Collection[str], before: Row, after: Row) -> bool:
    return before is None or after is None or any(before[name] != after[name] for name in names)


def more(was: Any, will: Any) -> bool:
    """Whether a limit has grown; None is none."""
    return was is not None and (will is None or will > was)


JUDGES: dict[str, Callable[[Row, Row], str]] = {
    "policy.capabilityrule": _rule,
    "policy.toolbinding": _binding,
    "policy.tooldeclaration": _declaration,
    "policy.outsideentity": _entity,
    "policy.grant": _grant,
    "groups.membership": _membership,
    "groups.customrole": _custom_role,
    "groups.token": _token,
    "groups.role": _role,
    "groups.group": _group,
    "groups.groupmember": _seat,
    "groups.agentinstance": _agent,
    "groups.project": _project,
    "groups.organization": _organization,
    "groups.identityprovider": _provider,
    "runs.channel": _channel,
    "runs.mcpserver": _server,
}
