"""What two groups found out alike is known once, with two sources."""

from collections import Counter
from collections.abc import Iterable

from django.db import transaction

from common.function_words import is_function_word
from common.text import terms
from memory import curate, statistics
from memory.errors import MemoryRefused
from memory.models import Memory, MemoryStatus, MemoryType
from memory.search import memory_search
from memory.substance import OUTPUT_PREFIX

# Chosen by measurement, docs/memory.md.
ALIKE = 0.85
NEGATIONS = frozenset(terms("not no never none cannot without don't won't isn't 不 没 未 无 非 勿 别"))
CONTRADICTS = "contradicts"  # metadata.review_reason of what denies something known
LOOKED_AT = 20  # as many may be deposited alike before the first of them joins


def join_duplicates(memory_ids: Iterable[str]) -> list[tuple[str, str]]:
    """Let new deposits join what their project knows already; returns (joined, kept) ids.

    Each under its project's lock, in a transaction of its own. What joins is superseded and becomes a
    source of the one that stays; `curate.restore` undoes it. Doing it again changes nothing.
    """
    joined = []
    for memory_id in memory_ids:
        with transaction.atomic():
            kept = _join(memory_id)
        if kept is not None:
            joined.append((memory_id, kept))
    return joined


def alike(one: str, other: str) -> bool:
    """Do two texts say the same?

    One may have a few words more, in any order, but never another number, name or negation in a word's
    place: "Ann leads" and "Bob leads" share nearly all their words and are two facts. Function words may
    be others, as long as each text has something else to say.
    """
    first, second = _words(one), _words(other)
    if not first or not second or _facts(first) != _facts(second):
        return False
    return _nearly(first, second) or _nearly(_telling(first), _telling(second))


def contradict(one: str, other: str) -> bool:
    """Does one text deny what the other says: the same words, but for a negation?"""
    first, second = _words(one), _words(other)
    if _numbers(first) != _numbers(second) or _facts(first) == _facts(second):
        return False
    return _nearly(_telling(first, negations=False), _telling(second, negations=False))


def _nearly(first: Counter[str], second: Counter[str]) -> bool:
    if not first or not second or (first - second and second - first):
        return False  # each has a word that the other lacks: replaced, not added
    return (first & second).total() / (first | second).total() >= ALIKE


def _join(memory_id: str) -> str | None:
    memory = Memory.objects.filter(id=memory_id).first()
    if memory is None or memory.type != MemoryType.ARCHIVAL:
        return None
    statistics.lock(f"memory.join.{memory.scope_key}")
    memory.refresh_from_db()
    if memory.status != MemoryStatus.ACTIVE:
        return None
    text = memory.content.removeprefix(OUTPUT_PREFIX)
    for hit in memory_search(text, memory.scope, type=MemoryType.ARCHIVAL, limit=LOOKED_AT):
        same_run = hit.source_run_id is not None and hit.source_run_id == memory.source_run_id
        if hit.id >= memory.id or same_run:
            continue
        known = hit.content.removeprefix(OUTPUT_PREFIX)
        if contradict(text, known):
            _doubt(memory, hit.id)
            return None
        if alike(text, known):
            try:
                curate.merge(hit.id, [memory.id], by=None)
            except MemoryRefused:  # somebody retracted one of them meanwhile
                return None
            return hit.id
    return None


def _doubt(memory: Memory, known: str) -> None:
    """Put a deposit that denies what is known to a curator: it is found again once they approve it."""
    memory.metadata |= {"review_reason": CONTRADICTS, "contradicts": [known]}
    memory.status = MemoryStatus.PENDING_REVIEW
    memory.save(update_fields=["metadata", "status"])


def _telling(words: Counter[str], *, negations: bool = True) -> Counter[str]:
    return Counter(
        {
            word: count
            for word, count in words.items()
            if (negations if word in NEGATIONS else not is_function_word(word))
        }
    )


def _numbers(words: Counter[str]) -> Counter[str]:
    return Counter({word: count for word, count in _facts(words).items() if word not in NEGATIONS})


def _words(text: str) -> Counter[str]:
    """English stems and single Chinese characters: pairs change with every neighbour."""
    return Counter(term for term in terms(text) if not (len(term) == 2 and term[0] > "\u2e7f"))


def _facts(words: Counter[str]) -> Counter[str]:
    return Counter(
        {
            word: count
            for word, count in words.items()
            if word in NEGATIONS or any(character.isdigit() for character in word)
        }
    )
