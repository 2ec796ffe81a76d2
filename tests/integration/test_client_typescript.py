"""The client for TypeScript, built as it is published, against a real server with a person and a worker."""

# ruff: noqa: F811 - fixtures of other modules
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from django.core import mail
from django.test import override_settings

from tests.acting import approve

from .api_client import Api
from .test_api_stream import server  # noqa: F401
from .test_external_example import person  # noqa: F401

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROGRAM = """
import { Deputy, DeputyError, TimedOut, patient } from "./dist/index.js";
const deputy = new Deputy(process.env.URL, process.env.TOKEN);
const run = await deputy.drive(process.env.PROJECT, "Write to Ines");
const letter = { to: ["ines@example.org"], subject: "Prices", body: "5" };
const sent = await deputy.call(run.id, "send_email", letter, { callId: "1" });
await deputy.call(run.id, "send_email", letter, { callId: "1" });
const late = await deputy.wait(run.id, 300).catch((error) => error instanceof TimedOut);
await deputy.complete(run.id, "Sent");
const types = [];
for await (const event of deputy.events(run.id)) types.push(event.type);
const refused = await deputy.cancel(run.id).catch((error) => error);
let asked = 0, waited = 0;
const busy = async () => new Response("", asked++ ? {} : { status: 429, headers: { "Retry-After": "7" } });
await patient(busy, async (ms) => { waited += ms; })(new Request("http://127.0.0.1/", { method: "POST" }));
console.log(JSON.stringify({
  sent, types, late, code: refused instanceof DeputyError && refused.code, asked, waited,
  approvals: await deputy.approvals(), status: (await deputy.wait(run.id)).status,
}));
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Where the package has been built; npm gets what it needs."""
    if shutil.which("npm") is None:
        pytest.skip("the client for TypeScript needs node and npm")
    made = tmp_path_factory.mktemp("client")
    package = made / "clients" / "typescript"
    leave = shutil.ignore_patterns("node_modules", "dist", "schema.d.ts")
    shutil.copytree(ROOT / "clients" / "typescript", package, ignore=leave)
    (made / "tests" / "data").mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "data" / "openapi.yaml", made / "tests" / "data")
    for command in (["npm", "install", "--silent", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        subprocess.run(command, cwd=package, check=True, timeout=400, capture_output=True)
    (package / "program.mjs").write_text(PROGRAM)
    return package


def test_a_program_in_javascript_works_through_an_approval(client, server, world, rule, person):
    person(approve)
    told = {"URL": server, "TOKEN": Api(world.user, world.organization).secret, "PROJECT": world.project.slug}
    with override_settings(ALLOWED_HOSTS=["127.0.0.1"]):
        command = ["node", "program.mjs"]
        done = subprocess.run(
            command, cwd=client, env=os.environ | told, capture_output=True, text=True, timeout=90
        )

    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["sent"]["status"], said["sent"]["result"]["sent"], len(mail.outbox)) == ("succeeded", 1, 1)
    assert (said["types"][0], said["types"][-1]) == ("run.created", "run.completed")
    assert "tool.approved" in said["types"]
    assert (said["late"], said["code"], said["status"]) == (True, "RUN_ENDED", "completed")
    assert (said["asked"], said["waited"], said["approvals"]) == (2, 7000, [])
