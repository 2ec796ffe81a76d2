"""No stored text executes: whatever people, models and tools wrote is shown as text."""

import json

import pytest
from django.db import DataError, IntegrityError, transaction
from django.db.models import CharField, TextField

from tests.admin_pages import OTHERS, PAGES, address_of, things_of
from tests.admin_world import client_of, objects_of, superuser, tenant, url

pytestmark = pytest.mark.django_db

EVIL = """<script>alert(1)</script>"'`><img src=x onerror=alert(2)>{{7*7}}"""


@pytest.fixture
def made():
    return tenant(EVIL, "evil")


@pytest.fixture
def root(made):
    return client_of(superuser(made))


def addresses(made):
    found = [
        url("index"),
        url("runs_run_ask"),
        url("runs_run_cancel", made.run.pk),
        url("runs_run_change", made.child.pk),
        url("runs_run_change", made.asking.pk),
        url("runs_run_change", made.run.pk) + "?at=last",
        url("runs_run_change", made.run.pk) + "?at=2",
        url("runs_run_change", made.child.pk) + "?at=3",
        url("groups_group_where", goal=EVIL),
        url("groups_group_change", made.group.pk) + "?goal=" + "%3Cscript%3Ealert(1)",
    ]
    found += [url(f"{stem}_changelist", q="<script>alert(1)") for stem in objects_of(made)]
    return found


def harmless(text):
    return "<script>alert" not in text and "<img src=x" not in text


def test_lists_that_are_searched_and_runs_at_a_point_show_stored_text_as_text(made, root):
    shown = 0
    for address in addresses(made):
        page = root.get(address).content.decode()
        assert harmless(page), address
        shown += "&lt;script&gt;alert(1)" in page

    assert shown > 25  # the text is there, as text


def test_the_parts_of_a_live_page_are_escaped_by_the_server(made, root):
    answer = root.get(url("runs_run_live", made.run.pk, v="old"))

    parts = json.loads(answer.content)["parts"]
    assert set(parts) == {"summary", "tree", "timeline"}
    assert all(harmless(part) for part in parts.values())
    assert "&lt;script&gt;alert(1)" in parts["timeline"]


def test_messages_about_named_things_are_text(made, root):
    taught = root.post(
        url("groups_group_learn"), {"group": made.group.pk, "goal": EVIL, "fits": "yes"}, follow=True
    )
    decided = root.post(
        url("runs_approval_changelist"),
        {"_selected_action": made.approval.pk, "action": "reject_selected"},
        follow=True,
    )

    assert harmless(taught.content.decode())
    assert harmless(decided.content.decode())
    assert "Reject these calls?" in decided.content.decode()


def test_own_scripts_are_files_and_no_page_reaches_another_host(made, root):
    for address in (
        url("index"),
        url("runs_run_change", made.run.pk),
        url("runs_approval_change", made.approval.pk),
    ):
        page = root.get(address).content.decode()
        assert 'src="http' not in page and "src='http" not in page and 'src="//' not in page, address


def spoil(thing):
    """Put the text into every text of the row that takes it; returns the names of those fields."""
    spoiled = []
    for field in type(thing)._meta.concrete_fields:
        if not isinstance(field, CharField | TextField) or field.choices or field.primary_key:
            continue
        try:
            with transaction.atomic():
                type(thing).objects.filter(pk=thing.pk).update(**{field.name: EVIL[: field.max_length]})
            spoiled.append(f"{type(thing).__name__}.{field.name}")
        except (IntegrityError, DataError):  # no text of anybody's: the database takes only certain words
            continue
    return spoiled


def test_no_text_field_of_any_row_executes_on_any_page(made, root):
    things = things_of(made)
    spoiled = [name for thing in things.values() for name in spoil(thing)]
    opened = shown = 0
    for name in PAGES:
        if name not in OTHERS or OTHERS[name][0] == "get":
            answer = root.get(address_of(name, things))
            if answer["Content-Type"].startswith("text/html"):
                page = answer.content.decode()
                assert harmless(page), name
                opened += answer.status_code == 200
                shown += "&lt;script&gt;alert(1)" in page

    assert len(spoiled) > 60
    assert opened > 80 and shown > 60
