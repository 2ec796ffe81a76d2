"""The prompt is the agent's view (ruling 32): what a run shows its speaker, and what changes in it.

A view nobody has changed is computed from the run's facts and costs nothing. The first change stores it;
from then on every change is in an event `context.changed`. Its lock comes after those of runs and calls.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import Any

from django.conf import settings

from memory.context import AgentContext, Change, ContextSystem, Tree, layers
from memory.context.copies import PageCopy
from memory.context.rendering import Rendered
from policy.terms import AgentContext as AgentOfRun
from runs.context import texts
from runs.gate.opening import open_gate
from runs.log import tool_calls
from runs.log.claimed import ClaimedRun
from runs.log.state import ENDED, USER, Call, Member, State
from runs.models.choices import ACTIVE, EventType, RunKind
from runs.tools import registry
from runs.tools.call import Gate

BASE = {
    "personal": (
        "You are a personal agent in Deputy, working for one person. Answer in the person's language. "
        "Do what you can yourself; escalate to a group when the task needs expertise beyond your own. "
        "Say where your knowledge comes from. A tool that is denied stays denied: tell the person."
    ),
    "member": (
        "You are {role}, a member of the group '{group}' in Deputy. The members speak in turn; you see what "
        "the others said. Begin your message with PROPOSAL:, EVIDENCE: or STATUS:."
    ),
    "lead": (
        "You are {role}, the lead of the group '{group}' in Deputy, and speak last. End the work with a "
        "message that begins with DECISION:, and may go on with lines that begin with EVIDENCE: and TODO:. "
        "To hear the members once more, begin with TASK: and say what is missing. There are at most "
        "{max_rounds} rounds."
    ),
}
OWN_TOOLS = "context_"  # what these give back is about the view, and never put into it


@dataclass(frozen=True)
class Shown:
    """What the speaker reads. `view` and `version` are of the stored view, None while there is none."""

    rendered: Rendered
    view: str | None = None
    version: int | None = None

    def as_dict(self) -> dict[str, Any]:
        return {"context": {"view": self.view, "version": self.version}} if self.view else {}


# What the speaker reads


def shown(claimed: ClaimedRun, member: Member) -> Shown:
    """The view for the next prompt, within the budget. Writes only where it is stored or too large."""
    if stored(claimed, member) is None:
        rendered = _initial(claimed, member)[1]
        if _fits(rendered):
            return Shown(rendered)
    system, changes = prepared(claimed, member)
    with system.writing():
        rendered = system.render()
        if not _fits(rendered):
            folded = system.fold_to_budget(settings.CONTEXT_TOKENS)
            changes += [folded] if folded else []
            rendered = system.render()
        append(claimed, member, changes)
        with system.writing() as view:
            return Shown(rendered, view.id, view.version)


def _fits(rendered: Rendered) -> bool:
    return rendered.tokens <= settings.CONTEXT_TOKENS


def initial(claimed: ClaimedRun, member: Member) -> Tree:
    """The view as it is while nobody has changed it; not to be changed by whoever gets it."""
    return _initial(claimed, member)[0]


def _initial(claimed: ClaimedRun, member: Member) -> tuple[Tree, Rendered]:
    """It and its text, kept for as long as they would come out the same."""
    of = (facts(claimed, member), words(claimed, member))
    known = claimed.cache.get("view")
    if known is None or known[0] != of:
        tree = layers.initial_tree(*of)
        known = claimed.cache["view"] = (of, (tree, tree.render()))
    found: tuple[Tree, Rendered] = known[1]
    return found


def stored(claimed: ClaimedRun, member: Member) -> ContextSystem | None:
    """The stored view, if there is one; asks no database."""
    viewed = claimed.state.views.get(member.agent)
    view_id = viewed.view if viewed else claimed.view_id
    return ContextSystem(claimed.organization_id, view_id) if view_id else None


def prepared(claimed: ClaimedRun, member: Member) -> tuple[ContextSystem, list[Change]]:
    """The stored view, made if need be and brought up to date; and what was changed for it."""
    system = stored(claimed, member)
    known = facts(claimed, member)
    viewed = claimed.state.views.get(member.agent)
    sources = viewed.sources if viewed else set()
    said = [one for one in words(claimed, member) if one.source not in sources]
    begun = layers.task_source(claimed.run_id) in sources
    if system is not None:
        return system, layers.bring_up_to_date(system, known, said, begun, lambda: at_work(claimed))
    place = (claimed.organization_id, claimed.project_id, *whose(claimed, member))
    return layers.prepare(*place, known, said, begun, lambda: at_work(claimed))


def whose(claimed: ClaimedRun, member: Member) -> tuple[str, str]:
    """Owner and key of the view: a personal agent keeps its own through a session."""
    if claimed.kind == RunKind.GROUP:
        return claimed.run_id, member.agent
    if claimed.session_key:
        return member.agent, claimed.session_key
    return claimed.run_id, ""


def at_work(claimed: ClaimedRun) -> list[str]:
    """The session's runs that have not ended."""
    from runs.models import Run

    return list(
        Run.objects.filter(
            organization_id=claimed.organization_id,
            user_id=claimed.user_id,
            project_id=claimed.project_id,
            session_key=claimed.session_key,
            status__in=ACTIVE,
        ).values_list("id", flat=True)
    )


