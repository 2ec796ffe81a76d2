"""Who may do what, in one table. Actions ask `may` first thing under their lock; doors ask nothing.

The same table filters what is listed (`visible`), so that a list, a badge or a mail cannot name what the
action then refuses. docs/security.md prints it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_noop

from groups import accounts, member_permissions
from groups.actors import Actor, Via
from groups.models import Membership, Project
from groups.models.organizations import MembershipKind
from policy.terms import PEOPLE, RUN_USER, Effect, names_user

M = TypeVar("M", bound=Model)

SPEAK = "speak_as_person"


class Verb(StrEnum):
    START = "start"
    LOOK = "look"
    STEER = "steer"
    SPEAK_AS_PERSON = "speak_as_person"
    ANSWER = "answer"
    DRIVE = "drive"
    SCHEDULE = "schedule"
    UNSCHEDULE = "unschedule"
    CANCEL = "cancel"
    FORK = "fork"
    DECIDE = "decide"
    AUDIT = "audit"
    RESOLVE_REVIEW = "resolve_review"
    GRANT = "grant"
    REVOKE = "revoke"
    RATE = "rate"
    CURATE = "curate"
    ARRANGE_GROUPS = "arrange_groups"
    ARRANGE_RULES = "arrange_rules"
    ARRANGE_PEOPLE = "arrange_people"
    ARRANGE_SERVERS = "arrange_servers"
    ARRANGE_WEBHOOKS = "arrange_webhooks"
    ARRANGE_MODELS = "arrange_models"
    TRY_MODEL = "try_model"
    ARRANGE_CHANNELS = "arrange_channels"
    BE_TOLD = "be_told"
    BE_AWAY = "be_away"
    CONFIRM_CHANGE = "confirm_change"
    ISSUE_TOKEN = "issue_token"  # noqa: S105 - a verb


@dataclass(frozen=True)
class Need:
    """What a verb takes, beside an active membership that includes the project.

    `permissions`: Django's, all of them; `own`: whose thing it is needs none; `only_own`: nobody else may;
    `whole`: where it holds for the whole organization, only a member of all its projects may;
    `words`: it has to be the person who speaks; `scope`: of a token, and `also` a second one; `operator`: a
    superuser, who operates the installation, needs neither them nor a membership for it at Deputy's pages.
    Deciding is not among these, nor is deciding in advance.
    """

    does: str
    permissions: tuple[str, ...] = ()
    scope: str = ""
    also: str = ""
    own: bool = False
    only_own: bool = False
    whole: bool = False
    words: bool = False
    operator: bool = False
    refused: str = gettext_noop("You may not do this.")

    @property
    def scopes(self) -> tuple[str, ...]:
        return tuple(scope for scope in (self.scope, self.also) if scope)


VERBS: dict[Verb, Need] = {
    Verb.START: Need("Start a run", ("runs.start_run",), "runs:write"),
    Verb.LOOK: Need("Look at a run", (), "runs:read"),
    Verb.STEER: Need(
        "Say something to a run, signal, rearrange its view",
        ("runs.cancel_run",),
        "runs:write",
        own=True,
        refused=gettext_noop("This is somebody else's run; you may look, but not steer it."),
    ),
    Verb.SPEAK_AS_PERSON: Need(
        "Speak to a run as its person",
        (),
        SPEAK,
        only_own=True,
        words=True,
        refused=gettext_noop("Only the person a run works for speaks as that person."),
    ),
    Verb.ANSWER: Need(
        "Answer what a run asks its person",
        (),
        SPEAK,
        only_own=True,
        words=True,
        refused=gettext_noop("Only the person a run works for answers what it asks."),
    ),
    Verb.DRIVE: Need(
        "Drive a run from outside",
        (),
        "runs:write",
        only_own=True,
        refused=gettext_noop("This is somebody else's run; only their own agent drives it."),
    ),
    Verb.SCHEDULE: Need(
        "Schedule runs in one's own name",
        ("runs.start_run",),
        "runs:write",
        only_own=True,
        refused=gettext_noop("Only the person a schedule works for arranges it, while they may start runs."),
    ),
    Verb.UNSCHEDULE: Need(
        "Pause or delete one's own schedule",
        (),
        "runs:write",
        only_own=True,
        refused=gettext_noop("Only the person a schedule works for pauses or deletes it."),
    ),
    Verb.CANCEL: Need(
        "Cancel a run",
        ("runs.cancel_run",),
        "runs:write",
        own=True,
        refused=gettext_noop("This is somebody else's run; you may look, but not steer it."),
    ),
    Verb.FORK: Need(
        "Run again from an event",
        ("runs.start_run",),
        "runs:write",
        only_own=True,
        refused=gettext_noop("Only the person a run works for can run it again."),
    ),
    Verb.DECIDE: Need(
        "Decide an approval",
        ("runs.decide_approval",),
        "approvals:decide",
        refused=gettext_noop("You may not decide approvals of this project."),
    ),
    Verb.AUDIT: Need(
        "Look at who decided what",
        ("runs.view_runevent",),
        "approvals:read",
        own=True,
        refused=gettext_noop("This takes the right to look at what happened in all runs."),
    ),
    Verb.RESOLVE_REVIEW: Need(
        "Say what became of an interrupted call",
        ("runs.resolve_review",),
        "approvals:decide",
        refused=gettext_noop("You may not say what became of this call."),
    ),
    Verb.GRANT: Need(
        "Make a standing approval",
        ("policy.add_grant", "runs.decide_approval"),
        "policy:write",
        "approvals:decide",
        refused=gettext_noop("This takes the permissions policy.add_grant and runs.decide_approval."),
    ),
    Verb.REVOKE: Need(
        "Revoke a standing approval",
        ("policy.change_grant", "runs.decide_approval"),
        "policy:write",
        operator=True,
        refused=gettext_noop("This takes the permissions policy.change_grant and runs.decide_approval."),
    ),
    Verb.RATE: Need(
        "Rate an answer",
        (),
        SPEAK,
        only_own=True,
        words=True,
        refused=gettext_noop("Only the person a run works for can rate it."),
    ),
    Verb.CURATE: Need(
        "Curate knowledge",
        ("memory.curate_memory",),
        "memory:write",
        own=True,
        whole=True,
        operator=True,
        refused=gettext_noop("This takes the permission memory.curate_memory."),
    ),
    Verb.ARRANGE_GROUPS: Need("Arrange groups and seats", (), "groups:write", whole=True, operator=True),
    Verb.ARRANGE_RULES: Need("Arrange rules and capabilities", (), "policy:write", whole=True, operator=True),
    Verb.ARRANGE_PEOPLE: Need("Arrange projects and members", (), "groups:write", whole=True, operator=True),
    Verb.ARRANGE_SERVERS: Need(
        "Arrange MCP servers and remote agents, accept them", (), "", whole=True, operator=True
    ),
    Verb.ARRANGE_WEBHOOKS: Need("Arrange webhooks", (), "webhooks:write", whole=True, operator=True),
    Verb.ARRANGE_MODELS: Need("Set keys and prices of models", (), "", whole=True, operator=True),
    Verb.TRY_MODEL: Need("Try a model", ("runs.try_modelkey",), "", whole=True, operator=True),
    Verb.ARRANGE_CHANNELS: Need(
        "Arrange where the organization is told of approvals",
        ("runs.decide_approval",),
        "",
        whole=True,
        operator=True,
        refused=gettext_noop("This takes the permission runs.decide_approval: some channels decide."),
    ),
    Verb.BE_TOLD: Need(
        "Arrange by which channels oneself is told",
        (),
        SPEAK,
        only_own=True,
        words=True,
        refused=gettext_noop("Only a person arranges how they themself are told."),
    ),
    Verb.BE_AWAY: Need(
        "Say when oneself is away, and who stands in",
        (),
        SPEAK,
        only_own=True,
        words=True,
        refused=gettext_noop("Only a person says when they themself are away."),
    ),
    Verb.CONFIRM_CHANGE: Need(
        "Confirm or reject, as a second person, what weakens rules, rights or oversight",
        ("groups.view_proposedchange",),
        whole=True,
        refused=gettext_noop("This takes the permission groups.view_proposedchange."),
    ),
    Verb.ISSUE_TOKEN: Need("Issue and revoke one's own tokens", scope="tokens:write", only_own=True),
}


class NotAllowed(Exception):
    """The actor may not do this, and nothing has changed.

    `code`: NOT_ENTITLED, NOT_A_MEMBER, SCOPE_MISSING, HUMAN_ONLY, CONFIRM_FIRST, OWN_RUN, NOT_THE_PERSON.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True)
