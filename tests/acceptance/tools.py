"""Tools with an effect outside the database: each call is told to the witness."""

import os
import signal
import time
import urllib.request
from typing import Annotated
from urllib.parse import urlencode

from django.conf import settings

from runs.tools.base import ToolContext
from runs.tools.registry import tool


@tool(description="An effect that happens again when called again.", mutating=True, supports_parallel=False)
def effect(run: ToolContext, *, name: Annotated[str, "Which"]) -> str:
    return tell(run, name)


@tool(description="An effect that takes its time.", mutating=True, supports_parallel=False)
def slow_effect(run: ToolContext, *, name: Annotated[str, "Which"]) -> str:
    time.sleep(3)
    return tell(run, name)


@tool(
    description="An effect that an outside service does once for a key.",
    mutating=True,
    supports_parallel=False,
    idempotent=True,
)
def keyed_effect(run: ToolContext, *, name: Annotated[str, "Which"]) -> str:
    return tell(run, name)


@tool(description="Takes its time.", idempotent=True)
def nap(run: ToolContext, *, seconds: Annotated[float, "How long"]) -> str:
    tell(run, "nap")
    time.sleep(seconds)
    return "slept"


@tool(description="Takes its process down.", idempotent=True)
def poison(run: ToolContext) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return "never said"


def tell(run: ToolContext, name: str) -> str:
    """Tell the witness and wait for its answer: then the effect has happened."""
    told = urlencode({"name": name, "run": run.run_id, "key": run.idempotency_key})
    urllib.request.urlopen(settings.DEPUTY_WITNESS, told.encode(), timeout=10).read()
    return f"{name} done"
