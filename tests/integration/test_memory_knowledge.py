"""Loading files into a project's knowledge."""

import pytest
from django.core.management import CommandError, call_command

from memory.knowledge import load
from memory.models import Memory
from memory.search import memory_search_pa
from tests.memory_world import Place, place

pytestmark = pytest.mark.django_db

HANDBOOK = """Welcome.

# Handbook

## Travel

Travel is reimbursed within ten days.

```
# not a heading
```

## Leave

请假需要提前三天申请。
"""


@pytest.fixture
def here() -> Place:
    return place("here")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "handbook"
    (folder / "more").mkdir(parents=True)
    (folder / "handbook.md").write_text(HANDBOOK)
    (folder / "more" / "note.txt").write_text("The office is in Lisbon.")
    (folder / "more" / "picture.png").write_bytes(b"\x89PNG\x00")
    return folder


def load_into(here: Place, *paths):
    return load(paths, here.organization.id, here.project.id)


def test_a_section_becomes_a_memory_that_names_its_file_and_heading(here, folder):
    loaded = load_into(here, folder)
    assert (loaded.files, loaded.added) == (2, 4)
    found = Memory.objects.values_list("metadata__file", "metadata__heading")
    assert set(found) == {
        ("handbook/handbook.md", ""),
        ("handbook/handbook.md", "Handbook > Travel"),
        ("handbook/handbook.md", "Handbook > Leave"),
        ("handbook/more/note.txt", ""),
    }
    assert memory_search_pa("请假要提前几天", here.personal)[0].metadata["heading"] == "Handbook > Leave"


def test_loading_again_adds_nothing(here, folder):
    load_into(here, folder)
    again = load_into(here, folder)
    assert (again.added, again.unchanged, again.superseded) == (0, 4, 0)
    assert Memory.objects.count() == 4


def test_a_changed_section_supersedes_the_old_one(here, folder):
    load_into(here, folder)
    (folder / "handbook.md").write_text(HANDBOOK.replace("ten days", "five days"))
    loaded = load_into(here, folder)
    assert (loaded.added, loaded.unchanged, loaded.superseded) == (1, 3, 1)
    old = Memory.objects.get(status="superseded")
    assert "ten days" in old.content
    assert "five days" in old.superseded_by.content


def test_a_section_gone_from_its_file_is_found_no_more(here, folder):
    load_into(here, folder)
    (folder / "handbook.md").write_text("Welcome.")
    assert load_into(here, folder).superseded == 2
    assert memory_search_pa("travel", here.personal) == []


@pytest.mark.parametrize(
    ("content", "why"), [(b"caf\xe9", "not UTF-8 text"), (b"a\x00b", "binary"), (None, "no such file")]
)
def test_a_file_that_is_not_text_is_named_and_nothing_is_loaded(here, folder, content, why):
    bad = folder / "more" / "bad.txt"
    if content is not None:
        bad.write_bytes(content)
    with pytest.raises(CommandError, match=rf"bad\.txt: {why}.*Nothing was loaded"):
        call_command("load_knowledge", folder, bad, project="atlas", organization="here")
    assert not Memory.objects.exists()


def test_the_command_loads_into_the_project_named(here, folder, capsys):
    place("there")
    with pytest.raises(CommandError, match="Several organizations"):
        call_command("load_knowledge", folder, project="atlas")
    with pytest.raises(CommandError, match="no project 'nowhere'"):
        call_command("load_knowledge", folder, project="nowhere")
    with pytest.raises(CommandError, match="no organization 'nobody'"):
        call_command("load_knowledge", folder, project="atlas", organization="nobody")
    call_command("load_knowledge", folder, project="atlas", organization="here")
    assert "4 sections added" in capsys.readouterr().out
    assert {memory.project_id for memory in Memory.objects.all()} == {here.project.id}
