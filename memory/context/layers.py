"""What stands in a view: the prompt's layers as pages (ruling 32).

`sys` says who the agent is, `usr` whom it works for, `task` what is to be done, `tool` what tools gave
back. The system prompt's words stand in the *descriptions* of sys's pages: a folded page still shows
its description, so an agent that folds all it may still reads every word.

A view costs nothing until something in it changes: `initial_tree` is a pure function of a run's facts,
and renders as the stored view would. `prepare` stores it, or brings a session's view up to date.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from . import budget
from .changes import Change
from .copies import PageCopy, SegmentCopy
from .models import PageKind, SegmentPermission, SegmentType, Visibility
from .rendering import in_order
from .system import ContextSystem
from .tree import Tree

USER, PERSON = "User", "Person"  # the segment about the person, and the page of their name
PREFERENCES = "usr/preferences"  # the source of the page of what the person prefers
SEGMENTS = (
    ("sys", "System", "who you are and what binds you", SegmentType.SYSTEM, SegmentPermission.READ_ONLY),
    ("usr", USER, "whom you work for", SegmentType.USER, SegmentPermission.READ_WRITE),
    ("task", "Task", "what is to be done", SegmentType.CUSTOM, SegmentPermission.READ_WRITE),
    ("tool", "Tools", "what tools gave back", SegmentType.TOOL, SegmentPermission.READ_WRITE),
)
PASSED_ON = ("usr", "task")
NOT_PASSED_ON = "(folded where it was, so it was not passed on)"
HEAD_LENGTH = 500  # of a goal, in characters: what stays readable when its page is folded
FROM_PARENT = "From the agent that asked"  # the page of what a child inherits
RESULT_LENGTH = 4_000  # a longer result becomes a page
PART_LENGTH = 6_000  # of a page made of a result: what can be opened at once


@dataclass(frozen=True)
class ViewFacts:
    """What a run's view starts from. `inherited` are pages of the parent's view, as `inherit` gives them."""

    run_id: str
    goal: str
    context: str = ""
    base_prompt: str = ""
    role: str = ""
    role_prompt: str = ""
    policy_notes: str = ""
    person: str = ""
    preferences: Mapping[str, Any] = field(default_factory=dict)
    inherited: Sequence[PageCopy] = ()


@dataclass(frozen=True)
class Words:
    """What a member of the group said; said once per `source`."""

    source: str
    author: str
    text: str


@dataclass(frozen=True)
class Plan:
    """A page that is to be, with those in it; `detail` None makes it a list."""

    name: str
    description: str = ""
    detail: str | None = None
    source: str = ""
    visibility: Visibility = Visibility.EXPANDED
    pages: tuple["Plan", ...] = ()

    @property
    def kind(self) -> PageKind:
        return PageKind.CONTENTS if self.detail is None else PageKind.DETAIL


def initial_tree(facts: ViewFacts, words: Sequence[Words] = ()) -> Tree:
    """The view of a run that has changed nothing in it yet. The same facts give the same tree."""
    tree = Tree()
    for segment in SEGMENTS:
        tree.add_segment(*segment)
    for parent, plans in _standing(facts).items():
        for plan in plans:
            _plant(_into_tree(tree), parent, plan)
    task = _plant(_into_tree(tree), "task-0", _task(facts))
    if words:
        section = _plant(_into_tree(tree), task, _words_section(facts.run_id))
        for said in words:
            _plant(_into_tree(tree), section, _said(said))
    return tree


def prepare(
    organization_id: str,
    project_id: str,
    owner: str,
    session_key: str,
    facts: ViewFacts,
    words: Sequence[Words] = (),
    begun: bool = False,
    at_work: Callable[[], Collection[str]] = tuple,
) -> tuple[ContextSystem, list[Change]]:
    """The stored view, ready for this run, and what was changed to make it so (nothing, the second time).

    A personal agent with a session: `owner` is the agent, so its view goes on. Anyone else: `owner` is
    the run, `session_key` the speaking agent's id in a group.
    """
    system = ContextSystem.find(organization_id, project_id, owner, session_key)
    if system is None:
        tree = initial_tree(facts, words)
        system, opened = ContextSystem.open(organization_id, project_id, owner, session_key, tree)
        if opened is not None:
            return system, [opened]
    return system, bring_up_to_date(system, facts, words, begun, at_work)


def bring_up_to_date(
    system: ContextSystem,
    facts: ViewFacts,
    words: Sequence[Words] = (),
    begun: bool = False,
    at_work: Callable[[], Collection[str]] = tuple,
) -> list[Change]:
    """sys and usr as they are now, this run's task, these new words; earlier runs' pages put by.

    Once the run has `begun`, what the agent removed stays removed. `at_work` gives the runs whose pages
    stay where they are. One query when there is nothing to do.
    """
    standing = _standing(facts)
    task = task_source(facts.run_id)
    wanted = [plan.source for plans in standing.values() for plan in plans]
    with system.writing():
        made: list[Change] = []
        there = system.by_source([*wanted, task, *(said.source for said in words)])
        for parent, plans in standing.items():
            made += _synchronise(system, there, parent, plans, making=not begun or parent == "sys-0")
        if not begun and task not in there:
            staying = {facts.run_id, *at_work()}
            made += _put_by(system, "task", staying) + _put_by(system, "tool", staying)
            _plant(_into_system(system, made), "task-0", _task(facts))
        for said in words:
            if said.source not in there:
                made += _add_words(system, facts.run_id, said)
        return made


def add_words(system: ContextSystem, run_id: str, source: str, author: str, text: str) -> list[Change]:
    """What a member of the group said, as a page of the run's task; said once per `source`."""
    with system.writing():
        if system.find_source(source) is not None:
            return []
        return _add_words(system, run_id, Words(source, author, text))


