"""An e-mail deep in a tree waits for a person, and what that person approved arrives exactly once."""

import json
from types import SimpleNamespace

import pytest
from django.contrib.auth import get_user_model

from groups.models import Project
from policy.models import CapabilityRule
from runs.models import Approval, Run, ToolCall
from tests.acceptance.house import check_logs, tree, until
from tests.acceptance.web import Web, forms, sign_in
from tests.factories import GroupFactory, MemberFactory
from tests.plays import LETTER

LEVELS = 3
EDITED = LETTER | {"to": ["ines@example.org"]}
ROBOT_REFUSED = "Only a person can decide this"


@pytest.fixture
def web(house):
    web = Web(house)  # comes up while the demo is made
    yield web
    web.end()


@pytest.fixture
def demo(house, web):
    """The demo, where only a person may decide about e-mail, and a group that passes work on to itself."""
    made = json.loads(house.manage("demo", "--json"))
    rule = CapabilityRule.objects.get(organization__slug="demo", capability__name="send_email")
    rule.effect = "require_human"
    rule.save()
    project = Project.objects.get(pk=made["project"])
    group = GroupFactory(project=project, name="Depths", max_rounds=1)
    MemberFactory(group=group, role__name="scout", ordinal=0)
    MemberFactory(group=group, role__name="chair", ordinal=1, is_lead=True)
    web.wait()
    users = {name: SimpleNamespace(**secrets) for name, secrets in made["users"].items()}
    apis = {name: web.api(user.token) for name, user in users.items()}
    yield SimpleNamespace(users=users, apis=apis, group=group)
    for api in apis.values():
        api.close()


def letters(house):
    """The mail that agents sent; what Deputy writes to deciders, of other tests too, is not among it."""
    return [mail for mail in house.mail.mails if mail.message["Message-ID"].endswith("@deputy.localhost>")]


def page_of(approval):
    return f"/admin/runs/approval/{approval.pk}/change/"


def refused(answer):
    return answer.status_code, answer.json()["code"]


def check_robot_cannot_decide(web, demo, approval):
    """A service account with the permission to decide: not in the API, not by signal, not in the admin."""
    user = get_user_model().objects.get(username="robot")
    robot, api = demo.users["robot"], demo.apis["robot"]
    assert user.has_perm("runs.decide_approval")

    seen = {"arguments_digest": approval.arguments_digest}
    assert refused(api.post(f"approvals/{approval.pk}/approve/", json=seen)) == (403, "HUMAN_ONLY")
    answer = {"correlation_key": approval.correlation_key, "payload": {"approved": True, **seen}}
    assert refused(api.post(f"runs/{approval.run_id}/signal/", json=answer)) == (403, "HUMAN_ONLY")

    with web.browser() as browser:  # it has no business there
        assert sign_in(browser, "robot", robot.password).status_code == 403
        assert browser.get(page_of(approval)).status_code == 403
    user.is_staff = True
    user.save()
    with web.browser() as browser:  # not even where it may look
        sign_in(browser, "robot", robot.password)
        page = browser.get(page_of(approval))
        assert ROBOT_REFUSED in page.text
        assert "arguments_digest" not in forms(page)
        form = {
            "csrfmiddlewaretoken": forms(page)["csrfmiddlewaretoken"]["csrfmiddlewaretoken"],
            "arguments_digest": approval.arguments_digest,
            "decision": "approve",
        }
        said = browser.post(page_of(approval), data=form)
        assert f"</a>: {ROBOT_REFUSED}" in said.text  # after what it is about
    approval.refresh_from_db()
    assert (approval.status, approval.decisions.count()) == ("pending", 0)


def test_what_a_person_approved_deep_in_a_tree_is_sent_once_whatever_happens(
    house, web, demo, ended, tmp_path
):
    first = house.cluster(WORKERS="1")
    asked = {"project": "atlas", "goal": f"letter {LEVELS}", "context": demo.group.pk}
    run = demo.apis["member"].post("runs/", json=asked).json()["id"]
    approval = until(lambda: Approval.objects.filter(run__root=run).first(), said=lambda: house.report(run))
    assert (approval.run.depth, approval.run.kind, approval.effect) == (LEVELS, "group", "require_human")
    assert [(r.status, r.waiting_reason) for r in tree(run)] == [
        *[("waiting", "child")] * LEVELS,
        ("waiting", "approval"),
    ]
    check_robot_cannot_decide(web, demo, approval)
    assert letters(house) == []
    first.end()

    # the first thing the next worker does outside the database is to send: then it is killed
    killed = tmp_path / "killed"
    house.cluster(WORKERS="1", DEPUTY_CRASH_AT="after_slow", DEPUTY_CRASH_ONCE=str(killed))
    assert not killed.exists()
    with web.browser() as browser:
        sign_in(browser, "approver", demo.users["approver"].password)
        form = forms(browser.get(page_of(approval)))["arguments_digest"]
        assert json.loads(form["arguments"]) == LETTER
        form |= {"arguments": json.dumps(EDITED), "reason": "Ines only", "decision": "approve_edited"}
        forged = {name: value for name, value in form.items() if name != "csrfmiddlewaretoken"}
        assert browser.post(page_of(approval), data=forged).status_code == 403
        assert "Approved; the call runs now." in browser.post(page_of(approval), data=form).text
        until(
            lambda: Run.objects.filter(pk=approval.run_id, waiting_reason="review").exists(),
            said=lambda: house.report(run),
        )
        assert killed.exists()
        call = ToolCall.objects.get(run=approval.run_id)
        assert (call.tool, call.status, call.effective_arguments) == ("send_email", "unknown", EDITED)

        again = browser.post(page_of(approval), data=form)
        assert "Approved; the call runs now." in again.text
    api = demo.apis["approver"]
    seen = {"arguments_digest": approval.arguments_digest, "arguments": EDITED}
    assert refused(api.post(f"approvals/{approval.pk}/approve/", json=seen)) == (403, "HUMAN_ONLY")
    assert {r.status for r in tree(run)} == {"waiting"}
    assert len(letters(house)) == 1

    word = {"outcome": "succeeded", "result": {"sent": 1, "to": EDITED["to"]}}
    resolved = api.post(f"runs/{approval.run_id}/tool-calls/{call.call_id}/resolve/", json=word)
    assert resolved.status_code == 200, resolved.text
    assert ended(run) == "completed", house.report(run)
    assert [r.status for r in tree(run)] == ["completed"] * (LEVELS + 1)
    check_logs(run)
    call.refresh_from_db()
    assert (call.status, call.result) == ("succeeded", word["result"])
    changed = Approval.objects.get(replaces=approval)
    assert (changed.decided_by.username, changed.decisions.count()) == ("approver", 1)
    (letter,) = letters(house)
    assert letter.recipients == ("ines@example.org",)
    message = letter.message
    assert (message["To"], message["Subject"]) == ("ines@example.org", LETTER["subject"])
    assert message.get_content().strip() == LETTER["body"]
    assert message["Message-ID"] == f"<{call.idempotency_key[:32]}@deputy.localhost>"
