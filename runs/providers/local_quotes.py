"""What of a memory, or of a page, answers a question: passages word for word, each with its source."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from common.function_words import is_function_word
from common.text import sentences, terms
from runs.providers.local_words import WORDS

QUOTES = 3  # in one answer
QUOTE_CHARACTERS = 320
SAME = 0.8  # of each other's terms: two goals are about the same matter
GLANCE = 0.35  # a passage from a text that covers less of the question has too little to do with it
ROW = 0.5  # what a row of a table is worth beside a sentence: it says little without its head
SENTENCE = 24  # characters from which a text is no mere keyword
READ = 20_000  # characters of one text that are looked at
ASKED = 64  # terms of a question that count; a long one is quoted for by its beginning

GREETINGS = frozenset(terms("hello hi hey ok okay thanks cheers please bye goodbye 你好 您好 谢谢 好的 再见"))
HAN = re.compile("[\u3400-\u9fff]")
# a line this model writes itself, so that a quote of a quote keeps its first source
OWN = re.compile(r"^\s*- “(?P<text>.*)” \((?:source|来源): (?P<source>.*)\)$", re.MULTILINE)
QUESTION = re.compile(
    r"[?？]\s*$|^\W*(?:what|how|why|who|whom|when|where|which|is|are|do|does|did|can|should)\b|吗|什么|怎么|如何|多少",
    re.IGNORECASE,
)
RULED = re.compile(r"[|\-:=\s*_#>`~]*")  # lines of Markdown that say nothing


@dataclass(frozen=True)
class Quote:
    """A passage, where it stands, and how much of the question its text covers (0 to 1)."""

    text: str
    source: str
    coverage: float

    def line(self, words: dict[str, str]) -> str:
        return f"- “{self.text}” ({words['source']}: {self.source})"


@dataclass(frozen=True)
class Topic:
    """What a text is about: its terms and their weights (none for “hello”); its words if it is a sentence."""

    terms: dict[str, float]
    question: str = ""

    def __bool__(self) -> bool:
        return bool(self.terms)

    def echoed(self, text: str) -> bool:
        """Whether a text repeats the question itself, which answers nothing."""
        return bool(self.question) and self.question in _folded(text)


def topic(text: str) -> Topic:
    """What a text is about, by its first ASKED terms that are not about anything."""
    found: dict[str, float] = {}
    for term in terms(text):
        if len(found) >= ASKED:
            break
        if not is_function_word(term) and term not in GREETINGS:
            found[term] = 1.0 if len(term) > 1 else 0.3 if HAN.match(term) else 0.1
    asks = QUESTION.search(text[:READ]) or len(text) >= SENTENCE or len(HAN.findall(text)) >= SENTENCE // 3
    return Topic(found, _folded(text).rstrip(" .?!。？！") if asks else "")


def _folded(text: str) -> str:
    return " ".join(text[:READ].casefold().split())


def quotes(question: Topic, hits: Iterable[dict[str, Any]]) -> list[Quote]:
    """The best passages of these memories, best first, none twice."""
    found: dict[str, Quote] = {}
    for hit in hits:
        for quote in of_memory(question, hit):
            if quote.coverage >= GLANCE and quote.text not in found:
                found[quote.text] = quote
    return sorted(found.values(), key=lambda quote: -quote.coverage)


def of_memory(question: Topic, hit: dict[str, Any]) -> list[Quote]:
    """The passages of one memory. What this model said earlier is not evidence; what it quoted is."""
    content = str(hit.get("content") or "")[:READ]
    if (hit.get("metadata") or {}).get("memory_type") == "TODO":
        return []  # what is yet to be done answers nothing
    own = [
        Quote(match["text"], match["source"], coverage(question, match["text"]))
        for match in OWN.finditer(content)
    ]
    if own or any(words["unknown"] in content for words in WORDS.values()):
        return own
    parts = statements(question, content)
    text = passage(question, parts)
    heading = str((hit.get("metadata") or {}).get("heading") or "")
    return [Quote(text, source(hit), coverage(question, " ".join([heading, *parts])))] if text else []


def coverage(question: Topic, text: str) -> float:
    """The share of the question's terms that the text has, by weight."""
    there = set(terms(text))
    whole = sum(question.terms.values())
    return sum(weight for term, weight in question.terms.items() if term in there) / whole if whole else 0.0


def settles(question: Topic, hit: dict[str, Any]) -> bool:
    """Whether a group left this behind when it was asked about the same: the goals share their terms."""
    other = topic(str((hit.get("metadata") or {}).get("goal") or ""))
    shared = sum(weight for term, weight in question.terms.items() if term in other.terms)
    most = max(sum(question.terms.values()), sum(other.terms.values()))
    return shared > 0 and shared >= SAME * most


def statements(question: Topic, content: str) -> list[str]:
    """The sentences of a text without its headings and rules, and without the question's own echo."""
    parts = [" ".join(part.split()) for part in sentences(content)]
    return [
        part
        for part in parts
        if not part.startswith("#") and not RULED.fullmatch(part) and not question.echoed(part)
    ]


def passage(question: Topic, parts: Sequence[str]) -> str:
    """The run of sentences that holds most of what is asked, word for word, at most QUOTE_CHARACTERS."""
    known = [set(terms(part)) & question.terms.keys() for part in parts]
    best, most = "", 0.0
    for start, part in enumerate(parts):
        if not known[start]:
            continue
        end, length, held = start + 1, len(part), set(known[start])
        row = part.startswith("|")
        while (
            not row
            and end < len(parts)
            and not parts[end].startswith("|")
            and length + 1 + len(parts[end]) <= QUOTE_CHARACTERS
        ):
            length += 1 + len(parts[end])
            held |= known[end]
            end += 1
        worth = sum(question.terms[term] for term in held) * (ROW if row else 1.0)
        if worth > most:
            best, most = " ".join(parts[start:end]), worth
    return around(best, question)


def around(text: str, question: Topic) -> str:
    """A text too long to quote whole, cut to where it first speaks of what is asked."""
    if len(text) <= QUOTE_CHARACTERS:
        return text
    folded = text.casefold()
    positions = [at for term in question.terms if (at := folded.find(term)) >= 0]
    start = max(0, min(positions, default=0) - QUOTE_CHARACTERS // 4)
    return ("…" if start else "") + cut(text[start:], QUOTE_CHARACTERS)


def source(hit: dict[str, Any]) -> str:
    """Where a memory comes from: its file and heading, its run, or itself."""
    metadata = hit.get("metadata") or {}
    if metadata.get("file"):
        heading = str(metadata.get("heading") or "").split(" > ")[-1]
        return f"{metadata['file']}, {heading}" if heading else str(metadata["file"])
    return str(metadata.get("source_run_id") or hit.get("source_run_id") or hit.get("id") or "?")


def own_lines(texts: Sequence[str]) -> list[str]:
    """The lines with quotes that others of this model have said, each once."""
    found = [match[0].strip() for text in texts for match in OWN.finditer(text)]
    return list(dict.fromkeys(found))


def cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"
