"""An earlier release of this repository beside the one at hand, and people and programs who use both by HTTP.

Nothing here asks the database through Django's models: until it is migrated it has not all of their columns.
"""

import json
import random
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psycopg

from launch.home import PROJECT
from tests.acceptance.house import House
from tests.acceptance.web import Web

AGAIN = (429, 502, 503)  # answers after which to ask again
PATIENCE = 60.0  # seconds for which somebody who is not answered asks again
MIXED = 4  # threads that do all kinds of things
OPEN = 25  # runs at the top of their trees that are active at a time
ACTIVE = "('pending', 'running', 'waiting')"

# A world that any release can make: its own factories do. Depths are played (tests/plays), Thinkers ask a
# model over the network.
WORLD = """
import json
from groups.models import Token
from groups.scopes import SCOPES
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, permit
project = ProjectFactory()
organization = project.organization
user = MembershipFactory(organization=organization).user
decider = permit(MembershipFactory(organization=organization).user, "decide_approval", "view_run")
depths = GroupFactory(project=project, name="Depths", max_rounds=1)
thinkers = GroupFactory(project=project, name="Thinkers", max_rounds=1)
for group, model in ((depths, ""), (thinkers, "compatible:one")):
    MemberFactory(group=group, role__name=group.name + " scout", role__model=model, ordinal=0)
    MemberFactory(group=group, role__name=group.name + " lead", role__model=model, ordinal=1, is_lead=True)
secrets = [Token.objects.issue(organization, one, scopes=list(SCOPES))[1] for one in (user, decider)]
print(json.dumps({"organization": organization.pk, "project": project.slug, "depths": depths.pk,
                  "thinkers": thinkers.pk, "user": secrets[0], "decider": secrets[1]}))
"""
GOALS = (
    *("brief", "brief", "alone effect", "alone keyed_effect", "team effect", "team keyed_effect"),
    *("deep 3", "marked 2", "asking", "asking", "letter 1", "letter 1", "naps 3"),
    *(["team think"] * 4),
)


class NotThere(Exception):
    """The commit is not in the history at hand."""


def unpack(commit: str, folder: Path) -> None:
    """The files of a commit of this repository. Raises NotThere."""
    packed = folder.with_suffix(".tar")
    with suppress(FileNotFoundError):  # no git
        done = subprocess.run(
            ["git", "archive", "--output", packed, commit], cwd=PROJECT, capture_output=True, text=True
        )
        if done.returncode == 0:
            folder.mkdir()
            subprocess.run(["tar", "-xf", packed, "-C", folder], check=True)
            packed.unlink()
            return
        raise NotThere(done.stderr.strip())
    raise NotThere("git is not installed")


def world(house: House, release: Path) -> dict[str, Any]:
    """What the release has made: names, ids and tokens."""
    said = house.manage("shell", "-v", "0", "-c", WORLD, release=release)
    found: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return found


@dataclass(frozen=True)
class Asked:
    """A request that was answered, after `seconds` and, if need be, further attempts."""

    phase: str
    release: str
    what: str
    status: int
    seconds: float


@dataclass
class Begun:
    """A run that was accepted."""

    release: str
    phase: str
    goal: str


