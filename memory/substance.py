"""Whether a text says anything: an empty decision, or a question said once more, tells nobody anything.

Careful on purpose: what is doubtful counts as something said. What says nothing is not thrown away: it waits
for a curator (memory.deposit).
"""

import re
from collections.abc import Iterable

from common.function_words import is_function_word
from common.text import is_chinese, sentences, terms

OUTPUT_PREFIX = "Group Run Result: "  # what a group's output begins with as knowledge
MOST_WORDS = 25  # of a sentence that may be nothing but "nothing is known"; of Chinese, characters
MOST_CHARACTERS = 40
MORE = 2  # words beside "nothing is known" that the question does not have: then it is a finding
REPEATED = 0.8  # of a question's words: with fewer, a text chooses among them ("launch in May")

# So many marks and blanks before the word, and no more: from each of many empty lines all would be read.
LABEL = re.compile(r"^[\W_]{0,40}+(?:DECISION|EVIDENCE|TODO)S?\W*[:：]", re.IGNORECASE | re.MULTILINE)
LABEL_ANYWHERE = re.compile(r"\b(?:DECISION|EVIDENCE|TODO)S?\W*[:：]", re.IGNORECASE)
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
    r"|(?:未能?|没能?|没有)(?:找到|确定|得出|决定)|(?:无法|不能)(?:确定|回答|判断|得出|决定)|(?:尚|暂)无(?:法|从|任何|相关|有关)*(?:信息|资料|内容|定论|结论|答案|结果|决定|确定|判断|得知|$|\\W)|不知道|由人来?定"
    r"|^\W*(?:无|未知|待定|没有)\W*$",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"[;；，]")
CHINESE = re.compile("[\u4e00-\u9fff]")
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
    return not all(_says_nothing(sentence, asked) for sentence in sentences(text) if terms(sentence))


def makes_up(conclusion: str, output: str, beside: Iterable[str]) -> bool:
    """Whether an output is this conclusion and, apart from labels and what stands `beside`, little else."""
    said, rest = " ".join(conclusion.split()), " ".join(output.split())
    if not said or said not in rest:
        return False
    for part in (said, *(" ".join(text.split()) for text in beside)):
        rest = rest.replace(part, " ", 1)
    rest = re.sub(LABEL_ANYWHERE, " ", rest)
    return len(terms(rest)) * 4 <= len(terms(said))


def title(content: str) -> str:
    """The first sentence of a memory, without what says only that a group left it."""
    plain = LABEL.sub("", content.removeprefix(OUTPUT_PREFIX), count=1).strip()
    return next(iter(sentences(plain)), plain or content)


def repeats(said: set[str], asked: set[str]) -> bool:
    """Whether a text has a question's words, nearly all of them, and no other."""
    return bool(asked) and said <= asked and len(said) >= REPEATED * len(asked)


def _says_nothing(sentence: str, asked: set[str]) -> bool:
    """Whether one clause says that there is no answer, and the others add hardly a word to it."""
    clauses = [clause for clause in CLAUSE.split(sentence) if terms(clause)]
    none = [_is_no_answer(clause, asked) for clause in clauses]
    others = (clause for clause, says_none in zip(clauses, none, strict=True) if not says_none)
    return any(none) and all(len(_new(clause, asked)) < MORE for clause in others)


def _new(text: str, asked: set[str]) -> set[str]:
    return {term for term in terms(text) if term not in asked and not is_function_word(term)}


def _is_no_answer(sentence: str, asked: set[str]) -> bool:
    rest, found = NO_ANSWER.subn(" ", sentence.strip())
    if not found or AND_YET.search(rest):
        return False
    if not CHINESE.search(sentence) and len(_new(rest, asked)) >= MORE:
        return False
    words = terms(sentence)
    if any(character.isdigit() for word in words if word not in asked for character in word):
        return False
    return len(sentence) <= MOST_CHARACTERS if is_chinese(sentence) else len(words) <= MOST_WORDS
