"""Deputy as a subject: its tables, an organization to measure in, and a model that follows a script."""

import os
from collections.abc import Sequence
from typing import Any

import django
from django.conf import settings

GOAL = "Find out which supplier delivers fastest and what it costs"
ANSWER = "The second supplier delivers within two days; it costs eleven per cent more."
ASSISTANT, EXPERT = "Assistant", "Expert"


def set_up(play: str) -> None:
    """Start Django on DATABASE_URL with `play`, a function of benchmarks.plays, as every agent's model."""
    os.environ.setdefault("SECRET_KEY", "only-for-benchmarks-" + "0123456789" * 4)
    django.setup()
    settings.DEPUTY_PROVIDERS = {"scripted": "benchmarks.plays.Scripted"}
    settings.DEPUTY_MODEL = f"scripted:{play}"
    settings.LOGGING_CONFIG = None
    import benchmarks.plays  # noqa: F401 - it registers the tool that experts use


def prepare(url: str) -> None:
    """Migrate, and make a user with a personal agent and a group of one expert."""
    set_up("escalate")
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from groups.models import AgentInstance, Group, GroupMember, Membership, Organization, Project, Role

    call_command("migrate", verbosity=0)
    organization = Organization.objects.create(slug="acme", name="Acme")
    project = Project.objects.create(organization=organization, slug="supply", name="Supply")
    user = get_user_model().objects.create(username="mia")
    Membership.objects.create(organization=organization, user=user)
    assistant = Role.objects.create(organization=organization, name=ASSISTANT)
    AgentInstance.objects.create(organization=organization, user=user, role=assistant, name="Mia's agent")
    group = Group.objects.create(
        organization=organization, project=project, name="Sourcing", description="Suppliers and their prices"
    )
    expert = Role.objects.create(organization=organization, name=EXPERT)
    agent = AgentInstance.objects.create(organization=organization, role=expert, name=EXPERT)
    GroupMember.objects.create(
        organization=organization, group=group, role=expert, agent_instance=agent, ordinal=0
    )


class Deputy:
    """One worker's process, driving runs from their start in its main thread."""

    play = "escalate"

    def __init__(self, url: str) -> None:
        set_up(self.play)
        from django.contrib.auth import get_user_model

        from groups.actors import Actor
        from groups.models import Project

        self._project = Project.objects.select_related("organization").get(slug="supply")
        # Who asks is found out at the door, once: what peers are asked for comes without sender.
        mia = get_user_model().objects.get(username="mia")
        self._actor = Actor.terminal(mia, self._project.organization)

    def execute(self, sql: str) -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(sql)

    def close(self) -> None:
        from django.db import connections

        connections.close_all()

    def run(self) -> str:
        """Start a run and drive it, handoffs and all, until nothing is left to do but wait; its id."""
        from runs.execution import executor
        from tests.acting import start

        run_id = start(actor=self._actor, project=self._project, goal=GOAL)
        executor.run(run_id)
        return run_id

    def expect(self, run_id: str, **columns: Any) -> None:
        """Raises AssertionError when the run is not as `columns` say: a wrong run is no measure."""
        from runs.models import Run

        found = Run.objects.values(*columns, "error").get(pk=run_id)
        assert columns.items() <= found.items(), found


def parked(status: str = "waiting") -> Sequence[str]:
    """The ids of runs of this status, oldest first."""
    from runs.models import Run

    return list(Run.objects.filter(status=status).order_by("id").values_list("id", flat=True))
