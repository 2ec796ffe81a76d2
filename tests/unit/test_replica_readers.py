"""Who may ask for the replica: lists, reports and exports. What decides, writes or authorizes does not."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.unit.test_architecture import FLOORS, ROOT, modules

ITSELF = {"common/replica.py", "common/api/views.py", "groups/admin/tenancy.py"}
LISTS = {
    "groups/admin/changes.py",
    "groups/api/changes.py",
    "runs/admin/history.py",
    "runs/admin/runs.py",
    "runs/admin/webhooks.py",
    "runs/api/run_views.py",
    "runs/api/webhook_views.py",
    "runs/observe/audit.py",
    "runs/observe/decided.py",
}
PROBES = {"config/connections.py", "config/health.py", "runs/observe/metrics.py"}


def asks(path: Path) -> bool:
    text = path.read_text("utf-8")
    return "ListedFromReplica" in text or "replica" in {name for line in froms(path) for name in line}


def froms(path: Path) -> Iterator[set[str]]:
    """What each `from common import …` takes."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in ("common", "common.replica"):
            yield {alias.name for alias in node.names} | (
                {"replica"} if node.module == "common.replica" else set()
            )


def test_only_lists_and_reports_ask_for_the_replica():
    asking = {
        str(path.relative_to(ROOT))
        for folder in (*FLOORS, "config")
        for path in modules(folder)
        if asks(path)
    }
    assert asking | {"common/replica.py"} == ITSELF | LISTS | PROBES


def test_nobody_names_the_replica_beside_them():
    for folder in (*FLOORS, "config"):
        for path in modules(folder):
            name = str(path.relative_to(ROOT))
            if name in ITSELF | LISTS | {"common/db.py", "config/settings.py"}:
                continue
            text = path.read_text("utf-8")
            assert ".using(" not in text and "using=" not in text, f"{name} reads another database"
