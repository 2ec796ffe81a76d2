"""The admin's pages among 100,000 runs and 1,000,000 events.

    python -m benchmarks.pages

For each page: the statements it asks, among a hundred runs and among all of them; the p95 of the page; and
the p95 of the same statements alone, asked one after the other on the same connection. What lies between the
two is Django and the template.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import harness
from benchmarks.harness import percentile

FEW, MANY = 100, 100_000
ROUNDS = 30


def statements(page: Callable[[], Any]) -> list[str]:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as asked:
        answer = page()
    assert answer.status_code == 200, answer.status_code
    return [query["sql"] for query in asked if query["sql"].lstrip().upper().startswith(("SELECT", "WITH"))]


def p95(work: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return percentile(sorted(times), 0.95)


def measure(pages: dict[str, Callable[[], Any]], few: dict[str, int]) -> dict[str, dict[str, float]]:
    from django.db import connection

    found = {}
    for name, page in pages.items():
        page()
        asked = statements(page)

        def alone(asked: list[str] = asked) -> None:
            with connection.cursor() as cursor:
                for sql in asked:
                    cursor.execute(sql)
                    cursor.fetchall()

        found[name] = {
            "queries_among_few": few[name],
            "queries": len(asked),
            "p95_ms": round(p95(page), 1),
            "statements_p95_ms": round(p95(alone), 1),
        }
        print(f"{name:<12}{found[name]}", flush=True)
    return found


def main() -> None:
    with harness.server() as admin_url:
        url = harness.database(admin_url, "pages")
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        from benchmarks import approval_ours, growth

        approval_ours.prepare(url)
        from django.conf import settings
        from django.contrib.auth import get_user_model
        from django.db import connections
        from django.test import Client
        from django.urls import reverse

        settings.ALLOWED_HOSTS = ["testserver"]
        park = approval_ours.Park(url)
        for _ in range(40):
            park.item()
        run = park.run()
        client = Client()
        client.force_login(get_user_model().objects.create_superuser("root"))
        paths = {
            "runs": reverse("admin:runs_run_changelist"),
            "a run": reverse("admin:runs_run_change", args=[run]),
            "approvals": reverse("admin:runs_approval_changelist"),
            "events": reverse("admin:runs_runevent_changelist"),
        }
        pages = {name: lambda path=path: client.get(path) for name, path in paths.items()}
        growth.fill(0, FEW)
        for page in pages.values():
            page()
        few = {name: len(statements(page)) for name, page in pages.items()}
        growth.fill(FEW, MANY)
        found = measure(pages, few)
        connections.close_all()
    print(json.dumps({"bench": "pages", "runs": MANY, "events": MANY * 10, "pages": found}))


if __name__ == "__main__":
    sys.exit(main())
