"""What a run has heard and read, text by text: who said it, in which record and field."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeVar

from policy.provenance import forms, given, lexicon, words
from policy.provenance.terms import Source, Trust
from policy.provenance.verbs import noun

T = TypeVar("T")
MOST_PASSAGES = 100  # of one value that are weighed
MOST_PLACES = 100  # at which a value is tried; one found at none of them counts as not there
WWW = re.compile(r"(?:^|\W)www\.$")
YEAR = re.compile(r"(?:19|20)\d\d")
SHORT = 100  # characters of a field that may name its record


@dataclass(eq=False)
class Text:
    """One text as it stands in a message or a field of a result."""

    piece: "Piece"
    path: str
    key: str
    raw: str
    record: int
    trust: Trust
    how: str = "whole"
    kind: frozenset[str] | None = None  # of a record that a service keeps: what the value is a value of
    service: str = ""  # whose record it is; one service's ids mean nothing to another
    norm: str = field(init=False)
    words: list[str] = field(init=False)
    flat: str = field(init=False)  # its words, with a blank around each

    def __post_init__(self) -> None:
        self.norm = words.normalise(self.raw)
        self.words = words.tokens(self.norm)
        self.flat = f" {' '.join(self.words)} "

    @cached_property
    def dates(self) -> list[tuple[tuple[str, str], int, int]]:
        return list(words.dates(self.norm))

    @cached_property
    def numbers(self) -> dict[Decimal, tuple[int, int]]:
        """The numbers that name nothing: those may be amounts."""
        return {
            value: (start, end)
            for value, start, end in words.numbers(self.norm)
            if not words.names(self.norm, value, start)
        }

    @cached_property
    def leads(self) -> list[tuple[str, int, int]]:
        """What leads somewhere in it: (form, start, end), the span as near as can be told."""
        clean = forms.clean(self.raw)
        same = len(clean) == len(self.norm)
        return [(f, s, e) if same else (f, 0, len(self.norm)) for f, s, e in forms.leads(clean)]

    @cached_property
    def own(self) -> "Text":
        """Of the person's words: without what they forbid and what they quote."""
        return replace(self, raw=words.own(self.raw))

    @cached_property
    def meant(self) -> "Text":
        """Of the person's words: without what they forbid."""
        spans = [found.span() for found in words.FORBIDDEN.finditer(self.raw)]
        return replace(self, raw=words.without(self.raw, spans))

    @cached_property
    def given(self) -> Mapping[str, set[str]]:
        """Of the person's words: the addresses they give, in every form of each, and what for."""
        return given.addresses(words.without(self.raw, words.quoted(self.raw)))

    @cached_property
    def offsets(self) -> list[int]:
        """Asked for each value that stands in it: counted once, or a call of many values takes minutes."""
        return words.offsets(self.raw)

    def source(self, start: int, end: int, how: str = "") -> Source:
        """The passage, its span counted in the text as it was written."""
        if len(self.norm) != len(self.raw) or not self.raw.isascii():
            places = self.offsets
            if len(places) == len(self.norm) + 1:
                start, end = places[start], places[end - 1] + 1 if end else 0
        said = how if self.how == "whole" else self.how
        return Source(self.trust, self.piece.name, self.path, start, end, said or "whole")


