"""Runs complete in a real cluster, whichever of its processes is killed."""

from tests.acceptance.house import check_logs, tree

LEVELS = 10


def test_one_worker_completes_ten_levels_of_escalation(house, ask, ended):
    house.cluster(WORKERS="1")
    run = ask("deep", goal=str(LEVELS), RUN_DEPTH=LEVELS)

    assert ended(run) == "completed", house.report(run)
    runs = tree(run)
    assert [r.depth for r in runs] == list(range(LEVELS + 1))
    assert [r.parent_run_id for r in runs[1:]] == [r.pk for r in runs[:-1]]
    assert {r.status for r in runs} == {"completed"}
    check_logs(run)
