"""Deputy's slow runs: started through the action in this process, carried by the processes of `make run`.

python -m benchmarks.capacity_ours prepare DATABASE_URL
python -m benchmarks.capacity_ours work KIND RUNS     (prints one JSON line)
python -m benchmarks.capacity_ours steady KIND RUNS_A_MINUTE MINUTES     (likewise)
"""

import json
import sys
import time

from benchmarks import deputy
from benchmarks.capacity_peer import ASKED, processor_seconds
from benchmarks.harness import percentile

LOOK_SECONDS = 0.05


def work(kind: str, runs: int) -> None:
    """Start the runs and wait until all have completed. Raises AssertionError for one that did not."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model

    from groups.models import Project
    from runs.models import Run
    from tests.acting import start

    user = get_user_model().objects.get(username="mia")
    project = Project.objects.get(slug="supply")
    goal = ASKED if kind == "single" else f"escalate: {ASKED}"
    cpu, started = processor_seconds(), time.monotonic()
    ids = [start(user=user, project=project, goal=goal.format(number)) for number in range(runs)]
    mine = Run.objects.filter(pk__gte=ids[0], parent_run=None)
    while mine.filter(status__in=("pending", "running", "waiting")).exists():
        time.sleep(LOOK_SECONDS)
    wall = time.monotonic() - started
    ended = dict(mine.values_list("pk", "status"))
    wrong = {run_id: ended.get(run_id) for run_id in ids if ended.get(run_id) != "completed"}
    assert not wrong, list(wrong.items())[:3]
    print(json.dumps({"wall_s": wall, "cpu_s": processor_seconds() - cpu}))


def steady(kind: str, per_minute: int, minutes: float) -> None:
    """Start runs at even intervals; tells how long each waited for its first step, in milliseconds."""
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.db.models import F

    from groups.models import Project
    from runs.models import Run
    from tests.acting import start

    user = get_user_model().objects.get(username="mia")
    project = Project.objects.get(slug="supply")
    goal = ASKED if kind == "single" else f"escalate: {ASKED}"
    started, ids = time.monotonic(), []
    for number in range(round(per_minute * minutes)):
        time.sleep(max(0.0, started + number * 60 / per_minute - time.monotonic()))
        ids.append(start(user=user, project=project, goal=goal.format(number)))
    wall = time.monotonic() - started
    mine = Run.objects.filter(pk__in=ids)
    while mine.filter(ended_at=None).exists():
        time.sleep(LOOK_SECONDS)
    assert not mine.exclude(status="completed").exists()
    waits = mine.annotate(waited=F("started_at") - F("created_at")).values_list("waited", flat=True)
    times = sorted(waited.total_seconds() * 1000 for waited in waits)
    told = {"wall_s": wall, "runs": len(ids), "p50_ms": round(percentile(times, 0.5), 1)}
    print(json.dumps({**told, "p95_ms": round(percentile(times, 0.95), 1)}))


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        deputy.prepare(sys.argv[2])
        print("{}")
    elif sys.argv[1] == "steady":
        steady(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        work(sys.argv[2], int(sys.argv[3]))
