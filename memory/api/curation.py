"""Writing and curating memories over HTTP: the actions of memory/curate.py, as the admin calls them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from drf_spectacular.utils import OpenApiExample
from rest_framework.decorators import action
from rest_framework.response import Response
from rest_framework.reverse import reverse

from common.api.arranging import NOT_ENTITLED
from common.api.errors import Problem, invalid
from common.api.idempotency import KEYED, REUSED, once
from common.api.schema import documented
from common.api.views import ApiView, accepted
from groups.api.views import NO_PROJECT, project_named
from groups.models import AgentInstance
from memory import curate
from memory.api.serializers import (
    PREFERENCE,
    MemoryChange,
    MemoryInput,
    MemorySerializer,
    MergeInput,
    SupersedeInput,
)
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryType
from memory.scope import Scope
from memory.write import memory_write
from policy.authority import About, NotAllowed, Verb, may, speaks

CURATE = "memory.curate_memory"
FIELDS = {
    "invalid_content": "/content",
    "invalid_metadata": "/metadata",
    "invalid_importance": "/importance",
    "nothing_to_merge": "/memories",
    "different_scopes": "/memories",
}
STATE = {409: {"wrong_state": "The memory is in a state that does not allow it."}}
FULL = {422: {**REUSED[422], "too_many_preferences": "You have as many preferences as fit."}}
NO_AGENT = {409: {"NO_AGENT": "You have no personal agent yet; it is there after your first run."}}
OF_PROJECT = {409: {**STATE[409], "not_project_knowledge": "Only a project's knowledge is promoted."}}


@contextmanager
def _refusals() -> Iterator[None]:
    """Around an action. Raises Problem for whatever it refuses."""
    try:
        yield
    except NotAllowed as refused:
        raise Problem(403, refused.code, refused.message) from None
    except MemoryRefused as refused:
        if refused.code in FIELDS:
            raise invalid(FIELDS[refused.code], refused.code, f"{refused}.") from None
        if refused.code == "unknown_memory":
            raise Problem(404, "NOT_FOUND", f"{refused}.") from None
        if refused.code == "not_entitled":
            raise Problem(403, "NOT_ENTITLED", f"{refused}.") from None
        status = 422 if refused.code in ("illegal_scope", "invalid_change", "too_many_preferences") else 409
        raise Problem(status, refused.code, f"{refused}.") from None


def _told(summary: str, refusals: dict[int, dict[str, str]], request: Any = None, **more: Any) -> Any:
    return documented(
        summary, MemorySerializer, request=request, refusals={**NOT_ENTITLED, **refusals}, **more
    )


class Curation(ApiView):  # the addresses that write; a docstring would be shown
    @documented(
        "Write a memory",
        MemorySerializer,
        status=201,
        request=MemoryInput,
        parameters=[KEYED],
        refusals={**REUSED, **NOT_ENTITLED, **NO_PROJECT, **NO_AGENT, **FULL},
        description=(
            f"`knowledge` takes the permission {CURATE}, and to be in all projects where it is the whole "
            "organization's. A `preference` is your own. The rest of what is remembered agents write."
        ),
        examples=[
            OpenApiExample(
                "Knowledge of a project",
                value={"content": "Rival A charges 5 euro.", "project": "atlas"},
                request_only=True,
            ),
            OpenApiExample(
                "A preference",
                value={"kind": "preference", "content": "Answers in German, please."},
                request_only=True,
            ),
        ],
    )
    def create(self, request: Any) -> Response:
        asked = accepted(MemoryInput, request)
        project, kind = asked.pop("project"), asked.pop("kind")
        where = self._preference(asked, project) if kind == PREFERENCE else self._knowledge(project)

        def act() -> Response:
            with _refusals():
                memory = memory_write(
                    asked.pop("content"), **where, **asked, outside=not speaks(request.actor)
                )
            location = reverse("api-memory-detail", [memory.pk], request=request)
            return Response(self._shown(memory.pk), status=201, headers={"Location": location})

        return once(request, act)

    @_told("Change a memory", STATE, MemoryChange, description="What it was before is kept.")
    def partial_update(self, request: Any, pk: str) -> Response:
        asked = accepted(MemoryChange, request, partial=True)
        self._found(pk)
        with _refusals():
            if asked:
                curate.edit(pk, request.actor, **asked)
        return Response(self._shown(pk))

    @_told("Let a deposit that waits for review count", STATE)
    @action(detail=True, methods=["post"])
    def approve(self, request: Any, pk: str) -> Response:
        return self._done(pk, curate.approve)

    @_told("Take a memory back", STATE, description="No search finds it any more; `restore/` undoes it.")
    @action(detail=True, methods=["post"])
    def retract(self, request: Any, pk: str) -> Response:
        return self._done(pk, curate.retract)

    @_told("Make a memory count again", STATE)
    @action(detail=True, methods=["post"])
    def restore(self, request: Any, pk: str) -> Response:
        return self._done(pk, curate.restore)

    @_told(
        "Promote a project's knowledge to the organization",
        OF_PROJECT,
        description="Answers with the new memory, which supersedes the project's.",
    )
    @action(detail=True, methods=["post"])
    def promote(self, request: Any, pk: str) -> Response:
        return self._done(pk, curate.promote)

    @_told(
        "Put a new memory in the place of this one",
        STATE,
        SupersedeInput,
        description="Answers with the new memory; the old one stays as history.",
    )
    @action(detail=True, methods=["post"])
    def supersede(self, request: Any, pk: str) -> Response:
        content = accepted(SupersedeInput, request)["content"]
        return self._done(pk, lambda memory, by: curate.supersede(memory, content, by))

    @_told(
        "Let others join this memory",
        STATE,
        MergeInput,
        description="They are found no more; this one names them as its sources. All are of one scope.",
    )
    @action(detail=True, methods=["post"])
    def merge(self, request: Any, pk: str) -> Response:
        self._found(pk)
        others = set(accepted(MergeInput, request)["memories"]) - {pk}
        found = set(self.get_queryset().filter(pk__in=others).values_list("pk", flat=True))
        if found != others:
            missing = sorted(others - found)[0]
            raise invalid("/memories", "not_found", f"There is no memory {missing} here.")
        return self._done(pk, lambda memory, by: curate.merge(memory, others, by))

    def _done(self, pk: str, verb: Callable[..., Memory]) -> Response:
        self._found(pk)
        with _refusals():
            memory = verb(pk, self.request.actor)
        return Response(self._shown(memory.pk))

    def _found(self, pk: str) -> Memory:
        memory: Memory = self.get_object_or_404(self.get_queryset(), pk=pk)
        return memory

    def _knowledge(self, project: str | None) -> dict[str, Any]:
        organization = self.request.organization.pk
        if project is None:
            with _refusals():
                may(self.request.actor, Verb.CURATE, About(organization))
        room = project_named(self.request, project).pk if project is not None else None
        with _refusals():
            may(self.request.actor, Verb.CURATE, About(organization, room))
        return {"type": MemoryType.ARCHIVAL, "scope": Scope(organization, project_id=room)}

    def _preference(self, asked: dict[str, Any], project: str | None) -> dict[str, Any]:
        if project is not None:
            raise invalid("/project", "invalid", "A preference is of no project.")
        mine = {"organization": self.request.organization, "user": self.request.user}
        agent = AgentInstance.objects.filter(**mine).values_list("pk", flat=True).first()
        if agent is None:
            raise Problem(409, "NO_AGENT", NO_AGENT[409]["NO_AGENT"])
        asked["metadata"] = asked.get("metadata", {}) | {"pa_preference": True}
        scope = Scope(self.request.organization.pk, self.request.user.pk, agent_instance_id=agent)
        return {"type": MemoryType.CORE, "scope": scope}

    def _shown(self, pk: str) -> Any:
        return MemorySerializer(self.get_queryset().get(pk=pk)).data
