"""Why an agent knew something: the memories in its prompt, as links to their pages."""

import pytest

from groups.models import Project
from memory.models import Memory
from memory.scope import Scope
from memory.write import memory_write
from runs.models import Approval, RunEvent
from tests.admin_world import client_of, drive, person, tenant, url
from tests.scripted import by_role, call

pytestmark = pytest.mark.django_db

RIGHTS = ("runs.view_run", "runs.view_approval", "memory.view_memory")
FACT = "Rival prices of seats are five euros"
MAIL = {"to": ["ada@example.org"], "subject": "s", "body": "b"}


def known(made, text=FACT):
    return memory_write(text, Scope(made.organization.pk, project_id=made.project.pk), type="archival")


def asked(made, goal="What are the rival prices of seats?"):
    """A run that waits for an approval, and the approval."""
    run = drive(made, goal, by_role(Personal_agent=[call(("send_email", MAIL))]))
    return run, Approval.objects.get(run=run)


def pages(client, run, approval):
    found = [client.get(url("runs_run_change", run.pk)), client.get(url("runs_approval_change", approval.pk))]
    assert [answer.status_code for answer in found] == [200, 200]
    return [answer.content.decode() for answer in found]


def link(memory):
    return f'href="{url("memory_depositedknowledge_change", memory.pk)}">'


def test_runs_and_approvals_lead_to_the_knowledge_they_rest_on(made):
    fact = known(made)
    run, approval = asked(made)
    client = client_of(person(made, "lou", *RIGHTS, is_staff=True))

    for page in pages(client, run, approval):
        assert "Why did it know this?" in page
        assert f"{link(fact)}{FACT}</a>" in page
        assert '<span class="dp-badge">knowledge</span>' in page
    assert client.get(url("memory_depositedknowledge_change", fact.pk)).status_code == 200


def test_who_knew_nothing_is_not_asked_why(made):
    run, approval = asked(made, "Zzyzx")

    assert RunEvent.objects.filter(run=run, payload__memories=[]).exists()
    for page in pages(client_of(person(made, "lou", *RIGHTS, is_staff=True)), run, approval):
        assert "Why did it know this?" not in page


def test_without_the_right_to_see_knowledge_there_are_ids_and_no_words(made):
    fact = known(made)
    run, approval = asked(made)

    for page in pages(client_of(person(made, "lou", *RIGHTS[:2], is_staff=True)), run, approval):
        assert fact.pk in page
        assert link(fact) not in page and FACT not in page


def test_a_preference_is_named_as_one_and_not_shown(made):
    agent = made.run.agent_instance_id
    own = Scope(made.organization.pk, user_id=made.user.pk, agent_instance_id=agent)
    liked = memory_write("Seats by the window, please", own, type="core", metadata={"pa_preference": True})
    run, approval = asked(made, "Which seats by the window?")

    for page in pages(client_of(person(made, "lou", *RIGHTS, is_staff=True)), run, approval):
        assert "the person&#x27;s preference" in page
        assert liked.pk in page and "window, please" not in page


def test_knowledge_of_another_project_or_organization_is_not_shown(made):
    """The log may name anything; what is shown is what the reader may open."""
    elsewhere = Project.objects.create(organization=made.organization, name="Other", slug="other")
    hidden = memory_write(
        "Secret of the other", Scope(made.organization.pk, project_id=elsewhere.pk), type="archival"
    )
    rival = tenant("Their business", "rival")
    foreign = known(rival, "Secret of a rival")
    run, approval = asked(made)
    said = RunEvent.objects.filter(run=run, type="message.created", payload__role="assistant").get()
    said.payload["memories"] = [{"id": memory.pk, "tier": 2} for memory in (hidden, foreign)]
    RunEvent.objects.filter(pk=said.pk).update(payload=said.payload)
    reader = person(made, "lou", *RIGHTS, is_staff=True)
    reader.memberships.update(projects=[made.project.pk])

    for page in pages(client_of(reader), run, approval):
        assert "Why did it know this?" in page
        assert "Secret" not in page


def test_knowledge_is_shown_as_text_and_what_is_gone_by_its_id(made):
    evil = known(made, "<script>alert(1)</script> rival prices \u202eof seats")
    gone = known(made)
    run, approval = asked(made)
    Memory.objects.filter(pk=gone.pk).delete()

    for page in pages(client_of(person(made, "lou", *RIGHTS, is_staff=True)), run, approval):
        assert "<script>alert" not in page
        assert f"{link(evil)}&lt;script&gt;alert(1)&lt;/script&gt; rival prices ⟨U+202E⟩of seats" in page
        assert gone.pk in page and link(gone) not in page
