"""What evaluate needs, from the database: an organization's rules and roles, the live boundary of a user.

The rules are compiled once a process and kept until the organization's policy version grows.
"""

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any

from django.contrib.auth import get_user_model

from common.canonical import digest
from common.db import from_json, row
from groups.models import Role
from policy.grants import HAS_USES, HOLDS
from policy.models import CapabilityRule, PolicyVersion, ToolBinding, ToolDeclaration
from policy.provenance.terms import Profile
from policy.ruleset import Rule, RuleSet
from policy.terms import Binding, Boundary

KEPT_ORGANIZATIONS = 200

# A value, so that others can read it along: of an organization, a user and a project.
LIVE_BOUNDARY_OF = f"""(
    SELECT json_build_array(
        m.active AND account.is_active, m.allowed_tools, m.denied_tools, m.kind, m.projects,
        COALESCE(v.version, 0),
        p.catalog_version, COALESCE(p.review_deposits, false), COALESCE(p.approval_profile, 'off'),
        (SELECT json_object_agg(g.tool, g.whatever) FROM (
            SELECT g.tool, bool_or(g.any_arguments) AS whatever FROM policy_grant g
            WHERE g.organization_id = o.id AND g.project_id = p.id AND {HOLDS} AND {HAS_USES}
            GROUP BY g.tool) g))
    FROM groups_organization o
    LEFT JOIN groups_membership m ON m.organization_id = o.id AND m.user_id = {{1}}
    LEFT JOIN {get_user_model()._meta.db_table} account ON account.id = m.user_id
    LEFT JOIN policy_policyversion v ON v.organization_id = o.id
    LEFT JOIN groups_project p ON p.organization_id = o.id AND p.id = {{2}}
    WHERE o.id = {{0}}
)"""  # noqa: S608 - our own words
LIVE_BOUNDARY = f"SELECT {LIVE_BOUNDARY_OF.format('%s', '%s', '%s')}"  # user, project, organization


@dataclass(frozen=True)
class RoleView:
    """A role as policy and prompts read it."""

    id: str
    name: str
    system_prompt: str
    model: str
    allowed_tools: tuple[str, ...] | None
    denied_tools: tuple[str, ...]
    delegable_tools: tuple[str, ...] | None


NO_ROLE = RoleView("", "", "", "", (), (), ())


@dataclass(frozen=True)
class CompiledPolicy:
    """An organization's policy at one version."""

    version: int
    digest: str  # of all rules, bindings and roles: what a decision rested on
    rules: RuleSet
    bindings: tuple[Binding, ...]
    roles: dict[str, RoleView]
    corrections: dict[str, dict[str, Any]] = field(default_factory=dict)  # of tools' declarations, by name

    def role(self, role_id: str | None) -> RoleView:
        """The role; one that is gone allows nothing."""
        return self.roles.get(role_id or "", NO_ROLE)


@dataclass(frozen=True)
class LiveBoundary:
    """A user's live membership: None as boundary means none that is active for this project, or that the
    account is closed.

    `version` is of the organization's policy; what follows is the project's, read along. `covered`: the tools
    that a standing approval is about which has not ended; `freed`: those of them that it lets pass whatever
    their arguments are. Whether it counts depends on who made it, too: policy/grants.py.
    """

    boundary: Boundary | None
    kind: str
    version: int
    catalog_version: int | None = None
    review_deposits: bool = False
    profile: Profile = "off"
    freed: frozenset[str] = frozenset()
    covered: frozenset[str] = frozenset()


_compiled: OrderedDict[str, CompiledPolicy] = OrderedDict()


def live_boundary(organization_id: str, user_id: int, project_id: str) -> LiveBoundary:
    """Read live, for each decision: taking a right away works at the next call (design 5)."""
    found = row(LIVE_BOUNDARY, [user_id, project_id, organization_id])[0]
    return live_boundary_of(found, project_id) or LiveBoundary(None, "", 0)


def live_boundary_of(found: Any, project_id: str) -> LiveBoundary | None:
    """What LIVE_BOUNDARY_OF gave for this project."""
    if found is None:
        return None
    active, allowed, denied, kind, projects, *of_place, covered = from_json(found)
    covered = covered or {}
    of_place += [frozenset(tool for tool, whatever in covered.items() if whatever), frozenset(covered)]
    if not active or (projects is not None and project_id not in projects):
        return LiveBoundary(None, kind or "", *of_place)
    return LiveBoundary(Boundary(_maybe(allowed), tuple(denied)), kind, *of_place)


def compiled(organization_id: str, version: int) -> CompiledPolicy:
    """The organization's rules and roles as of `version`, or as they are since, compiled."""
    kept = _compiled.get(organization_id)
    if kept is None or kept.version != version:
        version, loaded = PolicyVersion.objects.steady(
            organization_id, version, lambda: _load(organization_id)
        )
        kept = replace(loaded, version=version)
        _compiled[organization_id] = kept
        while len(_compiled) > KEPT_ORGANIZATIONS:
            _compiled.popitem(last=False)
    return kept


def _load(organization_id: str) -> CompiledPolicy:
    mine = {"organization_id": organization_id}
    rules = CapabilityRule.objects.filter(**mine, active=True).select_related("capability").order_by("id")
    bindings = ToolBinding.objects.filter(**mine).select_related("capability").order_by("id")
    roles = Role.objects.filter(**mine).order_by("id")
    compiled = [as_rule(rule) for rule in rules]
    bound = tuple(Binding(b.pattern, b.capability.name) for b in bindings)
    views = {role.id: _role(role) for role in roles}
    corrections = {
        said.tool: said.as_dict() for said in ToolDeclaration.objects.filter(**mine).order_by("id")
    }
    return CompiledPolicy(
        version=0,
        digest=digest(
            *(repr(item) for item in (*compiled, *bound, *views.values(), *sorted(corrections.items())))
        ),
        rules=RuleSet(compiled),
        bindings=bound,
        roles=views,
        corrections=corrections,
    )


def as_rule(rule: CapabilityRule) -> Rule:
    """The rule as policy reads it."""
    return Rule(
        id=rule.id,
        effect=rule.effect,  # type: ignore[arg-type]  # the column's CHECK holds it to these
        capability=rule.capability.name if rule.capability else None,
        tool=rule.tool or None,
        organization=rule.organization_id,
        project=rule.project_id,
        group=rule.group_id,
        role=rule.role_id,
        condition=rule.condition or None,
        timeout=rule.timeout_seconds,
        on_expiry=rule.on_expiry,  # type: ignore[arg-type]
        deciders_needed=rule.deciders_needed,
        shadow=rule.shadow,
        name=str(rule),
        deciders=tuple(rule.deciders),
        limited=rule.limited,
    )


def _role(role: Role) -> RoleView:
    return RoleView(
        id=role.id,
        name=role.name,
        system_prompt=role.system_prompt,
        model=role.model,
        allowed_tools=_maybe(role.allowed_tools),
        denied_tools=tuple(role.denied_tools),
        delegable_tools=_maybe(role.delegable_tools),
    )


def _maybe(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)