class About:
    """What a verb is about: where it stands and whose it is. Without a project it is the organization's."""

    organization_id: str
    project_id: str | None = None
    user_id: int | None = None


def about(thing: Any) -> About:
    """Where a row, or whatever has its columns, stands. What belongs to a run stands where its run does."""
    if isinstance(thing, About):
        return thing
    run = getattr(thing, "run", None)
    if run is not None and hasattr(run, "project_id"):
        return about(run)
    name = type(thing).__name__
    organization = thing.pk if name == "Organization" else thing.organization_id
    project = thing.pk if name == "Project" else getattr(thing, "project_id", None)
    return About(organization, project, getattr(thing, "user_id", None))


def holds(actor: Actor, permission: str) -> bool:
    """Whether the actor's role in the organization carries the permission `app.codename`."""
    return permission in member_permissions.of(actor.membership)


def may(actor: Actor, verb: Verb | str, thing: Any) -> None:
    """Raises NotAllowed unless the actor may do this to the thing (a row, or About)."""
    if actor.via == Via.SYSTEM:
        return
    need, where = VERBS[Verb(verb)], about(thing)
    own = where.user_id is not None and where.user_id == actor.user_id
    operator = need.operator and operates(actor)
    if not operator:
        _check_place(actor, need, where, own)
    if need.only_own and not own:
        raise NotAllowed("NOT_ENTITLED", need.refused)
    permitted = operator or (need.own and own) or all(holds(actor, each) for each in need.permissions)
    if not permitted:
        raise NotAllowed("NOT_ENTITLED", need.refused)
    if need.words and not speaks(actor):
        raise NotAllowed("NOT_THE_PERSON", need.refused)
    _check_scope(actor, need)


