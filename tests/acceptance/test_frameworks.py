"""The recipes of docs/frameworks.md, taken from the page, against a real server with workers."""

import os
import re
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest

from groups.models import Token
from launch.home import PROJECT
from runs.models import Approval, Run, ToolCall
from tests.acceptance.house import check_logs, until
from tests.acceptance.web import Web
from tests.acting import approve, reject
from tests.environments import python_with
from tests.factories import MembershipFactory, permit
from tests.model_server import Answer, ModelServer, Received, asks_for, says

pytestmark = pytest.mark.slow

PAGE = (PROJECT / "docs" / "frameworks.md").read_text("utf-8")
SECTION = re.compile(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OVER_MCP, OVER_REST = (
    dict(SECTION.findall(part)) for part in re.split(r"(?=^## Over REST)", PAGE, flags=re.M)
)
FRAMEWORKS = ("LangGraph", "OpenAI Agents SDK", "pydantic-ai", "CrewAI", "smolagents")
DONE = "Ines has been written to."
MOST_TURNS = 12


def blocks(text, kind):
    """The text of the blocks of one language."""
    return [block for named, block in BLOCK.findall(text) if named == kind]


def recipe_of(framework, number=-1):
    return blocks(OVER_MCP[framework], "python")[number]


def installed(*sections):
    """The pinned packages that the sections tell people to install."""
    lines = [line for text in sections for block in blocks(text, "sh") for line in block.splitlines()]
    (packages,) = [[line.split()[2:] for line in lines if line.startswith("pip install ")]]
    return [name.strip('"') for names in packages for name in names]


def python_of(framework):
    return python_with(installed(OVER_MCP[framework], OVER_REST["Over REST"]))


# The model


class Colleague:
    """A scripted model: looks up the groups, writes to Ines, and asks again as long as that is not done."""

    def __init__(self, subject):
        self.subject, self.turns = subject, []

    def __call__(self, request: Received) -> Answer:
        heard = [text_of(message) for message in request.body["messages"]
                 if message["role"] not in ("system", "developer", "assistant")]  # fmt: skip
        self.turns.append(heard[-1])
        offered = [tool["function"]["name"] for tool in request.body.get("tools", ())]
        named = {name: found for name in ("list_available_groups", "send_email", "final_answer")
                 for found in offered if found.endswith(name)}  # fmt: skip
        if self.over(heard):
            if "final_answer" in named:
                return says(None, asks_for(named["final_answer"], {"answer": self.end(heard)}, "call_end"))
            return says(self.end(heard))
        name, arguments = self.next(heard)
        return says(None, asks_for(named[name], arguments, f"call_{len(self.turns)}"))

    def over(self, heard):
        return len(self.turns) > MOST_TURNS or "APPROVAL_REJECTED" in heard[-1] or sent(heard[-1])

    def end(self, heard):
        return DONE if sent(heard[-1]) else f"Nobody has been written to: {heard[-1][-500:]}"

    def next(self, heard):
        if not any("Depths" in text for text in heard):
            return "list_available_groups", {}
        letter = {"to": ["ines@example.org"], "subject": self.subject, "body": "There is the group Depths."}
        return "send_email", letter

    def after_the_letter(self):
        """What the model was told once it had asked for the letter."""
        return self.turns[2:]


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def sent(text):
    return re.search(r"['\"]?sent['\"]?: ?1", text) is not None


# The world


@pytest.fixture
def deputy(house, world, request):
    """A web process and a worker; `deputy.run` starts a recipe."""
    hold = getattr(request, "param", None)
    web = Web(house, **({"MCP_HOLD_SECONDS": hold} if hold else {}))
    house.common_cluster()
    organization = world.project.organization
    decider = permit(MembershipFactory(organization=organization).user, "decide_approval")
    _, secret = Token.objects.issue(organization, world.user, scopes=["runs:read", "runs:write"])
    web.wait()
    yield SimpleNamespace(web=web, house=house, world=world, decider=decider, secret=secret)
    web.end()


class Recipe:
    """A program of the page while it runs."""

    def __init__(self, deputy, python, code, folder, model):
        self.deputy, self.model = deputy, model
        self.server = ModelServer(model)
        self.server.__enter__()
        program = folder / "recipe.py"
        program.write_text(code)
        self.log = folder / "said"
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        with open(self.log, "wb") as output:
            self.process = subprocess.Popen(
                [python, str(program)],
                cwd=folder,
                env=kept | environment(deputy, self.server.base_url),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def said(self):
        return (
            f"{self.log.read_text()[-4000:]}\nThe model heard: {[turn[-300:] for turn in self.model.turns]}"
        )

    def pending(self):
        """The approval that the letter waits for."""
        find = Approval.objects.filter(status="pending", run__user=self.deputy.world.user)
        until(lambda: self.process.poll() is not None or find.exists(), 120, said=self.said)
        assert find.exists(), self.said()
        return find.get().pk

    def end(self):
        """What the program printed."""
        try:
            self.process.wait(120)
        finally:
            self.process.kill()
            self.server.__exit__()
        assert self.process.returncode == 0, self.said()
        return self.said()


def environment(deputy, model_url):
    return {
        "DEPUTY_URL": deputy.web.url,
        "DEPUTY_MCP": f"{deputy.web.url}/mcp/projects/{deputy.world.project.slug}",
        "DEPUTY_PROJECT": deputy.world.project.slug,
        "DEPUTY_TOKEN": deputy.secret,
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "none",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "CREWAI_TRACING_ENABLED": "false",
        "OTEL_SDK_DISABLED": "true",
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
    }


def check_written_once(deputy, recipe):
    """One call of each tool, one approval, one e-mail."""
    calls = ToolCall.objects.filter(run__user=deputy.world.user).order_by("id")
    assert [(call.tool, call.status) for call in calls] == [
        ("list_available_groups", "succeeded"),
        ("send_email", "succeeded"),
    ], recipe.said()
    assert Approval.objects.filter(run__user=deputy.world.user).count() == 1
    letters = [mail for mail in deputy.house.mail.mails if mail.message["Subject"] == recipe.model.subject]
    assert len(letters) == 1
    (run,) = Run.objects.filter(user=deputy.world.user)
    check_logs(run.pk)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_over_mcp_the_model_is_told_the_result_once_somebody_has_decided(deputy, tmp_path, framework):
    model = Colleague(f"Over MCP, {framework}")
    recipe = Recipe(deputy, python_of(framework), recipe_of(framework), tmp_path, model)
    approval = recipe.pending()
    time.sleep(6)  # more than Deputy holds a call of its own accord
    approve(approval, deputy.decider)

    assert DONE in recipe.end()
    assert len(model.after_the_letter()) == 1, recipe.said()
    check_written_once(deputy, recipe)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_over_rest_the_model_is_told_the_result_once_somebody_has_decided(deputy, tmp_path, framework):
    (tools,) = blocks(OVER_REST["Over REST"], "python")
    (tmp_path / "deputy_tools.py").write_text(tools)
    (code,) = blocks(OVER_REST[framework], "python")
    model = Colleague(f"Over REST, {framework}")
    recipe = Recipe(deputy, python_of(framework), code, tmp_path, model)
    approve(recipe.pending(), deputy.decider)

    assert DONE in recipe.end()
    assert len(model.after_the_letter()) == 1, recipe.said()
    check_written_once(deputy, recipe)


@pytest.mark.parametrize(
    ("deputy", "heard"),
    [(None, "waits for somebody's approval"), ("20", "An error occurred")],
    indirect=["deputy"],
    ids=["told", "timed-out"],
)
def test_a_client_that_waits_five_seconds_asks_again_and_gets_the_same_call(deputy, tmp_path, heard):
    model = Colleague(f"Asked again, {heard}")
    framework = "OpenAI Agents SDK"
    recipe = Recipe(deputy, python_of(framework), recipe_of(framework, 0), tmp_path, model)
    approval = recipe.pending()
    until(model.after_the_letter, said=recipe.said)
    approve(approval, deputy.decider)

    assert DONE in recipe.end()
    assert heard in model.after_the_letter()[0], recipe.said()
    check_written_once(deputy, recipe)


def test_a_rejection_is_told_in_words_and_the_agent_goes_on(deputy, tmp_path):
    model = Colleague("Rejected")
    recipe = Recipe(deputy, python_of("pydantic-ai"), recipe_of("pydantic-ai"), tmp_path, model)
    reject(recipe.pending(), deputy.decider, "Not this customer")

    said = recipe.end()
    assert "Nobody has been written to" in said
    assert "Not this customer" in said
    assert not [mail for mail in deputy.house.mail.mails if mail.message["Subject"] == "Rejected"]


def test_the_official_sdk_is_told_the_result_once_somebody_has_decided(deputy, tmp_path):
    section = OVER_MCP["Clients of the official SDK"]
    (code,) = blocks(section, "python")
    recipe = Recipe(deputy, python_with(installed(section)), code, tmp_path, Colleague("Groups"))
    approve(recipe.pending(), deputy.decider)

    said = recipe.end()
    assert "Depths" in said
    assert sent(said)
    check_written_once(deputy, recipe)


READS_THE_FILE = """
from pydantic_ai import Agent
from pydantic_ai.mcp import load_mcp_toolsets

agent = Agent("openai-chat:gpt-5", toolsets=load_mcp_toolsets("mcp.json"))
print(agent.run_sync("Write to Ines which groups there are.").output)
"""
STARTS_THE_PROGRAM = """
import asyncio, json, os
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

(server,) = json.load(open("mcp.json"))["mcpServers"].values()

async def main():
    program = StdioServerParameters(**server)
    async with Client(stdio_client(program)) as deputy:
        print((await deputy.call_tool("list_available_groups", {})).structured_content)

asyncio.run(main())
"""


def files_of_clients():
    return blocks(OVER_MCP["Claude and other clients with an mcp.json"], "json")


def test_a_client_reads_address_and_token_from_a_file(deputy, tmp_path):
    (tmp_path / "mcp.json").write_text(files_of_clients()[0])
    model = Colleague("From a file")
    recipe = Recipe(deputy, python_of("pydantic-ai"), READS_THE_FILE, tmp_path, model)
    until(lambda: model.after_the_letter() or recipe.process.poll() is not None, said=recipe.said)
    approve(recipe.pending(), deputy.decider)

    assert DONE in recipe.end()
    check_written_once(deputy, recipe)


def test_a_client_of_programs_alone_reaches_deputy_by_one(deputy, tmp_path):
    if shutil.which("npx") is None:
        pytest.skip("mcp-remote needs node and npm")
    named = {
        "http://localhost:8000/mcp/projects/atlas": environment(deputy, "")["DEPUTY_MCP"],
        "dpt_…": deputy.secret,
    }
    text = files_of_clients()[1]
    for shown, real in named.items():
        assert shown in text
        text = text.replace(shown, real)
    (tmp_path / "mcp.json").write_text(text)
    python = python_with(installed(OVER_MCP["Clients of the official SDK"]))
    recipe = Recipe(deputy, python, STARTS_THE_PROGRAM, tmp_path, Colleague("Unused"))

    assert "Depths" in recipe.end()
