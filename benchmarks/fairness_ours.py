"""The two organizations of the benchmark of fairness: A, which has much to do, and B, which notices or not.

python -m benchmarks.fairness_ours prepare DATABASE_URL RECEIVER…
python -m benchmarks.fairness_ours work ABOUT PORT MODEL_URL MAIL_PORT CALLS TIMES RECEIVER…   (prints JSON)
"""

import http.client
import itertools
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from math import ceil
from statistics import median
from typing import Any

from benchmarks import deputy
from benchmarks.capacity import ask

BATCH = 30  # runs of B at once
PATIENCE = 600  # seconds
LOOK_SECONDS = 0.002
ENDED = ("completed", "failed", "cancelled")
numbers = itertools.count(1)


def prepare(url: str, receivers: list[str]) -> dict[str, Any]:
    """A is `deputy`'s organization, with webhooks that lead to receivers; B has a person who decides."""
    deputy.prepare(url)
    from django.contrib.auth import get_user_model
    from django.test import Client

    from groups.models import CustomRole, Membership, Organization, Project, Token
    from policy.models import Capability, CapabilityRule
    from runs.actions.webhooks import give_secret
    from runs.models import WebhookEndpoint

    for port in receivers:
        hanging = WebhookEndpoint(
            organization=Organization.objects.get(slug="acme"),
            url=f"http://127.0.0.1:{port}/",
            events=["run.completed"],
        )
        give_secret(hanging)
        hanging.save()
    quiet = Organization.objects.create(slug="quiet", name="Quiet")
    Project.objects.create(organization=quiet, slug="garden", name="Garden")
    ben = get_user_model().objects.create(username="ben", is_staff=True, is_superuser=True)
    Membership.objects.create(organization=quiet, user=ben)
    dora = get_user_model().objects.create(username="dora")
    deciders = CustomRole.objects.create(
        organization=quiet, name="Deciders", permissions=["runs.decide_approval"]
    )
    Membership.objects.create(organization=quiet, user=dora, custom_role=deciders)
    mail = Capability.objects.create(organization=quiet, name="mail")
    mail.bindings.create(organization=quiet, pattern="send_*")
    CapabilityRule.objects.create(organization=quiet, capability=mail, effect="require_approval")
    client = Client()
    client.force_login(ben)
    _, token = Token.objects.issue(quiet, ben, scopes=["runs:read", "runs:write"])
    return {"session": client.cookies["sessionid"].value, "token": token}


