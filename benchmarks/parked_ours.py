"""Deputy's parked runs: an agent asks its user a question; the answer wakes it and it ends."""

from benchmarks.client import serve
from benchmarks.deputy import ANSWER, Deputy, parked, prepare


class Park(Deputy):
    """An item is a run from its start to its question."""

    play = "ask"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.expect(self.run(), status="waiting", waiting_reason="input")

    def item(self) -> None:
        self.run()

    def close(self) -> None:
        """Leaves no messages of the queue: a worker would have taken them with the runs."""
        self.execute("DELETE FROM runs_queuemessage")
        super().close()


class Wake(Deputy):
    """An item is a parked run from its answer to its end, driven by the process that took the answer."""

    play = "ask"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        from runs.models import Run
        from tests.acting import at_the_pages

        self._parked = iter(parked())
        asker = Run.objects.select_related("user").filter(status="waiting").first()
        assert asker is not None
        self._person = at_the_pages(asker.user, asker.organization_id)
        first = next(self._parked)
        self._wake(first)
        self.expect(first, status="completed", output=ANSWER)

    def item(self) -> None:
        self._wake(next(self._parked))

    def _wake(self, run_id: str) -> None:
        from runs.actions.message import message
        from runs.execution import executor

        message(run_id, "Europe", self._person)
        executor.run(run_id)


if __name__ == "__main__":
    serve(prepare, park=Park, wake=Wake)
