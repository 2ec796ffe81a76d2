"""MCP's conformance kit against this Deputy: where the kit is, what it asks, how its answers are counted."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.mcp.app import with_mcp

KIT = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = 22  # the first that the kit runs on


def command() -> list[str] | None:
    """How to call the kit here: MCP_CONFORMANCE names it, or node is new enough for npx to bring it."""
    if named := os.environ.get("MCP_CONFORMANCE"):
        return named.split()
    node, npx = shutil.which("node"), shutil.which("npx")
    if node is None or npx is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    return [npx, "--yes", KIT] if int(version.strip("v").split(".")[0] or 0) >= NODE else None


@dataclass(frozen=True)
class Score:
    """The checks of one scenario: (id, words) of those that failed."""

    passed: int
    failed: tuple[tuple[str, str], ...]


def ask(kit: list[str], url: str, folder: Path, *what: str) -> dict[str, Score]:
    """The score per scenario of one run of the kit."""
    done = subprocess.run(
        [*kit, "server", "--url", url, "--output-dir", str(folder), *what],
        capture_output=True,
        text=True,
        timeout=900,
    )
    found = {path.parent.name: _score(json.loads(path.read_text())) for path in folder.glob("*/checks.json")}
    assert found, done.stdout + done.stderr
    return {_scenario(name): score for name, score in sorted(found.items())}


def _scenario(folder: str) -> str:
    """The kit's folders are called server-{scenario}-{time}."""
    return folder.removeprefix("server-").split("-20", 1)[0]


def _score(checks: list[dict[str, Any]]) -> Score:
    failed = [
        (check["id"], str(check.get("errorMessage", ""))) for check in checks if check["status"] == "FAILURE"
    ]
    return Score(sum(check["status"] == "SUCCESS" for check in checks), tuple(failed))


def table(revision: str, scores: dict[str, Score]) -> str:
    """The scores as lines of a page."""
    passed = sum(score.passed for score in scores.values())
    failed = sum(len(score.failed) for score in scores.values())
    lines = [f"{revision}: {passed} checks passed, {failed} failed"]
    for scenario, score in scores.items():
        lines.append(f"{scenario}: {score.passed} / {len(score.failed)}")
        lines += [f"    {check}: {words}" for check, words in score.failed]
    return "\n".join(lines)


def signed_in(secret: str) -> Callable[[Any], Any]:
    """MCP before the application, asked with this token: the kit itself sends none."""

    def around(application: Any) -> Any:
        inner = with_mcp(application)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                token = (b"authorization", f"Bearer {secret}".encode())
                scope = {**scope, "headers": [*scope["headers"], token]}
            await inner(scope, receive, send)

        return app

    return around
