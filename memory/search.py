"""Finding memories: the tiers of a person's agent and of a group (000, 2.1), in one statement."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, NamedTuple
from uuid import UUID

from common import redact, tracing
from common.db import rows
from common.function_words import is_function_word
from common.text import is_chinese, terms
from memory import sql
from memory.embeddings.questions import vector_of
from memory.errors import MemoryRefused
from memory.models import MemoryType
from memory.models.columns import quoted
from memory.scope import PREFERENCE, Scope
from memory.snippet import snippet
from memory.substance import OUTPUT_PREFIX, repeats

MOST = 50
MOST_TERMS = 1_000  # of one question that are looked up; those that occur most in it
# Chosen by measurement, docs/memory.md: more finds no more, and takes longer.
WEIGHED = 48  # terms of a question that count: the rarest, and those it says most often
LONG = 32  # terms of a question that are no function words: from here on those do not count at all
FUNCTION_WORD = 0.2  # what one counts in a shorter question: who asks "who" wants a person
CHINESE_TERMS = 3.0  # terms a word of Chinese comes to: pairs of characters, and each by itself
SMALL = 20_000  # memories of a tier up to which three times as many are weighed
REACH = 100  # memories that the rarest terms may bring in
PAIRS = 5  # of the next terms, two together bring in a memory
SCANNED = 10_000  # memories of one term that may be looked through for a second one
ENOUGH = 20  # candidates: with fewer, common terms together bring in more
TELLING = 0.02  # a term in a larger share of a scope's memories says nothing beside rarer ones
TOGETHER = 60  # memories that two terms together, or the common ones, may bring in
CANDIDATES = 150  # of a tier, whatever the counts said
# By meaning, where a model is set (memory.embeddings).
NEAR = 50  # memories of a tier that count by words, and as many by meaning
WORDS = 0.75  # what words count of a memory's score; meaning counts the rest
EXACT = 5_000  # memories of a scope up to which all distances are computed
SHARE = 50  # so is that of a scope with less than one in fifty of all memories


@dataclass(frozen=True)
class Hit:
    """A memory found: in which tier, how well (scores compare within one tier), from which run."""

    id: str
    tier: int
    score: float
    content: str
    snippet: str
    type: str
    metadata: dict[str, Any]
    source_run_id: str | None
    created_at: datetime

    def as_dict(self) -> dict[str, Any]:
        return vars(self) | {"created_at": self.created_at.isoformat()}


class Tier(NamedTuple):
    number: int
    quota: int
    keys: Sequence[UUID]


def memory_search(query: str, scope: Scope, *, type: str | None = None, limit: int = 10) -> list[Hit]:
    """The best memories of exactly `scope`, of one type or of all. Raises MemoryRefused."""
    check(query, limit)
    if type is not None and type not in MemoryType.values:
        raise MemoryRefused("invalid_type", f"type is one of {', '.join(MemoryType.values)}")
    kinds = [type] if type is not None else list(MemoryType.values)
    if MemoryType.CORE in kinds:
        kinds.append(PREFERENCE)
    return _search(query, scope, [Tier(1, limit, [scope.key(kind) for kind in kinds])], limit)


def memory_search_pa(query: str, scope: Scope, limit: int = 10) -> list[Hit]:
    """What a person's agent may know: preferences, knowledge, the person's past tasks (000, 2.1).

    Quotas are ceilings; the sum is cut at `limit` in the order of the tiers (ruling 24). A tier whose
    person, project or agent the scope does not name is left out. Raises MemoryRefused.
    """
    check(query, limit)
    organization, user = scope.organization_id, scope.user_id
    project, agent = scope.project_id, scope.agent_instance_id
    tiers = [Tier(2, ceil(0.4 * limit), _knowledge(organization, project))]
    if user is not None and agent is not None:
        own = Scope(organization, user_id=user, agent_instance_id=agent)
        tiers.append(Tier(1, ceil(0.3 * limit), [own.key(PREFERENCE)]))
    if user is not None and project is not None:
        past = Scope(organization, user_id=user, project_id=project)
        tiers.append(Tier(3, ceil(0.3 * limit), [past.key(MemoryType.EPISODIC)]))
    return _search(query, scope, tiers, limit)


def memory_search_tiered(query: str, scope: Scope, limit: int = 10) -> list[Hit]:
    """What a group may know: its blackboard, the project's core, the speaking agent's own, knowledge.

    The blackboard gets half of `limit`, the others a third of the rest each, at least one; cut at
    `limit` in the order of the tiers. Raises MemoryRefused.
    """
    check(query, limit)
    organization, project = scope.organization_id, scope.project_id
    half = ceil(limit / 2)
    third = max(1, ceil((limit - half) / 3))
    tiers = [Tier(4, third, _knowledge(organization, project))]
    if project is not None and scope.group_id is not None:
        blackboard = Scope(organization, project_id=project, group_id=scope.group_id)
        tiers.append(Tier(1, half, [blackboard.key(MemoryType.CORE), blackboard.key(MemoryType.EPISODIC)]))
    if project is not None:
        tiers.append(Tier(2, third, [Scope(organization, project_id=project).key(MemoryType.CORE)]))
    if project is not None and scope.agent_instance_id is not None:
        own = Scope(organization, project_id=project, agent_instance_id=scope.agent_instance_id)
        tiers.append(Tier(3, third, [own.key(MemoryType.EPISODIC)]))
    return _search(query, scope, tiers, limit)


def check(query: str, limit: int) -> None:
    """Refuse what finds nothing or everything."""
    if not isinstance(query, str) or not query.strip():
        raise MemoryRefused("empty_query", "the query is empty")
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST:
        raise MemoryRefused("invalid_limit", f"limit is a whole number from 1 to {MOST}")


def _knowledge(organization: str, project: str | None) -> list[UUID]:
    """The organization's knowledge and this project's, never another project's (ruling 20)."""
    scopes = [Scope(organization)]
    if project is not None:
        scopes.append(Scope(organization, project_id=project))
    return [scope.key(MemoryType.ARCHIVAL) for scope in scopes]