class Watched:
    """The installation, as those who use it see it."""

    def __init__(self, about: dict[str, Any], port: int, model_url: str, mail_port: int) -> None:
        from django.contrib.auth import get_user_model

        from groups.models import Project
        from tests.acceptance.witness import MailSink

        self.about, self.port, self.model_url = about, port, model_url
        self.mail = MailSink(mail_port)
        people = get_user_model().objects
        self.of_a = people.get(username="mia"), Project.objects.get(slug="supply")
        self.of_b = people.get(username="ben"), Project.objects.get(slug="garden")
        self.decider = people.get(username="dora")

    def start(self, who: Any, model: str) -> tuple[str, str]:
        """A run whose agent asks this model: its id, and what the model server knows it by."""
        from django.conf import settings

        from tests.acting import start

        settings.DEPUTY_MODEL = f"openai:{model}"
        case = f"case-{next(numbers)}"
        user, project = who
        return start(user=user, project=project, goal=f"Say something ({case})"), case

    # What is measured, each in milliseconds

    def run_asks(self, model: str) -> float:
        """From B's start of a run to its question at the model server."""
        from tests.acting import cancel

        began = time.monotonic()
        run_id, case = self.start(self.of_b, model)
        asked = until(lambda: ask(self.model_url, f"/asked/{case}"))
        cancel(run_id) if model == "slow" else self.wait([run_id])
        return (asked - began) * 1000

    def mail_arrives(self) -> float:
        """From an approval to the mail."""
        from runs.models import Approval
        from tests.acting import approve

        waiting = Approval.objects.filter(status="pending", run__project=self.of_b[1]).order_by("id").first()
        assert waiting is not None, "no approval waits"
        there = len(self.mail.mails)
        began = time.monotonic()
        approve(waiting.pk, self.decider)
        until(lambda: len(self.mail.mails) > there)
        return (time.monotonic() - began) * 1000

    def cancel_closes(self) -> float:
        """From the cancel of a run of A to the end of its connection."""
        from runs.models import OutboundCall
        from tests.acting import cancel

        flying = OutboundCall.objects.filter(run__project=self.of_a[1], answered_at=None)
        call = flying.exclude(begun_at=None).select_related("run").order_by("?").first()
        assert call is not None
        case = call.run.goal.rpartition("(")[2].rstrip(")")
        began = time.monotonic()
        cancel(call.run_id)
        return float((until(lambda: ask(self.model_url, "/stats")["closed"].get(case)) - began) * 1000)

    def page(self) -> float:
        """The admin's list of runs."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        began = time.monotonic()
        connection.request(
            "GET", "/admin/runs/run/", headers={"Cookie": f"sessionid={self.about['session']}"}
        )
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (answer.status, answer.headers["Location"])
        return (time.monotonic() - began) * 1000

    def word_comes(self) -> float:
        """From the moment a model says a word to who follows the run."""
        run_id, _ = self.start(self.of_b, "talking")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {self.about['token']}"}
        connection.request("GET", f"/api/runs/{run_id}/events/stream/", headers=headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            if line.startswith(b"event: delta"):
                came = time.monotonic()
                said = json.loads(next(each for each in answer if each.startswith(b"data: "))[6:])
                connection.close()
                self.wait([run_id])
                return (came - float(said["text"].split()[1])) * 1000
        raise AssertionError("the stream ended without a word")

    def batch(self) -> dict[str, float]:
        """Runs of B at once: all of them, and the one in the middle."""
        from runs.models import Run

        began = time.monotonic()
        runs = [self.start(self.of_b, "quick")[0] for _ in range(BATCH)]
        self.wait(runs)
        whole = (time.monotonic() - began) * 1000
        times = Run.objects.filter(pk__in=runs).values_list("created_at", "ended_at")
        each = [(ended - created).total_seconds() * 1000 for created, ended in times]
        return {"all_ms": round(whole, 1), "p50_ms": round(median(each), 1)}

    # What it takes

    def wait(self, runs: list[str]) -> None:
        from runs.models import Run

        until(lambda: not Run.objects.filter(pk__in=runs).exclude(status__in=ENDED).exists())

    def approvals(self, count: int) -> None:
        """So many runs of B that wait for a decision about a letter."""
        from runs.models import Approval

        for _ in range(count):
            self.start(self.of_b, "writing")
        waiting = Approval.objects.filter(status="pending", run__project=self.of_b[1])
        until(lambda: waiting.count() >= count)

    def figures(self, times: int, closing: bool) -> dict[str, Any]:
        acts: dict[str, Callable[[], float]] = {
            "run_asks": lambda: self.run_asks("quick"),
            "run_asks_same_model": lambda: self.run_asks("slow"),
            "mail_arrives": self.mail_arrives,
            "page": self.page,
            "word_comes": self.word_comes,
            **({"cancel_closes": self.cancel_closes} if closing else {}),
        }
        return {name: middle([act() for _ in range(times)]) for name, act in acts.items()}

    def hang(self) -> list[str]:
        """Two calls each to ten models that hang, and runs of A whose ends ten receivers are told of."""
        hanging = [self.start(self.of_a, f"hanging-{n % 10}")[0] for n in range(20)]
        told = [self.start(self.of_a, "quick")[0] for _ in range(20)]
        self.wait(told)
        until(lambda: ask(self.model_url, "/stats")["now"] >= len(hanging))
        return hanging

    def burden(self, calls: int) -> dict[str, float]:
        """As many runs of A as are under way at most, and as many again."""
        from runs.models import OutboundCall

        began = time.monotonic()
        for _ in range(2 * calls):
            self.start(self.of_a, "slow")
        mine = OutboundCall.objects.filter(run__project=self.of_a[1], answered_at=None)
        until(lambda: mine.count() >= 2 * calls and ask(self.model_url, "/stats")["now"] >= calls)
        return {
            "seconds": round(time.monotonic() - began, 1),
            "under_way": mine.exclude(begun_at=None).count(),
            "queued": mine.filter(begun_at=None).count(),
        }


def middle(times: list[float]) -> dict[str, float]:
    """The median, and what nineteen of twenty do not exceed."""
    p95 = sorted(times)[ceil(0.95 * len(times)) - 1]
    return {"p50_ms": round(median(times), 1), "p95_ms": round(p95, 1)}


def until(found: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (value := found()):
        if time.monotonic() > deadline:
            raise AssertionError("it took too long")
        time.sleep(LOOK_SECONDS)
    return value


def silent(port: int) -> socket.socket:
    """A receiver that takes connections and says nothing."""
    listening = socket.create_server(("127.0.0.1", port), backlog=128)
    threading.Thread(target=lambda: [listening.accept() for _ in range(10_000)], daemon=True).start()
    return listening


def work(about: str, port: str, model_url: str, mail: str, calls: str, times: str, *receivers: str) -> None:
    import django

    django.setup()
    kept = [silent(int(each)) for each in receivers]
    watched = Watched(json.loads(about), int(port), model_url, int(mail))
    watched.approvals(2 * int(times))
    told: dict[str, Any] = {"floor": watched.figures(int(times), closing=False)}
    watched.batch()
    told["beside_nothing"] = watched.batch()
    watched.hang()
    told["beside_hanging"] = watched.batch()
    told["burden"] = watched.burden(int(calls))
    told["ours"] = watched.figures(int(times), closing=True)
    del kept
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        print(json.dumps(prepare(sys.argv[2], sys.argv[3:])))
    else:
        work(*sys.argv[2:])
