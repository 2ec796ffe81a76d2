"""An ASGI server in a thread of the tests' process, on the tests' database."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from django.db import connections

from common.bodies import limited
from common.web import Application


@contextmanager
def serving(around: Callable[[Any], Any] = lambda app: app) -> Iterator[str]:
    """The server's address. It keeps no connection between requests, so that the database can go.

    `around` may put something before the application.
    """
    kept = connections.settings["default"]["CONN_MAX_AGE"]
    connections.settings["default"]["CONN_MAX_AGE"] = 0
    listener = socket.create_server(("127.0.0.1", 0))
    application = Application()
    config = uvicorn.Config(
        limited(around(application)), log_level="error", lifespan="off", timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        running.should_exit = True
        thread.join(5)
        for lent in application.threads.free:
            lent.submit(connections.close_all).result()
            lent.shutdown()
        connections.settings["default"]["CONN_MAX_AGE"] = kept