def _check_scope(actor: Actor, need: Need) -> None:
    if lacking := _lacking(actor, need):
        raise NotAllowed("SCOPE_MISSING", f"This token does not have the scope '{lacking}'.")


def _lacking(actor: Actor, need: Need) -> str:
    """The first scope that the actor's token lacks; whether it speaks for its person is asked apart."""
    return next((one for one in need.scopes if one != SPEAK and not actor.has_scope(one)), "")


def can(actor: Actor, verb: Verb | str, thing: Any) -> bool:
    """Whether `may` lets it pass."""
    try:
        may(actor, verb, thing)
    except NotAllowed:
        return False
    return True


def operates(actor: Actor) -> bool:
    """Whether a superuser sits at Deputy's pages: who operates the installation."""
    return actor.via == Via.SESSION and bool(actor.user is not None and actor.user.is_superuser)


def _check_place(actor: Actor, need: Need, where: About, own: bool = False) -> None:
    mine = actor.membership
    if mine is None or not mine.active or mine.organization_id != where.organization_id:
        raise NotAllowed("NOT_ENTITLED", need.refused)
    if where.project_id is not None and not mine.sees_project(where.project_id):
        raise NotAllowed("NOT_ENTITLED", need.refused)
    if need.whole and not own and where.project_id is None and mine.projects is not None:
        raise NotAllowed("NOT_ENTITLED", "What holds for the whole organization takes a member of all of it.")


