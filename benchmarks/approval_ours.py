"""Deputy's approvals: an agent's call stops at a rule; somebody approves it, and the run ends."""

import time

from benchmarks.client import serve
from benchmarks.deputy import ANSWER, Deputy
from benchmarks.deputy import prepare as prepare_deputy

STOPPED = "list_available_groups"  # any tool that only reads: what is measured is the way there


class Park(Deputy):
    """An item is a run from its start to its request for an approval."""

    play = "approve"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from django.conf import settings

        settings.OPEN_APPROVALS_PERSON = settings.OPEN_APPROVALS_ALL = 10_000  # as many as are decided later
        self.item()

    def item(self) -> None:
        self.expect(self.run(), status="waiting", waiting_reason="approval")


class Decide(Deputy):
    """An item is an approval, from the decision to the end of its run, which a worker drives."""

    play = "approve"
    drives = False

    def __init__(self, url: str) -> None:
        from django.contrib.auth import get_user_model

        super().__init__(url)
        from runs.models import Approval
        from tests.acting import at_the_pages

        ann = get_user_model().objects.get(username="ann")
        self._decider = at_the_pages(ann, self._project.organization_id)
        waiting = Approval.objects.filter(status="pending").order_by("id")
        self._pending = iter(list(waiting.values_list("id", "run_id", "arguments_digest")))

    def item(self) -> None:
        from runs.actions import decide
        from runs.execution import executor

        approval_id, run_id, digest = next(self._pending)
        decide.approve(approval_id, self._decider, digest)
        if self.drives:
            executor.run(run_id)
        self._wait(run_id)

    def _wait(self, run_id: str) -> None:
        """Until the run has completed. Raises AssertionError when it ends otherwise or not at all."""
        from common.db import row

        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            status, output = row("SELECT status, output FROM runs_run WHERE id = %s", [run_id])
            if status not in ("waiting", "pending", "running"):
                assert (status, output) == ("completed", ANSWER), (status, output)
                return
            time.sleep(0.0005)
        raise AssertionError(f"{run_id} did not end")


class Drive(Decide):
    """The same, driven by the process that takes the decision."""

    drives = True


def prepare(url: str) -> None:
    """Deputy's tables and world, the rule, and somebody who may decide."""
    prepare_deputy(url)
    from django.contrib.auth import get_user_model

    from groups.models import Membership, Organization
    from policy.models import CapabilityRule

    organization = Organization.objects.get()
    CapabilityRule.objects.create(organization=organization, tool=STOPPED, effect="require_approval")
    decider = get_user_model().objects.create(username="ann")
    Membership.objects.create(organization=organization, user=decider, role="decider")


if __name__ == "__main__":
    serve(prepare, park=Park, decide=Decide, drive=Drive)
