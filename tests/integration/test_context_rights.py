"""What an agent may do to its working memory, and the words it gets when it may not (seed 002)."""

from dataclasses import asdict

import pytest

from groups.models import Organization, Project
from memory.context import AgentContext, ContextSystem, InvalidOperation, NotFound, PermissionDenied
from memory.context.models import PageKind, SegmentPermission, SegmentType

pytestmark = pytest.mark.django_db

READ_ONLY, READ_WRITE, SYSTEM_MANAGED = SegmentPermission


@pytest.fixture
def system():
    organization = Organization.objects.create(slug="acme", name="Acme")
    project = Project.objects.create(organization=organization, slug="web", name="Web")
    system, _ = ContextSystem.open(organization.id, project.id, "run_1")
    system.add_segment("sys", "System", "who you are", SegmentType.SYSTEM, SegmentPermission.READ_ONLY)
    system.add_segment("usr", "User", "who you work for", SegmentType.USER)
    for parent in ("sys-0", "usr-0"):
        system.add_page(parent, PageKind.CONTENTS, "Shelf")
        system.add_page(parent, PageKind.DETAIL, "Note", "a note", "words of the note")
        system.add_page(parent, PageKind.CONTENTS, "Box")
    return system


@pytest.fixture
def agent(system):
    return AgentContext(system)


def stored(system):
    """Everything there is, as plain data."""
    return {
        segment.segment_id: (asdict(segment), _beneath(system, segment.root_index))
        for segment in system.list_segments()
    }


def _beneath(system, index):
    page = system.get_page(index)
    return asdict(page), [_beneath(system, child.index) for child in system.get_children(index)]


OPERATIONS = {
    "GetSegment": lambda agent: agent.get_segment("usr").root_index == "usr-0",
    "ListSegments": lambda agent: [s.segment_id for s in agent.list_segments()] == ["sys", "usr"],
    "GetPage": lambda agent: agent.get_page("usr-2").detail == "words of the note",
    "GetChildren": lambda agent: (
        [p.index for p in agent.get_children("usr-0")] == ["usr-1", "usr-2", "usr-3"]
    ),
    "GetParent": lambda agent: agent.get_parent("usr-2").index == "usr-0",
    "GetAncestors": lambda agent: [p.index for p in agent.get_ancestors("usr-2")] == ["usr-0"],
    "FindPage": lambda agent: [p.index for p in agent.find_page("A NOTE")] == ["sys-2", "usr-2"],
    "UpdatePage": lambda agent: (
        agent.update_page("usr-2", "New", "newer") and _is(agent, "usr-2", name="New")
    ),
    "ExpandDetails": lambda agent: (
        agent.expand_details("usr-2") and _is(agent, "usr-2", visibility="expanded")
    ),
    "HideDetails": lambda agent: agent.hide_details("usr-2") and _is(agent, "usr-2", visibility="hidden"),
    "MovePage": lambda agent: agent.move_page("usr-2", "usr-1") and _is(agent, "usr-2", parent="usr-1"),
    "RemovePage": lambda agent: agent.remove_page("usr-2") and _gone(agent, "usr-2"),
    "CreateDetailPage": lambda agent: (
        agent.create_detail_page("N", "d", "words", "usr-1")["index"] == "usr-4"
        and _is(agent, "usr-4", parent="usr-1", detail="words")
    ),
    "CreateContentsPage": lambda agent: (
        agent.create_contents_page("N", "d", "usr-0", ["usr-2"])["index"] == "usr-4"
        and _is(agent, "usr-2", parent="usr-4")
    ),
    "AddSegment": lambda agent: agent.check_permission("usr-0", "addSegment") is None,
    "RemoveSegment": lambda agent: agent.check_permission("usr-0", "removeSegment") is None,
    "SetPermission": lambda agent: agent.check_permission("usr-0", "setPermission") is None,
}

MATRIX = """
    GetSegment          yes yes yes
    ListSegments        yes yes yes
    GetPage             yes yes yes
    GetChildren         yes yes yes
    GetParent           yes yes yes
    GetAncestors        yes yes yes
    FindPage            yes yes yes
    UpdatePage          no  yes yes
    ExpandDetails       yes yes yes
    HideDetails         yes yes yes
    MovePage            no  yes yes
    RemovePage          no  yes yes
    CreateDetailPage    no  yes yes
    CreateContentsPage  no  yes yes
    AddSegment          no  no  yes
    RemoveSegment       no  no  yes
    SetPermission       no  no  yes
    HideSystemRoot      no  no  no
"""
CASES = [
    pytest.param(operation, permission, answer == "yes", id=f"{operation}-{permission}")
    for operation, *answers in map(str.split, MATRIX.strip().splitlines())
    for permission, answer in zip(SegmentPermission, answers, strict=True)
]
REFUSED_AS = {"CreateDetailPage": "createPage", "CreateContentsPage": "createPage"}
REFUSED_ON = {"CreateDetailPage": "usr-1", "CreateContentsPage": "usr-0"}


def _gone(agent, index):
    with pytest.raises(NotFound):
        agent.get_page(index)
    return True


def _is(agent, index, **fields):
    page = agent.get_page(index)
    return {field: getattr(page, field) for field in fields} == fields