def visible(actor: Actor, verb: Verb | str, rows: QuerySet[M], at: str = "") -> QuerySet[M]:
    """Those of the rows the actor may do this to. `at`: the lookup of their run, such as `run__`.

    Approvals are listed by runs/gate/deciders.py, which knows what each of them demands.
    """
    if actor.via == Via.SYSTEM:
        return rows
    need, mine = VERBS[Verb(verb)], actor.membership
    permitted = all(holds(actor, permission) for permission in need.permissions)
    if mine is None or not mine.active or _lacking(actor, need) or (need.words and not speaks(actor)):
        return rows.none()
    if not permitted and not need.own:
        return rows.none()
    found = rows.filter(organization_id=mine.organization_id)
    if mine.projects is not None:
        found = found.filter(**{f"{at}project_id__in": mine.projects})
    if need.only_own or not permitted:
        found = found.filter(**{f"{at}user_id": actor.user_id})
    return found


def speaks(actor: Actor) -> bool:
    """Whether what the actor says are a person's own words: typed into Deputy's pages or its terminal, or
    sent by a program that was given the scope for it by name. A schedule repeats words: whose they are was
    noted when they were written (runs/actions/schedule.py).
    """
    if actor.via == Via.SESSION:
        return actor.is_person
    if actor.via == Via.TERMINAL:
        return True
    by_scope = actor.via in (Via.TOKEN, Via.A2A, Via.SIGNAL, Via.SCHEDULE)
    return by_scope and actor.scopes is not None and SPEAK in actor.scopes


# Approvals: what a decision has to satisfy


@dataclass(frozen=True)
class Demand:
    """What policy wants for a call: who may decide it, and how many have to.

    `deciders`: the lists of names that rules gave, each of which a decider must be on: `run.user`,
    `project.owner`, `role:{member role}`, `member:{membership id}`, `people`.
    """

    effect: Effect
    deciders_needed: int = 1
    deciders: tuple[tuple[str, ...], ...] = field(default=())
    allow_self_approval: bool = False

    @property
    def takes_person(self) -> bool:
        return self.effect == "require_human"

    @property
    def own_excluded(self) -> bool:
        """Whether the run's own user may not decide: what people decide, or several do, unless the project
        allows it or the rule names them.
        """
        strict = self.takes_person or self.deciders_needed > 1
        return strict and not self.allow_self_approval and not self.names_user

    @property
    def names_user(self) -> bool:
        return names_user(self.deciders)

    @property
    def grantable(self) -> bool:
        """Whether one decider may allow such calls in advance."""
        return self.effect == "require_approval" and self.deciders_needed == 1 and not self.deciders


OWNER = "project.owner"
JUST_PLACED = gettext_noop(
    "Somebody else has changed what rules mean you by, your member role or which projects you own, within "
    "the hour before or afterwards; somebody else has to decide this, or you later."
)


def may_decide(actor: Actor, demand: Demand, thing: Any) -> None:
    """Raises NotAllowed unless the actor's decision counts towards the demand about this run's call.

    Of a decision taken before, `actor` says by which door and how it was taken, and who they are today.
    """
    seats(actor, demand, thing)