def _add_words(system: ContextSystem, run_id: str, said: Words) -> list[Change]:
    made: list[Change] = []
    task = system.find_source(task_source(run_id))
    above = task.index if task and task.is_contents else "task-0"
    plan = _words_section(run_id)
    section = _section(system, made, above, plan.name, plan.source)
    _plant(_into_system(system, made), section, _said(said))
    return made


def _words_section(run_id: str) -> Plan:
    return Plan("Said in the group", source=f"{run_id}/words")


def _said(said: Words) -> Plan:
    detail = said.text if len(said.text) > HEAD_LENGTH else ""
    return Plan(_line(said.author), _head(said.text), detail, said.source)


def keep_result(
    system: ContextSystem, run_id: str, source: str, tool: str, text: str
) -> tuple[str, list[Change]]:
    """What the model is told of a tool's result: all of it, or its beginning and the page that has it all.

    A result over 4,000 characters becomes a folded page of `tool`, one over 6,000 a list of parts; the
    same `source` is kept once.
    """
    if len(text) <= RESULT_LENGTH:
        return text, []
    with system.writing():
        made: list[Change] = []
        kept = system.find_source(source)
        if kept is None:
            section = _section(system, made, "tool-0", "Results", f"{run_id}/results")
            made.append(_keep(system, section, source, tool, text))
        index = kept.index if kept else made[-1]["index"]
    return told(text, index), made


def told(text: str, index: str | None) -> str:
    """The beginning of a result and where all of it is; None: its page was removed since."""
    where = f"on page {index}: context_expand opens it" if index else "its page was removed"
    return f"{text[:HEAD_LENGTH]}…\n[{len(text):,} characters in all, {where}]"


def _keep(system: ContextSystem, section: str, source: str, tool: str, text: str) -> Change:
    name, size = _line(f"Result of {tool}"), f"{len(text):,} characters"
    if len(text) <= PART_LENGTH:
        return system.add_page(
            section, PageKind.DETAIL, name, size, text, visibility=Visibility.HIDDEN, source=source
        )
    pieces = split(text, PART_LENGTH)
    return system.add_page(
        section,
        PageKind.CONTENTS,
        name,
        f"{size} in {len(pieces)} parts",
        visibility=Visibility.HIDDEN,
        source=source,
        parts=parts(pieces),
    )


def parts(pieces: Sequence[str]) -> list[tuple[str, str, str]]:
    """Name, description and detail of the page of each piece."""
    return [
        (f"Part {n} of {len(pieces)}", _line(piece.strip()[:80]), piece) for n, piece in enumerate(pieces, 1)
    ]