@pytest.mark.parametrize(("operation", "permission", "allowed"), CASES)
def test_operation_matrix(system, agent, operation, permission, allowed):
    """17 operations under 3 permissions, and the system prompt's root that nobody folds."""
    if operation == "HideSystemRoot":
        system.set_permission("sys", permission)
        before = stored(system)
        with pytest.raises(PermissionDenied) as refusal:
            agent.hide_details("sys-0")
        assert str(refusal.value) == (
            "cannot hide system prompt root page sys-0: agent must remain constrained by system prompts"
        )
        assert stored(system) == before
        return
    system.set_permission("usr", permission)
    if allowed:
        assert OPERATIONS[operation](agent)
        return
    before = stored(system)
    with pytest.raises(PermissionDenied) as refusal:
        OPERATIONS[operation](agent)
    name = REFUSED_AS.get(operation, operation[0].lower() + operation[1:])
    index = REFUSED_ON.get(operation, "usr-0" if "Segment" in operation or "Set" in operation else "usr-2")
    assert (
        str(refusal.value) == f"permission denied: operation '{name}' on {index} requires higher permission"
    )
    assert refusal.value.code == "PERMISSION_DENIED"
    assert stored(system) == before


def test_the_matrix_has_every_operation_of_the_seed():
    assert len(OPERATIONS) == 17
    assert len(CASES) == 17 * 3 + 3


def test_an_operation_nobody_knows_needs_the_highest_level(system, agent):
    system.set_permission("usr", READ_WRITE)
    with pytest.raises(PermissionDenied, match=r"operation 'paint' on usr-1 requires higher permission"):
        agent.check_permission("usr-1", "paint")
    system.set_permission("usr", SYSTEM_MANAGED)
    agent.check_permission("usr-1", "paint")


def test_a_page_that_is_not_there_is_named(agent):
    with pytest.raises(NotFound) as refusal:
        agent.update_page("usr-99", "x", "y")
    assert str(refusal.value) == "page usr-99 not found"
    assert refusal.value.code == "not_found"


@pytest.mark.parametrize(
    "index", ["", "usr", "usr-", "-0", "usr-0\x00", "\ud800", "usr-99999999999", None, 7]
)
def test_what_is_no_index_is_no_page(agent, index):
    for operation in (agent.get_page, agent.expand_details, lambda page: agent.move_page(page, "usr-0")):
        with pytest.raises(NotFound) as refusal:
            operation(index)
        assert str(refusal.value) == f"page {index} not found"


def test_another_view_s_pages_are_not_there(system, agent):
    view = system
    other, _ = ContextSystem.open(view.organization_id, Project.objects.get().id, "run_2")
    other.add_segment("mine", "Mine")
    with pytest.raises(NotFound):
        agent.get_page("mine-0")


def test_another_organization_reaches_no_view(system):
    stranger = Organization.objects.create(slug="other", name="Other")
    trespasser = ContextSystem(stranger.id, system.view_id)
    assert trespasser.list_segments() == []
    with pytest.raises(NotFound):
        trespasser.add_segment("x", "X")
    with pytest.raises(NotFound):
        trespasser.get_page("usr-0")
    assert trespasser.visible() == []


@pytest.mark.parametrize(("source", "target"), [("sys-2", "usr-0"), ("usr-2", "sys-0")])
def test_nothing_moves_out_of_or_into_what_is_read_only(system, agent, source, target):
    before = stored(system)
    with pytest.raises(PermissionDenied, match="operation 'movePage' on sys-"):
        agent.move_page(source, target)
    assert stored(system) == before


def test_a_list_cannot_adopt_what_is_read_only(system, agent):
    before = stored(system)
    with pytest.raises(PermissionDenied, match="operation 'movePage' on sys-2"):
        agent.create_contents_page("Mine now", "", "usr-0", ["usr-2", "sys-2"])
    assert stored(system) == before


def test_a_moved_page_has_the_rights_of_where_it_stands_now(system, agent):
    system.add_segment("lib", "Library")
    change = agent.move_page("usr-2", "lib-0")
    system.set_permission("lib", READ_ONLY)
    with pytest.raises(PermissionDenied, match="on lib-1 requires"):
        agent.update_page(change["to"], "x", "y")
    with pytest.raises(NotFound):
        agent.get_page("usr-2")


def test_changing_a_copy_changes_nothing_stored(system, agent):
    before = stored(system)
    agent.get_page("usr-2").name = "forged"
    agent.get_segment("sys").permission = "system_managed"
    for page in agent.get_children("usr-0") + agent.find_page("note") + agent.get_ancestors("usr-2"):
        page.detail, page.visibility = "forged", "hidden"
    assert stored(system) == before


def test_the_system_itself_cannot_fold_or_remove_the_system_prompt(system):
    with pytest.raises(InvalidOperation):
        system.hide_details_internal("sys-0")
    with pytest.raises(InvalidOperation):
        system.remove_segment("sys")
    system.fold_to_budget(1)
    assert system.get_page("sys-0").is_expanded
    assert system.get_page("sys-2").is_expanded


def test_the_door_shows_nothing_behind_it(agent):
    public = {name for name in dir(agent) if not name.startswith("_")}
    assert public == {
        "check_permission",
        *("get_segment", "list_segments", "update_page", "expand_details", "hide_details", "move_page"),
        *("remove_page", "create_detail_page", "create_contents_page", "get_page", "get_children"),
        *("get_parent", "get_ancestors", "find_page", "render"),
        "reading",  # another way to make one: over a tree that is only looked at
    }
