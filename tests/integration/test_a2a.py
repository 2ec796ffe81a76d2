"""A2A: other agents give tasks to a published project or group, watch, answer and cancel them."""

import json
from datetime import timedelta

import pytest
from django.conf import settings as configured
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from groups.models import Membership, Token
from runs.execution import executor
from runs.models import A2ATask, Approval, Run, RunEvent, WebhookDelivery, WebhookEndpoint
from runs.webhooks import sending
from tests.a2a_client import A2A, fits, message
from tests.acting import approve
from tests.factories import MembershipFactory, ProjectFactory, permit
from tests.integration.test_webhooks import decider, receiver  # noqa: F401
from tests.scripted import Scripted, call, in_order, say

pytestmark = pytest.mark.django_db

MAIL = {"to": ["a@example.com"], "subject": "Hello", "body": "Text"}
QUESTION = call(("ask_user", {"question": "Which year?"}))


@pytest.fixture(autouse=True)
def _answered_at_once(settings):
    settings.A2A_HOLD_SECONDS = 0


@pytest.fixture
def place(world):
    """The address of the published project."""
    world.project.published = True
    world.project.save()
    return f"/a2a/projects/{world.project.pk}"


@pytest.fixture
def peer(world, place):
    return A2A(world.user, world.organization, place)


@pytest.fixture
def voice(world, place):
    return A2A(world.user, world.organization, place, [*peer_scopes(), "speak_as_person"])


def peer_scopes():
    return ["runs:read", "runs:write"]


def play(*replies):
    Scripted.play = staticmethod(in_order(*replies))


def work(task):
    executor.run(task["id"])


def reason(error):
    assert {"code", "message", "data"} == error.keys(), error
    return error["code"], error["data"][0]["reason"]


def test_nothing_is_published_until_somebody_says_so(world):
    for path in (f"/a2a/projects/{world.project.pk}", f"/a2a/groups/{world.group.pk}"):
        assert Client().get(f"{path}/.well-known/agent-card.json").status_code == 404
        assert A2A(world.user, world.organization, path).post("", {}).status_code == 404