def seats(actor: Actor, demand: Demand, thing: Any) -> list[str]:
    """In whose place the actor may decide this: the ids of memberships. Their own where the rules mean them;
    else those of the absent members whom they mean and for whom the actor stands in. Raises NotAllowed.

    A stand-in needs all that any decider needs, and decides nothing of a run of their own, nor what the
    absent member could not. Who stands in for a stand-in has nothing of it.

    Of several deciders, and where rules name who decides, each is a person, or a service account that the
    rules name itself: whoever holds a robot's token would else decide twice, or give the robot the role or
    the project that is meant, and decide by it.

    Whoever knows a chat's signing secret can press its buttons as anybody who has linked their account; so
    a chat decides only what any one decider could, which those who enter the secret may do themselves.
    """
    where = about(thing)
    own = where.user_id is not None and where.user_id == actor.user_id
    if own and demand.names_user:
        _check_place(actor, VERBS[Verb.DECIDE], where)
        _check_scope(actor, VERBS[Verb.DECIDE])
    else:
        may(actor, Verb.DECIDE, replace(where, user_id=None))
    mine = actor.membership
    if _named(mine, demand, where, own):
        found = [mine.pk] if mine is not None else []
    else:
        found = [] if own else [one.pk for one in _absent(actor) if _could(one, demand, where)]
        if not found:
            raise NotAllowed("NOT_ENTITLED", "The rule names who decides this, and you are not among them.")
    if own and demand.own_excluded:
        raise NotAllowed("OWN_RUN", "You cannot decide this for your own run; somebody else has to.")
    if demand.takes_person:
        _check_person(actor)
    if not actor.is_person:
        _check_robot(mine, demand, own)
    if actor.via == Via.CHAT and not demand.grantable:
        raise NotAllowed("HUMAN_ONLY", "What a rule asks of certain people, or of several, no chat decides.")
    return found


def _absent(actor: Actor) -> list[Membership]:
    """The members who are away now and for whom the actor stands in."""
    if actor.membership is None:
        return []
    members = Membership.objects.filter(
        absence__stand_in=actor.membership,
        absence__starts_at__lte=Now(),
        absence__ends_at__gt=Now(),
        organization_id=actor.membership.organization_id,
        active=True,
        user__is_active=True,
    )
    return list(members.select_related("user", "custom_role", "absence").order_by("pk"))


def _could(absent: Membership, demand: Demand, where: About) -> bool:
    """Whether the absent member could decide it, were they there. What is asked of a run's own user alone is
    asked of nobody else, and a run's user who is away cannot have somebody decide it in their place.

    Nobody gives the absent a role that rules name, and decides as them: once somebody else has changed what
    they are, since they named their stand-in or within the last hour, nobody stands in for them.
    """
    if absent.user_id == where.user_id or (demand.takes_person and absent.kind != MembershipKind.HUMAN):
        return False
    if accounts.given_to_another(absent, absent.absence.created_at):
        return False
    there = Actor(absent.user, absent, Via.SESSION, interactive=True)
    return can(there, Verb.DECIDE, replace(where, user_id=None)) and _named(absent, demand, where, False)


def may_act_as_person(actor: Actor) -> None:
    """Raises NotAllowed unless a person sits there now: a browser session, lately confirmed, of an account
    that nobody else has changed lately.
    """
    _check_person(actor)
    _check_own_hands(actor)


def may_take(actor: Actor, demand: Demand, at: datetime | None = None) -> None:
    """Raises NotAllowed unless the actor may take the decision now, or might have `at` the time when it was
    taken; `may_decide` says whether it then counts.

    What asks for more than any one decider's word is not decided by an account that somebody else has just
    changed, and could sit at; nor what rules leave to those they name by whom somebody else has just placed
    among these, or has since.
    """
    if demand.takes_person:
        _check_person(actor)
    if not demand.grantable:
        _check_own_hands(actor, at)
    if demand.deciders and actor.membership is not None and accounts.placed_by_another(actor.membership, at):
        raise NotAllowed("HUMAN_ONLY", JUST_PLACED)


def _check_own_hands(actor: Actor, at: datetime | None = None) -> None:
    if accounts.changed_by_another(actor.user, actor.organization_id, at):
        raise NotAllowed(
            "HUMAN_ONLY",
            "An administrator changed your account, or the provider by which you sign in, within the last "
            "hour; somebody else has to decide this.",
        )


def _check_person(actor: Actor) -> None:
    if not actor.is_person:
        raise NotAllowed("HUMAN_ONLY", "Only a person can decide this; a service account cannot.")
    if actor.via != Via.SESSION:
        raise NotAllowed("HUMAN_ONLY", "Only a person can decide this, signed in to Deputy's own pages.")
    if not actor.interactive:
        raise NotAllowed("CONFIRM_FIRST", "Confirm your password first: a person has to decide this.")


