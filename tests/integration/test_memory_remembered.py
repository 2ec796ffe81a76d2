"""The page 'What agents remember'."""

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse

from groups.models import Membership
from memory.models import Memory, MemoryStatus
from memory.scope import Scope
from memory.search import memory_search_pa
from memory.write import memory_write
from tests.factories import permit
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db
LIST = "admin:memory_remembered_changelist"


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def me(here, client):
    """A person with an account in the admin and no permission at all."""
    user = here.agent.user
    user.is_staff = True
    user.save()
    Membership.objects.create(organization=here.organization, user=user)
    client.force_login(user)
    return permit(user)


@pytest.fixture
def kept(here):
    """One memory of each kind: my preference, my task, the group's, the expert's, another person's."""
    other = get_user_model().objects.create(username="other", is_staff=True)
    Membership.objects.create(organization=here.organization, user=other)
    theirs = Scope(here.organization.id, user_id=other.pk, project_id=here.project.id)
    preference = {"pa_preference": True}
    return {
        "preference": memory_write("short reports", here.preferences, type="core", metadata=preference),
        "task": memory_write("compared reports", here.history, type="episodic", source_run_id="run_1"),
        "board": memory_write("reports decided", here.board, type="episodic"),
        "expert": memory_write("reports noted", here.expert_own, type="episodic"),
        "theirs": memory_write("reports of another", theirs, type="episodic"),
        "knowledge": memory_write("reports known", here.project_wide, type="archival"),
    }


def listed(client, **query) -> set[str]:
    return {memory.id for memory in client.get(reverse(LIST), query).context["cl"].result_list}


def ids(kept, *names) -> set[str]:
    return {kept[name].id for name in names}


def delete(client, *memories: Memory):
    chosen = {
        "action": "delete_selected",
        "_selected_action": [memory.id for memory in memories],
        "post": "yes",
    }
    return client.post(reverse(LIST), chosen)


def page(memory: Memory, name: str = "change") -> str:
    return reverse(f"admin:memory_remembered_{name}", args=[memory.id])


def test_a_person_finds_what_is_remembered_of_them_and_of_nobody_else(me, kept, client):
    assert listed(client) == ids(kept, "preference", "task")
    assert "short reports" in client.get(page(kept["preference"])).content.decode()
    for name in ("board", "expert", "theirs", "knowledge"):
        assert client.get(page(kept[name])).status_code == 404


def test_a_person_deletes_their_own_for_good(me, kept, client, here):
    assert "short reports" in [hit.content for hit in memory_search_pa("reports", here.personal)]
    client.post(page(kept["preference"], "delete"), {"post": "yes"})
    delete(client, kept["task"])
    assert not Memory.objects.filter(id__in=ids(kept, "preference", "task")).exists()
    assert [hit.content for hit in memory_search_pa("reports", here.personal)] == ["reports known"]


@pytest.mark.parametrize("codenames", [(), ("view_memory",), ("curate_memory", "delete_memory")])
def test_nobody_deletes_what_is_not_their_own(me, kept, client, codenames):
    permit(me, *codenames)
    others = [kept[name] for name in ("board", "expert", "theirs", "knowledge")]
    for memory in others:
        client.post(page(memory, "delete"), {"post": "yes"})
    delete(client, *others)
    assert Memory.objects.filter(id__in=[memory.id for memory in others]).count() == 4


def test_who_may_look_at_memories_sees_what_is_shared_and_a_curator_retracts_it(me, kept, client):
    permit(me, "view_memory")
    shared = ids(kept, "board", "expert")
    assert listed(client) == shared | ids(kept, "preference", "task")
    retract = {"action": "retract", "_selected_action": [kept["board"].id, kept["theirs"].id]}
    client.post(reverse(LIST), retract)
    assert Memory.objects.filter(status=MemoryStatus.RETRACTED).count() == 0
    permit(me, "curate_memory")
    client.post(reverse(LIST), retract)
    assert Memory.objects.get(status=MemoryStatus.RETRACTED) == kept["board"]
    client.post(reverse(LIST), {"action": "restore", "_selected_action": [kept["board"].id]})
    assert not Memory.objects.filter(status=MemoryStatus.RETRACTED).exists()


def test_another_organization_is_not_seen(me, kept, client):
    permit(me, "view_memory")
    there = memory_write("their reports", place("there").board, type="episodic")
    assert there.id not in listed(client)
    assert client.get(page(there)).status_code == 404


def test_it_is_filtered_by_kind_words_and_run(me, kept, client):
    permit(me, "view_memory")
    for query, names in (
        ({"kind": "preference"}, ["preference"]),
        ({"kind": "person"}, ["task"]),
        ({"kind": "group"}, ["board"]),
        ({"kind": "agent"}, ["expert"]),
        ({"kind": "project"}, []),
        ({"kind": "nonsense"}, ["preference", "task", "board", "expert"]),
        ({"q": "compared"}, ["task"]),
        ({"q": "run_1"}, ["task"]),
        ({"status__exact": "retracted"}, []),
    ):
        assert listed(client, **query) == ids(kept, *names), query


def test_the_sidebar_offers_it_to_everybody_and_strangers_are_sent_away(me, client):
    assert reverse(LIST) in client.get(reverse("admin:index")).content.decode()
    client.logout()
    assert client.get(reverse(LIST)).status_code == 302
    me.is_staff = False
    me.save()
    client.force_login(me)
    assert client.get(reverse(LIST)).status_code == 302


def test_the_list_costs_the_same_however_long_it_is(me, client, here, django_assert_max_num_queries):
    for number in range(12):
        memory_write(f"report {number}", here.history, type="episodic")
    with django_assert_max_num_queries(12):
        assert client.get(reverse(LIST)).status_code == 200
