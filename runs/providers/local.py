"""The embedded model: no network, no key, the same answer every time.

It understands nothing and says so: it decides by what the prompt carries as facts (which tools there
are, how well a group fits, what memory holds) and answers by quoting what it found, with the source.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from common.text import is_chinese, sentences, terms
from runs.providers.base import Message, ModelSettings, Reply, ToolRequest, ToolSchema, Usage

QUOTES = 3  # in one answer
QUOTE_CHARACTERS = 320
ENOUGH = 0.5  # share of the goal's terms a passage holds to answer it without a group
GLANCE = 0.2  # below this a passage has too little to do with the goal to be quoted
MAIL = re.compile(r"\b(e-?mail|mail|send|notify|inform)\b|发送|发邮件|邮件|通知|寄给", re.IGNORECASE)
MESSAGE = re.compile(r"\b(e-?mail|mail)\s+\w|发邮件|发送邮件|邮件给", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)

WORDS = {
    "en": {
        "only": "I am Deputy's built-in model: I quote what is known and add nothing of my own.",
        "found": "On “{goal}” I found:",
        "nothing": "Nothing that is known here answers “{goal}”.",
        "group": "The group's result:",
        "failed": "I asked a group, but: {error}",
        "denied": "I could not use {tool}: {error}",
        "asked": "Which address should the message go to?",
        "sent": "The message to {to} has been sent.",
        "subject": "About: {goal}",
        "escalating": "This looks like work for “{name}”; I pass it on.",
        "evidence": "EVIDENCE: ",
        "no_evidence": "STATUS: I found nothing about this.",
        "decision": "DECISION: ",
        "no_decision": "Nothing that is known here settles “{goal}”; a person has to.",
        "todo": "TODO: Add what is known about “{goal}” to the project's knowledge.",
        "source": "source",
    },
    "zh": {
        "only": "我是 Deputy 的内置模型：只引用已有的知识，不作任何补充。",
        "found": "关于“{goal}”，我找到：",
        "nothing": "这里已有的知识没有回答“{goal}”。",
        "group": "专家组的结果：",
        "failed": "我请教了专家组，但是：{error}",
        "denied": "我无法使用 {tool}：{error}",
        "asked": "邮件应该发到哪个地址？",
        "sent": "发给 {to} 的邮件已经发送。",
        "subject": "关于：{goal}",
        "escalating": "这件事适合“{name}”，我转交给他们。",
        "evidence": "EVIDENCE: ",
        "no_evidence": "STATUS: 我没有找到相关内容。",
        "decision": "DECISION: ",
        "no_decision": "这里已有的知识不足以决定“{goal}”，需要由人来定。",
        "todo": "TODO: 把“{goal}”的相关内容补充到项目知识中。",
        "source": "来源",
    },
}


class LocalProvider:
    """Rules over facts. Stateless."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The next message. Never raises ProviderError: it asks nobody."""
        turn = Turn(messages, {tool.name for tool in tools}, settings.facts)
        content, calls = turn.personal() if settings.facts.get("kind") == "personal" else turn.expert()
        usage = Usage(sum(len(message.content) for message in messages) // 4, len(content) // 4)
        return Reply(content, tuple(calls), usage, model="local")


class Turn:
    """One reply in the making."""

    def __init__(self, messages: Sequence[Message], tools: set[str], facts: dict[str, Any]) -> None:
        self.messages = messages
        self.tools = tools
        self.facts = facts
        asked = [m.content for m in messages if m.role == "user" and not m.name]
        self.goal = facts.get("goal") or (asked[-1] if asked else "")
        self.latest = asked[-1] if asked else self.goal
        self.words = WORDS["zh" if is_chinese(self.goal) else "en"]
        self.results = [(m.name, _json(m.content)) for m in messages if m.role == "tool"]

    def say(self, key: str, **values: str) -> str:
        short = {"goal": _cut(" ".join(self.goal.split()), 80), **values}
        return self.words[key].format(**short)

    # a personal agent

    def personal(self) -> tuple[str, list[ToolRequest]]:
        """Mail when asked to, answer from memory when it answers, else a group, else what little there is."""
        escalated = self._result("escalate_to_group")
        if escalated is not None:
            return self._from_group(escalated), []
        wanted = self.facts.get("escalate_to")
        if wanted and "escalate_to_group" in self.tools:
            return self._escalate(wanted)
        step = self._mail()
        if step:
            return step
        quotes = self._quotes(self.facts.get("memories", []))
        if quotes and quotes[0][0] >= ENOUGH:
            return self._answer(quotes), []
        group = self._group()
        if group:
            return self._escalate(group)
        return self._answer(quotes), []

    def _escalate(self, group: dict[str, Any]) -> tuple[str, list[ToolRequest]]:
        call = ToolRequest("escalate_to_group", {"group_id": group["group_id"], "goal": self.goal})
        return self.say("escalating", name=group["name"]), [call]

    def _group(self) -> dict[str, Any] | None:
        """The best group, when it fits the goal at all."""
        groups: list[dict[str, Any]] = self.facts.get("groups", [])
        if "escalate_to_group" not in self.tools or not groups or not groups[0]["fits"]:
            return None
        return groups[0]

    def _from_group(self, escalated: Any) -> str:
        if not isinstance(escalated, dict):
            escalated = {}
        if escalated.get("success"):
            text = _untagged(str(escalated.get("result", "")))
            return f"{self.words['group']}\n\n{text}\n\n{self.words['only']}"
        error = escalated.get("error")
        words = error.get("message", "") if isinstance(error, dict) else str(error)
        answer = self._answer(self._quotes(self.facts.get("memories", [])))
        return f"{self.say('failed', error=words)}\n\n{answer}"

    def _answer(self, quotes: list[tuple[float, str, str]]) -> str:
        if not quotes:
            return f"{self.say('nothing')}\n\n{self.words['only']}"
        return "\n".join([self.say("found"), "", *self._lines(quotes), "", self.words["only"]])

    # a member of a group

    def expert(self) -> tuple[str, list[ToolRequest]]:
        """Search, then say what was found; the lead joins what the others said."""
        if self.facts.get("is_lead"):
            return self._lead(), []
        step = self._mail()
        if step:
            return step
        searched = self._result("memory_search")
        if searched is None and "memory_search" in self.tools:
            return "", [ToolRequest("memory_search", {"query": self.goal[:2000], "limit": 8})]
        hits = searched.get("results", []) if isinstance(searched, dict) else self.facts.get("memories", [])
        quotes = self._quotes(hits)
        if not quotes:
            return self.say("no_evidence"), []
        return self.words["evidence"] + "\n".join(self._lines(quotes)), []

    def _lead(self) -> str:
        """The members' findings, each line once, as a decision."""
        lines: list[str] = []
        for message in self.messages:
            if message.role == "user" and message.name:
                lines += [line for line in _findings(message.content) if line not in lines]
        if not lines:
            quotes = self._quotes(self.facts.get("memories", []))
            lines = self._lines(quotes)
        if not lines:
            return f"{self.words['decision']}{self.say('no_decision')}\n{self.say('todo')}"
        return "\n".join([self.words["decision"] + self.say("found"), *lines[: 2 * QUOTES]])

    # mail

    def _mail(self) -> tuple[str, list[ToolRequest]] | None:
        """The steps of sending: ask for the address if none is known, send, say what came of it."""
        if "send_email" not in self.tools or not MAIL.search(self.goal) or not self._wants_mail():
            return None
        sent = self._result("send_email")
        if isinstance(sent, dict) and "error" in sent:
            message = sent["error"].get("message", "")
            return self.say("denied", tool="send_email", error=message), []
        if isinstance(sent, dict):
            return self.say("sent", to=", ".join(sent.get("to", []))), []
        to = ADDRESS.findall(self.goal) or ADDRESS.findall(self.latest) or self._answered()
        if not to:
            if "ask_user" in self.tools and self._result("ask_user") is None:
                return "", [ToolRequest("ask_user", {"question": self.words["asked"]})]
            return None
        body = self._answer(self._quotes(self.facts.get("memories", [])))
        mail = {"to": list(dict.fromkeys(to)), "subject": _line(self.say("subject")), "body": body}
        return "", [ToolRequest("send_email", mail)]

    def _wants_mail(self) -> bool:
        """A word for sending alone is not enough: an address, or a word that only fits a message."""
        return bool(
            ADDRESS.search(self.goal)
            or re.search(r"\b(e-?mail|mail)\s+\w|发邮件|发送邮件|邮件给", self.goal, re.I)
        )

    def _answered(self) -> list[str]:
        answer = self._result("ask_user")
        return ADDRESS.findall(str(answer.get("answer", ""))) if isinstance(answer, dict) else []

    # what they share

    def _result(self, tool: str) -> Any:
        """The latest result of a tool in this turn, or None."""
        return next((result for name, result in reversed(self.results) if name == tool), None)

    def _quotes(self, hits: Sequence[dict[str, Any]]) -> list[tuple[float, str, str]]:
        """(coverage of the goal's terms, passage, source), best first, of what has to do with the goal."""
        wanted = set(terms(self.goal))
        found = []
        for hit in hits:
            coverage = len(wanted & set(terms(hit["content"]))) / max(1, len(wanted))
            if coverage >= GLANCE:
                found.append((coverage, _passage(hit["content"], wanted), _source(hit)))
        found.sort(key=lambda quote: -quote[0])
        return found[:QUOTES]

    def _lines(self, quotes: Sequence[tuple[float, str, str]]) -> list[str]:
        return [f"- “{text}” ({self.words['source']}: {source})" for _, text, source in quotes]


def _passage(content: str, wanted: set[str]) -> str:
    """The sentences of a memory that hold most of what is asked, in their order."""
    parts = [" ".join(part.split()) for part in sentences(content)] or [" ".join(content.split())]
    best = max(range(len(parts)), key=lambda i: (len(wanted & set(terms(parts[i]))), -i))
    passage = parts[best]
    for following in parts[best + 1 :]:
        if len(passage) + len(following) > QUOTE_CHARACTERS:
            break
        passage = f"{passage} {following}"
    return _cut(passage, QUOTE_CHARACTERS)


def _source(hit: dict[str, Any]) -> str:
    """Where a memory came from: its file and heading, its run, or itself."""
    metadata = hit.get("metadata") or {}
    if metadata.get("file"):
        heading = metadata.get("heading")
        return f"{metadata['file']}, {heading}" if heading else str(metadata["file"])
    return str(metadata.get("source_run_id") or hit.get("source_run_id") or hit.get("id"))


def _findings(content: str) -> list[str]:
    return [line.strip() for line in content.splitlines() if line.strip().startswith("- “")] or [
        f"- {line[1].strip()}"
        for line in [content.split("EVIDENCE:", 1)]
        if len(line) > 1 and line[1].strip()
    ]


def _untagged(text: str) -> str:
    return re.sub(r"^\s*DECISION:\s*", "", text)


def _line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
