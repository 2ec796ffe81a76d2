"""What a person's words ask for: the rights of the task, before anything from outside is read.

Deterministic. A verb counts where it commands: in its base form, not as a noun. Words quoted in the
request are somebody's text and ask for nothing.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from policy.provenance import lexicon
from policy.provenance.infer import Declaration
from policy.provenance.words import ACCOUNT, LEADS, NOT, NOT_CHINESE, QUOTED, UNSPACED, normalise

WORDS = re.compile(r"[^\W\d_]+|[$€£¥]|[.,;:!?]")
BLANKS = re.compile(r"\s+")
# What may stand between a no and its verb: "do not ever", "I don't want you to", "you are not allowed to".
_BETWEEN = (
    r"(?:\s?,?\s(?:ever|under any circumstances?|in any (?:case|way)|by any means|at all)\b\s?,?"
    r"|\s(?:even|yet|actually|really|automatically|also|either|allowed|permitted|supposed|authori[sz]ed|meant|going|to"
    r"|(?:want|wish|like|need|expect|allow|permit|let|have|dare|try|go ahead and)"
    r"(?:\s(?:you|him|her|them|it|me|us|any\w+))?)\b)*"
)
# "Do not return it or cancel it": the no holds for the other verbs, too.
_OR = r"(?:(?:(?: ?, ?\w+)+|(?: \w+){0,5}?) ?,? n?or\b(?: to\b)? \w+)*"
_NOBODY = (
    r"\b(?:nobody|no one|no \w+)\s(?:may|must|should|can|shall|(?:is|are)(?: allowed)? to)\b"
    r"|\b(?:no (?:need|reason|permission|right)|forbidden|prohibited)\sto\b"
    r"|\bnor\s(?:may|must|should|can|shall|do)\syou\b"
)
NEVER = re.compile(
    rf"(?:{NOT}{_BETWEEN}|{_NOBODY})\s(?:\w+ing\b|\w+){_OR}"
    rf"|{NOT_CHINESE}(?:(?!但|而是|就|则)[^，。；！？,.;!?\n]){{0,60}}"
)
# What is asked, or told of somebody, and not ordered: "should I pay it?", "who has to pay", "tell me what to
# pay", "a bill that I should pay", "I pay it myself"; not "I want to pay it", "could you pay it?".
_MODAL = (
    r"(?:should|shall|must|may|might|can|could|would|will|(?:have|has|had|need|needs|ought|am|are|is)\sto)"
)
_WE = r"(?:i|we|he|she|it|they|one|somebody|someone|anybody|anyone|people)"
_SOFTLY = r"(?:\s(?:really|already|just|also|still|ever|even|always|usually|often|not|then))*"
ASIDE = re.compile(
    rf"\b(?:should|shall|must|may|can|could|do|does|did)\s{_WE}{_SOFTLY}(?:\s(?:have|need|ought)\sto)?{_SOFTLY}\s\w+"
    rf"|\b(?:who|whom|what|which|when|where|why|how|whether)(?:\s(?:much|many|far|long|one|\w+s))?(?:\s{_WE})?"
    rf"{_SOFTLY}\s(?:to|{_MODAL})(?!\syou\b){_SOFTLY}\s\w+"
    rf"|\b(?:before|after|until|while|when|once|unless)\s(?:you|{_WE})\s\w+"
    rf"|\b(?!(?:you|i|we|please|and|or|then|also|that|which|who)\b)\w+\s(?:will|must|should|has\sto|have\sto){_SOFTLY}\s\w+"
    r"|\bpay\s(?:nothing|no|attention|heed)\b"
    rf"|\b(?:that|if|whether)\s{_WE}{_SOFTLY}\s{_MODAL}{_SOFTLY}\s\w+"
    rf"|\b{_WE}{_SOFTLY}(?:\s(?:will|would|may|might|can))?{_SOFTLY}\s(?!(?:want|wish|need|like|love|prefer|ask|must|should|have"
    r"|ought|would|will|could|can|may|might|am|are|is|was|were|had|has|did|do|does)\b)[a-z]+\b"
)
# "Ask Bob to pay it": what somebody else is to do.
BY_OTHERS = re.compile(
    r"\b((?:ask|tell|remind|want|allow|expect|urge|asked|told|wants|asks)\s(?:(?!you\b|to\b)[^\s.,;:!?]+\s){1,3}?|says?\s|said\s)to\s\w+"
)
# What is done by others than the agent, or not yet: "I send it myself", "before you send it".
LATER = re.compile(
    r"\b(?:(?:i|we)(?:\s(?:will|shall|want\sto|can)|['’]ll)?\s\w+\b[^.;!?\n]{0,30}?\b(?:myself|ourselves|later|on\smy\sown)"
    r"|for\s(?:me|us)\sto\s\w+|(?:before|until)\s(?:you|it|anything|i)\s(?:is\s|will\s)?\w+)\b"
)
REMINDERS = re.compile(rf"{NOT}\s+(?:forget|hesitate|fail)\s+to\b")


@dataclass(frozen=True)
class Intent:
    """The verbs a request commands, the deeds it names in Chinese, and all of its words."""

    verbs: frozenset[str] = frozenset()
    deeds: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    commanded: frozenset[str] = frozenset()  # every word that may be a verb in its base form
    asked: frozenset[str] = frozenset()  # the deeds that the verbs stand for, without what a no takes back

    def covers(self, tool: Declaration) -> bool:
        """Whether the request asks for what the tool does. Reading is always asked for, also from afar."""
        if not tool.effect or (tool.network and tool.deeds == {"read"}):
            return True
        return (not tool.matter or self.speaks_of(tool.matter)) and self.orders(tool)

    def orders(self, tool: Declaration) -> bool:
        """The same, whatever it is done with."""
        if tool.verb and tool.verb in self.commanded:
            return True
        return bool(tool.deeds & (self.deeds | self.asked))

    def speaks_of(self, matter: str) -> bool:
        return bool(self.words & lexicon.MATTER_WORDS[matter]) or (
            bool(self.deeds & {"pay"}) and matter == "money"
        )

    def as_list(self) -> list[str]:
        """The deeds asked for, for people to read."""
        return sorted(self.asked | self.deeds)


def intent_of(texts: Iterable[str]) -> Intent:
    """What these messages of the person ask for together."""
    verbs: set[str] = set()
    deeds: set[str] = set()
    words: set[str] = set()
    commanded: set[str] = set()
    asked: set[str] = set()
    for text in texts:
        said = commands(text)
        found = WORDS.findall(said)
        words.update(found)
        if ACCOUNT.search(text.upper()):
            words.add("account")
        commanded.update(_commanded(found))
        mine = {*_verbs(found)}
        verbs.update(mine)
        asked.update(_deeds(mine, text))
        if UNSPACED.search(said):
            deeds.update(
                deed for deed, forms in lexicon.CHINESE.items() if any(form in said for form in forms)
            )
    return Intent(*map(frozenset, (verbs, deeds, words, commanded, asked)))


def _deeds(verbs: Collection[str], text: str) -> Iterator[str]:
    """What these verbs of a text ask for. "Write to A, but do not send it": of a deed that the text forbids,
    only a verb that means it is an order.
    """
    found = [deed for deed, asking in lexicon.ASKS.items() if not asking.isdisjoint(verbs)]
    if not found:
        return
    said = _unquoted(text)
    spans = (*NEVER.findall(REMINDERS.sub(" ", said)), *LATER.findall(said))
    no = {form for span in spans for word in WORDS.findall(span) for form in _bases(word)}
    for deed in found:
        forbidden = not lexicon.ASKS[deed].isdisjoint(no)
        if not forbidden or not lexicon.MEANS[deed].isdisjoint(verbs):
            yield deed


def _bases(word: str) -> tuple[str, ...]:
    """A verb's base forms: `send` of `sending`, `write` of `writing`."""
    stem = word.removesuffix("ing")
    return (word,) if stem == word else (word, stem, f"{stem}e")


