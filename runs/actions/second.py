"""A second person confirms or rejects a change that weakens what protects the organization."""

from typing import Any

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Model, ProtectedError, RestrictedError
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from groups import accounts, changes, current, member_permissions, members
from groups.actors import Actor, active_membership
from groups.models import (
    AgentInstance,
    ChangeAction,
    CustomRole,
    GroupMember,
    IdentityProvider,
    Membership,
    Project,
    ProposalState,
    ProposedChange,
    Token,
)
from groups.models.organizations import MembershipKind
from policy.authority import ARRANGED, NotAllowed, Verb, about, may, may_act_as_person, permission_for
from policy.authority import VERBS as NEEDS
from policy.loosening import loosened
from policy.models import CapabilityRule
from runs.models import McpServer

VERBS = {ChangeAction.ADDED: "add", ChangeAction.CHANGED: "change", ChangeAction.REMOVED: "delete"}
PERMITTED = {"runs.channel": ("runs.decide_approval",), "policy.grant": ("runs.decide_approval",)}


class SecondRefused(Exception):
    """It was not done, and nothing has changed. `code`: ALREADY_DECIDED, STALE, INVALID."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def confirm(actor: Actor, proposal_id: str) -> ProposedChange:
    """Carry the change out as it was proposed. Raises NotAllowed, SecondRefused, ProposedChange.DoesNotExist.

    It takes a person at Deputy's pages, lately confirmed, who may make such a change themselves and did not
    propose it; and whoever did is a person whose account nobody else has just changed, and may make it today.
    What has changed since has to be proposed anew.
    """
    with transaction.atomic():
        proposal = _open(actor, proposal_id)
        _may_confirm(actor, proposal)
        try:
            with transaction.atomic(), changes.settled(proposal.by):
                _carry_out(actor, proposal)
                _hold_proposer(proposal)
        except ValidationError as error:
            raise SecondRefused("INVALID", " ".join(error.messages)) from None
        except (ProtectedError, RestrictedError, IntegrityError):
            raise SecondRefused("INVALID", "Something else needs it, or is like it by now.") from None
        return _decided(proposal, actor, ProposalState.CONFIRMED)


def reject(actor: Actor, proposal_id: str) -> ProposedChange:
    """Nothing of it happens. Whoever proposed it takes it back so. Raises as `confirm` does."""
    with transaction.atomic():
        proposal = _open(actor, proposal_id)
        if proposal.user_id != actor.user_id:
            may(actor, Verb.CONFIRM_CHANGE, proposal)
            may_act_as_person(actor)
        return _decided(proposal, actor, ProposalState.REJECTED)


def _open(actor: Actor, proposal_id: str) -> ProposedChange:
    mine = ProposedChange.objects.filter(organization_id=actor.organization_id)
    proposal = mine.select_for_update(no_key=True).get(pk=proposal_id)
    if proposal.state != ProposalState.OPEN:
        raise SecondRefused("ALREADY_DECIDED", f"It has already been {proposal.state}.")
    return proposal


def _decided(proposal: ProposedChange, actor: Actor, state: ProposalState) -> ProposedChange:
    ProposedChange.objects.filter(pk=proposal.pk).update(
        state=state, decided_by_id=actor.user_id, decided_at=Now()
    )
    proposal.refresh_from_db()
    return proposal


def _may_confirm(actor: Actor, proposal: ProposedChange) -> None:
    """Raises NotAllowed."""
    may(actor, Verb.CONFIRM_CHANGE, proposal)
    may_act_as_person(actor)
    if proposal.user_id == actor.user_id:
        raise NotAllowed("NOT_ENTITLED", "You have proposed this: somebody else has to confirm it.")
    needed = _permissions(proposal)
    if needed - member_permissions.of(actor.membership):
        raise NotAllowed("NOT_ENTITLED", f"This takes the permissions {', '.join(sorted(needed))}.")
    if not _proposer_may(proposal, needed):
        raise _no_more()
    _check_anothers(proposal)


def _check_anothers(proposal: ProposedChange) -> None:
    """Raises NotAllowed where whoever confirms could have proposed it themselves by another account."""
    mine = active_membership(proposal.user, proposal.organization_id)
    if mine is not None and mine.kind == MembershipKind.SERVICE:
        raise NotAllowed(
            "NOT_ENTITLED", "A service account proposed this, whose token anybody may hold; a person has to."
        )
    if accounts.changed_by_another(proposal.user, proposal.organization_id):
        raise NotAllowed(
            "NOT_ENTITLED",
            "Somebody else changed the account that proposed this, or the provider by which it signs in, "
            "within the last hour: confirm it later, or have it proposed by another account.",
        )


def _no_more() -> NotAllowed:
    return NotAllowed("NOT_ENTITLED", "Whoever proposed this may not do it any more.")


def _permissions(proposal: ProposedChange) -> set[str]:
    verb = VERBS[ChangeAction(proposal.action)]
    settled = {members.RULES} if _settles(proposal) else ()
    return {permission_for(verb, _model(proposal)), *PERMITTED.get(proposal.model, ()), *settled}


def _settles(proposal: ProposedChange) -> bool:
    """Whether it says who approves what in a project."""
    if proposal.model != "groups.project":
        return False
    added = proposal.action == ChangeAction.ADDED
    usual, names = Project(), members.OF_NEW if added else members.SETTINGS
    fields = [field.attname for field in Project._meta.concrete_fields if field.name in names]
    said = {name: value for name, value in proposal.after.items() if name in fields}
    return any(not added or value != getattr(usual, name) for name, value in said.items())


def _proposer_may(proposal: ProposedChange, needed: set[str]) -> bool:
    """Whether who proposed it is still entitled: by their membership, or as a superuser; and by the token."""
    user = proposal.user
    if user is None or not user.is_active:
        return False
    if proposal.token and not _token_may(proposal):
        return False
    mine = active_membership(user, proposal.organization_id)
    return bool(user.is_superuser) or not needed - member_permissions.of(mine)


def _hold_proposer(proposal: ProposedChange) -> None:
    """Whoever proposed it may lose rights while the confirmation waits for rows. Raises NotAllowed."""
    mine = active_membership(proposal.user, proposal.organization_id)
    if mine is not None:
        changes.hold(mine)
    if not _proposer_may(proposal, _permissions(proposal)):
        raise _no_more()


def _token_may(proposal: ProposedChange) -> bool:
    """Whether the token it was proposed by is not revoked, and still has the scopes that this takes."""
    token = Token.objects.filter(pk=proposal.token, revoked_at=None).first()
    verbs = [ARRANGED.get(proposal.model), Verb.ARRANGE_RULES if _settles(proposal) else None]
    needed = {scope for verb in verbs if verb for scope in NEEDS[verb].scopes}
    return token is not None and needed <= {*token.scopes}


def _model(proposal: ProposedChange) -> type[Model]:
    return apps.get_model(proposal.model)


def _carry_out(actor: Actor, proposal: ProposedChange) -> None:
    """Raises ValidationError, SecondRefused, NotAllowed."""
    model = _model(proposal)
    if proposal.action == ChangeAction.ADDED:
        thing = model(**_python(model, proposal.after))
        _check(actor, proposal, thing)
        thing.full_clean()
        thing.save(force_insert=True)
        return
    thing = _current(model, proposal)
    _check(actor, proposal, thing)
    if proposal.action == ChangeAction.REMOVED:
        thing.delete()
        return
    for name, value in _python(model, proposal.after).items():
        setattr(thing, name, value)
    _check(actor, proposal, thing)
    same = {field.name for field in model._meta.concrete_fields if field.attname not in proposal.after}
    thing.full_clean(exclude=same)
    thing.save(update_fields=[field.name for field in model._meta.concrete_fields if field.name not in same])


def _current(model: type[Model], proposal: ProposedChange) -> Any:
    """The row, locked, as it was when the change was proposed. Raises SecondRefused."""
    rows = model._base_manager.filter(pk=proposal.object_id)
    try:
        thing = rows.select_for_update(of=("self",)).get()
    except ObjectDoesNotExist:
        raise SecondRefused("STALE", "It is not there any more.") from None
    if changes.row_of(thing) != proposal.row_digest:  # also in columns that the change leaves alone
        raise SecondRefused("STALE", "It has changed since it was proposed: propose it anew.")
    return thing


def _python(model: type[Model], values: dict[str, Any]) -> dict[str, Any]:
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return {name: fields[name].to_python(value) for name, value in values.items()}


def _check(actor: Actor, proposal: ProposedChange, thing: Any) -> None:
    """Of the row as it is, and as it would be. Raises NotAllowed."""
    if refused := _refuses_members(actor.user, thing) or _own_project(actor, proposal):
        raise NotAllowed("NOT_ENTITLED", refused)
    user = proposal.user
    mine = None if user is None or user.is_superuser else active_membership(user, proposal.organization_id)
    current.stand(user, mine)
    if _refuses_members(user, thing):
        raise _no_more()
    if mine is not None and mine.projects is not None:
        place = about(thing.group if isinstance(thing, GroupMember) else thing).project_id
        if place is None or not mine.sees_project(place) or _takes_whole(proposal, thing):
            raise _no_more()


def _own_project(actor: Actor, proposal: ProposedChange) -> str:
    """Why the actor may not confirm who owns a project, whom rules may name: it would be they themself."""
    mine = actor.membership
    theirs = (
        proposal.model == "groups.project" and mine is not None and proposal.after.get("owner_id") == mine.pk
    )
    return _("Nobody confirms that they themself own a project; somebody else has to.") if theirs else ""


def _takes_whole(proposal: ProposedChange, thing: Any) -> bool:
    """Whether only members of all projects may do this in one: say who approves what there, or ask for less
    than a rule of the organization.
    """
    if isinstance(thing, Project):
        return _settles(proposal)
    return isinstance(thing, CapabilityRule) and loosened(thing) is not None


def _refuses_members(user: Any, thing: Any) -> str:
    """Why the user may not change this: it is about their own place, or gives more than they have."""
    if isinstance(thing, Membership):
        return members.refuses_membership(user, thing)
    if isinstance(thing, CustomRole):
        return members.refuses_role(user, thing)
    if isinstance(thing, AgentInstance):
        return members.refuses_agent(user, thing)
    if isinstance(thing, IdentityProvider):
        return members.refuses_provider(user, thing.organization_id)
    if isinstance(thing, McpServer) and thing.exchange_at:
        return members.refuses_exchange(user, thing.organization_id, thing.exchange_at)
    return ""
