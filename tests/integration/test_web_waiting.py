"""A request that waits for something holds none of a web process's threads, with all the middleware."""

import asyncio

import pytest
from asgiref.sync import sync_to_async
from django.http import HttpResponse
from django.test import override_settings
from django.urls import path

from common.web import Application, let_go

pytestmark = pytest.mark.django_db(transaction=True)
go_on = asyncio.Event()


async def waits(request):
    await sync_to_async(str)("as a view that reads what it waits for")
    let_go()
    await go_on.wait()
    return HttpResponse("waited")


def passes(request):
    go_on.set()
    return HttpResponse("passed")


urlpatterns = [path("waits/", waits), path("passes/", passes)]


async def asked(application: Application, address: str) -> bytes:
    said = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
        "http_version": "1.1",
    }
    requests = [{"type": "http.request", "body": b""}]

    async def receive():
        if not requests:
            await asyncio.sleep(60)
        return requests.pop()

    async def send(message):
        said.append(message.get("body", b""))

    await application(scope, receive, send)
    return b"".join(said)


@override_settings(ROOT_URLCONF=__name__, WEB_THREADS=1)
def test_a_request_that_waits_keeps_nobody_waiting():
    application = Application()

    async def both():
        waiting = asyncio.create_task(asked(application, "/waits/"))
        await asyncio.sleep(0.5)
        passed = await asyncio.wait_for(asked(application, "/passes/"), 10)
        return passed, await asyncio.wait_for(waiting, 10)

    assert asyncio.run(both()) == (b"passed", b"waited")