def _named(membership: Membership | None, demand: Demand, where: About, own: bool) -> bool:
    """Whether every list of names that rules gave has the member; true where they gave none."""
    if not demand.deciders:
        return True
    mine = names_of(membership, own)
    if any(OWNER in names for names in demand.deciders) and _owns(membership, where):
        mine = mine | {OWNER}
    return all(mine & set(names) for names in demand.deciders)


def _owns(membership: Membership | None, where: About) -> bool:
    """Whether the project is the member's, by its row now."""
    if membership is None or where.project_id is None:
        return False
    return Project.objects.filter(pk=where.project_id, owner=membership).exists()


def _check_robot(membership: Membership | None, demand: Demand, own: bool) -> None:
    """Raises NotAllowed where the demand means people, and not this very service account."""
    several = demand.deciders_needed > 1
    itself = set() if membership is None else {f"member:{membership.pk}"}
    if own and not several:
        itself.add(RUN_USER)
    if all(itself & set(names) for names in demand.deciders) and (demand.deciders or not several):
        return
    if several:
        raise NotAllowed("HUMAN_ONLY", "Several people have to decide this; a service account is none.")
    raise NotAllowed("HUMAN_ONLY", "A service account decides this only where the rule names it itself.")


def names_of(membership: Membership | None, own: bool) -> set[str]:
    """The names by which a rule may mean this member, wherever the run is."""
    if membership is None:
        return set()
    found = {f"member:{membership.pk}", f"role:{membership.role_name}"}
    if membership.kind == MembershipKind.HUMAN:
        found |= {PEOPLE}
    return found | ({RUN_USER} if own else set())


# Arranging: Django's permission for the model decides

ARRANGED: dict[str, Verb] = {
    "groups.project": Verb.ARRANGE_PEOPLE,
    "groups.organization": Verb.ARRANGE_PEOPLE,
    "groups.membership": Verb.ARRANGE_PEOPLE,
    "groups.role": Verb.ARRANGE_GROUPS,
    "groups.group": Verb.ARRANGE_GROUPS,
    "groups.groupmember": Verb.ARRANGE_GROUPS,
    "groups.agentinstance": Verb.ARRANGE_GROUPS,
    "groups.routingexample": Verb.ARRANGE_GROUPS,
    "policy.capability": Verb.ARRANGE_RULES,
    "policy.toolbinding": Verb.ARRANGE_RULES,
    "policy.capabilityrule": Verb.ARRANGE_RULES,
    "policy.tooldeclaration": Verb.ARRANGE_RULES,
    "policy.outsideentity": Verb.ARRANGE_RULES,
    "policy.grant": Verb.GRANT,
    "runs.mcpserver": Verb.ARRANGE_SERVERS,
    "runs.mcptool": Verb.ARRANGE_SERVERS,
    "runs.remoteagent": Verb.ARRANGE_SERVERS,
    "runs.webhookendpoint": Verb.ARRANGE_WEBHOOKS,
    "runs.modelkey": Verb.ARRANGE_MODELS,
    "runs.modelprice": Verb.ARRANGE_MODELS,
    "runs.channel": Verb.ARRANGE_CHANNELS,
    "groups.token": Verb.ISSUE_TOKEN,
}


def permission_for(action: str, model: type[Model]) -> str:
    """Django's name of the permission to add, change or delete such rows."""
    return f"{model._meta.app_label}.{action}_{model._meta.model_name}"


def may_arrange(actor: Actor, action: str, model: type[Model], things: Sequence[Any] = ()) -> None:
    """Raises NotAllowed unless the actor may add, change or delete rows of the model, each of `things`."""
    permission = permission_for(action, model)
    if not holds(actor, permission):
        raise NotAllowed("NOT_ENTITLED", f"This takes the permission {permission}.")
    verb = ARRANGED[model._meta.label_lower]
    for thing in things:
        may(actor, verb, thing)
