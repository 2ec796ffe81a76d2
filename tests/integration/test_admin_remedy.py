"""A run's page in the admin says what happened: what it used, which group failed, what to change."""

import itertools

import pytest
from django.test import Client
from django.urls import reverse

from runs.execution import executor
from runs.execution.outside_agents import OutsideRefused
from runs.models import Run
from runs.providers.base import ProviderError
from tests.acting import request_call, start
from tests.admin_world import person
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, RoleFactory
from tests.scripted import Scripted, by_role, call, in_order, say

pytestmark = pytest.mark.django_db(transaction=True)

RIGHTS = ("runs.view_run", "runs.start_run", "groups.view_role", "groups.change_role")


@pytest.fixture
def mia():
    user = person(None, "mia", *RIGHTS, is_staff=True)
    project = ProjectFactory(name="Atlas")
    MembershipFactory(organization=project.organization, user=user)
    user.project = project
    client = Client()
    client.force_login(user)
    user.page = lambda run: client.get(reverse("admin:runs_run_change", args=[run])).content.decode()
    user.again = lambda run: client.post(reverse("admin:runs_run_again", args=[run]))
    return user


def test_a_run_that_died_of_its_steps_shows_all_of_them_and_the_setting(mia):
    number = itertools.count()
    Scripted.play = staticmethod(
        lambda messages, facts: call(("memory_search", {"query": f"word {next(number)}"}))
    )
    run = start(user=mia, project=mia.project, goal="Search")
    executor.run(run)
    html = mia.page(run)
    assert "25 of 25" in html and "Raise RUN_STEPS, or ask for less at once." in html


def test_an_outside_agents_run_counts_its_calls_as_steps(mia):
    run = start(user=mia, project=mia.project, goal="Search", driver="external")
    for number in range(25):
        request_call(run, f"c{number}", "memory_search", {"query": f"word {number}"})
    assert Run.objects.get(pk=run).usage["steps"] == 25
    with pytest.raises(OutsideRefused):
        request_call(run, "one-more", "memory_search", {"query": "x"})
    assert "25 of 25" in mia.page(run)


def test_a_call_to_a_group_that_failed_is_no_success(mia):
    group = GroupFactory(project=mia.project)
    MemberFactory(group=group, role__name="lead", is_lead=True)
    broken = ProviderError("MODEL_REFUSED", "no such key")
    Scripted.play = staticmethod(
        by_role(Personal_agent=[call(("escalate_to_group", {"goal": "Go"})), say("Sorry.")], lead=[broken])
    )
    run = start(user=mia, project=mia.project, goal="Go")
    executor.run(run)
    html = mia.page(run)
    assert "The group failed" in html and 'dp-badge dp-good">Succeeded' not in html


def test_a_failed_model_is_named_with_its_role_and_the_run_begins_again(mia):
    RoleFactory(organization=mia.project.organization, name="Personal agent", model="scripted:some-model")
    Scripted.play = staticmethod(in_order(ProviderError("MODEL_REFUSED", "no such key"), say("Fine.")))
    run = start(user=mia, project=mia.project, goal="Go", context="Beside the point", session_key="s")
    executor.run(run)
    html = mia.page(run)
    assert "scripted:some-model" in html and "Choose another model for the role" in html

    answer = mia.again(run)

    new = Run.objects.latest("id")
    assert new.pk != run and answer["Location"].endswith(f"/{new.pk}/change/")
    assert (new.goal, new.context, new.session_key) == ("Go", "Beside the point", "s")


def test_nobody_runs_somebody_elses_run_again(mia):
    other = MembershipFactory(organization=mia.project.organization).user
    Scripted.play = staticmethod(in_order(ProviderError("MODEL_REFUSED", "no such key")))
    run = start(user=other, project=mia.project, goal="Go")
    executor.run(run)
    assert "Run again</button>" not in mia.page(run)
    assert mia.again(run).status_code == 403
    assert Run.objects.count() == 1
