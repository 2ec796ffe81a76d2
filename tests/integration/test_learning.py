"""What a group found is there for the next question about the same matter (seed 000, 3)."""

import pytest

from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from runs.models import Run

pytestmark = pytest.mark.django_db

SAID = {
    "en": ("What do our competitors charge?", "Our competitors charge between 5 and 7 euro a seat."),
    "zh": ("我们的竞争对手怎么定价？", "竞争对手的定价是每个席位5到7欧元。"),
}


@pytest.mark.parametrize("language", SAID)
def test_the_second_question_is_answered_from_the_deposit_without_a_group(ask, world, settings, language):
    settings.DEPUTY_MODEL = "local"
    goal, fact = SAID[language]
    world.group.description = "Competitors, their prices and what they charge 竞争对手 定价"
    world.group.save()
    memory_write(
        fact,
        Scope(world.organization.pk, project_id=world.project.pk),
        type="archival",
        metadata={"file": "prices.md"},
    )

    first = ask(None, goal=goal)
    second = ask(None, goal=goal)

    assert (first.status, second.status) == ("completed", "completed")
    assert Run.objects.filter(parent_run=first).count() == 1
    assert not Run.objects.filter(parent_run=second).exists()
    assert fact in second.output
    deposited = Memory.objects.filter(type="archival", source_run_id__isnull=False)
    assert {memory.source_run_id for memory in deposited} == {Run.objects.get(parent_run=first).pk}
    assert Run.objects.get(parent_run=first).pk in second.output


def test_another_question_goes_to_the_group_all_the_same(ask, world, settings):
    settings.DEPUTY_MODEL = "local"
    world.group.description = "Competitors, their prices and their customers"
    world.group.save()
    ask(None, goal="What prices do competitors ask?")
    other = ask(None, goal="Which customers do competitors have?")

    assert Run.objects.filter(parent_run=other).exists()
