"""How well routing does on a set of goals whose right groups are known."""

import time
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from groups.meaning import FusedRouter, embedding_now, router, texts_of
from groups.scoring import FITS, Candidate

CONFUSIONS = 10


def report(
    groups: Sequence[Mapping[str, Any]], goals: Sequence[Mapping[str, Any]], with_examples: bool
) -> dict[str, Any]:
    """Measures of routing `goals` to `groups`; a measure without data to take it from is None.

    groups: `id`, and if known `name`, `description`, `capabilities`, `roles`, `examples`. goals: `text` and
    `gold`, the ids of the groups that are right; [] where none is.
    """
    candidates = [candidate(group, with_examples) for group in groups]
    texts = [text for each in candidates for text in texts_of(each)] + [goal["text"] for goal in goals]
    with embedding_now(texts):
        started = time.perf_counter()
        made = router(candidates)
        made.score("")  # what is only made when somebody asks
        built = time.perf_counter()
        ranked = [[(score.id, score.score) for score in made.score(goal["text"])] for goal in goals]
        ended = time.perf_counter()
    routed = [(goal["gold"], ranking) for goal, ranking in zip(goals, ranked, strict=True) if goal["gold"]]
    first = groups[0]["id"] if groups else None
    return {
        "groups": len(groups),
        "goals": len(goals),
        "goals_without_group": len(goals) - len(routed),
        "with_examples": with_examples,
        "by_meaning": isinstance(made, FusedRouter) and made.embedded is not None,
        "accuracy_at_1": _mean([_hit(gold, ranking, 1) for gold, ranking in routed]),
        "joint_accuracy": _mean(
            [_right(goal["gold"], ranking) for goal, ranking in zip(goals, ranked, strict=True)]
        ),
        "recall_at_3": _mean([_hit(gold, ranking, 3) for gold, ranking in routed]),
        "always_first": _mean([first in gold for gold, _ in routed]),
        "no_group": _no_group(goals, ranked),
        "confusions": _confusions(routed),
        "seconds_to_build": built - started,
        "milliseconds_per_goal": 1000 * (ended - built) / len(goals) if goals else None,
    }


def candidate(group: Mapping[str, Any], with_examples: bool = True) -> Candidate:
    return Candidate(
        id=group["id"],
        name=group.get("name", group["id"]),
        description=group.get("description", ""),
        capabilities=tuple(group.get("capabilities", ())),
        roles=tuple(group.get("roles", ())),
        examples=tuple(group.get("examples", ())) if with_examples else (),
    )


Ranking = list[tuple[str, float]]


def _hit(gold: Sequence[str], ranking: Ranking, depth: int) -> bool:
    return any(group in gold for group, _ in ranking[:depth])


def _right(gold: Sequence[str], ranking: Ranking) -> bool:
    """Whether the best group is right and fits; or, where no group is right, whether none fits."""
    fits = bool(ranking) and ranking[0][1] >= FITS
    return (fits and ranking[0][0] in gold) if gold else not fits


def _mean(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _confusions(routed: list[tuple[Sequence[str], Ranking]]) -> list[tuple[str, str, int]]:
    """The pairs (right group, group taken) that occur most, with how often."""
    wrong = Counter(
        (gold[0], ranking[0][0]) for gold, ranking in routed if ranking and not _hit(gold, ranking, 1)
    )
    worst = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:CONFUSIONS]
    return [(right, taken, count) for (right, taken), count in worst]


def _no_group(goals: Sequence[Mapping[str, Any]], ranked: list[Ranking]) -> dict[str, float] | None:
    """How well the best score tells goals that no group fits ("found" means told so)."""
    best = [ranking[0][1] if ranking else 0.0 for ranking in ranked]
    some = sorted(score for goal, score in zip(goals, best, strict=True) if goal["gold"])
    none = sorted(score for goal, score in zip(goals, best, strict=True) if not goal["gold"])
    if not some or not none:
        return None
    best_f1, at = max((_f1(some, none, cut), cut) for cut in {*some, *none, FITS})
    return {
        "auroc": _auroc(some, none),
        "best_f1": best_f1,
        "best_f1_threshold": at,
        "threshold": FITS,
        "f1": _f1(some, none, FITS),
        "accuracy": (bisect_left(none, FITS) + len(some) - bisect_left(some, FITS)) / len(best),
        "found": bisect_left(none, FITS) / len(none),
        "falsely_refused": bisect_left(some, FITS) / len(some),
    }


def _f1(some: list[float], none: list[float], cut: float) -> float:
    found, false = bisect_left(none, cut), bisect_left(some, cut)
    return 2 * found / (found + false + len(none))


def _auroc(some: list[float], none: list[float]) -> float:
    """The chance that a goal with a group scores above one without; a tie is half."""
    wins = sum(bisect_left(none, score) + bisect_right(none, score) for score in some)
    return wins / 2 / (len(some) * len(none))
