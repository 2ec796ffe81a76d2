"""Where an MCP client stands: who asks, in which project, and which run its calls belong to."""

import re
from dataclasses import dataclass
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.db import transaction
from django.http import HttpRequest

from common.api.errors import Problem
from common.api.permissions import needed_scope
from common.api.views import ApiView
from common.db import execute
from groups import today
from groups.actors import Actor, Via
from groups.api.access import find_project, projects
from groups.api.authentication import TokenAuthentication
from groups.models import Membership, Project
from policy.authority import NotAllowed, Verb, may
from runs.actions.start import start
from runs.api import access
from runs.api.readers import Reader
from runs.execution import outside_agents
from runs.models import Run
from runs.models.choices import ACTIVE, Driver

PATH = re.compile(r"/mcp(?:/runs/(?P<run>run_[0-9a-z]{26})|/projects/(?P<project>[^/\x00]{1,63}))?/?\Z")
ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('deputy.mcp ' || %s, 0))"


class McpView(ApiView):
    """Never routed: the API's own way to find out who asks, how far their token reaches and how often."""

    area = "runs"
    action_map = {"post": "call"}
    authentication_classes = (TokenAuthentication,)


@dataclass(frozen=True)
class McpSession:
    """`run_id` where the address names a run; without, calls go to the token's open run of the project.
    `entered`: who asked, as they stood when the request came in.
    """

    user: Any
    membership: Membership
    token: Any
    entered: Actor
    project: Project
    run_id: str | None = None

    @property
    def actor(self) -> Actor:
        """Who asks, as they stand now where a moment has passed: for a thread, or behind a lock."""
        return today.since(self.entered)

    @property
    def session_key(self) -> str:
        return f"mcp-{self.token.pk}"

    @property
    def reader(self) -> Reader:
        """Who hears what comes later: as long as they could ask for it anew."""
        place = (self.project.organization_id, self.project.pk)
        return Reader(self.user.pk, *place, self.token.pk, scope=needed_scope(McpView(), "POST"))


def find(http: ASGIRequest) -> McpSession:
    """Who asks, and where. Raises Problem (an APIException), as the API would."""
    request = asker(http)
    path = PATH.match(http.path_info)
    if path is None:
        raise Problem(404, "NOT_FOUND", "Nothing is here. There are /mcp, /mcp/projects/… and /mcp/runs/….")
    actor = Actor.of_token(request.auth, request.membership, Via.MCP)
    who = {"user": request.user, "membership": request.membership, "token": request.auth, "entered": actor}
    if path["run"]:
        run = access.runs(request.membership).filter(pk=path["run"]).select_related("project").first()
        if run is None:
            raise Problem(404, "NOT_FOUND", "No such run.")
        check_drives(run, actor)
        return McpSession(**who, project=run.project, run_id=run.pk)
    return McpSession(**who, project=project_of(request.membership, path["project"]))


def asker(http: HttpRequest) -> Any:
    """The request with its user, token and membership. Raises APIException."""
    view = McpView()
    view.request = request = view.initialize_request(http)
    view.args, view.kwargs, view.format_kwarg = (), {}, None
    view.headers = {}
    view.initial(request)
    return request


def project_of(membership: Membership, name: str | None) -> Project:
    """The project of this id or slug; without a name the only one there is. Raises Problem."""
    if name:
        found = find_project(membership, name)
        if found is None:
            raise Problem(404, "NOT_FOUND", "No such project.")
        return found
    some = list(projects(membership).order_by("slug")[:20])
    if len(some) != 1:
        slugs = ", ".join(project.slug for project in some) or "none"
        raise Problem(400, "PROJECT_MISSING", f"Say which project, as /mcp/projects/…; there are: {slugs}.")
    return some[0]


def check_drives(run: Run, actor: Actor) -> None:
    """Raises Problem unless the user's own agent drives the run from outside."""
    try:
        may(actor, Verb.DRIVE, run)
    except NotAllowed as refused:
        raise Problem(403, refused.code, refused.message) from None
    if run.driver != Driver.EXTERNAL:
        raise Problem(409, "NOT_EXTERNAL", "Deputy drives this run itself.")


def current(session: McpSession) -> Run | None:
    """The run that calls from here belong to, if there is one already."""
    if session.run_id:
        return Run.objects.get(pk=session.run_id)
    mine = Run.objects.filter(
        organization_id=session.project.organization_id,
        project=session.project,
        user=session.user,
        session_key=session.session_key,
        driver=Driver.EXTERNAL,
        status__in=ACTIVE,
    )
    return mine.order_by("-id").first()


def opened(session: McpSession) -> Run:
    """The run that calls from here belong to, started where there is none. Raises CannotStart."""
    with transaction.atomic():
        execute(ONE_AT_A_TIME, [f"{session.session_key} {session.project.pk}"])
        return current(session) or begin(session, f"Calls over MCP with the token {session.token}")


def begin(session: McpSession, goal: str, context: str = "") -> Run:
    """A new run, to which the calls from here belong from now on. Raises CannotStart."""
    run_id = start(
        actor=session.actor,
        project=session.project,
        goal=goal,
        context=context,
        session_key=session.session_key,
        driver=Driver.EXTERNAL.value,
    )
    return Run.objects.get(pk=run_id)


def leave(session: McpSession) -> None:
    """End the run so far where none of its calls is open."""
    run = current(session)
    if run is None:
        return
    try:
        outside_agents.complete(run.pk, session.actor, "")
    except outside_agents.OutsideRefused:
        return  # calls of it are open: it ends with its deadline, and its results can be asked for
