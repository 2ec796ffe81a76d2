"""Web Push in a real browser: it subscribes on the page of channels, and its worker shows what Deputy pushes.

The push service between the two is the browser maker's and out of reach here: the subscription names a server
of ours, and what that is sent is handed to the browser as its service would
(`ServiceWorker.deliverPushMessage`).
"""

import base64
import json
from typing import Any

import http_ece
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from playwright.sync_api import expect

from runs.models import Channel
from runs.notices import delivery
from tests.receiver import Receiver

from .test_own_page import DESK, somebody
from .world import acme

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SUBSCRIBES = """
(subscription) => {
  PushManager.prototype.subscribe = async (options) => {
    window.asked = { visible: options.userVisibleOnly, key: options.applicationServerKey.length };
    return { toJSON: () => subscription };
  };
}
"""
SHOWN = """
async () => (await (await navigator.serviceWorker.ready).getNotifications())
    .map(({ title, body, data }) => ({ title, body, url: data.url }))
"""


def text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_a_browser_subscribes_and_shows_what_is_pushed(open_page: Any, settings: Any) -> None:
    receiver, private, secret = Receiver(), ec.generate_private_key(ec.SECP256R1()), b"sixteen letters!"
    settings.NOTIFY_ALLOW = [receiver.place]
    point = private.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    keys = {"p256dh": text(point), "auth": text(secret)}
    made = acme()
    mia = somebody(made, "mia")
    page = open_page(mia, DESK, permissions=["notifications"])
    cdp = page.context.new_cdp_session(page)
    registered: list[str] = []
    cdp.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda said: registered.extend(one["registrationId"] for one in said["registrations"]),
    )
    cdp.send("ServiceWorker.enable")
    page.goto("/settings/notices/")
    page.evaluate(SUBSCRIBES, {"endpoint": f"http://{receiver.place}/push/1", "keys": keys})

    page.locator("[data-push] button").click()

    expect(page.get_by_role("status").first).to_contain_text("Added.")
    channel = Channel.objects.get(user=mia, kind="push")
    delivery.try_out(channel)
    body = receiver.got[-1][2]
    pushed = http_ece.decrypt(body, private_key=private, auth_secret=secret, version="aes128gcm").decode()
    assert json.loads(pushed)["title"] == "Deputy: a test"
    page.wait_for_function("navigator.serviceWorker.ready.then((one) => one.active.state === 'activated')")
    origin = page.evaluate("location.origin")
    cdp.send(
        "ServiceWorker.deliverPushMessage",
        {"origin": origin, "registrationId": registered[-1], "data": pushed},
    )

    page.wait_for_function(f"async () => (await ({SHOWN})()).length === 1")
    (shown,) = page.evaluate(SHOWN)
    assert shown["title"] == "Deputy: a test" and "messages from Deputy arrive here" in shown["body"]
    receiver.close()
