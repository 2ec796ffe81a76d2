"""Deputy's escalation: started as the API starts it, driven in the process that started it."""

from benchmarks.client import serve
from benchmarks.deputy import ANSWER, Deputy, prepare


class Escalation(Deputy):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._check()

    def item(self) -> None:
        self.run()

    def _check(self) -> None:
        """The path that is measured is the one that is meant."""
        from runs.models import Run, ToolCall

        run_id = self.run()
        self.expect(run_id, status="completed", output=ANSWER)
        child = Run.objects.get(parent_run=run_id)
        self.expect(child.pk, status="completed", output=ANSWER)
        calls = list(ToolCall.objects.filter(run=child).values_list("tool", "status"))
        assert calls == [("look_up", "succeeded")] * 2, calls


if __name__ == "__main__":
    serve(prepare, work=Escalation)
