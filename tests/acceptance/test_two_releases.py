"""An upgrade that stops nothing: two releases at work on one database, as docs/operating.md leads through it.

    DEPUTY_RELEASE_BEFORE=commit make test-slow ARGS="tests/acceptance/test_two_releases.py -s"

The release before is a commit of this repository; its web server, workers and carriers run from its own
files. Everybody else knows Deputy by its addresses alone. `-s` shows how long they were held up.
"""

import os
import random
import re
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median

import httpx
import pytest
from django.db import connection

from launch.home import PROJECT
from runs.models import Approval, Run
from tests.acceptance import releases
from tests.acceptance.house import PATIENCE, House, until
from tests.acceptance.releases import Callers, Follower, NotThere
from tests.acceptance.web import Web
from tests.auditor import audit, audit_effects, counts, unrest
from tests.model_server import ModelServer, asks_for, says, slowly

pytestmark = pytest.mark.slow

BEFORE = os.environ.get("DEPUTY_RELEASE_BEFORE") or "d1967a3"
SECONDS = float(os.environ.get("DEPUTY_RELEASE_SECONDS") or 6)  # that each part of the upgrade lasts
EVENTS = int(
    os.environ.get("DEPUTY_RELEASE_EVENTS") or 50_000
)  # in the log before the upgrade, of other runs
OLD, NEW = "before", "after"
DECIDED = {"approve": "approved", "reject": "rejected"}
BOTH_WAYS = {(by, of) for by in (OLD, NEW) for of in (OLD, NEW)}  # whose workers, for whose callers
REPEATABLE = {"keyed_effect", "nap"}
WRONG = re.compile(r"\b(ERROR|CRITICAL)\b|Traceback")
FILL = """
INSERT INTO runs_runevent (organization_id, run_id, seq, type, agent, payload, created_at, digest)
SELECT 'org_of_nobody', 'run_' || lpad((n / 50)::text, 26, '0'), n % 50 + 1, 'message.created', '',
       jsonb_build_object('content', repeat('word ', 40)), now(), ''
FROM generate_series(1, {}) n
"""


def think(request):
    """A model that takes some seconds, and has the group's lead call a tool."""
    said = [str(message["content"]) for message in request.body["messages"]]
    answered = any(message["role"] == "tool" for message in request.body["messages"])
    seconds = 0.3 + len("".join(said)) % 30 / 10
    if "lead" in said[0] and not answered:
        return slowly(says(None, asks_for("keyed_effect", {"name": "it"}), finish="tool_calls"), seconds)
    return slowly(says("DECISION: thought about."), seconds)


@pytest.fixture
def before():
    """The files of the release before."""
    with tempfile.TemporaryDirectory(prefix="deputy-before-") as folder:
        try:
            releases.unpack(BEFORE, Path(folder) / "deputy")
        except NotThere as error:
            pytest.skip(f"the release before, {BEFORE}, is not in this repository's history: {error}")
        yield Path(folder) / "deputy"


@pytest.fixture
def house(before, django_db_setup, django_db_blocker):
    """A database as the release before has migrated it."""
    house, settings = House(release=before), dict(connection.settings_dict)
    connection.close()
    connection.settings_dict.update(house.settings())
    with django_db_blocker.unblock():
        yield house
        connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(settings)
    house.close()


@pytest.fixture
def models():
    with ModelServer(think) as server:
        yield server


