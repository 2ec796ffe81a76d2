"""What is passed on, in the cases people ask about. What always holds is in test_policy_properties."""

import pytest

from policy.delegation import authority, delegate
from policy.evaluate import AgentContext, Boundary, DelegatedPermissions

EVERYTHING = Boundary()


def personal_agent(allowed=None, denied=()):
    return AgentContext("agi_pa", "rol_pa", allowed, denied)


def test_a_personal_agent_passes_on_its_users_boundary_within_its_role():
    boundary = Boundary(("read", "mail", "pay"), ("deploy",))
    passed_on = authority(personal_agent(("read", "mail", "search"), ("delete",)), boundary)
    assert passed_on == DelegatedPermissions(
        ("read", "mail"), ("deploy", "delete"), ("read", "mail", "search")
    )


def test_without_any_list_nothing_is_restricted_and_that_is_not_an_empty_list():
    given = delegate(authority(personal_agent(), EVERYTHING), EVERYTHING)
    assert given == DelegatedPermissions(None, (), vouched_tools=())


def test_a_coordinator_passes_on_rights_it_does_not_use_itself():
    coordinator = personal_agent(allowed=("escalate_to_group",))
    assert authority(coordinator, EVERYTHING).allowed_tools == ("escalate_to_group",)
    assert authority(coordinator, EVERYTHING, ("read", "mail")).allowed_tools == ("read", "mail")
    assert authority(coordinator, EVERYTHING, ()).allowed_tools == ()


def test_what_the_role_denies_is_not_passed_on_though_it_be_delegable():
    passed_on = authority(personal_agent(denied=("mail",)), EVERYTHING, ("read", "mail"))
    assert passed_on.denied_tools == ("mail",)


def test_a_members_authority_is_what_its_run_was_given_within_the_speakers_role():
    given = DelegatedPermissions(("read", "mail"), ("pay",))
    member = AgentContext("agi", "rol", None, ("deploy",), given)
    assert authority(member, EVERYTHING, ("mail", "pay")) == DelegatedPermissions(
        ("mail",), ("pay", "deploy"), ("mail", "pay")
    )


def test_what_no_list_of_a_level_names_is_unvouched_at_every_level_below():
    named = authority(personal_agent(allowed=("read", "mail")), EVERYTHING)
    assert named.vouches_for("mail") and not named.vouches_for("pay")

    below = AgentContext("agi", "rol", None, (), delegate(named, EVERYTHING))
    assert not authority(below, EVERYTHING).vouches_for("mail")  # no list of its own names it
    assert authority(below, EVERYTHING, ("mail", "pay")).vouches_for("mail")
    assert not authority(below, EVERYTHING, ("mail", "pay")).vouches_for("pay")  # nor can it vouch anew


def test_a_boundary_that_was_narrowed_since_narrows_the_next_delegation():
    parent = authority(personal_agent(), EVERYTHING)
    assert delegate(parent, Boundary(("read",), ("mail",))) == DelegatedPermissions(("read",), ("mail",), ())


def test_asking_for_more_than_there_is_gives_no_more():
    parent = DelegatedPermissions(("read",), ("pay",))
    asked_for = DelegatedPermissions(("pay", "read", "deploy"))
    assert delegate(parent, EVERYTHING, asked_for) == DelegatedPermissions(("read",), ("pay",))


def test_nothing_in_common_is_an_empty_list_and_never_no_list():
    given = delegate(DelegatedPermissions(("read",)), EVERYTHING, DelegatedPermissions(("mail",)))
    assert given.allowed_tools == ()
    assert given.to_json() == {"allowed_tools": [], "denied_tools": []}
    assert DelegatedPermissions.from_json(given.to_json()).allowed_tools == ()


def test_without_an_active_membership_nothing_is_passed_on():
    assert authority(personal_agent(), None).allowed_tools == ()
    assert delegate(DelegatedPermissions(), None).allowed_tools == ()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({}, DelegatedPermissions()),
        ({"allowed_tools": None, "denied_tools": None}, DelegatedPermissions()),
        ({"allowed_tools": []}, DelegatedPermissions(())),
        ({"denied_tools": ["a"]}, DelegatedPermissions(None, ("a",))),
    ],
)
def test_a_missing_list_was_never_set(value, read):
    assert DelegatedPermissions.from_json(value) == read


@pytest.mark.parametrize(
    "value",
    [[], "x", {"allowed_tools": "read"}, {"denied_tools": [1]}, {"allowed": []}, {"allowed_tools": {"a": 1}}],
)
def test_any_other_shape_is_refused_and_not_read_as_no_restriction(value):
    with pytest.raises(ValueError):
        DelegatedPermissions.from_json(value)
