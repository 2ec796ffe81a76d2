"""The official clients of A2A and AG-UI against Deputy: `pip install -r requirements-peers.txt`."""

import asyncio
import json

import httpx
import pytest

from groups.models import Token
from runs.models import Run
from tests.integration.test_a2a_tck import Worker
from tests.integration.test_agui import person, server  # noqa: F401
from tests.scripted import Scripted, call, say
from tests.server import serving

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

QUESTION = call(("ask_user", {"question": "Which year?"}))


def answers(messages, facts):
    return say("6 euros.") if "2025" in str(messages) or "charge" in str(messages) else QUESTION


@pytest.fixture
def working():
    Scripted.play = staticmethod(answers)
    worker = Worker()
    worker.start()
    yield
    worker.stop.set()
    worker.join(10)


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_official_a2a_client_asks_answers_lists_cancels_and_is_told(world, settings, working, binding):
    pytest.importorskip("a2a.client")
    world.project.published = True
    world.project.save()
    scopes = ["runs:read", "runs:write", "speak_as_person"]
    _, secret = Token.objects.issue(world.organization, world.user, scopes=scopes)
    settings.PUBLIC_URL = "http://placeholder"
    with serving() as address:
        settings.PUBLIC_URL = address
        asyncio.run(asyncio.wait_for(use(address + f"/a2a/projects/{world.project.pk}", secret, binding), 60))
    assert not Run.objects.filter(status__in=["pending", "running"]).exists()


async def use(address, secret, binding):
    from a2a import types
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
    from a2a.utils.errors import TaskNotFoundError, UnsupportedOperationError

    def said(words, id, **fields):
        parts = [types.Part(text=words)]
        message = types.Message(message_id=id, role=types.Role.ROLE_USER, parts=parts, **fields)
        return types.SendMessageRequest(message=message)

    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(headers=headers, timeout=20) as http:
        card = await A2ACardResolver(http, address).get_agent_card()
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding])
        client = ClientFactory(config).create(card)
        told = [one async for one in client.send_message(said("What do they charge?", "m-1"))]
        kinds = [one.WhichOneof("payload") for one in told]
        assert kinds == ["task", "status_update", "artifact_update", "status_update"]
        assert told[-1].status_update.status.state == types.TaskState.TASK_STATE_COMPLETED
        assert told[2].artifact_update.artifact.parts[0].text == "6 euros."

        told = [one async for one in client.send_message(said("Ask me", "m-2"))]
        task = told[0].task.id
        assert told[-1].status_update.status.message.parts[0].text == "Which year?"
        answer = said("2025", "m-3", task_id=task)
        assert [one async for one in client.send_message(answer)][-1].status_update.status.state == (
            types.TaskState.TASK_STATE_COMPLETED
        )
        found = await client.get_task(types.GetTaskRequest(id=task))
        assert [each.parts[0].text for each in found.history][-1] == "6 euros."
        listed = await client.list_tasks(types.ListTasksRequest(page_size=1))
        assert (listed.total_size, len(listed.tasks), bool(listed.next_page_token)) == (2, 1, True)
        with pytest.raises(UnsupportedOperationError):
            _ = [one async for one in client.send_message(said("More", "m-4", task_id=task))]
        with pytest.raises(TaskNotFoundError):
            await client.get_task(types.GetTaskRequest(id="run_x"))

        told = [one async for one in client.send_message(said("Ask me again", "m-5"))]
        waiting = told[0].task.id
        push = types.TaskPushNotificationConfig(task_id=waiting, url="https://93.184.216.34/", token="t")
        made = await client.create_task_push_notification_config(push)
        configs = types.ListTaskPushNotificationConfigsRequest(task_id=waiting)
        assert [each.id for each in (await client.list_task_push_notification_configs(configs)).configs] == [
            made.id
        ]
        gone = await client.cancel_task(types.CancelTaskRequest(id=waiting))
        assert gone.status.state == types.TaskState.TASK_STATE_CANCELED


def test_the_official_types_of_ag_ui_read_every_event(person, working):  # noqa: F811
    core = pytest.importorskip("ag_ui.core")
    from pydantic import TypeAdapter

    adapter = TypeAdapter(core.Event)
    for words in ("What do they charge?", "Ask me"):
        asked = core.RunAgentInput(
            thread_id=words, run_id="r", messages=[core.UserMessage(id="m", content=words)], tools=[],
            context=[], state={}, forwarded_props={}, protocol_version="1.0",
        )  # fmt: skip
        body = json.loads(asked.model_dump_json(by_alias=True))
        with httpx.stream("POST", person.url, json=body, headers=person.headers, timeout=20) as answer:
            lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
        events = [adapter.validate_json(line.removeprefix("data: ")) for line in lines]
        outcome = events[-1].outcome
        assert outcome.type == ("success" if "charge" in words else "interrupt"), lines
