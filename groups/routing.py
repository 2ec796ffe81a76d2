"""Which group a goal belongs to: the scores of groups/scoring.py over a project's groups."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from common import ids
from common.canonical import digest
from groups import meaning
from groups.catalog import GroupWithRoles, edition, list_groups_with_roles
from groups.meaning import FusedRouter
from groups.models import Group, RoutingExample
from groups.models.groups import ExampleKind
from groups.scoring import Candidate, Router, Score

EXAMPLES_A_GROUP = 200  # the latest ones
EXAMPLES_TTL = 30  # seconds until another process's new examples count here
MAX_LEARNED = 2_000  # characters of a goal worth keeping as an example


class NoGroup(LookupError):
    """The goal cannot go to a group. `code`: NO_GROUPS, UNKNOWN_GROUP, GROUP_INACTIVE, GROUP_EMPTY."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class Ranked:
    """A group that could take the goal, its score in 0..1, whether it fits, and what matched."""

    group: GroupWithRoles
    score: float
    fits: bool
    matched: tuple[str, ...]

    def as_dict(self) -> dict[str, object]:
        return {
            "group_id": self.group.id,
            "name": self.group.name,
            "score": round(self.score, 4),
            "fits": self.fits,
            "matched": list(self.matched),
        }


LEARNED = ("id", "organization_id", "group_id", "goal", "goal_hash", "kind", "source_run_id")
LEARN = f"""
INSERT INTO groups_routingexample ({", ".join(LEARNED)}) VALUES ({", ".join(["%s"] * len(LEARNED))})
ON CONFLICT DO NOTHING
"""  # noqa: S608 - the names above

_routers: dict[str, tuple[int, float, Router | FusedRouter]] = {}


def rank(goal: str, project_id: str, catalog_version: int | None = None) -> list[Ranked]:
    """The project's active groups that have members, best first (ruling 19).

    `catalog_version` as the caller has just read it, if they have.
    """
    version, found = edition(project_id, catalog_version)
    groups = {group.id: group for group in found if group.seats}
    if not groups:
        return []
    scores: list[Score] = router(project_id, version, groups).score(goal)
    return [Ranked(groups[s.id], s.score, s.fits, s.matched) for s in scores if s.id in groups]


def select_group(
    goal: str, project_id: str, catalog_version: int | None = None
) -> tuple[GroupWithRoles, list[Ranked]]:
    """The best group for the goal, and the score of every candidate; `catalog_version` as for `rank`.

    Ties and no match at all: the first by creation. Raises NoGroup when the project has none.
    """
    ranked = rank(goal, project_id, catalog_version)
    if not ranked:
        raise NoGroup("NO_GROUPS", "This project has no active group with members to escalate to.")
    return ranked[0].group, ranked


def named_group(group_id: str, project_id: str) -> GroupWithRoles:
    """The group of this id, if work can go to it. Raises NoGroup naming why not.

    Another project's group is unknown here.
    """
    found = next((g for g in list_groups_with_roles(project_id) if g.id == group_id), None)
    if found is None:
        if Group.objects.filter(pk=group_id, project_id=project_id, active=False).exists():
            raise NoGroup("GROUP_INACTIVE", f"Group {group_id} is not active.")
        raise NoGroup("UNKNOWN_GROUP", f"No group {group_id} exists in this project.")
    if not found.seats:
        raise NoGroup("GROUP_EMPTY", f"Group {group_id} ({found.name}) has no members.")
    return found


def router(project_id: str, current: int, groups: dict[str, GroupWithRoles]) -> Router | FusedRouter:
    """The project's router, rebuilt when its groups change or new examples are there."""
    kept = _routers.get(project_id)
    if kept and kept[0] == current and kept[1] > time.monotonic():
        return kept[2]
    candidates = [_candidate(group, examples) for group, examples in _with_examples(groups)]
    made = meaning.router(candidates, kept[2] if kept else None)
    _routers[project_id] = (current, time.monotonic() + EXAMPLES_TTL, made)
    return made


def texts() -> Iterator[str]:
    """Everything that routing embeds, of all projects: for the background."""
    projects = Group.objects.filter(active=True).values_list("project_id", flat=True).distinct()
    for project_id in projects.order_by("project_id"):
        groups = {group.id: group for group in list_groups_with_roles(project_id) if group.seats}
        for group, examples in _with_examples(groups):
            yield from meaning.texts_of(_candidate(group, examples))


def learn(
    organization_id: str, group_id: str, goal: str, *, by: Any, fits: bool = True
) -> RoutingExample | None:
    """Keep what a person says of a goal: it is for a group, or it is not. Replaces what a run taught.

    None for an empty goal.
    """
    goal = goal.strip()[:MAX_LEARNED]
    if not goal:
        return None
    kept, _ = RoutingExample.objects.update_or_create(
        group_id=group_id,
        goal_hash=_hash(goal),
        defaults={
            "organization_id": organization_id,
            "goal": goal,
            "kind": ExampleKind.FITS if fits else ExampleKind.MISFIT,
            "source_run_id": None,
            "corrected_by": by,
        },
    )
    _routers.clear()  # a person looks at what their word has changed
    return kept


def lesson(organization_id: str, group_id: str, goal: str, run_id: str) -> tuple[str, list[Any]] | None:
    """The statement, and its values, that keeps the goal of a completed run as an example for its group.

    It changes nothing where the goal is known. None for an empty goal.
    """
    goal = goal.strip()[:MAX_LEARNED]
    if not goal:
        return None
    kind = ExampleKind.FITS.value
    return LEARN, [ids.example_id(), organization_id, group_id, goal, _hash(goal), kind, run_id]


def _hash(goal: str) -> str:
    return digest(goal.casefold())


def _with_examples(groups: dict[str, GroupWithRoles]) -> list[tuple[GroupWithRoles, dict[str, list[str]]]]:
    goals: dict[str, dict[str, list[str]]] = {group_id: {"fits": [], "misfit": []} for group_id in groups}
    rows = (
        RoutingExample.objects.filter(group_id__in=groups)
        .order_by("-id")
        .values_list("group_id", "kind", "goal")
    )
    for group_id, kind, goal in rows[: EXAMPLES_A_GROUP * len(groups)]:
        goals[group_id][kind].append(goal)
    return [(groups[group_id], goals[group_id]) for group_id in groups]


def _candidate(group: GroupWithRoles, examples: dict[str, list[str]]) -> Candidate:
    return Candidate(
        id=group.id,
        name=group.name,
        description=group.description,
        capabilities=group.capabilities,
        roles=tuple(f"{seat.role} {seat.description}" for seat in group.seats),
        examples=tuple(examples["fits"][:EXAMPLES_A_GROUP]),
        against=tuple(examples["misfit"][:EXAMPLES_A_GROUP]),
    )
