"""Whether two texts say the same, by their words and, where a model embeds, by how near their vectors are.

Pure. What was measured is in docs/memory.md.
"""

import re
from collections import Counter
from collections.abc import Sequence

from common.function_words import is_function_word
from common.text import terms

NEAR = 0.97  # cosine from which on a few words more, or a question's words in another order, say the same
LITTLE = 0.85  # the share of a text's words that is there without what another one adds
LONG = 12  # words from which on little may be added: in a short text one word more is another fact
NEGATIONS = frozenset(terms("not no never none cannot without don't won't isn't 不 没 未 无 非 勿 别"))
_LIMITS = frozenset(terms("only unless except if until almost nearly 仅 只 除 若 几 近"))
SHARED = 0.85  # words in common of two texts of which one denies the other

# Words that can be added or left out and never tell two facts apart. "To", "before" or "you" do, so
# these are fewer than the function words of search.
_SMALL = frozenset(
    terms("a an the is are be will been being please just also very so then that of")
) | frozenset("的了吗呢吧啊呀嘛哦哈呗啦么呐个是请就也")
# Chinese phrases with one meaning, as their characters stand in `terms`: a question starts with any of them.
_PHRASES = (
    (re.compile("怎 (?:样|么(?! 样))|如 何|咋"), "怎"),
    (re.compile("为 (?:何|啥)|为 什 么"), "何故"),
    (re.compile("什 么|啥"), "什"),
    (re.compile("哪 (?:里|儿)|在 哪"), "哪"),
    (re.compile("可 以|能 够|能 否|能 不 能|可 不 可 以|可 否"), "能"),
    (re.compile("您"), "你"),
    (re.compile("谁 知 道|请 问|求 助|求 解|谢 谢|麻 烦|想 问|问 一 下|帮 忙|你 好|大 家|有 没 有"), ""),
)
_HOW = frozenset({"怎", *terms("how")})
_QUESTION = re.compile("[?？]|怎|何|什么|哪|谁|吗|多少|啥")
_CLAUSE = re.compile(r"[。！？｡…；;，,.!?\n：:]+(?!\d)")


def alike(one: str, other: str, near: float | None = None) -> bool:
    """Do two texts say the same? `near`: the cosine of their vectors, where a model made them.

    Never where a number, a negation or a limit ("only", "unless") differs, a word is replaced by another
    ("Ann leads", "Bob leads"), or the same words stand in another order ("Ann pays Bob", "Bob pays Ann").
    But whole clauses, and "how" in a question, may stand elsewhere.
    """
    first, second = _words_of_both(one, other)
    said = _by_words(one, other, first, second)
    if said is not None:
        return said
    if near is not None and near >= NEAR and not Counter(first) - Counter(second):
        return _near_enough(one, other, first, second)
    return _little_differs(first, second)


def may_be_alike(one: str, other: str) -> bool:
    """Whether vectors could decide it, so that it pays to ask a model for them."""
    first, second = _words_of_both(one, other)
    if _by_words(one, other, first, second) is not None or Counter(first) - Counter(second):
        return False
    return _near_enough(one, other, first, second) and not _little_differs(first, second)


def _words_of_both(one: str, other: str) -> list[list[str]]:
    """The shorter ones first."""
    return sorted((_words(one), _words(other)), key=len)


def _by_words(one: str, other: str, first: list[str], second: list[str]) -> bool | None:
    """Whether they say the same, where that can be told without their order and their vectors."""
    if not first or _facts(first) != _facts(second):
        return False
    same = first == second or _clauses(one) == _clauses(other) or _ask_alike(first, second)
    return True if same else None


def _near_enough(one: str, other: str, first: list[str], second: list[str]) -> bool:
    """Of texts whose vectors are near, one of which has all words of the other."""
    return _in_order(first, second) or (_asks(one) and _asks(other))


def _little_differs(first: list[str], second: list[str]) -> bool:
    return len(first) >= max(LONG, LITTLE * len(second)) and _in_order(first, second)


def contradict(one: str, other: str) -> bool:
    """Does one text deny what the other says: the same words, but for a negation?"""
    first, second = Counter(_words(one)), Counter(_words(other))
    if _numbers(first) != _numbers(second) or _negations(first) == _negations(second):
        return False
    return _share(_telling(first), _telling(second)) >= SHARED


def _words(text: str) -> list[str]:
    """English stems and single Chinese characters, in order, without small words."""
    single = " ".join(term for term in terms(text) if not (len(term) == 2 and term[0] > "\u2e7f"))
    for phrase, meaning in _PHRASES:
        single = phrase.sub(meaning, single)
    return [word for word in single.split() if word not in _SMALL]


def _clauses(text: str) -> list[list[str]]:
    return sorted(filter(None, map(_words, _CLAUSE.split(text))))


def _ask_alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether both ask how, about the same words: one may name what it is about before the rest."""
    if not any(word in _HOW for word in first) or sorted(first) != sorted(second):
        return False
    one, other = ([word for word in words if word not in _HOW] for words in (first, second))
    return bool(one) and f" {' '.join(other)} " in f" {' '.join(one + one)} "  # in time that grows with both


def _asks(text: str) -> bool:
    return _QUESTION.search(text) is not None


def _in_order(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether `many` has all these words in this order."""
    rest = iter(many)
    return all(word in rest for word in few)


def _facts(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if word in NEGATIONS or word in _LIMITS or _is_number(word))


def _numbers(words: Counter[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if _is_number(word)})


def _negations(words: Counter[str]) -> Counter[str]:
    return Counter({word: count for word, count in words.items() if word in NEGATIONS})


def _is_number(word: str) -> bool:
    return any(character.isdigit() for character in word)


def _telling(words: Counter[str]) -> Counter[str]:
    """What a text is about: neither function words nor negations."""
    kept = {word: n for word, n in words.items() if word not in NEGATIONS and not is_function_word(word)}
    return Counter(kept)


def _share(first: Counter[str], second: Counter[str]) -> float:
    """The words both have, of all; 0 where each has one that the other lacks: replaced, not added."""
    if not first or not second or (first - second and second - first):
        return 0.0
    return (first & second).total() / (first | second).total()