@dataclass
class Callers:
    """People and programs. `fronts` are the web servers that they are led to, as by a proxy."""

    house: House
    world: dict[str, Any]
    chance: random.Random
    fronts: dict[str, Web] = field(default_factory=dict)
    phase: str = ""
    asked: list[Asked] = field(default_factory=list)
    unanswered: Counter[str] = field(default_factory=Counter)
    begun: dict[str, Begun] = field(default_factory=dict)  # by run
    decided: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # by approval: how, and by which release
    read: Counter[tuple[str, str]] = field(default_factory=Counter)  # (by, of which release)
    wrong: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.client = httpx.Client(
            timeout=30, limits=httpx.Limits(keepalive_expiry=1)
        )  # before web closes them
        self.threads: list[threading.Thread] = []
        self.tell_to = ""

    # How they ask

    def request(
        self, method: str, path: str, token: str = "user", front: str = "", what: str = "", **more: Any
    ) -> tuple[httpx.Response, str]:
        """The answer, and whose it is. Whoever is not answered, or asked to come again, does so elsewhere."""
        began, headers = time.monotonic(), more.pop("headers", {})
        headers["Authorization"] = f"Token {self.world[token]}"
        while True:
            release = front or self.chance.choice(sorted(self.fronts))
            try:
                url = f"{self.fronts[release].url}/api/{path}"
                answer = self.client.request(method, url, headers=headers, **more)
                if answer.status_code not in AGAIN:
                    break
                self.unanswered[f"{self.phase}: {release}: {answer.status_code}"] += 1
            except (httpx.TransportError, KeyError) as error:
                self.unanswered[f"{self.phase}: {release}: {type(error).__name__}"] += 1
            if time.monotonic() - began > PATIENCE:
                raise AssertionError(f"{method} {path} was not answered")
            time.sleep(0.05)
        seconds = time.monotonic() - began
        self.asked.append(Asked(self.phase, release, what or path, answer.status_code, seconds))
        if answer.status_code >= 500:
            self.wrong.append(f"{release}: {method} {path}: {answer.status_code} {answer.text[:300]}")
        return answer, release

    def rows(self, sql: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.house.url, autocommit=True) as own:
            return own.execute(sql, values).fetchall()

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.house.url, autocommit=True) as own:
            own.execute(sql)

    def active(self) -> int:
        asked = f"SELECT count(*) FROM runs_run WHERE parent_run_id IS NULL AND status IN {ACTIVE}"
        return int(self.rows(asked)[0][0])

    # What they do

    def begin(self) -> None:
        if self.active() >= OPEN:
            return
        goal = self.chance.choice(GOALS)
        group = self.world["thinkers" if "think" in goal else "depths"]
        key = f"{self.chance.random()}"
        phase = self.phase
        found = {}
        for _ in range(self.chance.choice([1, 1, 2])):  # some ask again, as after a lost answer
            answer, release = self.request(
                "POST",
                "runs/",
                what="begin",
                json={"project": self.world["project"], "goal": goal, "context": group},
                headers={"Idempotency-Key": key},
            )
            if answer.status_code != 202:
                self.wrong.append(f"begin: {answer.status_code} {answer.text[:300]}")
                return
            found.setdefault(answer.json()["id"], release)
        if len(found) > 1:
            self.wrong.append(f"one request began {len(found)} runs: {sorted(found)}")
        for run, release in found.items():
            self.begun[run] = Begun(release, phase, goal)

    def decide(self) -> None:
        answer, _ = self.request("GET", "approvals/?status=pending", "decider", what="approvals")
        pending = answer.json()["results"]
        if not pending:
            return
        approval = self.chance.choice(pending)
        how = self.chance.choice(["approve", "approve", "reject"])
        answer, release = self.request(
            "POST",
            f"approvals/{approval['id']}/{how}/",
            "decider",
            what="decide",
            json={"arguments_digest": approval["arguments_digest"], "reason": "as it is"},
        )
        if answer.status_code == 200:
            self.decided.setdefault(approval["id"], (how, release))
        elif answer.status_code != 409:  # somebody else was quicker
            self.wrong.append(f"{how}: {answer.status_code} {answer.text[:300]}")

    def answer(self) -> None:
        waits = self.rows(
            "SELECT run_id, correlation_key FROM runs_wait WHERE kind = 'input' AND resolved_at IS NULL"
        )
        if not waits:
            return
        run, key = self.chance.choice(waits)
        answer, _ = self.request(
            "POST",
            f"runs/{run}/message/",
            what="answer",
            json={"content": "2026", "correlation_key": key},
            headers={"Idempotency-Key": f"{self.chance.random()}"},
        )
        if answer.status_code not in (200, 202, 404, 409):
            self.wrong.append(f"answer: {answer.status_code} {answer.text[:300]}")

    def look(self) -> None:
        """At a run, whichever release began it, and at what has happened in it."""
        if not self.begun:
            return
        run = self.chance.choice(list(self.begun))
        for path in (f"runs/{run}/", f"runs/{run}/events/", f"runs/{run}/tree/", "runs/?status=completed"):
            answer, release = self.request("GET", path, what=path.replace(run, "{id}"))
            if answer.status_code != 200:
                self.wrong.append(f"{release}: {path}: {answer.status_code} {answer.text[:300]}")
            self.read[release, self.begun[run].release] += 1

    def tell(self) -> None:
        """A word into the run that somebody follows."""
        answer, _ = self.request(
            "POST",
            f"runs/{self.tell_to}/message/",
            what="message",
            json={"content": "word"},
            headers={"Idempotency-Key": f"{self.chance.random()}"},
        )
        if not answer.is_success:
            self.wrong.append(f"message: {answer.status_code} {answer.text[:300]}")

    def keep_on(self, acts: Iterable[Callable[[], None]], pause: float) -> None:
        acts = list(acts)
        while not self.over.wait(self.chance.uniform(0, 2 * pause)):
            try:
                self.chance.choice(acts)()
            except Exception as error:
                self.wrong.append(f"{type(error).__name__}: {error}")

    def start(self) -> None:
        mixed = [*[self.begin] * 4, *[self.decide] * 2, *[self.answer] * 2, self.look, self.look, self.tell]
        for acts, pause in (*[(mixed, 0.1)] * MIXED, ([self.look], 0.1)):
            thread = threading.Thread(target=self.keep_on, args=(acts, pause), daemon=True)
            thread.start()
            self.threads.append(thread)

    def stop(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE + 30)

    # What became of it

    def table(self) -> str:
        """How long requests took, by phase."""
        lines = []
        for phase in dict.fromkeys(one.phase for one in self.asked):
            took = [one.seconds * 1000 for one in self.asked if one.phase == phase]
            high = statistics.quantiles(took, n=20)[-1] if len(took) > 1 else took[0]
            lines.append(
                f"{phase:>22}: {len(took):5} requests, median {statistics.median(took):5.0f} ms, "
                f"p95 {high:6.0f} ms, max {max(took):6.0f} ms"
            )
        return "\n".join(lines)


class Follower(threading.Thread):
    """Follows a run's events, and goes on where it left off at whichever web server there is."""

    def __init__(self, callers: Callers, run_id: str) -> None:
        super().__init__(daemon=True)
        self.callers, self.run_id = callers, run_id
        self.heard: list[str] = []
        self.connected: Counter[str] = Counter()
        self.ended = False

    def run(self) -> None:
        while not self.ended:
            with suppress(httpx.TransportError, KeyError):
                self.once()
            time.sleep(0.1)

    def once(self) -> None:
        release = sorted(self.callers.fronts)[0]
        headers = {"Authorization": f"Token {self.callers.world['user']}"}
        headers |= {"Last-Event-ID": self.heard[-1]} if self.heard else {}
        url = f"{self.callers.fronts[release].url}/api/runs/{self.run_id}/events/stream/"
        with httpx.stream("GET", url, headers=headers, timeout=60) as stream:
            if stream.status_code == 204:
                self.ended = True
            if stream.status_code != 200:
                return
            self.connected[release] += 1
            for line in stream.iter_lines():
                if line.startswith("id: "):
                    self.heard.append(line[4:])
                self.ended |= line == "event: end"
