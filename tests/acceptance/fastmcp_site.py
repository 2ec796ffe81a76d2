"""An MCP server by FastMCP with its tasks: `python fastmcp_site.py PORT FILE`, by an interpreter that has it.

FILE gets a line for each thing that a tool has done.
"""

import asyncio
import sys
from pathlib import Path

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension

server = FastMCP("peer")
server.add_extension(TasksExtension())
book = Path(sys.argv[2])


def note(words: str) -> None:
    with book.open("a") as kept:
        kept.write(words + "\n")


@server.tool(task=True)
async def book_seats(seconds: float) -> str:
    """Books seats, which takes a while."""
    note("began")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    note("booked")
    return "Seats 4 and 5 are booked."


@server.tool(task=True)
async def fail_slowly() -> str:
    """Fails."""
    await asyncio.sleep(0.2)
    raise ValueError("The hall is closed.")


@server.tool(task=True)
async def ask_first(ctx: Context) -> str | types.InputRequiredResult:
    """Asks how many."""
    if not ctx.input_responses:
        schema = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
        params = {"mode": "form", "message": "How many seats?", "requestedSchema": schema}
        asks = {"q": {"method": "elicitation/create", "params": params}}
        return types.InputRequiredResult.model_validate(
            {"resultType": "input_required", "inputRequests": asks}
        )
    answer = ctx.input_responses["q"]
    content = answer["content"] if isinstance(answer, dict) else answer.content
    note(f"asked {content['seats']}")
    return f"{content['seats']} seats are booked."


@server.resource("docs://hall", mime_type="text/plain")
def hall() -> str:
    """What the hall is like."""
    return "The hall has 40 seats."


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, stateless_http=True)
