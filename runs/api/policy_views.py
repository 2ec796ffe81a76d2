"""Ask policy, strictly: a question in the shape of AuthZEN's, answered with every reason."""

from dataclasses import asdict
from typing import Any

from rest_framework.decorators import action
from rest_framework.response import Response

from common.api.errors import Problem, invalid
from common.api.schema import documented
from common.api.views import ApiView, accepted
from groups.api.access import find_project, visible
from groups.models import AgentInstance, Group, Membership, Project, Role
from policy.models import CapabilityRule
from runs.api.policy_serializers import EvaluationRequestSerializer, EvaluationSerializer
from runs.gate import simulation
from runs.gate.simulation import CannotSimulate, Simulated, simulate

REFUSALS = {
    403: {"NOT_ENTITLED": "You may ask about yourself; about others only with the right to see rules."},
    404: {
        "SUBJECT_NOT_FOUND": "No such user, agent or role here.",
        "RESOURCE_NOT_FOUND": "No such project or group is visible to you.",
    },
    422: {"INVALID": "The body does not fit, or the question makes no sense."},
}
OTHERS = "policy.view_capabilityrule"  # the right to ask about other people's agents


class PolicyView(ApiView):
    area = "policy"
    serializer_class = EvaluationRequestSerializer
    queryset = CapabilityRule.objects.none()
    pagination_class = None
    filter_backends = ()

    @documented(
        "What policy would decide",
        EvaluationSerializer,
        request=EvaluationRequestSerializer,
        refusals=REFUSALS,
        description="Decides as the gate does at dispatch, and says why. Nothing is run, and nothing kept.",
    )
    @action(detail=False, methods=["post"], scope="policy:read")
    def evaluate(self, request: Any) -> Response:
        asked = accepted(EvaluationRequestSerializer, request)
        project, group = _resource(request, asked["resource"])
        subject = _subject(request, asked["subject"])
        arguments = asked["action"].get("properties", {}).get("arguments", {})
        try:
            found = simulate(
                request.organization,
                project,
                tool=asked["action"]["name"],
                arguments=arguments,
                group=group,
                **subject,
            )
        except CannotSimulate as refused:
            raise invalid("/action/properties/arguments", "invalid", str(refused)) from None
        return Response(_answer(found, request.membership))


def _resource(request: Any, asked: dict[str, str]) -> tuple[Project, Group | None]:
    """Where the call is made. Raises Problem."""
    group = None
    if asked["type"] == "group":
        groups = visible(Group.objects.select_related("project"), request.membership)
        group = groups.filter(pk=asked["id"]).first()
        project = group.project if group else None
    else:
        project = find_project(request.membership, asked["id"])
    if project is None:
        raise _unknown(
            "/resource/id", "RESOURCE_NOT_FOUND", f"No {asked['type']} '{asked['id']}' is visible to you."
        )
    return project, group


def _subject(request: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Who acts, as `simulate` takes it. Raises Problem."""
    kind, more = asked["type"], asked.get("properties", {})
    name = asked["id"] if kind == "user" else more.get("user", request.user.get_username())
    found: dict[str, Any] = {"user": _user(request, name), "delegated": more.get("delegated_permissions")}
    mine = {"organization": request.organization}
    if kind == "agent":
        found["agent"] = AgentInstance.objects.filter(**mine, pk=asked["id"]).first()
    role = asked["id"] if kind == "role" else more.get("role")
    if role is not None:
        found["role"] = Role.objects.filter(**mine, pk=role).first()
    for part in ("agent", "role"):
        if found.get(part, "") is None:
            raise _unknown("/subject", "SUBJECT_NOT_FOUND", f"There is no such {part} here.")
    agent = found.get("agent")
    if agent is not None and agent.user_id not in (None, request.user.pk):
        _check_may_ask_about_others(request)
    return found


def _user(request: Any, name: str) -> Any:
    if name == request.user.get_username():
        return request.user
    _check_may_ask_about_others(request)
    memberships = Membership.objects.select_related("user").filter(organization=request.organization)
    membership = memberships.filter(user__username=name).first()
    if membership is None:
        raise _unknown("/subject/id", "SUBJECT_NOT_FOUND", f"No user '{name}' is a member here.")
    return membership.user


def _check_may_ask_about_others(request: Any) -> None:
    if not request.user.has_perm(OTHERS):
        raise Problem(403, "NOT_ENTITLED", "You may ask about your own agent, not about somebody else's.")


def _unknown(pointer: str, code: str, detail: str) -> Problem:
    return Problem(404, code, detail, [{"pointer": pointer, "code": "not_found", "detail": detail}])


def _answer(found: Simulated, membership: Membership) -> dict[str, Any]:
    said = found.explained
    shown = simulation.considered(found, membership.organization_id, membership.projects)
    reasons = {
        "reason": said.message,
        "rule": said.rule_id,
        "may_decide": found.who,
        "considered": [asdict(line) for line in shown],
        "shadowed": [asdict(line) for line in said.shadowed],
        "delegated_permissions": found.delegated,
        "policy": found.policy,
    }
    same = (
        "reason_code", "effect", "matched", "capability", "capabilities", "unlockable", "deciders",
        "deciders_needed", "timeout", "on_expiry", "problems",
    )  # fmt: skip
    return {"decision": said.allowed, "context": reasons | {name: getattr(said, name) for name in same}}
