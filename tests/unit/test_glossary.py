"""The code speaks the words of docs/glossary.md, and none of those that they replaced."""

import re
import subprocess

import pytest

from tests.unit.test_docs import ROOT, page


def word(pattern):
    """It alone or as a part of an identifier, and not inside another word."""
    return rf"(?<![A-Za-z]){pattern}(?![A-Za-z])"


GONE = {
    "worker status": r"\bBoard\(|runs\.board|\bboard = WorkerStatus",
    "policy cache": r"\bpolicy\.book\b|\bStanding\b(?! (approval|grant)s?)",
    "MCP tool registry": word("shelf"),
    "health": word("[Vv]itals"),
    "event counts": word("[Tt]all(?:y|ies)"),
    "prefetch": word("foresight"),
    "handoff": word("batons?") + r"|\bPassing\b",
    "tool calls": word("ledgers?"),
    "approval queue": word("desk") + r"(?!-and-chair)",
    "recalled memories": r"\bdp-knew\b|runs/admin/knew",
    "run tree": r"runs/admin/family|\bfamily\(ask\)|any run of its family",
    "what the agent saw": r"[Ii]ts view”|\"its view\"",
    "approvals_count": r"words_for_it",
}
READ = (".py", ".html", ".js", ".css", ".md")


def texts():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    return {
        name: (ROOT / name).read_text("utf-8")
        for name in listed
        if name.endswith(READ) and "/migrations/" not in name and (ROOT / name).exists()
    }


@pytest.mark.parametrize(("now", "then"), GONE.items(), ids=GONE)
def test_no_word_is_used_that_another_has_replaced(now, then):
    own = {"tests/unit/test_glossary.py", "CHANGELOG.md"}
    found = [name for name, text in texts().items() if name not in own and re.search(then, text)]
    assert not found, f"say {now}"


def test_every_term_stands_there_once():
    terms = re.findall(r"^\| ([^|]+?) \|", page("docs/glossary.md"), re.MULTILINE)
    terms = [term for term in terms if term not in ("term", "---")]
    assert len(terms) == len(set(terms)) > 40