def _search(query: str, scope: Scope, tiers: list[Tier], limit: int) -> list[Hit]:
    with tracing.span("search_memory") as span:
        hits = _found(query, scope, tiers, limit)
        span.tell({"deputy.memory.hits": len(hits)})
        return hits


def _found(query: str, scope: Scope, tiers: list[Tier], limit: int) -> list[Hit]:
    wanted = _asked(query)
    if not wanted:
        return []
    places = [(tier.number, tier.quota, key) for tier in tiers for key in tier.keys]
    asked = vector_of(query)
    parameters = _numbers() | {
        "tiers": [number for number, _, _ in places],
        "quotas": [quota for _, quota, _ in places],
        "kept": [NEAR if asked else quota for _, quota, _ in places],
        "keys": [key for _, _, key in places],
        "terms": list(wanted),
        "quoted": [quoted(term) for term in wanted],
        "asked": list(wanted.values()),
        "a_word": CHINESE_TERMS if is_chinese(query) else 1.0,
        "organization": scope.organization_id,
    }
    if asked:
        parameters["vector"] = asked.vector
        statement = sql.search(sql.Meaning(asked.model, asked.dimensions, NEAR, WORDS, EXACT, SHARE))
    else:
        statement = sql.search()
    found = rows(statement, parameters)[:limit]
    marked = frozenset(wanted)
    hits = [_hit(row, marked) for row in found]
    return sorted(hits, key=lambda hit: (hit.tier, _echoes(hit.content, query, marked)))


def _asked(query: str) -> dict[str, float]:
    """The terms of a question and what each counts: as often as it says them, function words little."""
    counts = Counter(terms(query))
    telling = {term: float(count) for term, count in counts.items() if not is_function_word(term)}
    if not telling:
        return dict.fromkeys(counts, 1.0)
    if len(telling) > LONG:
        return dict(sorted(telling.items(), key=lambda item: -item[1])[:MOST_TERMS])
    return telling | {term: FUNCTION_WORD for term in counts if term not in telling}


def _echoes(content: str, query: str, asked: frozenset[str]) -> bool:
    """Whether a memory only repeats the question: its words match best, and it answers nothing."""
    said = content.removeprefix(OUTPUT_PREFIX)
    return len(said) <= 2 * len(query) and repeats(set(terms(said)), set(asked))


def _numbers() -> dict[str, Any]:
    """What the search by words goes by, under the names of the statement."""
    return {
        "weighed": WEIGHED,
        "small": SMALL,
        "reach": REACH,
        "pairs": PAIRS,
        "scanned": SCANNED,
        "enough": ENOUGH,
        "telling": TELLING,
        "together": TOGETHER,
        "most": CANDIDATES,
    }


def _hit(row: Sequence[Any], marked: frozenset[str]) -> Hit:
    tier, score, id, content, type, metadata, source_run_id, created_at = row
    return Hit(
        id,
        tier,
        round(score, 4),
        content,
        snippet(redact.shown(content), marked),  # no key is recognised once it is cut or marked
        type,
        json.loads(metadata),
        source_run_id,
        created_at,
    )
