"""Where the values of a call came from, by what a run has heard and read before it.

Results are taken apart and indexed once, when they are added; a value is then looked up by its rarest
word. Pure.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from policy.provenance import lexicon, words
from policy.provenance.fields import fields
from policy.provenance.infer import Declaration, split
from policy.provenance.intent import Intent, intent_of
from policy.provenance.terms import RANK, TRUSTED, Facts, Source, Traced, Trust, least
from policy.provenance.texts import Piece, Text, standing_alone

MOST_SOURCES = 5  # passages told of one value
MOST_VALUES = 200  # of one call that are traced; further ones count as unknown
MARKED = 20  # words at each end by which a passage is found again
CHUNK = 4  # words of a text that make a passage worth recognizing
LONGEST_DATE = 30  # characters of a value that may be a date, with its time


class Material:
    """All that a run has heard and read so far. Add in order; ask about a call at any time."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.said: list[str] = []
        self._index: dict[str, list[Text]] = defaultdict(list)
        self._unspaced: list[Text] = []
        self._intent: Intent | None = None

    @property
    def read_outside(self) -> bool:
        return any(piece.outside for piece in self.pieces)

    @property
    def intent(self) -> Intent:
        """What the person's words ask for."""
        if self._intent is None:
            self._intent = intent_of(self.said)
        return self._intent

    def hear(self, name: str, text: str) -> None:
        """The person's own words."""
        piece = self._piece(name)
        self._add(Text(piece, "", "", text, 0, "user"))
        self.said.append(text)
        self._intent = None

    def overhear(self, name: str, text: str) -> None:
        """Words that reached the run and are not the person's: an agent's goal for it, say."""
        piece = self._piece(name)
        piece.outside = True
        self._add(Text(piece, "", "", text, 0, "outside"))

    def recall(self, name: str, text: str, trust: Trust) -> None:
        """Words of before that stand in the prompt again: worth what they were, and asking for nothing."""
        piece = self._piece(name)
        piece.outside = trust not in TRUSTED
        self._add(Text(piece, "", "", text, 0, trust))

    def read(self, name: str, declared: Declaration, arguments: Mapping[str, Any], result: Any) -> None:
        """The result of a call."""
        keys = self._keys(declared, arguments)
        piece = self._piece(name, keys)
        piece.pointed = self._pointed(arguments) if keys == "user" else frozenset()
        if declared.output_trust == "user":
            self.said.append("\n".join(found.text for found in fields(result)))
            self._intent = None
        for found in fields(result):
            self._add(
                Text(piece, found.path, found.key, found.text, found.record, declared.trust_of(found.key))
            )
        piece.outside = any(_counts(text, declared) for text in piece.texts)

    def facts(self, declared: Declaration, arguments: Mapping[str, Any]) -> Facts:
        """Where the call's values came from."""
        found: list[Traced] = []
        for path, argument, value in _values(arguments):
            if len(found) == MOST_VALUES:
                found.append(Traced(argument, "…", "unknown", True, why="more values than are looked at"))
                break
            found += self._traced(path, argument, value, declared)
        if declared.effect and self.read_outside:
            found = _named_by_title(found, declared)
        asked = self.intent.covers(declared)
        why = "" if asked else "the person's words do not ask for it"
        return Facts(tuple(found), declared.effect or declared.network, self.read_outside, asked, why)

    def passage(self, source: Source) -> str:
        """The text that a source is a span of."""
        pieces = (piece for piece in self.pieces if piece.name == source.piece)
        texts = [text for piece in pieces for text in piece.texts if text.path == source.field]
        whole = (text.raw for text in texts if text.how in ("whole", source.how))
        spans = (raw for raw in sorted(whole, key=len) if len(raw) >= source.end)
        return next(spans, "")

    # Adding

    def _piece(self, name: str, keys: Trust = "user") -> Piece:
        self.pieces.append(Piece(name, keys))
        return self.pieces[-1]

    def _add(self, text: Text, decode: bool = True) -> None:
        text.piece.texts.append(text)
        for word in set(text.words):
            self._index[word].append(text)
        if words.UNSPACED.search(text.norm):
            self._unspaced.append(text)
        if decode and len(text.raw) > 4:
            for how, said in words.decodings(text.raw):
                self._add(replace(text, raw=said, how=how), decode=False)

    def _keys(self, declared: Declaration, arguments: Mapping[str, Any]) -> Trust:
        """Who stands behind the values a result was looked up by; what is no key does not count."""
        trusts: list[Trust] = []
        for path, argument, value in _values(arguments):
            if value.strip() and not (declared.effect and not declared.steers(argument)):
                trust = self._find(value, _last(path)).trust
                ready = trust == "unknown" and _only_option(path, declared, argument)
                trusts.append("user" if ready else trust)
        return least(*trusts)

    def _pointed(self, arguments: Mapping[str, Any]) -> frozenset[str]:
        """The kinds of value that the person, in one sentence with the place, said to find there."""
        places = [
            words.bare(words.normalise(value)) for _, _, value in _values(arguments) if words.is_place(value)
        ]
        return frozenset(
            kind
            for said in self.said
            for sentence in words.sentences(words.normalise(said))
            if any(place in sentence for place in places)
            for kind, names in words.KIND_NAMES.items()
            if names.search(sentence)
        )

    # Looking up

    def _traced(self, path: str, argument: str, value: str, declared: Declaration) -> Iterator[Traced]:
        if not value.strip():
            return
        steers = declared.steers(argument) and _last(path) not in lexicon.KINDS
        inside = [] if steers and words.atomic(value.strip()) else list(words.leads(value))
        if not (steers and inside and words.nothing_beside(value, inside)):
            found = self._find(value, _last(path)) if steers else self._content(value, _last(path))
            yield replace(found, path=path, value=value, steers=steers)
        for led, *_ in inside:
            yield replace(self._find(led, ""), path=f"{path}/{led}", value=led, steers=True)

    def _find(self, value: str, key: str) -> Traced:
        """A value as a whole, else decoded, else by its parts."""
        found = self._best(value, key, list(self._whole(value, key)))
        if found:
            return found
        for how, said in words.decodings(value):
            inner = self._best(said, key, list(self._whole(words.normalise(said), key)))
            if inner:
                return replace(inner, sources=tuple(replace(s, how=how) for s in inner.sources))
        return self._composed(value, key)

    def _best(self, value: str, key: str, found: list[tuple[Text, int, int, str]]) -> Traced | None:
        """Of the passages that hold a value, the most trusted speak; an outsider may repeat anybody."""
        if not found:
            return None
        plain = words.is_plain(value)
        judged = [self._judged(text, start, end, how, value, plain) for text, start, end, how in found]
        judged.sort(key=lambda source: RANK[source.trust])
        best = judged[0]
        pointed = best.trust == "outside" and any(self._pointed_at(text, value) for text, *_ in found)
        return Traced("", value, best.trust, True, tuple(judged[:MOST_SOURCES]), best.why, pointed)

    def _pointed_at(self, text: Text, value: str) -> bool:
        """Whether the person said: take the one e-mail address (account, link) that stands in this place."""
        return text.piece.keys == "user" and any(
            kind in text.piece.pointed and form.fullmatch(value.strip()) and text.piece.only(form, value)
            for kind, form in words.KINDS.items()
        )

    def _judged(self, text: Text, start: int, end: int, how: str, value: str, plain: bool) -> Source:
        source = text.source(start, end, how)
        if text.trust not in TRUSTED:
            return source
        if not plain and value not in text.raw:
            return replace(source, trust="unknown", why="it only looks like what stands there")
        if text.trust == "user":
            return source
        trust, why = self._selected(text)
        return replace(source, trust=trust, why=why)

    def _selected(self, text: Text) -> tuple[Trust, str]:
        """Data of the organization is worth what those are worth who chose it."""
        piece = text.piece
        if piece.keys not in TRUSTED:
            return piece.keys, "it was looked up by a value the person did not give"
        if len(piece.records[text.key]) <= 1 or not self.read_outside or self._named(text):
            return text.trust, ""
        return "outside", "it is one of several, chosen after text from outside was read"

    def _named(self, text: Text) -> bool:
        """Whether the person's words single the record out."""
        own = text.piece.own_words.get(text.record, set())
        return any(
            f" {word} " in said.flat
            for word in own
            for said in self._index.get(word, ())
            if said.trust == "user"
        )

    def _whole(self, value: str, key: str) -> Iterator[tuple[Text, int, int, str]]:
        norm = words.bare(words.normalise(value))
        number = words.number(norm) if words.atomic(norm) else None
        if number is not None:
            yield from self._numeric(norm, number, key)
        elif words.UNSPACED.search(norm):
            yield from (
                (text, at, at + len(norm), "") for text in self._unspaced if (at := text.norm.find(norm)) >= 0
            )
        else:
            yield from self._literal(norm)
            yield from self._dated(norm)

    def _literal(self, norm: str) -> Iterator[tuple[Text, int, int, str]]:
        parts = words.tokens(norm)
        if not parts:
            return
        rarest = min(parts, key=lambda word: len(self._index.get(word, ())))
        together = f" {' '.join(parts)} "
        for text in self._index.get(rarest, ()):
            if words.atomic(norm):
                place = standing_alone(text, norm)
                if place >= 0:
                    yield text, place, place + len(norm), ""
            elif together in text.flat:
                yield text, *_span(parts, text.norm), ""

    def _dated(self, norm: str) -> Iterator[tuple[Text, int, int, str]]:
        own = list(words.dates(norm)) if len(norm) <= LONGEST_DATE else []
        if len(own) != 1:
            return
        (year, day), *_ = own[0]
        for word in (
            {str(int(part)) for part in day.split("-")}
            | {day[:2], day[3:]}
            | {f"{int(day[3:])}{s}" for s in ("st", "nd", "rd", "th")}
        ):
            for text in self._index.get(word, ()):
                for (other, same), start, end in text.dates:
                    if same == day and (not year or not other or year == other):
                        yield text, start, end, "date"

    def _numeric(self, norm: str, number: Decimal, key: str) -> Iterator[tuple[Text, int, int, str]]:
        """A number as a field of its own, or in a text: an amount anywhere, a name only beside its noun."""
        named = (split(key) or [""])[-1] not in lexicon.AMOUNT
        for word in _numerals(norm, number):
            for text in self._index.get(word, ()):
                alone = words.bare(text.norm)
                if alone == norm or (not named and words.number(alone) == number):
                    if not named or not text.key or not _another_kind(text.key, key):
                        yield text, 0, len(text.norm), ""
                elif named:
                    found = _as_name(norm, key).search(text.norm)
                    if found:
                        yield text, *found.span(1), ""
                elif number in text.numbers:
                    yield text, *text.numbers[number], ""

    def _composed(self, value: str, key: str) -> Traced:
        """A value put together is worth its least trusted part; a part nobody said makes it unknown."""
        norm = words.bare(words.normalise(value))
        parts = _parts(norm)
        if len(parts) < 2 or len(parts) > 40:
            return Traced("", value, "unknown", True, why="nothing read so far says it")
        found = [self._best(part, key, list(self._whole(part, ""))) for part in parts]
        missing = [part for part, match in zip(parts, found, strict=True) if match is None]
        sources = tuple(replace(m.sources[0], how="part") for m in found if m)[:MOST_SOURCES]
        if missing or not words.is_plain(value):
            said = ", ".join(missing[:3]) or "written in letters that only look alike"
            return Traced("", value, "unknown", True, sources, f"nothing read so far says: {said}")
        trust = least(*(match.trust for match in found if match))
        if trust in TRUSTED and words.leads_somewhere(norm) and ("@" in norm or not _known_host(parts)):
            return Traced("", value, "unknown", True, sources, "an address nobody wrote, of words they did")
        return Traced("", value, trust, True, sources, "put together of several parts")

    def _content(self, value: str, key: str) -> Traced:
        """What a text is made of: the passages recognized in it."""
        whole = self._best(value, key, list(self._whole(value, key)))
        if whole:
            return whole
        found: list[Traced] = []
        for chunk in re.split(r"[\n.;!?。；！？]+", value)[:40]:
            if len(words.tokens(chunk)) >= CHUNK:
                match = self._best(chunk, key, list(self._whole(chunk, key)))
                if match:
                    found.append(
                        replace(match, sources=tuple(replace(s, how="part") for s in match.sources[:1]))
                    )
        sources = tuple(source for match in found for source in match.sources)[:MOST_SOURCES]
        return Traced(
            "",
            value,
            "unknown",
            False,
            sources,
            "the agent's own words" if not sources else "partly the agent's own words",
        )