# What a view is made of


def facts(claimed: ClaimedRun, member: Member) -> layers.ViewFacts:
    gate = open_gate(claimed)
    return layers.ViewFacts(
        run_id=claimed.run_id,
        goal=claimed.state.goal,
        context=claimed.state.context.strip(),
        base_prompt=base(claimed, member),
        role=member.role,
        role_prompt=gate.policy.role(member.role_id).system_prompt.strip(),
        policy_notes=policy_notes(gate, member),
        person=claimed.person,
        preferences=claimed.preferences or {},
        inherited=[PageCopy(**page) for page in claimed.state.inherited],
    )


def base(claimed: ClaimedRun, member: Member) -> str:
    if claimed.kind == RunKind.PERSONAL:
        return BASE["personal"]
    words = BASE["lead" if member == claimed.state.closer else "member"]
    return words.format(role=member.role, group=claimed.group_name, max_rounds=claimed.state.max_rounds)


def policy_notes(gate: Gate, member: Member) -> str:
    """What the rules say of the agent's tools whatever their arguments; the same text for the same policy."""
    agent = gate.agent(member.agent, member.role_id)
    lists = replace(agent, agent_id="")  # nothing is decided by who exactly it is
    place = (gate.organization_id, gate.project_id, gate.group_id)
    kinds = tuple((tool.name, tool.risk_level, tool.suspended) for tool in gate.tools.values())
    asked = (gate.policy.digest, gate.live.boundary, gate.live.profile, lists, place, kinds)
    found = _notes.get(asked)
    if found is None:
        if len(_notes) >= NOTES_KEPT:
            _notes.clear()
        found = _notes[asked] = _noted(gate, agent, frozenset())
    if found and (granted := gate.granted()):
        found = _noted(gate, agent, granted)
    return found


NOTES_KEPT = 2_000
_notes: dict[tuple[Any, ...], str] = {}


def _noted(gate: Gate, agent: AgentOfRun, granted: frozenset[str]) -> str:
    said = {tool.name: gate.beforehand(agent, tool, granted) for tool in gate.visible_tools(agent)}
    certain = {name: one.decision.effect for name, one in said.items() if not one.depends}
    lines = {
        "Denied": [name for name, effect in certain.items() if effect == "deny"],
        "Stops for somebody's approval first": [n for n, e in certain.items() if e == "require_approval"],
        "Stops for a person's approval first": [n for n, e in certain.items() if e == "require_human"],
        "May stop or be denied, by what the call says": [n for n, one in said.items() if one.depends],
    }
    return "\n".join(f"{word}: {', '.join(sorted(names))}." for word, names in lines.items() if names)


def words(claimed: ClaimedRun, member: Member) -> list[layers.Words]:
    """What the other members said."""
    return [
        layers.Words(f"{claimed.run_id}/{said.seq}", said.name, said.content)
        for said in claimed.state.messages
        if said.author not in (USER, member.agent) and said.content.strip() and not said.calls
    ]


def passed_on(claimed: ClaimedRun, member: Member) -> list[dict[str, Any]]:
    """The pages a child's view starts with: what the agent has open, within bounds."""
    pages = layers.inherit(stored(claimed, member) or initial(claimed, member))
    return [_compact(replace(page, opened_at=0, child_count=0, source="")) for page in pages]


def _compact(page: PageCopy) -> dict[str, Any]:
    """Without what PageCopy has by default."""
    return {name: value for name, value in asdict(page).items() if name not in BLANK or value != BLANK[name]}


ALWAYS_SAID = ("index", "kind", "parent", "position", "name")
BLANK = {
    name: value for name, value in asdict(PageCopy("", "", None, 0, "")).items() if name not in ALWAYS_SAID
}


# Results of tools


