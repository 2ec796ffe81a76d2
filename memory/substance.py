"""Whether a text says anything: an empty decision, or a question said once more, is no knowledge.

Careful on purpose: what is doubtful counts as something said.
"""

import re
from collections.abc import Iterable

from common.text import is_chinese, sentences, terms

OUTPUT_PREFIX = "Group Run Result: "  # what a group's output begins with as knowledge
MOST_WORDS = 25  # of a sentence that may be nothing but "nothing is known"; of Chinese, characters
MOST_CHARACTERS = 40
REPEATED = 0.8  # of a question's words: with fewer, a text chooses among them ("launch in May")

LABEL = re.compile(r"^[\W_]*(?:DECISION|EVIDENCE|TODO)S?\W*[:：]", re.IGNORECASE | re.MULTILINE)
# That there is no answer, about no matter in particular: "no evidence of a leak" is a finding.
_OPENING = r"(?:^\W*|\bthere (?:is|was|are|were) |\b(?:found|reached|came to|have|has|had|made|give) )"
NO_ANSWER = re.compile(
    r"\bnothing (?:\w+ ){0,4}(?:known|found|decided|settles|answers)\b|\bfound nothing\b"
    rf"|{_OPENING}(?:still )?(?:no|not enough|insufficient) (?:relevant |clear |further |final )?"
    r"(?:answers?|conclusions?|decisions?|consensus|results?|information|data|evidence)"
    r"(?! (?:of|that|for|from|before|until|without)\b)"
    r"|\b(?:unable|failed) to (?:answer|determine|decide|conclude|find)\b"
    r"|\b(?:can ?not|can't|could not|couldn't) (?:be )?(?:answer|determine|decide|conclude|find|sa[iy]|tell)"
    r"|\b(?:do|does|did)(?: not|n't) know\b|\b(?:is|are|remains?) (?:still )?(?:unknown|undecided|unclear)\b"
    r"|^\W*(?:n/?a|none|nothing|unknown|undecided|tbd|null)\W*$"
    r"|没有?(?:找到|得出|足够的?|任何|相关的?|可用的?)?(?:信息|资料|内容|定论|结论|答案|结果)(?!的)"
    r"|(?:未能?|没能?|没有)(?:找到|确定|得出|决定)|(?:无法|不能)(?:确定|回答|判断|得出|决定)|(?:尚|暂)无|不知道"
    r"|^\W*(?:无|未知|待定|没有)\W*$",
    re.IGNORECASE,
)
# What more may be said in the same breath.
AND_YET = re.compile(
    r"\b(?:but|however|although|though|except|yet|instead|so|therefore|hence|thus|should|shall|will|must|let"
    r"|decided|agreed)\b|但|不过|然而|除了|虽然|所以|因此|应|将|决定|建议|同意",
    re.IGNORECASE,
)


def says_something(text: str, goal: str = "", *, leaving_out: Iterable[str] = ()) -> bool:
    """Whether `text`, beside what is to be left out of it, answers or adds anything to `goal`."""
    for part in leaving_out:
        text = text.replace(part, " ")
    text = LABEL.sub(" ", text)
    said, asked = set(terms(text)), set(terms(goal))
    if not said or repeats(said, asked):
        return False
    return not all(_is_no_answer(sentence, asked) for sentence in sentences(text) if terms(sentence))


def repeats(said: set[str], asked: set[str]) -> bool:
    """Whether a text has a question's words, nearly all of them, and no other."""
    return bool(asked) and said <= asked and len(said) >= REPEATED * len(asked)


def _is_no_answer(sentence: str, asked: set[str]) -> bool:
    rest, found = NO_ANSWER.subn(" ", sentence.strip())
    if not found or AND_YET.search(rest):
        return False
    words = terms(sentence)
    if any(character.isdigit() for word in words if word not in asked for character in word):
        return False
    return len(sentence) <= MOST_CHARACTERS if is_chinese(sentence) else len(words) <= MOST_WORDS