def _named_by_title(values: list[Traced], declared: Declaration) -> list[Traced]:
    """What is made anew is steered by its title; so is what does not say where, or else by all it says."""
    nowhere = not any(value.steers for value in values)
    titles = {value.path for value in values if (split(_last(value.path)) or [""])[-1] in lexicon.TITLES}
    if not nowhere and "create" not in declared.deeds:
        return values
    everything = nowhere and not titles
    return [replace(value, steers=value.steers or everything or value.path in titles) for value in values]


def _span(parts: list[str], norm: str) -> tuple[int, int]:
    """Where these words stand one after the other; of many, the first and the last are looked for."""
    first, last = (r"[\W_]+".join(map(re.escape, some)) for some in (parts[:MARKED], parts[-MARKED:]))
    begin = re.search(first, norm)
    end = re.compile(last).search(norm, begin.start()) if begin else None
    return (begin.start(), end.end()) if begin and end else (0, 0)


def _counts(text: Text, declared: Declaration) -> bool:
    """Whether a text can carry an outsider's words. What a call that acts answers in a word or two cannot."""
    if text.trust != "outside":
        return False
    return not declared.effect or declared.network or len(text.words) >= CHUNK


def _values(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(path, argument, value) of everything that is said in the arguments."""
    for argument, value in arguments.items():
        for path, leaf in _leaves(value, argument):
            yield path, argument, leaf


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}/{number}")
    elif value is not None and not isinstance(value, bool):
        yield path, str(value)


def _last(path: str) -> str:
    """The name nearest to a value; the numbers of a list's entries are none."""
    return next((part for part in reversed(path.split("/")) if not part.isdigit()), "")


def _only_option(path: str, declared: Declaration, argument: str) -> bool:
    """A number of entries or a way of sorting chooses nothing by itself."""
    return not declared.steers(argument) and (split(_last(path)) or [""])[-1] in lexicon.OPTION


def _parts(norm: str) -> list[str]:
    """The parts a value may be composed of: an address's name and place, a link's host and path, words."""
    if "@" in norm:
        name, _, host = norm.partition("@")
        return [name, host]
    if re.match(r"[\w-]+(?:\.[\w-]+)+[/?]", norm):
        host, *rest = re.split(r"[/?&=#]+", norm)
        return [host, *(part for part in rest if part)]
    return words.tokens(norm)


def _known_host(parts: list[str]) -> bool:
    """Whether the first part is a link's host: it was found as a whole, and what follows stays with it."""
    return "." in parts[0]


def _numerals(norm: str, number: Decimal) -> set[str]:
    """The words a number may be indexed under."""
    plain = f"{abs(number):f}"
    digits = plain.split(".")[0]
    return {
        *words.tokens(norm)[:1],
        *words.tokens(plain)[:1],
        digits,
        digits[-3:],
        f"{int(digits):,}".split(",")[0],
    }


def _another_kind(key: str, argument: str) -> bool:
    """Whether a field's name says that its number is no name of the kind the argument wants."""
    last = (split(key) or [""])[-1]
    return last not in lexicon.IDENTIFIER and last not in split(argument)


def _as_name(norm: str, argument: str) -> "re.Pattern[str]":
    """The number where the text calls something by it: `file 13`, `id: 13`, `#13`."""
    nouns = {*lexicon.IDENTIFIER, *split(argument)} - {""}
    called = "|".join(sorted(map(re.escape, nouns)))
    return re.compile(rf"(?:#|(?<!\w)(?:{called})s?[\s:=#'\"(]{{1,3}})({re.escape(norm)})(?!\w|[.:/-]\w)")
