# ruff: noqa: F811
"""What was tried on a running Deputy, door by door and by the minute."""

import pytest
from django.contrib.contenttypes.models import ContentType

from tests.integration.test_memory_admin import act, curator, deposited, here, status  # noqa: F401
from tests.memory_world import place

pytestmark = pytest.mark.django_db


def test_nothing_is_merged_of_what_the_list_does_not_hold(here, curator, client):
    """Rows of another organization, sent by their ids as if they were chosen."""
    elsewhere = place("elsewhere")
    theirs = [deposited(elsewhere, f"run_{n}", f"They charge {n} euros.") for n in range(2)]
    answer = act(client, "merge", *theirs)
    assert "merging takes two memories or more" in answer.content.decode()
    assert {status(memory) for memory in theirs} == {"active"}


def test_no_address_of_the_admin_looks_up_rows_of_any_kind(here, curator, client):
    """Django's own, which leads from an object to its public page, of which Deputy's have none."""
    for kind in ContentType.objects.all():
        assert client.get(f"/admin/r/{kind.pk}/1/").status_code == 404, kind
