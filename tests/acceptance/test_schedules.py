"""A schedule that is due starts its run exactly once, however many clusters are there to do it."""

import time
from datetime import timedelta

import pytest

from runs.actions import schedule as schedules
from runs.models import Run, Schedule, ScheduledRun
from tests.acceptance.house import check_logs, until
from tests.acting import at_the_pages


@pytest.mark.slow
def test_of_two_clusters_one_starts_what_is_due_and_none_what_is_paused(house, world, ended):
    actor = at_the_pages(world.user, world.project.organization_id)
    said = {"project": world.project, "goal": "brief", "time_zone": "Europe/Berlin", "cron": "0 9 29 2 *"}
    Schedule.objects.all().delete()
    paused = schedules.create(actor, said)
    schedules.pause(paused.pk, actor)
    clusters = [house.cluster(SWEEP_SECONDS="1"), house.cluster(SWEEP_SECONDS="1")]
    soon = schedules.now() + timedelta(seconds=1)
    once = schedules.create(actor, {**said, "cron": "", "at": soon})
    again = schedules.create(actor, said)
    Schedule.objects.filter(pk=again.pk).update(next_at=soon)

    until(lambda: ScheduledRun.objects.count() == 2, said=lambda: "".join(c.said() for c in clusters))
    time.sleep(4)  # in which each of the clusters looks several times

    entries = list(ScheduledRun.objects.order_by("id"))
    assert sorted(entry.schedule_id for entry in entries) == [once.pk, again.pk]
    assert [entry.outcome for entry in entries] == ["started", "started"]
    assert {entry.due_at for entry in entries} == {once.at}
    runs = Run.objects.filter(user=world.user)
    assert {run.pk for run in runs} == {entry.run_id for entry in entries} and len(runs) == 2
    for run in runs:
        assert ended(run.pk) == "completed", house.report(run.pk)
        check_logs(run.pk)
    assert Schedule.objects.get(pk=once.pk).state == "over"
    assert Schedule.objects.get(pk=again.pk).next_at > soon
