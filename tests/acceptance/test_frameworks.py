"""The recipes of docs/frameworks.md, taken from the page, against a real server, workers and a person who decides."""

import os
import re
import subprocess
import sys
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
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SECTIONS = dict(SECTION.findall(PAGE))
DONE = "Ines has been written to."
MOST_TURNS = 12


def blocks(section, kind):
    return [text for named, text in BLOCK.findall(SECTIONS[section]) if named == kind]


def requirements(section):
    """What the section tells people to install."""
    (line,) = [line for line in blocks(section, "sh") if line.startswith("pip install ")]
    return [name.strip('"') for name in line.split()[2:]]


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
        return DONE if sent(heard[-1]) else f"Nobody has been written to: {heard[-1]}"

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
                stdout=subprocess.PIPE,
                stderr=output,
            )

    def said(self):
        return self.log.read_text()[-4000:]

    def pending(self):
        """The approval that the letter waits for."""
        find = Approval.objects.filter(status="pending", run__user=self.deputy.world.user)
        until(lambda: self.process.poll() is not None or find.exists(), 120, said=self.said)
        assert find.exists(), self.said()
        return find.get().pk

    def end(self):
        """What the program printed."""
        try:
            output, _ = self.process.communicate(timeout=120)
        finally:
            self.process.kill()
            self.server.__exit__()
        assert self.process.returncode == 0, self.said()
        return output.decode()


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


PATIENT = [
    ("LangGraph", 0),
    ("OpenAI Agents SDK", 1),
    ("pydantic-ai", 0),
    ("smolagents", 0),
]


@pytest.mark.parametrize(("framework", "number"), PATIENT)
def test_a_patient_recipe_is_told_the_result_once_somebody_has_decided(deputy, tmp_path, framework, number):
    model = Colleague(f"Groups, {framework}")
    python = python_with(requirements(framework))
    recipe = Recipe(deputy, python, blocks(framework, "python")[number], tmp_path, model)
    approval = recipe.pending()
    time.sleep(6)  # longer than Deputy holds a call of its own accord, and than clients that are not told
    approve(approval, deputy.decider)

    assert DONE in recipe.end()
    assert len(model.after_the_letter()) == 1, model.turns
    check_written_once(deputy, recipe)