def test_anybody_reads_the_card_of_what_is_published(world, place):
    world.group.published = True
    world.group.save()
    answer = Client().get(f"{place}/.well-known/agent-card.json")
    card = fits("AgentCard", answer.json())
    assert card["name"] == "Atlas"
    assert {each["url"] for each in card["supportedInterfaces"]} == {configured.PUBLIC_URL + place}
    again = Client().get(f"{place}/.well-known/agent-card.json", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "max-age" in answer["Cache-Control"]
    of_group = Client().get(f"/a2a/groups/{world.group.pk}/.well-known/agent-card.json").json()
    assert fits("AgentCard", of_group)["description"] == "Competitor and market analysis"


def test_a_message_starts_a_run_and_the_task_shows_how_it_stands(peer):
    play(say("6 euros."))
    task = peer.send("What do they charge?")
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    work(task)

    done = peer.rpc("GetTask", {"id": task["id"]})
    assert done["status"]["state"] == "TASK_STATE_COMPLETED"
    assert done["artifacts"][0]["parts"][0]["text"] == "6 euros."
    assert done["contextId"] == task["contextId"]
    assert [(said["role"], said["messageId"]) for said in done["history"]] == [
        ("ROLE_USER", "m-1"), ("ROLE_AGENT", f"{task['id']}:4")
    ]  # fmt: skip
    assert "history" not in peer.rpc("GetTask", {"id": task["id"], "historyLength": 0})
    rest = peer.get(f"/tasks/{task['id']}", historyLength=1)
    assert rest["Content-Type"] == "application/json"
    asked = {**peer.headers, "Accept": "application/a2a+json"}
    assert peer.client.get(peer.path + "/tasks", headers=asked)["Content-Type"] == asked["Accept"]
    assert [said["role"] for said in fits("Task", rest.json())["history"]] == ["ROLE_AGENT"]


def test_what_a_client_says_is_text_from_outside_unless_its_token_speaks_as_its_person(peer, voice):
    play()
    for client, outside in ((peer, True), (voice, False)):
        task = client.send("Count the chairs", id=f"of {outside}")
        first = RunEvent.objects.get(run=task["id"], seq=2).payload
        assert bool(first.get("outside")) is outside


def test_the_same_message_again_is_the_same_task(peer, world):
    play()
    task = peer.send("Count the chairs")
    assert peer.send("Count the chairs")["id"] == task["id"]
    assert (
        peer.post("/message:send", {"message": message("Count the chairs")}).json()["task"]["id"]
        == task["id"]
    )
    assert Run.objects.count() == 1
    assert reason(peer.send("Count the tables")) == (-32602, "INVALID_PARAMS")
    other = A2A(world.user, world.organization, peer.path)  # another client's ids are its own
    assert other.send("Count the chairs")["id"] != task["id"]


def test_a_question_is_answered_by_a_message_of_who_speaks_as_the_person(peer, voice):
    play(QUESTION, say("Done."))
    task = voice.send("What did they charge?")
    work(task)
    asked = voice.rpc("GetTask", {"id": task["id"]})["status"]
    assert (asked["state"], asked["message"]["parts"][0]["text"]) == (
        "TASK_STATE_INPUT_REQUIRED",
        "Which year?",
    )

    still = peer.send("2026", id="m-2", taskId=task["id"])
    assert still["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    told = voice.send("2025", id="m-3", taskId=task["id"], contextId=task["contextId"])
    assert told["status"]["state"] == "TASK_STATE_WORKING"
    work(task)
    assert voice.rpc("GetTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_message_never_decides_an_approval(voice, rule, world):
    permit(world.user, "runs.start_run", "runs.decide_approval")
    play(call(("send_email", MAIL)), say("Sent."))
    task = voice.send("Write to them")
    work(task)
    told = voice.rpc("GetTask", {"id": task["id"]})["status"]
    approval = Approval.objects.get()
    assert told["state"] == "TASK_STATE_AUTH_REQUIRED"
    words = told["message"]["parts"][0]["text"]
    assert "send_email" in words and f"/approvals/{approval.pk}/" in words

    data = {
        "approved": True,
        "arguments_digest": approval.arguments_digest,
        "correlation_key": approval.correlation_key,
    }
    said = {**message("approve", "m-2", taskId=task["id"]), "parts": [{"text": "I approve"}, {"data": data}]}
    after = voice.rpc("SendMessage", {"message": said})["task"]
    approval.refresh_from_db()
    assert (after["status"]["state"], approval.status) == ("TASK_STATE_AUTH_REQUIRED", "pending")
    approve(approval.pk, decider(world))
    assert voice.rpc("GetTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_WORKING"


def test_a_task_is_cancelled_once_and_then_takes_no_word(peer):
    play()
    task = peer.send("Count the chairs")
    assert peer.rpc("CancelTask", {"id": task["id"]})["status"]["state"] == "TASK_STATE_CANCELED"
    assert reason(peer.rpc("CancelTask", {"id": task["id"]})) == (-32002, "TASK_NOT_CANCELABLE")
    assert reason(peer.send("More", id="m-2", taskId=task["id"])) == (-32004, "UNSUPPORTED_OPERATION")
    assert reason(peer.rpc("SubscribeToTask", {"id": task["id"]})) == (-32004, "UNSUPPORTED_OPERATION")
    rest = peer.post(f"/tasks/{task['id']}:cancel", {})
    assert (rest.status_code, rest.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")


def test_tasks_are_listed_by_what_moved_last_and_page_by_page(peer):
    play(say("One."), QUESTION)
    first, second, third = (peer.send(f"Count {n}", id=f"m-{n}", contextId="c") for n in range(3))
    work(first)
    work(second)
    ids = [task["id"] for task in peer.rpc("ListTasks", {})["tasks"]]
    assert ids == [second["id"], first["id"], third["id"]]
    page = peer.rpc("ListTasks", {"pageSize": 2})
    assert (page["totalSize"], page["pageSize"], len(page["tasks"])) == (3, 2, 2)
    rest = fits("ListTasksResponse", peer.get("/tasks", pageSize=2, pageToken=page["nextPageToken"]).json())
    assert ([task["id"] for task in rest["tasks"]], rest["nextPageToken"]) == ([third["id"]], "")
    for state, found in {
        "TASK_STATE_COMPLETED": first, "TASK_STATE_INPUT_REQUIRED": second, "TASK_STATE_SUBMITTED": third
    }.items():  # fmt: skip
        listed = peer.rpc("ListTasks", {"status": state, "contextId": "c", "includeArtifacts": True})["tasks"]
        assert [(task["id"], task["status"]["state"]) for task in listed] == [(found["id"], state)]
        assert ("artifacts" in listed[0]) is (found is first)
    assert peer.rpc("ListTasks", {"contextId": "d"})["tasks"] == []
    later = (timezone.now() + timedelta(hours=1)).isoformat()
    assert peer.rpc("ListTasks", {"statusTimestampAfter": later})["totalSize"] == 0


def test_a_group_takes_tasks_at_an_address_of_its_own(world, peer):
    world.group.published = True
    world.group.save()
    play()
    group = A2A(world.user, world.organization, f"/a2a/groups/{world.group.pk}")
    task = group.send("What do they charge?")
    wanted = RunEvent.objects.get(run=task["id"], seq=1).payload["escalate_to"]
    assert wanted["group_id"] == world.group.pk
    assert reason(peer.rpc("GetTask", {"id": task["id"]})) == (-32001, "TASK_NOT_FOUND")
    assert group.rpc("ListTasks", {})["totalSize"] == 1


# Whom it lets in


def test_what_is_not_seen_is_not_found(world, peer, place, ask):
    play()
    task = peer.send("Count the chairs")
    elsewhere = MembershipFactory(organization=ProjectFactory().organization)
    stranger = A2A(elsewhere.user, elsewhere.organization, place)
    assert stranger.post("", {}).status_code == 404
    limited = MembershipFactory(organization=world.organization, projects=["prj_other"])
    assert A2A(limited.user, world.organization, place).get(f"/tasks/{task['id']}").status_code == 404
    own = ask(in_order(say("Done.")))  # a run that nobody started over A2A is no task
    for id in (own.pk, "run_nothing", "x", 7, None):
        assert reason(peer.rpc("GetTask", {"id": id})) == (-32001, "TASK_NOT_FOUND")
    rest = peer.get(f"/tasks/{own.pk}")
    assert (rest.status_code, rest.json()["error"]["details"][0]["reason"]) == (404, "TASK_NOT_FOUND")


def test_without_a_token_nobody_is_let_in_and_told_where_to_get_one(place):
    for answer in (Client().post(place, {}, "application/json"), Client().get(f"{place}/tasks")):
        assert answer.status_code == 401
        assert f"/.well-known/oauth-protected-resource{place}" in answer["WWW-Authenticate"]
    described = Client().get(f"/.well-known/oauth-protected-resource{place}").json()
    assert described["resource"].endswith(place)


def test_a_token_reaches_as_far_as_its_scopes(world, place):
    reader = A2A(world.user, world.organization, place, ["runs:read"])
    refused = reader.post(
        "", {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message("x")}}
    )
    assert (refused.status_code, refused.json()["error"]["data"][0]["reason"]) == (403, "SCOPE_MISSING")
    assert reader.rpc("ListTasks", {})["tasks"] == []
    writer = A2A(world.user, world.organization, place, ["runs:write"])
    assert writer.get("/tasks").status_code == 403
    assert not Run.objects.exists()


def test_a_colleague_looks_and_does_no_more(world, peer, place):
    play()
    task = peer.send("Count the chairs")
    colleague = A2A(
        permit(MembershipFactory(organization=world.organization).user), world.organization, place
    )
    assert colleague.rpc("GetTask", {"id": task["id"]})["id"] == task["id"]
    for method, params in {
        "CancelTask": {"id": task["id"]},
        "SendMessage": {"message": message("Stop", taskId=task["id"])},
        "CreateTaskPushNotificationConfig": {"taskId": task["id"], "url": "https://93.184.216.34/"},
    }.items():
        assert colleague.rpc(method, params)["data"][0]["reason"] == "NOT_ENTITLED", method
    assert Run.objects.get().status == "pending" and not WebhookEndpoint.objects.exists()


# What is no A2A 1.0


def said(parts, **fields):
    return {"message": {"messageId": "m", "role": "ROLE_USER", "parts": parts, **fields}}


WORDS = [{"text": "x"}]
REFUSED = [
    ("SendMessage", {}, "INVALID_PARAMS"),
    ("SendMessage", {"message": []}, "INVALID_PARAMS"),
    ("SendMessage", said(WORDS, role="ROLE_AGENT"), "INVALID_PARAMS"),
    ("SendMessage", said(WORDS, messageId=""), "INVALID_PARAMS"),
    ("SendMessage", said(WORDS, messageId="m" * 201), "INVALID_PARAMS"),
    ("SendMessage", said(WORDS, contextId="a\nb"), "INVALID_PARAMS"),
    ("SendMessage", said([]), "INVALID_PARAMS"),
    ("SendMessage", said([{"text": " "}]), "INVALID_PARAMS"),
    ("SendMessage", said([{"text": 7}]), "INVALID_PARAMS"),
    ("SendMessage", said([{"text": "x" * 50_001}]), "INVALID_PARAMS"),
    ("SendMessage", said([{"text": "x", "url": "y"}]), "INVALID_PARAMS"),
    ("SendMessage", said([{"url": "https://example.org/a.png"}]), "CONTENT_TYPE_NOT_SUPPORTED"),
    ("SendMessage", said([{"raw": "AAAA"}]), "CONTENT_TYPE_NOT_SUPPORTED"),
    ("SendMessage", said(WORDS, taskId="run_x"), "TASK_NOT_FOUND"),
    (
        "SendMessage",
        {**said(WORDS), "configuration": {"acceptedOutputModes": ["image/png"]}},
        "CONTENT_TYPE_NOT_SUPPORTED",
    ),
    ("SendMessage", {**said(WORDS), "configuration": {"returnImmediately": "yes"}}, "INVALID_PARAMS"),
    ("SendStreamingMessage", said([]), "INVALID_PARAMS"),
    ("SubscribeToTask", {"id": "run_x"}, "TASK_NOT_FOUND"),
    ("GetTask", {"id": "run_x"}, "TASK_NOT_FOUND"),
    ("ListTasks", {"pageSize": 101}, "INVALID_PARAMS"),
    ("ListTasks", {"pageToken": "x"}, "INVALID_PARAMS"),
    ("ListTasks", {"status": "working"}, "INVALID_PARAMS"),
    ("ListTasks", {"status": ["TASK_STATE_WORKING"]}, "INVALID_PARAMS"),
    ("ListTasks", {"statusTimestampAfter": "9999-12-31T23:59:59-23:59"}, "INVALID_PARAMS"),
    ("ListTasks", {"statusTimestampAfter": "2026-13-45T00:00:00Z"}, "INVALID_PARAMS"),
    ("ListTasks", {"historyLength": -1}, "INVALID_PARAMS"),
    ("GetExtendedAgentCard", {}, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    ("message/send", {}, "METHOD_NOT_FOUND"),
    ("tasks/resubscribe", {}, "METHOD_NOT_FOUND"),
]


def test_what_does_not_fit_is_refused_by_its_reason_and_does_nothing(peer):
    for method, params, why in REFUSED:
        assert reason(peer.rpc(method, params))[1] == why, (method, params)
    assert not Run.objects.exists()


def test_a_body_that_is_no_call_is_refused(peer):
    def code(body, type="application/json"):
        answer = peer.client.post(peer.path, body, type, headers=peer.headers)
        return answer.json()["error"]["code"]

    form = peer.client.post(peer.path, {"a": SimpleUploadedFile("a", b"{}")}, headers=peer.headers)
    assert form.json()["error"]["data"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    assert code("{") == -32700
    assert code('{"a": 1, "a": 2}') == -32700
    assert code("[]") == code('{"jsonrpc": "1.0", "method": "GetTask"}') == -32600
    assert code(json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}])) == -32600
    assert code("{}", "text/plain") == -32005


def test_only_version_one_is_spoken(peer):
    call = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}
    for version in ("", "0.3", "0.3.0", "2.0", "1.1", "x"):
        error = peer.post("", call, A2A_Version=version).json()["error"]
        assert reason(error) == (-32009, "VERSION_NOT_SUPPORTED"), version
    assert "result" in peer.post("", call, A2A_Version="1.0.1").json()
    assert "result" in peer.post("?A2A-Version=1.0", call, A2A_Version="").json()
    rest = peer.client.get(peer.path + "/tasks", headers={"Authorization": peer.headers["Authorization"]})
    assert rest.status_code == 400


def test_a_task_of_another_context_is_not_spoken_to(peer):
    play()
    task = peer.send("Count the chairs")
    assert reason(peer.send("x", id="m-2", taskId=task["id"], contextId="another")) == (
        -32602,
        "INVALID_PARAMS",
    )


# Push notifications


def push(peer, task, url="https://93.184.216.34/told", **fields):
    return peer.rpc("CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": url, **fields})


def test_configs_are_made_looked_at_and_deleted_and_their_secrets_told_to_nobody(peer, world, place):
    play()
    task = peer.send("Count the chairs")
    secret = {"token": "t0ken", "authentication": {"scheme": "Bearer", "credentials": "cr3dential"}}
    made = push(peer, task, **secret)
    assert made.keys() == {"id", "taskId", "url"}
    named = {"id": "of mine", "url": "https://93.184.216.34/"}
    for _ in range(2):  # the same id is the same config
        posted = peer.post(f"/tasks/{task['id']}/pushNotificationConfigs", named).json()
        assert fits("TaskPushNotificationConfig", posted)["id"] == "of mine"
    assert peer.get(f"/tasks/{task['id']}/pushNotificationConfigs/of mine").json() == posted
    assert peer.rpc("DeleteTaskPushNotificationConfig", {"task_id": task["id"], "id": "of mine"}) == {}
    about = {"taskId": task["id"], "id": made["id"]}
    assert peer.rpc("GetTaskPushNotificationConfig", about) == made
    assert peer.get(f"/tasks/{task['id']}/pushNotificationConfigs").json()["configs"] == [made]
    assert "t0ken" not in WebhookEndpoint.objects.get().sealed_headers
    permitted = permit(MembershipFactory(organization=world.organization).user, "runs.cancel_run")
    other = A2A(permitted, world.organization, place)
    assert other.rpc("ListTaskPushNotificationConfigs", {"taskId": task["id"]})["configs"] == []
    assert reason(other.rpc("GetTaskPushNotificationConfig", about)) == (-32001, "TASK_NOT_FOUND")
    other.rpc("DeleteTaskPushNotificationConfig", about)
    assert WebhookEndpoint.objects.count() == 1
    assert peer.delete(f"/tasks/{task['id']}/pushNotificationConfigs/{made['id']}").status_code == 200
    assert peer.rpc("DeleteTaskPushNotificationConfig", about) == {}
    assert not WebhookEndpoint.objects.exists()


def test_a_push_address_that_is_not_public_is_refused_and_nothing_is_started(peer):
    play()
    task = peer.send("Count the chairs")
    for url in (
        "http://127.0.0.1/", "http://169.254.169.254/latest/", "http://[::1]/", "http://10.0.0.1/",
        "file:///etc/passwd", "x", "https://xn--a.example/"
    ):  # fmt: skip
        assert reason(push(peer, task, url))[1] == "INVALID_PARAMS", url
        config = {"taskPushNotificationConfig": {"url": url}}
        refused = peer.rpc("SendMessage", {"message": message("More", "m-2"), "configuration": config})
        assert reason(refused)[1] == "INVALID_PARAMS"
    assert reason(push(peer, task, token="a\r\nb"))[1] == "INVALID_PARAMS"
    assert reason(push(peer, task, authentication={"scheme": "Bearer x\r\n"}))[1] == "INVALID_PARAMS"
    assert Run.objects.count() == 1 and not WebhookEndpoint.objects.exists()
    for _ in range(5):
        push(peer, task)
    assert reason(push(peer, task))[1] == "INVALID_PARAMS"


def test_a_task_that_moves_is_told_in_order_with_the_clients_own_headers(peer, rule, receiver):  # noqa: F811
    play(call(("send_email", MAIL)), say("Sent."))
    task = peer.send("Write to them")
    push(peer, task, receiver.url, token="t0ken", authentication={"scheme": "Bearer", "credentials": "c"})
    work(task)
    for delivery in WebhookDelivery.objects.order_by("pk"):
        sending.send(delivery.pk)
    told = [fits("StreamResponse", json.loads(body))["statusUpdate"] for _, body in receiver.got]
    assert [each["status"]["state"] for each in told] == ["TASK_STATE_WORKING", "TASK_STATE_AUTH_REQUIRED"]
    assert {(each["taskId"], each["contextId"]) for each in told} == {(task["id"], task["contextId"])}
    assert "send_email" in told[1]["status"]["message"]["parts"][0]["text"]
    headers = {name.lower(): value for name, value in receiver.got[0][0].items()}
    assert (headers["x-a2a-notification-token"], headers["authorization"]) == ("t0ken", "Bearer c")
    assert headers["content-type"] == "application/a2a+json"


def test_the_end_is_told_with_the_output_before_it(peer, receiver):  # noqa: F811
    play(say("6 euros."))
    config = {"taskPushNotificationConfig": {"url": receiver.url}}
    task = peer.rpc("SendMessage", {"message": message("What?"), "configuration": config})["task"]
    other = peer.send("Another", id="m-2")
    work(task)
    assert set(WebhookDelivery.objects.values_list("endpoint__run", flat=True)) == {task["id"]}
    for delivery in WebhookDelivery.objects.order_by("pk"):
        sending.send(delivery.pk)
    told = [fits("StreamResponse", json.loads(body)) for _, body in receiver.got]
    assert [next(iter(each)) for each in told] == ["statusUpdate", "artifactUpdate", "statusUpdate"]
    assert told[1]["artifactUpdate"]["artifact"]["parts"][0]["text"] == "6 euros."
    assert told[2]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert other["id"] not in str(told)
    endpoint = WebhookEndpoint.objects.get()  # nothing more is to come
    assert (endpoint.enabled, endpoint.disabled_because) == (False, "The task has ended.")
    push(peer, task, receiver.url)
    assert not WebhookEndpoint.objects.filter(enabled=True).exists()
    WebhookEndpoint.objects.update(created_at=timezone.now() - timedelta(days=31))
    sending.forget()  # the other's messages are still in the log
    assert list(WebhookEndpoint.objects.values_list("pk", flat=True)) == [endpoint.pk]


@pytest.mark.parametrize("lost", ["token", "membership", "scope"])
def test_nothing_more_is_sent_for_who_no_longer_sees_the_task(peer, world, receiver, lost):  # noqa: F811
    play(say("6 euros."))
    task = peer.send("What?")
    push(peer, task, receiver.url)
    work(task)
    if lost == "token":
        Token.objects.filter(pk=peer.token.pk).update(revoked_at=timezone.now())
    elif lost == "scope":
        Token.objects.filter(pk=peer.token.pk).update(scopes=["runs:write"])
    else:
        Membership.objects.filter(user=world.user).update(projects=[])
    for delivery in WebhookDelivery.objects.order_by("pk"):
        sending.send(delivery.pk)
    assert receiver.got == []
    endpoint = WebhookEndpoint.objects.get()
    assert not endpoint.enabled and "no longer" in endpoint.disabled_because


def test_webhooks_of_the_organization_do_not_show_them(peer, world):
    from tests.integration.api_client import Api

    play()
    push(peer, peer.send("Count the chairs"))
    permit(world.user, "runs.view_webhookendpoint", "runs.add_webhookendpoint", "runs.change_webhookendpoint")
    assert Api(world.user, world.organization).get("webhooks/").json()["results"] == []


def test_a_task_row_says_whose_it_is(peer, world):
    play()
    task = A2ATask.objects.get(pk=peer.send("Count the chairs")["id"])
    assert (task.organization, task.project, task.group) == (world.organization, world.project, None)