def split(text: str, length: int) -> list[str]:
    """Pieces of at most `length` that joined are the text; cut at a line's end where one is near."""
    parts = []
    while len(text) > length:
        cut = text.rfind("\n", length // 2, length) + 1 or length
        parts.append(text[:cut])
        text = text[cut:]
    return [*parts, text]


def inherit(parent: ContextSystem | Tree, tokens: int = 1_000) -> list[PageCopy]:
    """What a child gets to see of its parent's view: the open pages of `usr` and `task`, within `tokens`.

    What the parent has folded goes along as its line alone. Nothing of the parent's is changed.
    """
    segments = list(parent.segments.values()) if isinstance(parent, Tree) else parent.list_segments()
    pages = [page for page in parent.visible() if page.segment_id in PASSED_ON]
    return _folded(segments, pages, tokens)


def _folded(segments: Sequence[SegmentCopy], pages: Sequence[PageCopy], tokens: int) -> list[PageCopy]:
    folded = {page.index for page in budget.choose(segments, pages, tokens).pages}
    shown = [
        replace(page, visibility=Visibility.HIDDEN.value, detail="") if page.index in folded else page
        for page in pages
    ]
    return [page for _, walk in in_order(segments, shown) for page, _ in walk]


# The pages of a run


def _standing(facts: ViewFacts) -> dict[str, list[Plan]]:
    """What a view holds whatever the task."""
    preferences = "\n".join(f"{key}: {value}" for key, value in sorted(facts.preferences.items()))
    role = f"Role: {facts.role}" if facts.role else "Role"
    return {
        "sys-0": [
            Plan("Rules", facts.base_prompt, "", "sys/base"),
            Plan(_line(role), facts.role_prompt, "", "sys/role"),
            Plan("Policy", facts.policy_notes, "", "sys/policy"),
        ],
        "usr-0": [
            Plan(PERSON, facts.person, "", "usr/person"),
            Plan("Preferences", "", preferences, PREFERENCES),
        ],
    }


def _task(facts: ViewFacts) -> Plan:
    goal = facts.goal if len(facts.goal) > HEAD_LENGTH else ""
    pages = [Plan("Goal", _head(facts.goal), goal)]
    if facts.context:
        pages.append(Plan("Context", "", facts.context))
    if facts.inherited:
        pages.append(_from_parent(facts))
    return Plan(_line(facts.goal[:100]) or "Task", source=task_source(facts.run_id), pages=tuple(pages))


def _from_parent(facts: ViewFacts) -> Plan:
    children: dict[str | None, list[PageCopy]] = {}
    for page in facts.inherited:
        children.setdefault(page.parent, []).append(page)

    def copy(page: PageCopy) -> Plan:
        if not page.is_expanded:
            return Plan(page.name, page.description, NOT_PASSED_ON, visibility=Visibility.HIDDEN)
        if not page.is_contents:
            return Plan(page.name, page.description, page.detail)
        inside = sorted(children.get(page.index, ()), key=lambda child: child.position)
        return Plan(page.name, page.description, pages=tuple(map(copy, inside)))

    return Plan(FROM_PARENT, pages=tuple(map(copy, children.get(None, ()))))


def task_source(run_id: str) -> str:
    return f"{run_id}/task"


def _head(text: str) -> str:
    return text if len(text) <= HEAD_LENGTH else text[:HEAD_LENGTH] + "…"


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


# Making them

Add = Callable[[str, Plan], str]


def _plant(add: Add, parent: str, plan: Plan) -> str:
    """Make the page and those in it; its index. A page without words is not made."""
    if plan.kind == PageKind.DETAIL and not (plan.description or plan.detail):
        return ""
    index = add(parent, plan)
    for inner in plan.pages:
        _plant(add, index, inner)
    return index


def _into_tree(tree: Tree) -> Add:
    return lambda parent, plan: tree.add_page(
        parent, plan.kind, plan.name, plan.description, plan.detail or "", plan.visibility, plan.source
    )


def _into_system(system: ContextSystem, made: list[Change]) -> Add:
    def add(parent: str, plan: Plan) -> str:
        made.append(
            system.add_page(
                parent,
                plan.kind,
                plan.name,
                plan.description,
                plan.detail or "",
                visibility=plan.visibility,
                source=plan.source,
            )
        )
        return str(made[-1]["index"])

    return add


def _section(system: ContextSystem, made: list[Change], parent: str, name: str, source: str) -> str:
    """The contents page of that source, made under `parent` if it is not there."""
    page = system.find_source(source)
    return page.index if page else _plant(_into_system(system, made), parent, Plan(name, source=source))


def _put_by(system: ContextSystem, segment_id: str, staying: Collection[str]) -> list[Change]:
    """Earlier runs' tasks, or results, go into one folded page: a session's view does not grow with it."""
    made: list[Change] = []
    root, earlier = f"{segment_id}-0", f"{segment_id}/earlier"
    for page in system.get_children(root):
        run_id, _, what = page.source.rpartition("/")
        if what in ("task", "results") and run_id not in staying:
            section = _section(system, made, root, "Earlier", earlier)
            made.append(system.move_page_internal(page.index, section))
    if made and made[0]["op"] == "create_contents":
        made.append(system.hide_details_internal(made[0]["index"]))
    return made


def _synchronise(
    system: ContextSystem, there: Mapping[str, PageCopy], parent: str, plans: Sequence[Plan], making: bool
) -> list[Change]:
    """Each plan's page as planned, found by its source wherever it is; made, reworded or removed."""
    made: list[Change] = []
    for plan in plans:
        page = there.get(plan.source)
        if page is None:
            if making:
                _plant(_into_system(system, made), parent, plan)
        elif not (plan.description or plan.detail):
            made.append(system.remove_page_internal(page.index))
        elif (page.name, page.description, page.detail) != (plan.name, plan.description, plan.detail):
            made.append(system.update_page_internal(page.index, plan.name, plan.description, plan.detail))
    return made
