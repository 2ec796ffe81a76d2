"""A request that waits for something holds none of a web process's threads, with all the middleware."""

import asyncio

import httpx2
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


@override_settings(ROOT_URLCONF=__name__, WEB_THREADS=1)
def test_a_request_that_waits_keeps_nobody_waiting():
    application = Application()

    async def both():
        to = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=to, base_url="http://testserver") as client:
            waiting = asyncio.create_task(client.get("/waits/"))
            await asyncio.sleep(0.5)
            passed = await asyncio.wait_for(client.get("/passes/"), 10)
            return passed.content, (await asyncio.wait_for(waiting, 10)).content

    assert asyncio.run(both()) == (b"passed", b"waited")
    for thread in application.threads.free:
        thread.shutdown()