@lru_cache(maxsize=1024)
def intent_of_clause(text: str) -> Intent:
    """What one clause of the person's asks for; asked about again for each value of a call."""
    return intent_of([text])


def commands(text: str) -> str:
    """The text without what it quotes, forbids, only asks or names as a place: what is left may command."""
    said = BY_OTHERS.sub(r"\1", _unquoted(text))
    return ASIDE.sub(" ", NEVER.sub(" ", REMINDERS.sub(" ", said)))


def _unquoted(text: str) -> str:
    unquoted = QUOTED.sub(" _ ", text)
    for form in LEADS:  # an address has points, and no verbs
        unquoted = form.sub(" _ ", unquoted)
    return BLANKS.sub(_one, normalise(unquoted).replace("e-mail", "email"))


def _one(blanks: "re.Match[str]") -> str:
    return "\n" if "\n" in blanks[0] else " "


def _verbs(words: list[str]) -> Iterable[str]:
    """The known verbs that a request commands, `rebuy` as `buy`, and those that a noun stands for."""
    for word in _commanded(words):
        if word in lexicon.VERBS:
            yield word
        elif word[:2] == "re" and word[2:] in lexicon.VERBS:
            yield word[2:]
    for place, word in enumerate(words):
        if word in lexicon.NOUN_DEEDS and any(w in lexicon.LIGHT for w in words[max(0, place - 5) : place]):
            yield lexicon.NOUN_DEEDS[word]


def _commanded(words: list[str]) -> Iterable[str]:
    """Words that no article or possessive makes a noun ("the contact", "the newest contact"), nor `did` a
    question's.
    """
    before, first, recounted = "", "", False
    for word in words:
        recounted = word in lexicon.RECOUNTING or (recounted and word not in lexicon.CLAUSE_ENDS)
        noun = word in lexicon.NOUNS_TOO and first in lexicon.ARTICLES and before not in lexicon.CLAUSE_ENDS
        if before not in lexicon.BEFORE_NOUNS and not noun and not recounted:
            yield word
        before, first = word, before