@dataclass(eq=False)
class Piece:
    """A message, or the result of a call, in the order in which the run met them."""

    name: str
    keys: Trust = "user"  # who stands behind the values by which the result was looked up
    texts: list[Text] = field(default_factory=list)
    outside: bool = False
    recalled: bool = False  # of before: it stands in the prompt again, and asks for nothing
    has_lines: bool = False  # is remembered, and each of its lines is a piece as well, which may be chosen
    offered: bool = False  # the person's words, with addresses that an agent had named before
    pointed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # what to take from here, and whose
    nouns: frozenset[str] = frozenset()  # what its tool is about
    told: tuple[str, ...] = ()  # what the person said around the name of the place that was read
    keyed: tuple[str, ...] = ()  # the values it was looked up by
    narrowed: bool = False  # by a value that nobody gave: its only entry may be one of many
    like: list["Piece"] = field(default_factory=list)  # results of the same tool, this one too
    _worked_out: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, work: Callable[[], T]) -> T:
        """What is worked out of its texts once: it may be asked for by each of them."""
        if key not in self._worked_out:
            self._worked_out[key] = work()
        found: T = self._worked_out[key]
        return found

    @property
    def siblings(self) -> Iterator[Text]:
        """The texts of all results of the same tool."""
        return (text for piece in (self.like or [self]) for text in piece.texts)

    def looked_up(self, sentence: str) -> bool:
        """Whether a sentence of the person's names what the result was looked up by."""
        flat = f" {' '.join(words.tokens(words.normalise(sentence)))} "
        return any(key in flat for key in self._keys)

    @cached_property
    def _keys(self) -> list[str]:
        return [f" {' '.join(words.tokens(words.normalise(key)))} " for key in self.keyed]

    @cached_property
    def keyed_words(self) -> frozenset[str]:
        return frozenset(words.tokens(" ".join(self.keyed).lower()))

    def only(self, form: "re.Pattern[str]", value: str) -> bool:
        """Whether the value is the only one of its kind in the whole result."""
        if self.all_of(form) != {_compact(value)}:
            return False
        mine = forms.canonical(value)
        return forms.kind(mine) != "mail" or self.mails == {mine}

    @cached_property
    def mails(self) -> set[str]:
        """The mail addresses in the result, also those that are spelled to be overlooked."""
        return {form for text in self.texts for form, *_ in text.leads if forms.kind(form) == "mail"}

    def all_of(self, form: "re.Pattern[str]") -> set[str]:
        """All values of a kind in the result."""
        return self.once(
            ("all of", form.pattern),
            lambda: {_compact(found[0]) for text in self.texts for found in form.finditer(text.raw)},
        )

    def only_one(self, text: Text) -> bool:
        """Whether no other record has a value of this name: the words an agent searches by may find one
        product among many, and not one person.
        """
        if len(self.records[text.key]) > 1:
            return False
        return not self.narrowed or forms.kind(forms.canonical(text.raw)) not in forms.PERSONAL

    @cached_property
    def records(self) -> dict[str, set[int]]:
        """For each key, the records that have it."""
        found: dict[str, set[int]] = defaultdict(set)
        for text in self.texts:
            found[text.key].add(text.record)
        return found

    @cached_property
    def values(self) -> dict[str, set[str]]:
        """For each key, all that it says."""
        found: dict[str, set[str]] = defaultdict(set)
        for text in self.texts:
            found[text.key].add(words.bare(text.norm))
        return found

    @cached_property
    def own_words(self) -> dict[int, set[str]]:
        """The words by which a record can be told from the others of its list."""
        said: dict[int, set[str]] = defaultdict(set)
        for text in self.texts:
            if len(text.raw) <= SHORT and noun(text.key) not in lexicon.LONG:
                said[text.record].update(w for w in words_of(text) if len(w) > 2)
        often: dict[str, int] = defaultdict(int)
        for each in said.values():
            for word in each:
                often[word] += 1
        return {
            record: {
                word
                for word in each
                if often[word] == 1 and word not in lexicon.GLUE and not YEAR.fullmatch(word)
            }
            for record, each in said.items()
        }


def words_of(text: Text) -> set[str]:
    """The words by which it may be told from others: those within a name, too."""
    return set(words.tokens(text.norm.replace("_", " ")))


def _compact(value: str) -> str:
    return re.sub(r"\s", "", value.lower()).rstrip(".")


def standing_alone(text: Text, value: str) -> int:
    """Where the value stands in the text as no part of a longer one; -1 where it does not."""
    norm = text.norm
    raw = text.raw if len(text.raw) == len(norm) else norm
    place = norm.find(value)
    for _ in range(MOST_PLACES):
        if place < 0:
            break
        end = place + len(value)
        if _ends_before(norm[max(0, place - 8) : place]) and _begins_after(raw[end : end + 3]):
            return place
        place = norm.find(value, place + 1)
    return -1


def _ends_before(before: str) -> bool:
    if not before or before.endswith(("//", "mailto:")) or WWW.search(before):
        return True
    if before[-1] in ".'":  # o'brien@… is nobody called brien
        return len(before) < 2 or not before[-2].isalnum()
    return not words.joins(before[-1])


def _begins_after(after: str) -> bool:
    """A point goes on with a small letter, a digit or capitals; before one capital it ends a sentence."""
    if not after:
        return True
    if after[0] == ".":
        return len(after) < 2 or not after[1].isalnum() or (after[1].isupper() and not after[2:].isupper())
    return not words.joins(after[0])
