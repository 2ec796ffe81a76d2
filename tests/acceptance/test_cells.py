"""Two cells: an organization moves from one to the other while its runs are under way, and goes on there."""

import shutil
import subprocess
import time
from collections import Counter
from types import SimpleNamespace

import httpx
import psycopg
import pytest
from django.db import connection
from django.test import override_settings

from groups.models import Token
from groups.scopes import SCOPES
from launch.home import PROJECT
from policy.models import CapabilityRule
from tests.acceptance.house import MODEL, House, until
from tests.acceptance.web import Web, sign_in
from tests.factories import GroupFactory, MemberFactory, MembershipFactory, ProjectFactory, permit
from tests.ports import free_port
from tests.upgrades import dump

pytestmark = pytest.mark.slow

GOALS = ("naps 8", "alone effect", "alone slow_effect", "naps 6") * 3
ENDED = {"completed", "failed", "cancelled"}
PASSWORD = "a password of mia's"
NGINX = shutil.which("nginx")


class CellHouse(House):
    """A cell with its web server, whose tools tell the first cell's witness."""

    def __init__(self, number, witness=None, dumped=""):
        super().__init__(dumped=dumped)
        if witness is not None:
            self.witness.close()
            self.witness = witness
        self.number, self.web = number, Web(self)

    def asked(self, sql, *values):
        with psycopg.connect(self.url, autocommit=True) as own:
            return own.execute(sql, values).fetchall()

    def close(self):
        self.web.end()
        super().close()


@pytest.fixture
def cells(django_db_blocker, their_tools):
    """Two of them; this process's own queries go to the first."""
    before = dict(connection.settings_dict)
    first = CellHouse(0)
    second = CellHouse(2, first.witness, dump(first.url))
    for house in (first, second):
        house.manage("cell", "--number", str(house.number), "--address", house.web.url)
        house.web.wait()
    connection.close()
    connection.settings_dict.update(first.settings())
    with django_db_blocker.unblock(), override_settings(QUEUE_ENABLED=True, DEPUTY_MODEL=MODEL):
        yield first, second
    connection.close()
    connection.settings_dict.clear()
    connection.settings_dict.update(before)
    second.close()
    first.close()


def organization(name):
    """One with a group, somebody who starts runs and decides, and a token for all of it."""
    project = ProjectFactory(organization__slug=name)
    member = MembershipFactory(organization=project.organization, user__username=name)
    member.user.set_password(PASSWORD)
    member.user.save()
    user = permit(member.user, "runs.view_run", "runs.start_run", "runs.decide_approval")
    group = GroupFactory(project=project, name="Depths", max_rounds=1)
    MemberFactory(group=group, role__name="scout", ordinal=0)
    MemberFactory(group=group, role__name="lead", ordinal=1, is_lead=True)
    CapabilityRule.objects.create(
        organization=project.organization, tool="keyed_effect", effect="require_approval", name="asked"
    )
    _, secret = Token.objects.issue(project.organization, user, scopes=list(SCOPES))
    return SimpleNamespace(project=project, user=user, group=group, secret=secret)


def begin(api, of, goal):
    asked = {"project": of.project.slug, "goal": goal, "context": of.group.pk}
    answer = api.post("runs/", json=asked)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def statuses(house, ids):
    return dict(house.asked("SELECT id, status FROM runs_run WHERE id = ANY(%s)", ids))


