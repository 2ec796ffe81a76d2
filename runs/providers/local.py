"""The embedded model: no network, no key, the same answer every time.

It understands nothing and says so: it decides by what the prompt carries as facts (which tools there
are, how well a group fits, what memory holds) and answers by quoting what it found, with the source.
No tool is called twice in a run, so it cannot go round in circles.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from common.text import is_chinese
from runs.providers.base import Message, ModelSettings, Reply, ToolRequest, ToolSchema, Usage
from runs.providers.local_mail import addresses, message, subject_matter, wants_mail, without_sending
from runs.providers.local_quotes import QUOTES, Quote, cut, own_lines, quotes, settles, topic
from runs.providers.local_words import WORDS

FINDINGS = 2  # of one member, so that the next one has something to say
MOST_RECIPIENTS = 50
SHOWN_GOAL = 80  # characters of a goal that are repeated
SEARCHED = 2_000  # characters of it that memory is asked about
SEARCH_LIMIT = 30  # of which a group's tiers leave a few to each kind of memory
KEPT = 20_000  # characters one memory may have

REMEMBER = re.compile(
    r"^\W*(?:please\s+)?(?:remember|note down|keep in mind)(?:\s+that)?\b[\s:,]*(?P<en>.{3,})$"
    r"|^\W*(?:请)?(?:你)?(?:帮我)?(?:记住|记下)[\s:：，,]*(?P<zh>.{2,})$",
    re.IGNORECASE | re.DOTALL,
)
PREFERENCE = re.compile(
    r"\b(?:i (?:prefer|like|want|hate)|call me|my preferred|always|never)\b"
    r"|我(?:喜欢|偏好|希望|讨厌)|叫我|称呼我"
)
WHICH_GROUPS = re.compile(
    r"\b(?:which|what|list|show)\b.{0,30}\bgroups\b|(?:有|列出|显示)(?:哪些|什么|所有)?[^，。]{0,6}(?:专家组|小组|群组)",
    re.I,
)
READS = re.compile(
    r"\b(?:read|fetch|open|summari[sz]e|quote|look at|get)\b|阅读|读取|打开|总结|概括|看看|抓取", re.I
)
URL = re.compile(r"https?://[^\s<>\"'“”「」（）()，。；]+", re.I)

Said = tuple[str, list[ToolRequest]]


class LocalProvider:
    """Rules over facts. Stateless."""

    def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], settings: ModelSettings
    ) -> Reply:
        """The next message. Never raises ProviderError: it asks nobody."""
        turn = Turn(messages, {tool.name for tool in tools}, settings.facts)
        content, calls = turn.expert() if settings.facts.get("kind") == "group" else turn.personal()
        usage = Usage(sum(len(message.content) for message in messages) // 4, len(content) // 4)
        return Reply(content, tuple(calls), usage, model="local")


class Turn:
    """One reply in the making."""

    def __init__(self, messages: Sequence[Message], tools: set[str], facts: dict[str, Any]) -> None:
        self.tools = tools
        self.facts = facts
        self.heard = [m.content for m in messages if m.role == "user" and not m.name]  # a person's words
        self.fellows = [m.content for m in messages if m.role == "user" and m.name]
        self.goal = str(facts.get("goal") or (self.heard[-1] if self.heard else ""))
        self.topic = topic(self.goal)
        self.words = WORDS["zh" if is_chinese(self.goal) else "en"]
        whole = facts.get("results") or {}  # of those the messages show the beginning of
        self.results = {
            m.name: whole.get(m.tool_call_id) or _json(m.content) for m in messages if m.role == "tool"
        }

    def say(self, key: str, **values: str) -> str:
        return self.words[key].format(**{"goal": cut(_line(self.goal), SHOWN_GOAL), **values})

    # a personal agent

    def personal(self) -> Said:
        """The first of its ways that has something to say."""
        ways = (self._group_result, self._requested_group, self._mail, self._remember, self._list_groups)
        for way in (*ways, self._page, self._no_topic, self._settled, self._fitting_group):
            said = way()
            if said:
                return said
        return self._answer(), []

    def _group_result(self) -> Said | None:
        result = self.results.get("escalate_to_group")
        if result is None:
            return None
        if isinstance(result, dict) and result.get("success"):
            text = _untagged(str(result.get("result", "")))
            return f"{self.words['group']}\n\n{text}\n\n{self.words['only']}", []
        return f"{self.say('group_failed', error=self._problem(result))}\n\n{self._answer()}", []

    def _requested_group(self) -> Said | None:
        wanted = self.facts.get("escalate_to")
        if not wanted:
            return None
        if "escalate_to_group" not in self.tools:
            return f"{self.say('no_escalation', name=str(wanted.get('name')))}\n\n{self._answer()}", []
        return self._escalate(wanted, "requested")

    def _settled(self) -> Said | None:
        """What a group has decided about this very matter: nobody needs to be asked again."""
        deposits = [hit for hit in self.facts.get("memories") or [] if settles(self.topic, hit)]
        found = quotes(self.topic, deposits)[:QUOTES]
        if not found:
            return None
        run = str(deposits[0]["metadata"].get("source_run_id"))
        lines = [self.say("settled", run=run), "", *self._lines(found), "", self.words["only"]]
        return "\n".join(lines), []

    def _fitting_group(self) -> Said | None:
        """The best group, when it fits the goal at all."""
        best = next(iter(self.facts.get("groups") or []), None)
        if best is None or not best.get("fits") or "escalate_to_group" not in self.tools:
            return None
        return self._escalate(best, "escalating")

    def _escalate(self, group: dict[str, Any], key: str) -> Said:
        call = ToolRequest("escalate_to_group", {"group_id": group["group_id"], "goal": self.goal})
        return self.say(key, name=str(group.get("name"))), [call]

    def _remember(self) -> Said | None:
        asked = REMEMBER.match(self.goal)
        if asked is None or "memory_write" not in self.tools:
            return None
        text = cut((asked["en"] or asked["zh"]).strip(), KEPT)
        written = self.results.get("memory_write")
        if written is None:
            preference = bool(PREFERENCE.search(text.lower()))
            return "", [ToolRequest("memory_write", {"content": text, "pa_preference": preference})]
        if _error(written):
            return self.say("cannot", tool="memory_write", error=self._problem(written)), []
        return self.say("remembered", text=cut(_line(text), SHOWN_GOAL)), []

    def _list_groups(self) -> Said | None:
        if "list_available_groups" not in self.tools or not WHICH_GROUPS.search(self.goal):
            return None
        listed = self.results.get("list_available_groups")
        if listed is None:
            return "", [ToolRequest("list_available_groups", {})]
        if not isinstance(listed, dict) or _error(listed):
            return self.say("cannot", tool="list_available_groups", error=self._problem(listed)), []
        lines = [
            f"- {group['name']} ({group['id']}): {_line(group['description'])}"
            for group in listed.get("groups") or []
        ]
        return "\n".join([self.words["groups"], "", *lines]) if lines else self.words["no_groups"], []

    def _no_topic(self) -> Said | None:
        return None if self.topic else (f"{self.say('no_topic')}\n\n{self.words['only']}", [])

    def _answer(self) -> str:
        """What memory holds about the goal, or that it holds nothing."""
        found = self._known()[:QUOTES]
        if not found:
            return f"{self.say('nothing')}\n\n{self.words['only']}"
        return "\n".join([self.say("found"), "", *self._lines(found), "", self.words["only"]])

    # a member of a group

    def expert(self) -> Said:
        """Send, read or search what the goal asks for, then say what was found; the lead joins it all."""
        if self.facts.get("is_lead"):
            return self._lead(), []
        sent = self._mail() if "send_email" in self.tools else None
        if sent:
            return (sent[0] if sent[1] else self.words["status"] + sent[0]), sent[1]
        read = self._page()
        if read:
            return (read[0] if read[1] else self.words["status"] + read[0]), read[1]
        searched = self.results.get("memory_search")
        if searched is None and "memory_search" in self.tools and self.topic:
            return "", [ToolRequest("memory_search", {"query": self.goal[:SEARCHED], "limit": SEARCH_LIMIT})]
        return self._evidence(searched), []

    def _evidence(self, searched: Any) -> str:
        """What was found and nobody has said yet."""
        if _error(searched):
            problem = self.say("cannot", tool="memory_search", error=self._problem(searched))
            return self.words["status"] + problem
        there = isinstance(searched, dict) and isinstance(searched.get("results"), list)
        lines = self._lines(self._known(searched["results"] if there else None))
        said = own_lines(self.fellows)
        new = [line for line in lines if line not in said][:FINDINGS]
        if new:
            return "\n".join([self.say("evidence"), *new])
        return self.words["no_news" if lines else "no_evidence"]

    def _lead(self) -> str:
        """The members' findings, each once, as a decision; the goal is not repeated.

        What a group leaves behind becomes knowledge: echoing the question would make it the best match
        for the same question, whatever it says.
        """
        lines = own_lines(self.fellows) or self._lines(self._known()[:QUOTES])
        done = [status for status in map(_status, self.fellows) if status and not self._empty(status)]
        if lines:
            return "\n".join([self.say("decision"), *lines[: 2 * QUOTES], *done])
        if done:
            return self.words["decided"] + "\n".join(dict.fromkeys(done))
        return f"{self.words['undecided']}\n{self.say('todo')}"

    def _empty(self, status: str) -> bool:
        return any(status in words[key] for words in WORDS.values() for key in ("no_evidence", "no_news"))

    # mail

    def _mail(self) -> Said | None:
        """The steps of sending: ask for the address if none is known, send, say what came of it."""
        if not wants_mail(self.goal):
            return None
        if "send_email" not in self.tools:
            return f"{self.words['no_mail']}\n\n{self._answer()}", []
        sent = self.results.get("send_email")
        if sent is not None:
            return self._sent(sent), []
        to = self._recipients()
        if to:
            return "", [ToolRequest("send_email", self._letter(to))]
        answer = self.results.get("ask_user")
        if answer is None and "ask_user" in self.tools:
            return "", [ToolRequest("ask_user", {"question": self.words["asked"]})]
        if _error(answer):
            return self.say("not_sent", error=self._problem(answer)), []
        return self.words["no_address"], []

    def _recipients(self) -> list[str]:
        """Addresses a person named: in the goal, in later words, in an answer, in the context."""
        answer = self.results.get("ask_user")
        answered = str(answer.get("answer", "")) if isinstance(answer, dict) else ""
        for text in (self.goal, answered, *reversed(self.heard[-1:]), str(self.facts.get("context") or "")):
            found = addresses(text)
            if found:
                return found[:MOST_RECIPIENTS]
        return []

    def _letter(self, to: list[str]) -> dict[str, Any]:
        """The person's own words where the goal has them; otherwise what is known of the matter."""
        words = message(self.goal)
        if words:
            return {"to": to, "subject": cut(_line(words), SHOWN_GOAL), "body": words}
        about = subject_matter(self.goal)
        shown = cut(_line(about or self.goal), SHOWN_GOAL)
        subject = self.say("subject", goal=shown)
        knowledge = [hit for hit in self._memories() if hit.get("type", "archival") == "archival"]
        asked = replace(topic(about or without_sending(self.goal)), question="")
        found = quotes(asked, knowledge)[:QUOTES]
        if not found:
            return {"to": to, "subject": subject, "body": self.say("wanted", goal=cut(self.goal, KEPT))}
        body = "\n".join([self.say("found", goal=shown), "", *self._lines(found), "", self.words["only"]])
        return {"to": to, "subject": subject, "body": body}

    def _sent(self, sent: Any) -> str:
        if _error(sent) or not isinstance(sent, dict):
            return self.say("not_sent", error=self._problem(sent))
        return self.say("sent", to=", ".join(map(str, sent.get("to") or [])))

    # a page of the web

    def _page(self) -> Said | None:
        """Read the page the goal names, when it asks for that, and quote from it."""
        url = URL.search(self.goal)
        if url is None or "http_get" not in self.tools or not READS.search(self.goal):
            return None
        address = url[0].rstrip(".,;:!?")
        page = self.results.get("http_get")
        if page is None:
            return "", [ToolRequest("http_get", {"url": address})]
        if _error(page) or not isinstance(page, dict):
            return self.say("cannot", tool="http_get", error=self._problem(page)), []
        asked = topic(URL.sub(" ", READS.sub(" ", self.goal)))
        hit: dict[str, Any] = {"content": page.get("text"), "id": page.get("url"), "metadata": {}}
        found = quotes(asked, [hit]) or _beginning(hit)
        if not found:
            return self.say("no_page", url=address), []
        return "\n".join([self.say("page", url=address), "", *self._lines(found[:QUOTES])]), []

    # what they share

    def _memories(self) -> list[dict[str, Any]]:
        return [hit for hit in self.facts.get("memories") or [] if isinstance(hit, dict)]

    def _known(self, hits: list[Any] | None = None) -> list[Quote]:
        """What these memories, or those of the prompt, say about the goal."""
        there = self._memories() if hits is None else [hit for hit in hits if isinstance(hit, dict)]
        return quotes(self.topic, there)

    def _lines(self, found: Iterable[Quote]) -> list[str]:
        return [quote.line(self.words) for quote in found]

    def _problem(self, result: Any) -> str:
        """What went wrong, in words: the error's own, or ours for what its code says."""
        error = result.get("error") if isinstance(result, dict) else result
        if not isinstance(error, dict):
            return str(error or "?")
        own = self.words.get(str(error.get("code")))
        told = str(error.get("message") or error.get("code") or "?")
        return own.format(error=told) if own else told


def _error(result: Any) -> bool:
    return isinstance(result, dict) and "error" in result


def _status(content: str) -> str:
    """What a fellow reports beside findings (“[STATUS] STATUS: …” as others hear it)."""
    found = re.match(r"\s*(?:\[\w+\]\s*)?STATUS:\s*(.+)", content, re.DOTALL)
    return found[1].strip() if found else ""


def _untagged(text: str) -> str:
    return re.sub(r"^\s*DECISION:\s*", "", text)


def _beginning(hit: dict[str, Any]) -> list[Quote]:
    text = cut(_line(str(hit["content"] or "")), 320)
    return [Quote(text, str(hit["id"]), 0.0)] if text else []


def _line(text: str) -> str:
    return " ".join(text.split())


def _json(text: str) -> Any:
    """A tool's result; never None, which says that the tool has not been used."""
    try:
        result = json.loads(text)
    except ValueError:
        return text
    return {} if result is None else result