def keep_result(claimed: ClaimedRun, member: Member, call: Call, result: Any) -> None:
    """Put a long result on a folded page of the caller's view, if the caller may open it there."""
    if call.tool.startswith(OWN_TOOLS):
        return
    text = texts.of_result(result)
    if len(text) <= layers.RESULT_LENGTH or not may_open(claimed, member):
        return
    system, made = prepared(claimed, member)
    source = source_of(claimed, call.call_id)
    made += layers.keep_result(system, claimed.run_id, source, call.tool, text)[1]
    append(claimed, member, made, {call.call_id: text})


def may_open(claimed: ClaimedRun, member: Member) -> bool:
    """Whether the agent may open a folded page; one that may not is told everything."""
    tool = registry.get("context_expand")
    if tool is None:
        return False
    gate = open_gate(claimed)
    agent = gate.agent(member.agent, member.role_id)
    return gate.beforehand(agent, tool, frozenset()).decision.effect == "allow"


def source_of(claimed: ClaimedRun, call_id: str) -> str:
    """Where a kept result's page says that it came from."""
    return f"{claimed.run_id}/{call_id}"


@dataclass(frozen=True)
class Results:
    """The speaker's own calls' results as the conversation has them; `whole` are those on pages."""

    told: dict[str, str]
    whole: dict[str, Any]


@dataclass
class Gone:
    """What an agent's ended calls have brought: it stays as it is.

    `state` is what it was read from. One that was folded anew, because a step failed, is read anew.
    """

    state: State
    count: int = 0  # of the state's calls, whosever; all of them have ended
    told: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Call] = field(default_factory=dict)  # those whose results are on pages, by source


def gone(claimed: ClaimedRun, member: Member) -> Gone:
    """One query for each result that its event does not hold whole, when it is first told."""
    key = f"gone:{member.agent}"
    found: Gone | None = claimed.cache.get(key)
    if found is None or found.state is not claimed.state:
        found = claimed.cache[key] = Gone(claimed.state)
    viewed = claimed.state.views.get(member.agent)
    settled = True
    for call in islice(claimed.state.calls.values(), found.count, None):
        settled = settled and call.phase == ENDED
        found.count += settled
        if call.agent != member.agent or call.error or call.phase != ENDED:
            continue
        source = source_of(claimed, call.call_id)
        if viewed and source in viewed.sources:
            found.kept[source] = call
        else:
            found.told[call.call_id] = texts.of_result(result_of(claimed, call))
    return found


def results(claimed: ClaimedRun, member: Member) -> Results:
    """What the agent's calls have brought; one query where some of it is on pages."""
    past = gone(claimed, member)
    system = stored(claimed, member)
    found = Results(dict(past.told), {})
    pages = system.by_source(list(past.kept)) if system and past.kept else {}
    for source, call in past.kept.items():
        result = found.whole[call.call_id] = result_of(claimed, call)
        page = pages.get(source)
        found.told[call.call_id] = layers.told(texts.of_result(result), page.index if page else None)
    return found


def result_of(claimed: ClaimedRun, call: Call) -> Any:
    return tool_calls.stored_result(claimed.run_id, call.call_id) if call.stored else call.result


# The log


def append(
    claimed: ClaimedRun,
    member: Member,
    changes: Sequence[Change],
    further: dict[str, str] | None = None,
    by: str = "",
) -> None:
    """Record the changes of the member's view, if there are any. `further` texts the run keeps."""
    if changes:
        payload = recorded(claimed, changes, further or {})
        claimed.append(
            EventType.CONTEXT_CHANGED, {**payload, **({"by": by} if by else {})}, agent=member.agent
        )


def recorded(claimed: ClaimedRun, changes: Sequence[Change], further: dict[str, str]) -> dict[str, Any]:
    """The payload of `context.changed`."""
    known = {"goal": claimed.state.goal, "context": claimed.state.context, **further}
    return {"view": changes[0]["view"], "changes": texts.packed(changes, known)}


@dataclass(frozen=True)
class View:
    """A tool's access to its caller's view (`OwnView`)."""

    claimed: ClaimedRun
    member: Member
    call: Call | None = None

    def read(self) -> AgentContext:
        system = stored(self.claimed, self.member)
        return AgentContext(system) if system else AgentContext.reading(initial(self.claimed, self.member))

    def write(self) -> tuple[AgentContext, list[Change]]:
        system, changes = prepared(self.claimed, self.member)
        return AgentContext(system), changes

    def changed(self, changes: list[Change]) -> tuple[str, dict[str, Any]]:
        further: dict[str, str] = {}
        if self.call:
            arguments = self.call.effective_arguments or self.call.arguments
            further = texts.of_arguments(self.call.call_id, arguments)
        return EventType.CONTEXT_CHANGED.value, recorded(self.claimed, changes, further)
