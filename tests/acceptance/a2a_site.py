"""An agent made with the official SDK for A2A, in its own environment: `python a2a_site.py PORT FILE`.

Its answers are by the words it is told; the file gets a line for each task that it was asked to cancel.
"""

import asyncio
import sys

import uvicorn
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Part,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette


class Scout(AgentExecutor):
    async def execute(self, context, event_queue):
        words = context.get_user_input()
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        if context.current_task is None:
            status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            task = Task(id=context.task_id, context_id=context.context_id, status=status)
            await event_queue.enqueue_event(task)
        await updater.start_work()
        if "question" in words:
            await updater.requires_input(updater.new_agent_message([Part(text="Which year?")]))
            return
        await asyncio.sleep(600 if "for ever" in words else 2 if "long" in words else 0)
        if "fail" in words:
            await updater.failed(updater.new_agent_message([Part(text="No prices today.")]))
            return
        await updater.add_artifact([Part(text=f"Rival A charges 5 ({words}).")])
        await updater.complete()

    async def cancel(self, context, event_queue):
        with open(sys.argv[2], "a") as file:
            file.write(f"{context.task_id}\n")
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main():
    address = f"http://127.0.0.1:{sys.argv[1]}"
    interface = {"protocol_version": "1.0", "url": address}
    card = AgentCard(
        name="Scout",
        description="Looks up prices.",
        version="1",
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="p", name="Prices", description="Knows prices", tags=["prices"])],
        supported_interfaces=[AgentInterface(protocol_binding=sys.argv[3], **interface)],
    )
    handler = DefaultRequestHandler(Scout(), InMemoryTaskStore(), card)
    made = create_jsonrpc_routes(handler, "/") if sys.argv[3] == "JSONRPC" else create_rest_routes(handler)
    app = Starlette(routes=[*create_agent_card_routes(card), *made])
    uvicorn.run(app, port=int(sys.argv[1]), log_level="warning")


main()