class Upgrade:
    """The steps of docs/operating.md, in its order."""

    def __init__(self, house, before, models):
        self.house, self.folders, self.models = house, {OLD: before, NEW: PROJECT}, models
        self.webs, self.clusters = {}, {OLD: [], NEW: []}
        self.callers = Callers(house, releases.world(house, before), random.Random(1))
        self.failed_migrations = []

    def web(self, release):
        self.webs[release] = Web(self.house, self.folders[release], API_PER_MINUTE="0")
        self.webs[release].wait()
        assert self.ready(release), self.webs[release].said()
        self.callers.fronts[release] = self.webs[release]

    def ready(self, release):
        return httpx.get(f"{self.webs[release].url}/readyz", timeout=30).is_success

    def cluster(self, release):
        url = self.models.base_url.replace("/v1", f"/{release}/v1")
        witness = f"{self.house.witness.url}{release}"
        self.clusters[release].append(
            self.house.cluster(self.folders[release], DEPUTY_MODEL_BASE_URL=url, DEPUTY_WITNESS=witness)
        )

    def for_a_while(self, phase, seconds=SECONDS):
        self.callers.phase = phase
        time.sleep(seconds)

    def migrate(self):
        """As the job of the chart: what fails for a lock is called again."""
        self.callers.phase = "migrating"
        began = time.monotonic()
        while True:
            try:
                self.house.manage("migrate", "--verbosity", "0")
                return time.monotonic() - began
            except AssertionError as error:
                self.failed_migrations.append(str(error)[-2000:])
                assert len(self.failed_migrations) < 4, self.failed_migrations

    def end_workers(self, release):
        for cluster in self.clusters[release]:
            cluster.process.send_signal(signal.SIGTERM)
        for cluster in self.clusters[release]:
            assert cluster.process.wait(60) == 0, cluster.said()[-3000:]

    def end_web(self, release):
        web = self.callers.fronts.pop(release)
        web.end()

    def settle(self, follower):
        """People answer and decide until nothing is left to do."""

        def calm():
            self.callers.decide()
            self.callers.answer()
            return self.callers.active() == 0

        self.callers.phase = "settling"
        self.callers.request("POST", f"runs/{follower.run_id}/complete/", json={"output": "Done."})
        until(calm, 120, said=lambda: "\n".join(map(str, [*self.left(), *self.callers.wrong[:9]])))
        follower.join(PATIENCE)

    def left(self):
        asked = "SELECT id, status, waiting_reason, goal, error FROM runs_run WHERE status IN "
        return [
            *self.callers.rows(asked + releases.ACTIVE),
            *self.callers.rows("SELECT run_id, target, holder, due_at, begun_at FROM runs_outboundcall"),
            *self.callers.rows("SELECT queue, holder, due_at FROM runs_queuemessage"),
        ]

    def wrong_lines(self, release):
        logs = [self.webs[release].log, *(cluster.log for cluster in self.clusters[release])]
        return [line for log in logs for line in log.read_text().splitlines() if WRONG.search(line)]

    def findings(self):
        """Whatever an upgrade must not do."""
        organization = self.callers.world["organization"]
        there = {run.pk: run for run in Run.objects.filter(organization=organization, parent_run=None)}
        begun = self.callers.begun
        ours = set(Run.objects.values_list("pk", flat=True))
        effects = [effect for effect in self.house.witness.effects if effect[1] in ours]
        decided = Approval.objects.filter(pk__in=self.callers.decided)
        statuses = dict(decided.values_list("pk", "status"))
        letters = Counter(mail.message["Message-ID"] for mail in self.house.mail.mails)
        return [
            *self.callers.wrong,
            *(f"{run} of {of.release} is lost" for run, of in begun.items() if run not in there),
            *(f"{run} was not asked for" for run in there.keys() - begun.keys() - {self.callers.tell_to}),
            *(
                f"{run.pk} {run.goal}: {run.status} {run.error}"
                for run in there.values()
                if run.status != "completed"
            ),
            *(
                f"{approval}: {how} at the web of {release} and {statuses.get(approval)}"
                for approval, (how, release) in self.callers.decided.items()
                if statuses.get(approval) != DECIDED[how]
            ),
            *(f"{mark} came {times} times" for mark, times in letters.items() if times > 1),
            *unrest(organization),
            *audit(organization),
            *audit_effects(organization, effects, REPEATABLE),
            *(f"not answered: {where}, {times} times" for where, times in self.callers.unanswered.items()),
            *(f"PostgreSQL ended {deadlocks} transactions" for deadlocks in filter(None, [self.deadlocks()])),
            *(f"{release}: {line}" for release in (OLD, NEW) for line in self.wrong_lines(release)),
        ]

    def deadlocks(self):
        """How often transactions waited for each other in a circle."""
        asked = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        return self.callers.rows(asked)[0][0]

    def worked_together(self):
        """Which release's carriers had effects in runs that which release's web server had begun."""
        roots = dict(Run.objects.values_list("pk", "root_id"))
        found = set()
        for release, run in self.house.witness.by:
            of = self.callers.begun.get(roots.get(run))
            if of is not None:
                found.add((release, of.release))
        return found

    def durations(self):
        """Seconds from the request to its run's end, of runs that wait for no person and no model."""
        took = {}
        for run in Run.objects.filter(goal="brief", parent_run=None):
            phase = self.callers.begun[run.pk].phase
            took.setdefault(phase, []).append((run.ended_at - run.created_at).total_seconds())
        return "\n".join(
            f"{phase:>24}: {len(each):3} brief runs, median {median(each):.2f} s, max {max(each):.2f} s"
            for phase, each in took.items()
        )

    def report(self, took):
        callers = self.callers
        begun = Counter((one.phase, one.release) for one in callers.begun.values())
        lines = [
            callers.table(),
            self.durations(),
            f"migrate took {took:.1f} s, failed and was called again {len(self.failed_migrations)} times",
            *self.failed_migrations,
            f"begun: {len(callers.begun)} {dict(begun)}",
            f"decided: {dict(Counter(callers.decided.values()))}; read: {dict(callers.read)}",
            f"there: {counts(callers.world['organization'])}; models asked: {len(self.models.received)}",
            *(f"{release}: {len(self.wrong_lines(release))} lines of errors" for release in (OLD, NEW)),
        ]
        return "\n" + "\n".join(lines)