def test_an_organization_goes_on_in_another_cell(cells):
    first, second = cells
    mover, stayer = organization("mover"), organization("stayer")
    first.cluster()
    second.cluster()
    api, other = first.web.api(mover.secret), first.web.api(stayer.secret)
    parked = begin(api, mover, "alone keyed_effect")
    timed = begin(api, mover, "asking")
    until(lambda: set(statuses(first, [parked, timed]).values()) == {"waiting"})
    at_work = [begin(api, mover, goal) for goal in GOALS]
    theirs = [begin(other, stayer, "naps 6") for _ in range(4)]
    until(lambda: first.witness.count(at_work))

    said = first.manage("move_organization", "mover", "--to", second.url)
    assert "Mover is at " + second.web.url in said

    # what was at work ends there, and nothing has happened twice
    def over():
        return set(statuses(second, at_work).values()) <= ENDED

    until(
        over,
        90,
        said=lambda: f"{statuses(second, at_work)} {[one.said()[-3000:] for one in second.clusters]}",
    )
    assert Counter(statuses(second, at_work).values()) == {"completed": len(at_work)}
    effects = [run for run in at_work if first.witness.keys([run], "it")]
    assert len(effects) == 6 and all(len(first.witness.keys([run], "it")) == 1 for run in effects)
    for run in at_work:  # a tool that may be repeated has one key for each call, however often it is told
        assert len(set(first.witness.keys([run], "nap"))) in (0, 6, 8)

    # what waited for somebody waits on, and is decided there
    there = second.web.api(mover.secret)
    assert statuses(second, [parked, timed]) == {parked: "waiting", timed: "waiting"}
    (approval,) = there.get("approvals/").json()["results"]
    decision = {"reason": "yes", "arguments_digest": approval["arguments_digest"]}
    answer = there.post(f"approvals/{approval['id']}/approve/", json=decision)
    assert answer.is_success, answer.text
    until(lambda: statuses(second, [parked])[parked] == "completed")
    assert len(first.witness.keys([parked], "it")) == 1
    second.manage("verify_run", "--all")

    # the old cell knows where it is, and opens nothing
    gone = api.get("runs/")
    assert (gone.status_code, gone.json()["cell"]) == (421, second.web.url)
    assert first.asked("SELECT count(*) FROM runs_run WHERE id = ANY(%s)", at_work) == [(0,)]
    with first.web.browser() as browser:
        sign_in(browser, "mover", PASSWORD)
        sent = browser.get("/", follow_redirects=False)
        assert sent.headers["Location"] == second.web.url + "/"
    with second.web.browser() as browser:
        sign_in(browser, "mover", PASSWORD)
        assert browser.get("/", follow_redirects=False).status_code == 200

    # neighbours went on, and are whole
    until(lambda: set(statuses(first, theirs).values()) == {"completed"}, 60)
    first.manage("verify_run", "--all")
    if NGINX:
        through_one_address(first, second, mover, stayer)


def through_one_address(first, second, mover, stayer):
    """Programs of both organizations ask nginx, with the configuration that operators are given."""
    port = free_port()
    written = (PROJECT / "deploy" / "cells" / "nginx.conf").read_text()
    written = written.replace("127.0.0.1:8000", first.web.url.removeprefix("http://"))
    folder = first.logs / "nginx"
    folder.mkdir()
    (folder / "nginx.conf").write_text(written.replace("127.0.0.1:8080", f"127.0.0.1:{port}"))
    asked = [NGINX, "-p", f"{folder}/", "-c", "nginx.conf", "-g", "daemon off; master_process off;"]
    nginx = subprocess.Popen(asked)
    try:
        url = f"http://127.0.0.1:{port}/api/runs/"
        until(lambda: _answers(url))
        for of, house in ((mover, second), (stayer, first)):
            got = httpx.get(url, headers={"Authorization": f"Bearer {of.secret}"}, timeout=30)
            assert got.status_code == 200, got.text
            (count,) = house.asked(
                "SELECT count(*) FROM runs_run WHERE organization_id = %s AND depth = 0",
                of.project.organization_id,
            )[0]
            assert len(got.json()["results"]) == min(count, 50)
        assert httpx.get(url, headers={"Authorization": "Bearer dpt_none"}, timeout=30).status_code == 401
    finally:
        nginx.terminate()
        nginx.wait(10)


def _answers(url):
    try:
        return httpx.get(url, timeout=5).status_code
    except httpx.TransportError:
        time.sleep(0.1)
        return None
