"""The rows of the admin's lists are made by ourselves, and are what unfold would make."""

import pytest
from django.contrib import admin
from django.contrib.admin.utils import quote
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory
from django.utils import timezone
from django.utils.translation import override
from unfold.templatetags.unfold_list import items_for_result, result_headers

from groups.rows import plain, rows
from tests.admin_world import client_of, objects_of, registered, superuser, tenant, url

pytestmark = pytest.mark.django_db


@pytest.fixture
def made():
    return tenant("<b>Compare</b> & prices")


def changelist(stem, made, **query):
    request = RequestFactory().get(url(f"{stem}_changelist"), query)
    request.user = superuser(made)
    listing = admin.site.get_model_admin(type(objects_of(made)[stem])).get_changelist_instance(request)
    listing.formset = None
    return listing


@pytest.mark.parametrize("stem", registered())
def test_every_list_has_the_cells_that_unfold_gives_it(stem, made, monkeypatch):
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    listing = changelist(stem, made)
    assert plain(listing)

    ours = list(rows(listing, list(result_headers(listing))))

    assert ours
    for row, theirs in zip(ours, listing.result_list, strict=True):
        cells = "".join(items_for_result(listing, theirs, None))
        assert row == cells.replace('" >', '">')  # an attribute that only forms need


def test_links_keep_the_filters_of_the_list(made):
    page = client_of(superuser(made)).get(url("runs_run_changelist", asked="day"))

    assert f"{quote(made.run.pk)}/change/?_changelist_filters=asked%3Dday" in page.content.decode()


def test_a_list_is_narrowed_by_its_filters_and_by_nothing_else(rf):
    request = rf.get("/")
    request.user = AnonymousUser()
    for model, page in admin.site._registry.items():
        filters = {one[0] if isinstance(one, tuple) else one for one in page.get_list_filter(request)}
        for field in model._meta.get_fields():
            if getattr(field, "primary_key", False):
                continue
            offered = field.name in filters or field.name in names_of(filters)
            assert page.lookup_allowed(f"{field.name}__startswith", "a", request) <= offered, (model, field)


def names_of(filters):
    return {getattr(one, "parameter_name", "") for one in filters}


def test_a_list_in_which_something_is_chosen_for_a_form_is_left_to_unfold(made):
    assert not plain(changelist("runs_run", made, _popup="1"))


def test_the_box_of_a_row_speaks_the_readers_language(made):
    listing = admin.site.get_model_admin(type(made.run))
    english = listing.action_checkbox(made.run)
    with override("zh-hans"):
        chinese = listing.action_checkbox(made.run)

    assert f'value="{made.run.pk}"' in english and f'value="{made.run.pk}"' in chinese
    assert english != chinese
    assert listing.action_checkbox(made.run) == english


def test_the_admin_still_has_djangos_list_of_applications(made):
    page = client_of(superuser(made)).get(url("index"))

    assert {"runs", "groups", "policy"} <= {app["app_label"] for app in page.context["available_apps"]}