@pytest.fixture
def upgrade(house, before, models):
    upgrade = Upgrade(house, before, models)
    yield upgrade
    upgrade.callers.over.set()
    for web in upgrade.webs.values():
        if web.process.poll() is None:
            web.end()


def test_an_upgrade_under_load_loses_nothing_repeats_nothing_and_refuses_nobody(upgrade, house, before):
    callers = upgrade.callers
    callers.execute(FILL.format(EVENTS))
    upgrade.web(OLD)
    upgrade.cluster(OLD)
    begun, _ = callers.request(
        "POST", "runs/", json={"project": callers.world["project"], "goal": "Outside", "driver": "external"}
    )
    callers.tell_to = begun.json()["id"]
    follower = Follower(callers, callers.tell_to)
    follower.start()
    callers.start()

    upgrade.for_a_while("the release before")
    took = upgrade.migrate()
    assert upgrade.ready(OLD), "a probe would end the web server of the release before"
    upgrade.for_a_while("migrated")
    upgrade.cluster(OLD)  # a machine that comes back meanwhile still has the release before
    upgrade.web(NEW)
    upgrade.for_a_while("web of both")
    upgrade.cluster(NEW)
    upgrade.for_a_while("side by side", 2 * SECONDS)
    assert "0 broken" in house.manage("verify_run", "--all", release=before)
    upgrade.end_workers(OLD)
    upgrade.for_a_while("web of both, new workers")
    upgrade.end_web(OLD)
    upgrade.for_a_while("the new release")
    callers.stop()
    upgrade.settle(follower)

    print(upgrade.report(took))
    found = upgrade.findings()
    assert not found, "\n".join(found)
    assert follower.heard == [f"{follower.run_id}:{seq}" for seq in range(1, len(follower.heard) + 1)]
    assert set(follower.connected) == {OLD, NEW}
    assert re.search(r"(\d+) runs checked, 0 broken", house.manage("verify_run", "--all"))
    assert upgrade.worked_together() == BOTH_WAYS
