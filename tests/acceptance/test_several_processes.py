"""Two web servers and two clusters on one PostgreSQL, as docs/operating.md and compose.yaml lay them out."""

import signal

import httpx
import pytest

from groups.models import Token
from groups.scopes import SCOPES
from runs.models import WorkerGroup
from tests.acceptance.house import check_logs, until
from tests.acceptance.web import Web

pytestmark = pytest.mark.slow

TOKEN = "the-token-of-the-metrics"


@pytest.fixture
def webs(house, monkeypatch):
    monkeypatch.setenv("METRICS_TOKEN", TOKEN)
    WorkerGroup.objects.all().delete()
    webs = [Web(house), Web(house)]
    for web in webs:
        web.wait()
    yield webs
    for web in webs:
        web.end()


def watched(web, path):
    return httpx.get(web.url + path, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)


def test_any_web_server_tells_the_same_story_and_losing_one_of_each_loses_no_run(house, webs, world, ended):
    _, secret = Token.objects.issue(world.project.organization, world.user, scopes=list(SCOPES))
    apis = [web.api(secret) for web in webs]
    assert [httpx.get(web.url + "/readyz").status_code for web in webs] == [200, 200]
    assert httpx.get(webs[0].url + "/readyz?all").status_code == 503  # nobody works yet
    clusters = [house.cluster(), house.cluster()]
    until(lambda: sum(WorkerGroup.objects.values_list("workers", flat=True)) == 4)
    assert all(httpx.get(web.url + "/readyz?all").status_code == 200 for web in webs)

    asked = {"project": world.project.slug, "goal": "naps 4", "context": world.group.pk}
    runs = [apis[i % 2].post("runs/", json=asked).json()["id"] for i in range(4)]
    until(lambda: house.witness.count(runs))
    clusters[0].process.send_signal(signal.SIGTERM)
    webs[0].end()

    for run in runs:
        assert ended(run) == "completed", house.report(run)
        assert apis[1].get(f"runs/{run}/").json()["status"] == "completed"
        assert len(set(house.witness.keys([run], "nap"))) == 4
        check_logs(run)
    clusters[0].process.wait(30)
    until(lambda: WorkerGroup.objects.count() == 1)  # it said goodbye
    told = watched(webs[1], "/metrics").text
    assert "deputy_worker_groups 1.0" in told
    assert 'deputy_workers{state="idle"} 2.0' in told
    assert httpx.get(webs[1].url + "/metrics").status_code == 404
