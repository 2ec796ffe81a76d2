"""Where the values of a call came from, by what a run has heard and read before it.

Results are taken apart and indexed once, when they are added; a value is then looked up by its rarest
word. Pure.
"""

import re
import unicodedata
from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar

from common.normal_forms import normalized
from policy.provenance import choice, confidential, forms, given, lexicon, records, words
from policy.provenance.fields import fields
from policy.provenance.infer import UNKNOWN_TOOL, Declaration, akin
from policy.provenance.intent import REMINDERS, Intent, intent_of, intent_of_clause
from policy.provenance.terms import (
    MORE,
    RANK,
    TRUSTED,
    Facts,
    Source,
    Traced,
    Trust,
    least,
    says_yes_or_no,
)
from policy.provenance.texts import MOST_PASSAGES, Piece, Text, standing_alone
from policy.provenance.verbs import noun, split

MOST_NUMBERS = 100  # of which two are tried together
MOST_SOURCES = 5  # passages told of one value
MOST_VALUES = 200  # of one call that are traced; further ones count as unknown
MOST_LOOKS = 200_000  # texts in which a call's values are looked for; what would take more counts as unknown
MARKED = 20  # words at each end by which a passage is found again
ENTRY = 12  # words of a field that a service fills in itself; a longer one is somebody's text
ANSWER = 16  # words that a service needs to say what it did
PIECES = 8  # words of a result in all that may be somebody's, however it is divided or written together
CHUNK = 4  # words of a text that make a passage worth recognizing
LONG_ANSWER = 1_000  # characters of a text that says more than a few words, whatever they are
WORD_LENGTH = 12  # letters that count as one word, where more stand together
RUN = re.compile(rf"{words.UNSPACED_RUN.pattern}|[^\W_]?[^\W_A-Z{words.UNSPACED.pattern[1:-1]}]+|[A-Z]+")
ENVELOPE = frozenset(("text", "structured", "others", "truncated"))  # of what a server's tool answers
MAILBOX = re.compile(r"\S@\S")
LONGEST_DATE = 30  # characters of a value that may be a date, with its time


T = TypeVar("T")
ASKS_FOR_PROOF = re.compile(r"\b(?:verif|confirm|one-time|otp\b|passcode|2fa\b|authenticat|security code)")


@dataclass(frozen=True, slots=True)
class Want:
    """What a value is to be used as: its argument's name, and what it is then a value of (None: anything)."""

    key: str
    kind: frozenset[str] | None = None
    declared: Declaration | None = field(default=None, compare=False)
    steers: bool = field(default=True, compare=False)  # whether its argument does, and not only it

    @property
    def changes(self) -> bool:
        """Whether something is done by the value, and not only read."""
        return self.steers and self.declared is not None and self.declared.effect

    @property
    def acts(self) -> bool:
        """Whether something goes to the value, which then must be given."""
        deeds = self.declared.deeds if self.declared is not None else frozenset[str]()
        harmless = bool(deeds) and deeds <= HARMLESS
        return self.steers and not harmless and not SOURCES.intersection(split(self.key))


KEPT_BACK = re.compile(
    rf"{words.NO}|\b(?:without|redact\w*|remov\w*|hid\w+|omit\w*"
    r"|leav\w+ out|mask\w*|strip\w*|black out|blank\w*|protect\w*|keep|stays?|except|excluding)\b|保密"
)
NO = re.compile(words.NO)
HARMLESS = frozenset(("read", "delete", "confirm"))  # what goes to nobody
SOURCES = frozenset(("from", "source", "debit"))  # arguments that say where something is taken
OF_NO_SCHEMA = Declaration(arguments=frozenset(), named=frozenset())  # all its names are values
LED = Want("", frozenset(("email", "account", "link", "url")))  # what leads somewhere inside a text


class Material:
    """All that a run has heard and read so far. Add in order; ask about a call at any time."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.said: list[str] = []
        # in each list the most trusted first
        self._index: dict[str, list[Text]] = defaultdict(list)
        self._unspaced: list[Text] = []
        self._forms: dict[str, list[tuple[Text, int, int]]] = defaultdict(list)
        self._looks = MOST_LOOKS  # that are left for the call at hand
        self._requests: dict[bool, choice.Request] = {}  # by whether the call at hand is known
        self._known: dict[str, list[tuple[Decimal, Source]]] = {}  # amounts, by what they are to be used as
        self._intent: Intent | None = None
        self._alike: list[tuple[Declaration, list[Piece]]] = []
        self._names: frozenset[str] | None = None
        self._read: list[records.Read] = []
        self._secrets: dict[str, str] = {}  # compact value → what it is called
        self._heard_some = False  # a result had many words in all, of however few each
        self._unproved: Piece | None = None  # what a call answered that waits for a code

    @property
    def read_outside(self) -> bool:
        return any(piece.outside for piece in self.pieces)

    @property
    def heard_others(self) -> bool:
        """Whether there is a word of an outsider's, be it an answer too short to ask for anything: an address
        alone may be offered.
        """
        return any(text.trust == "outside" for piece in self.pieces for text in piece.texts)

    @property
    def intent(self) -> Intent:
        """What the person's words ask for."""
        if self._intent is None:
            self._intent = intent_of(self.said)
        return self._intent

    def hear(self, name: str, text: str, offered: bool = False) -> None:
        """The person's own words. `offered`: an agent had named the addresses in them before."""
        piece = self._piece(name)
        piece.offered = offered
        self._add(Text(piece, "", "", text, 0, "user"))
        self.said.append(text)
        self._intent = None

    def overhear(self, name: str, text: str) -> None:
        """Words that reached the run and are not the person's: an agent's goal for it, say."""
        piece = self._piece(name)
        piece.outside = True
        self.know(Declaration(), text)
        self._add(Text(piece, "", "", text, 0, "outside"))

    def recall(self, name: str, text: str, trust: Trust) -> None:
        """Words of before that stand in the prompt again: worth what they were, and asking for nothing."""
        if trust != "user":
            self.know(Declaration(), text)
        lines = [line for line in text.splitlines() if line.strip()] if trust == "organization" else []
        for part in (text, *lines) if len(lines) > 1 else (text,):
            piece = self._piece(name)
            piece.recalled, piece.outside = True, trust not in TRUSTED
            piece.has_lines = part is text and len(lines) > 1
            self._add(Text(piece, "", "", part, 0, trust))

    def know(self, declared: Declaration, result: Any) -> None:
        """What other runs of the tree or earlier turns have read: its secrets come without their names."""
        self.keep_secrets(confidential.in_result(result, declared.confidential))

    def read(
        self,
        name: str,
        declared: Declaration,
        arguments: Mapping[str, Any],
        result: Any,
        tool: str = "",
        offered: bool = False,
    ) -> None:
        """The result of a call. `tool`: its name, by which conditions ask for the result. `offered`: it is an
        answer of the person's, and an agent had named the addresses in it before.
        """
        self._read.append((tool, arguments, result))
        keys, beside = self._keys(declared, arguments)
        piece = self._piece(name, keys)
        piece.offered = offered
        piece.pointed = self._pointed(arguments) if keys == "user" else {}
        piece.told = self._told(arguments) if keys == "user" else ()
        piece.like, piece.nouns = self._like(declared), declared.nouns
        piece.keyed = tuple(value for _, _, value in values_of(arguments) if value.strip())
        piece.like.append(piece)
        parts = fields(result)
        if declared.output_trust == "user":
            self.said.append("\n".join(found.text for found in parts))
            self._intent = None
        for found in parts:
            kept = (
                declared.kept(found.key)
                and declared.trust_of(found.key) not in TRUSTED
                and len(words.tokens(words.normalise(found.text))) <= ENTRY
            )
            trust: Trust = "organization" if kept else declared.trust_of(found.key)
            kind = declared.kind(found.key) if kept else None
            text = Text(piece, found.path, found.key, found.text, found.record, trust, kind=kind)
            text.service = declared.service
            self._add(text)
        self.keep_secrets(confidential.in_result(result, declared.confidential, parts))
        vouched = declared.output_trust in TRUSTED and declared.origin != "inferred"
        self._heard_some |= declared.effect and not vouched and _says_much(result, piece.keyed)
        entries = len({text.record for text in piece.texts})
        chosen = bool(beside) and not all(_takes_all(*one, entries) for one in beside)
        # a yes or no, which nobody gave, leaves out what the other one would find
        piece.narrowed = chosen or says_yes_or_no(arguments)
        piece.outside = any(_counts(text, declared) for text in piece.texts)
        if "confirm" in declared.deeds:
            self._unproved = None
        elif declared.effect:
            self._unproved = piece if any(ASKS_FOR_PROOF.search(text.norm) for text in piece.texts) else None

    def _like(self, declared: Declaration) -> list[Piece]:
        found = next((pieces for other, pieces in self._alike if other == declared), None)
        if found is None:
            found = []
            self._alike.append((declared, found))
        return found

    def facts(self, declared: Declaration, arguments: Mapping[str, Any]) -> Facts:
        """Where the call's values came from."""
        self._begin()
        found: list[Traced] = []
        said = values_of(arguments, declared)
        for path, argument, value in said:
            found += islice(self._traced(path, argument, value, declared), MOST_VALUES + 1 - len(found))
            if len(found) > MOST_VALUES or self._looks < 0:  # of one text, too, which may hold thousands
                why = "more values than are looked at"
                rest = dict.fromkeys((argument, *(other for _, other, _ in said)))
                found[MOST_VALUES:] = [Traced(name, MORE, "unknown", True, why=why) for name in rest]
                break
        if declared.effect and self.read_outside and "confirm" not in declared.deeds:
            found = [self._as_title(value, declared) for value in _named_by_title(found, declared)]
        asked = self._asked(declared, arguments)
        why = "" if asked else "the person's words do not ask for it"
        carries = confidential.carried(
            declared,
            ((path, value) for path, _, value in values_of(arguments, OF_NO_SCHEMA)),
            self._secrets,
            self._said_words(),
        )
        effect = declared.effect or declared.network
        before = tuple(self._read)
        # what the tool's schema does not have chooses no record
        schema = declared.arguments
        own = arguments if schema is None else {n: v for n, v in arguments.items() if n in schema}
        return Facts(
            tuple(found),
            effect,
            self.read_outside or self._heard_some,
            asked,
            why,
            carries,
            results=lambda: records.about(own, before),
        )

    def _as_title(self, value: Traced, declared: Declaration) -> Traced:
        """A title that steers may be put together of the person's words and of values that are trusted."""
        want = _wanted(value.path, declared)
        if not value.steers or want.kind is not None or value.trust in TRUSTED or "/" in value.path:
            return value
        made = self._composed(value.value, want)
        return replace(made, path=value.path) if made.trust in TRUSTED else value

    def keep_secrets(self, found: Iterable[tuple[str, str]]) -> None:
        """`found`: (what it is called, value)."""
        for label, value in found:
            plain = confidential.compact(value)
            if len(plain) >= confidential.SHORTEST:
                self._secrets.setdefault(plain, label)

    def _said_words(self) -> Iterator[str]:
        """The words of the person's request outside of what they quote, and of sentences that forbid or keep
        back something.
        """
        for piece in self.pieces:
            for text in piece.texts if not piece.recalled else ():
                if text.trust == "user" and not text.path:
                    own = words.normalise(words.without(text.raw, words.quoted(text.raw)))
                    for sentence in words.sentences(REMINDERS.sub(" ", own)):
                        if not KEPT_BACK.search(sentence):
                            yield from words.tokens(sentence)

    def _asked(self, declared: Declaration, arguments: Mapping[str, Any]) -> bool:
        """Whether the person's words ask for it, or it completes what runs already."""
        if "confirm" in declared.deeds:
            return self._unproved is not None and self._about(self._unproved, declared, arguments)
        return self.intent.covers(declared)

    def _about(self, begun: Piece, declared: Declaration, arguments: Mapping[str, Any]) -> bool:
        """Whether what a call names beside its code stands in the call that began it, or in its answer: no
        code of the person's is for anything else that waits for one.
        """
        return all(
            value in begun.keyed or any(text.piece is begun for text, *_ in self._whole(value, _last(path)))
            for path, argument, value in islice(values_of(arguments), MOST_VALUES)
            if declared.steers(argument, path) and value.strip()
        )

    def passage(self, source: Source) -> str:
        """The text that a source is a span of."""
        pieces = (piece for piece in self.pieces if piece.name == source.piece)
        texts = [text for piece in pieces for text in piece.texts if text.path == source.field]
        whole = (text.raw for text in texts if text.how in ("whole", source.how))
        spans = (raw for raw in sorted(whole, key=len) if len(raw) >= source.end)
        return next(spans, "")

    def _begin(self) -> None:
        """Before a call is looked at: what was worked out for another one does not count."""
        self._looks, self._requests, self._known = MOST_LOOKS, {}, {}

    # Adding

    def _piece(self, name: str, keys: Trust = "user") -> Piece:
        self.pieces.append(Piece(name, keys))
        return self.pieces[-1]

    def _add(self, text: Text, decode: bool = True) -> None:
        text.piece.texts.append(text)
        self._names = None if text.trust == "user" else self._names
        for word in set(text.words):
            insort(self._index[word], text, key=_rank)
        if words.UNSPACED.search(text.norm):
            insort(self._unspaced, text, key=_rank)
        for form, start, end in text.leads:
            for spelling in forms.spellings(form):
                insort(self._forms[spelling], (text, start, end), key=lambda found: _rank(found[0]))
        if decode and len(text.raw) > 4:
            for how, said in words.decodings(text.raw):
                self._add(replace(text, raw=said, how=how), decode=False)
            if text.trust not in TRUSTED and words.ESCAPE.search(text.raw):
                self._add(replace(text, raw=words.unescaped(text.raw), how="escapes"), decode=False)

    def _keys(
        self, declared: Declaration, arguments: Mapping[str, Any]
    ) -> tuple[Trust, list[tuple[str, str]]]:
        """Who stands behind the values a result was looked up by, and those (path, value) that are no key by
        themselves and that nobody gave: they may leave one entry of many.
        """
        self._begin()
        trusts: list[Trust] = []
        beside: list[tuple[str, str]] = []
        for number, (path, argument, value) in enumerate(values_of(arguments, declared)):
            if number >= MOST_VALUES:
                return "outside", beside  # nobody knows
            if value.strip() and declared.effect and not declared.steers(argument, path):
                beside.append((path, value))  # what an acting call says may be what somebody is found by
            elif value.strip():
                want = _wanted(path, declared)
                trust = self._find(value, want).trust
                if self._looks < 0:
                    return "outside", beside  # not looked for everywhere
                if trust == "outside" and self._one_of_all(value, want, arguments[argument]):
                    trust = "organization"
                if trust == "unknown":
                    beside.append((path, value))
                    if _only_option(path, value, declared, argument):
                        continue
                trusts.append(trust)
        if "user" in trusts and not declared.effect:  # what the agent adds of its own only narrows
            trusts = [trust for trust in trusts if trust != "unknown"]
        return least(*trusts), beside

    def _one_of_all(self, value: str, want: Want, among: Any) -> bool:
        """Whether it stands in a list with all others that it was read with: then nobody chose it."""
        if not isinstance(among, list | tuple):
            return False
        listed = {words.bare(words.normalise(str(each))) for each in among}
        return any(
            text.piece.keys in TRUSTED
            and _same_kind(text, start, end, want)
            and text.piece.values[text.key] <= listed
            for text, start, end, _ in self._whole(value, want.key)
            if text.kind is not None
        )

    def _told(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """What the person said to do by a place that is read; what they forbid says nothing."""
        places = _places(arguments)
        forbidden = [[found.span() for found in words.FORBIDDEN.finditer(said)] for said in self.said]
        allowed = map(words.without, self.said, forbidden)
        return tuple(clause for said in allowed for clause in choice.told_by(said, places))

    def _pointed(self, arguments: Mapping[str, Any]) -> dict[str, frozenset[str]]:
        """The kinds of value that the person, in one sentence with the place, said to find there, each with
        the names of whose it is ("Zoe's email"); none where they say "her email", or no such thing.
        """
        places = _places(arguments)
        sentences = (each for said in self.said for each in words.sentences(words.normalise(said)))
        found: dict[str, set[str]] = defaultdict(set)
        for sentence in sentences:
            if any(place in sentence for place in places) and not NO.search(sentence):
                for kind, names in words.KIND_NAMES.items():
                    if names.search(sentence):
                        found[kind].update(words.OWNER.findall(sentence))
        return {kind: frozenset(names) for kind, names in found.items()}

    # Looking up

    def _traced(self, path: str, argument: str, value: str, declared: Declaration) -> Iterator[Traced]:
        if not value.strip():
            return
        want = _wanted(path, declared)
        led = declared.steers(argument, path)
        steers = led and not _says_nothing(want.key, value, declared)
        clean = forms.clean(value)
        inside = [] if steers and words.atomic(value.strip()) else _inside(clean)
        if not (steers and inside and words.nothing_beside(clean, inside)):
            found = self._find(value, want) if steers else self._content(value, want)
            yield self._seen(replace(found, path=path, value=value, steers=steers), want, declared)
        for address, *_ in inside:
            found = replace(
                self._find(address, replace(LED, declared=declared, steers=led)),
                path=f"{path}/{address}",
                value=address,
                steers=True,
            )
            yield self._seen(found, want, declared)
        if len(clean) > forms.LONGEST:  # what leads somewhere behind that was not seen
            yield Traced(path, MORE, "unknown", True, why="longer than is looked at")

    def _seen(self, value: Traced, want: Want, declared: Declaration) -> Traced:
        """The same, or as what the person's words lead to."""
        if value.trust in TRUSTED or not value.steers:
            return value
        if declared.network and declared.deeds == {"read"} and self._passed_on(value):
            return replace(value, pointed=True)
        if self._directed(value.value, want, declared):
            return replace(value, pointed=True)
        return self._computed(value, want, declared) or value

    def _directed(self, value: str, want: Want, declared: Declaration) -> bool:
        """Whether the person said to do this by a document they name ("pay the bill in …"): the value is its
        one account, or an amount in it.
        """
        if not declared.deeds & {"pay", "change"}:
            return False
        amount = _is_amount(want.key)
        if amount and self._asked_by(declared).says_how_much:
            return False
        if not amount and not words.ACCOUNT.fullmatch(value.strip().upper()):
            return False
        return any(
            (amount or piece.only(words.ACCOUNT, value)) and self._tells(piece, declared)
            for piece in _pieces(self._whole(value, want.key))
        )

    def _tells(self, piece: Piece, declared: Declaration) -> bool:
        """Whether the person named the document to do this by, and it holds one account at most."""
        return (
            piece.keys == "user"
            and any(_pays_by(intent_of_clause(said), declared) for said in piece.told)
            and len(piece.all_of(words.ACCOUNT)) <= 1
        )

    def _computed(self, value: Traced, want: Want, declared: Declaration) -> Traced | None:
        """An amount that is the sum, difference or product of two that are trusted, or the sum of a list."""
        wanted = words.number(words.bare(words.normalise(value.value)))
        if wanted is None or not _is_amount(want.key):
            return None
        if want.key not in self._known:
            self._known[want.key] = list(islice(self._amounts(want, declared), MOST_NUMBERS))
        known = self._known[want.key]
        for place, (one, first) in enumerate(known):
            for other, second in known[place + 1 :]:
                if wanted in (one + other, abs(one - other), one * other):
                    sources = (replace(first, how="part"), replace(second, how="part"))
                    trust = least(first.trust, second.trust)
                    return replace(value, trust=trust, sources=sources, why="worked out from two values")
        return None

    def _amounts(self, want: Want, declared: Declaration) -> Iterator[tuple[Decimal, Source]]:
        """The numbers an amount may be worked out from: the person's, the organization's, and those of a
        document the person named for it.
        """
        for piece in self.pieces:
            told = self._tells(piece, declared)
            for text in self._looked_at(piece.texts):
                if text.trust == "user" or told:
                    for number, (start, end) in text.numbers.items():
                        yield number, replace(text.source(start, end), trust="user")
                elif text.trust in TRUSTED and (whole := words.number(words.bare(text.norm))) is not None:
                    part = replace(want, steers=False)
                    source = self._judged(text, 0, len(text.norm), "", text.raw, True, part)
                    if source.trust in TRUSTED and (not text.key or _is_amount(text.key)):
                        yield whole, source

    def _passed_on(self, value: Traced) -> bool:
        """Whether it is a link as a message has it, and the person said to read what was passed on there."""
        if not words.LINK.fullmatch(value.value.strip()):
            return False
        return any(
            text.trust == "outside"
            and text.piece.keys in TRUSTED
            and choice.passed_on(text, value.value, self._asked_by(None))
            for text, *_ in self._whole(value.value, "")
        )

    def _find(self, value: str, want: Want) -> Traced:
        """A value as a whole, else decoded, else by its parts."""
        found = self._best(value, want, list(self._whole(value, want.key)))
        if found:
            return found
        for how, said in words.decoded(value):
            inner = self._best(said, want, list(self._whole(words.normalise(said), want.key)))
            if inner:
                inner = replace(inner, sources=tuple(replace(s, how=how) for s in inner.sources))
                # what is in code reaches another place than what it says
                return _renamed(inner) if how in words.CODES or forms.is_mailbox(value) else inner
        return self._composed(value, want)

    def _best(self, value: str, want: Want, found: list[tuple[Text, int, int, str]]) -> Traced | None:
        """Of the passages that hold a value, the most trusted speak; an outsider may repeat anybody."""
        if not found:
            return None
        plain = words.is_plain(value)
        judged = [self._judged(text, start, end, how, value, plain, want) for text, start, end, how in found]
        judged.sort(key=lambda source: RANK[source.trust])
        best = judged[0]
        pointed = best.trust == "outside" and any(
            self._pointed_at(piece, value, want) for piece in _pieces(found)
        )
        return Traced("", value, best.trust, True, tuple(judged[:MOST_SOURCES]), best.why, pointed)

    def _pointed_at(self, piece: Piece, value: str, want: Want) -> bool:
        """Whether the person said: take the one e-mail address (account, link) that stands in this place, for
        the call to go to whose they say it is.
        """
        if piece.keys != "user":
            return False
        request = self._asked_by(want.declared)
        return any(
            kind in piece.pointed
            and form.fullmatch(value.strip())
            and piece.only(form, value)
            and (not want.acts or not piece.pointed[kind] or request.gives_name(piece.pointed[kind]))
            for kind, form in words.KINDS.items()
        )

    def _judged(
        self, text: Text, start: int, end: int, how: str, value: str, plain: bool, want: Want
    ) -> Source:
        source = text.source(start, end, how)
        if text.trust not in TRUSTED:
            return source
        if not plain and value not in text.raw:
            return replace(source, trust="unknown", why="it only looks like what stands there")
        if text.trust == "user":
            return self._meant(source, text, value, want)
        if text.kind is not None and not _same_kind(text, start, end, want):
            return replace(source, trust="outside", why="it was read as another thing than it is used for")
        trust, why = self._selected(text, want)
        return replace(source, trust=trust, why=why)

    def _meant(self, source: Source, text: Text, value: str, want: Want) -> Source:
        """An address is theirs where their words give it. What they only mention, and do not forbid, may be
        read, taken away, or passed on in a text to the right person; what they quote, only passed on. What
        an agent named before stood where the agent had it from: nobody knows who wrote that.
        """
        if text.how in words.CODES:  # whoever types a code that they were told does not know what it says
            return replace(source, trust="outside", why="the person's words hold it in code")
        norm, form = words.bare(words.normalise(value)), forms.canonical(value)
        unknown = not form and _is_unknown_address(value)
        if not form and not words.leads_somewhere(norm) and not unknown:
            if want.changes and text.meant.raw != text.raw and standing_alone(text.meant, norm) < 0:
                return replace(source, trust="outside", why="the person forbids it")
            return source
        if text.piece.offered:
            return replace(source, trust="outside", why="an agent named it before the person did")
        if want.acts and (unknown or _is_address(form, text)):
            if any(given.serves(said, want.declared) for said in text.given.get(form, ())):
                return source
            why = "the person mentions it, and does not give it for this"
            return replace(source, trust="outside", why=why)
        own = text.own if want.steers else text.meant
        if own.raw == text.raw or standing_alone(own, norm) >= 0:
            return source
        if form in {spelling for led, *_ in own.leads for spelling in forms.spellings(led)}:
            return source
        return replace(source, trust="outside", why="the person forbids it, or quotes somebody who says it")

    def _selected(self, text: Text, want: Want) -> tuple[Trust, str]:
        """Data of the organization is worth what those are worth who chose it."""
        piece = text.piece
        if piece.keys not in TRUSTED:
            return piece.keys, "it was looked up by a value the person did not give"
        if _sent_by(text) and not self._addressed(text, want):
            return "outside", "a stranger wrote from there, and the person names nobody so called"
        if not self.read_outside:
            return text.trust, ""
        request = self._asked_by(want.declared)
        if want.acts and _is_amount(want.key) and request.says_how_much:
            return "outside", "the person says another amount"
        if want.changes and request.bars(text):
            return "outside", "the person forbids it"
        only = piece.only_one(text) and not piece.recalled  # what is remembered is one of many
        if only and want.acts:
            only = choice.is_meant(text, request, self._somebody(text, want))
        if only or self._chosen(text, want):
            return text.trust, ""
        return "outside", "it is one of several, chosen after text from outside was read"

    def _addressed(self, text: Text, want: Want) -> bool:
        """Whether the person names who wrote, wants them answered, or means all of them."""
        request = self._asked_by(want.declared)
        return (
            choice.is_named(text, request)
            or choice.is_answered(text, request)
            or choice.all_addressed(text, request, self._somebody(text, want))
        )

    def _chosen(self, text: Text, want: Want) -> bool:
        """Whether the person's words single the record out."""
        return choice.chosen(text, self._asked_by(want.declared), want.acts and self._somebody(text, want))

    def _somebody(self, text: Text, want: Want) -> bool:
        """Whether something may go to it, where the call puts it."""
        return choice.goes_to_somebody(text, self._asked_by(want.declared), want.key)

    def _asked_by(self, declared: Declaration | None) -> choice.Request:
        """The person's words, as they speak of the call at hand."""
        known = declared is not None
        if known not in self._requests:
            self._requests[known] = choice.Request(
                tuple(self.said),
                self._named_words(),
                self.intent.verbs,
                lambda clause: declared is None or intent_of_clause(clause).covers(declared),
                lambda said: given.serves(said, declared),
                declared is not None and "delete" in declared.deeds,
                declared is not None and "invite" in declared.deeds,
                declared is not None and _sends_by_id(declared),
                tuple(self.pieces),
            )
        return self._requests[known]

    def _named_words(self) -> frozenset[str]:
        """The words by which the person may name something: what they dictate at length names nothing."""
        if self._names is None:
            texts = (text for piece in self.pieces for text in piece.texts if text.trust == "user")
            self._names = frozenset(
                word for text in texts for word in words.tokens(words.without_dictation(text.norm))
            )
        return self._names

    def _whole(self, value: str, key: str) -> Iterator[tuple[Text, int, int, str]]:
        """Where a value stands, the most trusted first: (text, start, end, how)."""
        return islice(self._everywhere(value, key), MOST_PASSAGES)

    def _looked_at(self, found: Iterable[T]) -> Iterator[T]:
        for each in found:
            self._looks -= 1
            if self._looks < 0:
                return
            yield each

    def _count(self, word: str) -> int:
        return len(self._index.get(word, ()))

    def _with(self, word: str) -> Iterator[Text]:
        return self._looked_at(self._index.get(word, ()))

    def _everywhere(self, value: str, key: str) -> Iterator[tuple[Text, int, int, str]]:
        if forms.is_mailbox(value):
            yield from self._mailbox(value)
            return
        texts = set()
        for found in self._as_written(value, key):
            texts.add(id(found[0]))
            yield found
        for text, start, end in self._looked_at(self._forms.get(forms.canonical(value), ())):
            if id(text) not in texts:
                yield text, start, end, ""

    def _mailbox(self, value: str) -> Iterator[tuple[Text, int, int, str]]:
        """Where a mail address stands as one of its own, and as no part of a longer one."""
        plain, form = forms.mailbox(value)
        if form:
            found = self._looked_at(self._forms.get(form, ()))
            yield from ((text, start, end, "") for text, start, end in found)
            return
        norm = words.normalise(plain)
        rarest = min(words.tokens(norm), key=self._count, default="")
        for text in self._with(rarest):
            place = standing_alone(text, norm)
            if place >= 0:
                yield text, place, place + len(norm), ""

    def _as_written(self, value: str, key: str) -> Iterator[tuple[Text, int, int, str]]:
        norm = words.bare(words.normalise(value))
        number = words.number(norm) if words.atomic(norm) else None
        if number is not None:
            yield from self._numeric(norm, number, key)
        elif words.UNSPACED.search(norm):
            for text in self._looked_at(self._unspaced):
                if (at := text.norm.find(norm)) >= 0:
                    yield text, at, at + len(norm), ""
        else:
            yield from self._literal(norm)
            yield from self._dated(norm)

    def _literal(self, norm: str) -> Iterator[tuple[Text, int, int, str]]:
        parts = words.tokens(norm)
        if not parts:
            return
        rarest = min(parts, key=self._count)
        together = f" {' '.join(parts)} "
        for text in self._with(rarest):
            if words.atomic(norm):
                place = standing_alone(text, norm)
                if place >= 0:
                    yield text, place, place + len(norm), ""
            elif together in text.flat:
                yield text, *_span(parts, text.norm), ""

    def _dated(self, norm: str) -> Iterator[tuple[Text, int, int, str]]:
        own = list(words.dates(norm)) if len(norm) <= LONGEST_DATE else []
        if len(own) != 1 or not words.is_moment(norm, *own[0][1:]):
            return
        (year, day), *_ = own[0]
        for word in (
            {str(int(part)) for part in day.split("-")}
            | {day[:2], day[3:]}
            | {f"{int(day[3:])}{s}" for s in ("st", "nd", "rd", "th")}
        ):
            for text in self._with(word):
                for (other, same), start, end in text.dates:
                    if same == day and (not year or not other or year == other):
                        yield text, start, end, "date"

    def _numeric(self, norm: str, number: Decimal, key: str) -> Iterator[tuple[Text, int, int, str]]:
        """A number as a field of its own, or in a text: an amount anywhere, a name only beside its noun."""
        named = noun(key) not in lexicon.AMOUNT
        for word in _numerals(norm, number):
            for text in self._with(word):
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

    def _composed(self, value: str, want: Want) -> Traced:
        """A value put together is worth its least trusted part; a part nobody said makes it unknown."""
        norm = words.bare(words.normalise(value))
        parts = [part for part in _parts(norm) if words.atomic(norm) or part not in lexicon.GLUE]
        if len(parts) < 2 or len(parts) > 40:
            return Traced("", value, "unknown", True, why="nothing read so far says it")
        found = [self._best(part, want, list(self._whole(part, ""))) for part in parts]
        missing = [part for part, match in zip(parts, found, strict=True) if match is None]
        sources = tuple(replace(m.sources[0], how="part") for m in found if m)[:MOST_SOURCES]
        if missing or not words.is_plain(value):
            said = ", ".join(missing[:3]) or "written in letters that only look alike"
            return Traced("", value, "unknown", True, sources, f"nothing read so far says: {said}")
        trust = least(*(match.trust for match in found if match))
        if trust in TRUSTED and _leads(value, norm, parts):
            return Traced("", value, "unknown", True, sources, "an address nobody wrote, of words they did")
        return Traced("", value, trust, True, sources, "put together of several parts")

    def _content(self, value: str, want: Want) -> Traced:
        """What a text is made of: the passages recognized in it."""
        whole = self._best(value, want, list(self._whole(value, want.key)))
        if whole:
            return whole
        found: list[Traced] = []
        for chunk in re.split(r"[\n.;!?。；！？]+", value)[:40]:
            if len(words.tokens(chunk)) >= CHUNK:
                match = self._best(chunk, want, list(self._whole(chunk, want.key)))
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


def _rank(text: Text) -> int:
    return RANK[text.trust]


def _pieces(found: Iterable[tuple[Text, int, int, str]]) -> Iterable[Piece]:
    """The messages and results that passages stand in, each once."""
    return dict.fromkeys(text.piece for text, *_ in found)


def _pays_by(intent: Intent, declared: Declaration) -> bool:
    """Whether a clause orders a payment, or to change one; who sends somebody a bill does not."""
    return intent.covers(declared) and bool(intent.deeds or intent.verbs & lexicon.SETTLES)


def _places(arguments: Mapping[str, Any]) -> list[str]:
    """The names of places in a call's arguments."""
    said = (value for _, _, value in islice(values_of(arguments), MOST_VALUES))
    return [words.bare(words.normalise(value)) for value in said if words.is_place(value)]


def _is_address(form: str, text: Text) -> bool:
    """Whether a value is an address as it stands in the text; digits may be the number of an order."""
    if forms.kind(form) != "digits":
        return True
    return form in {spelling for led, *_ in text.leads for spelling in forms.spellings(led)}


def _is_unknown_address(value: str) -> bool:
    """Whether it has an address in a form that nobody knows, which no words give: `"a b"@c.example`."""
    if forms.is_mailbox(value):
        return True
    clean = forms.clean(value)
    known = [(start, end) for _, start, end in forms.leads(clean)]
    return bool(MAILBOX.search(words.without(clean, known)))


def _renamed(inner: Traced) -> Traced:
    """Of a value that nobody undoes the encoding of: it is a name of its own, which others may have taken."""
    if inner.trust not in TRUSTED:
        return inner
    return replace(inner, trust="unknown", why="it is written in another way than anybody has said it")


def _is_amount(key: str) -> bool:
    return bool(lexicon.AMOUNT.intersection(split(key)))


def _inside(clean: str) -> list[tuple[str, int, int]]:
    """What leads somewhere inside a text, as it is written there."""
    return [(clean[start:end], start, end) for _, start, end in forms.leads(clean)]


def _wanted(path: str, declared: Declaration) -> Want:
    key = _last(path)
    titled = noun(key) in lexicon.TITLES
    return Want(key, None if titled else declared.kind(key), declared)


def _sent_by(text: Text) -> bool:
    """Whether it says from whom, or to whom, something came that others wrote."""
    return text.kind is not None and choice.is_correspondent(text)


def _same_kind(text: Text, start: int, end: int, want: Want) -> bool:
    """Whether a service's own value, whole as it stands in its field, is used as what it was read as."""
    if want.declared is not None and want.declared.service != text.service:
        return False
    if (
        want.declared is not None
        and want.declared.network
        and forms.kind(forms.canonical(text.raw)) == "link"
    ):
        return False  # where a record's link leads is its writer's choice
    if want.kind is None:
        return True
    whole = len(words.bare(text.norm)) <= end - start
    return whole and text.kind is not None and akin(text.kind, want.kind)


def _says_nothing(key: str, value: str, declared: Declaration) -> bool:
    """Whether a value steers nothing: a listed kind of what stands beside it, or one of a thing."""
    if lexicon.KINDS.intersection(split(key)):
        parts = words.tokens(words.normalise(value))
        return bool(parts) and all((key, part) in declared.listed for part in parts)
    return bool(lexicon.QUANTITY.intersection(split(key))) and value.strip() == "1"


def _named_by_title(values: list[Traced], declared: Declaration) -> list[Traced]:
    """What is made anew is steered by its title; so is what does not say where, or else by all it says."""
    nowhere = not any(value.steers for value in values)
    titles = {value.path for value in values if noun(_last(value.path)) in lexicon.TITLES}
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
    """Whether a text can carry an outsider's words. What a call that acts answers in a sentence cannot."""
    if text.trust != "outside":
        return False
    if not declared.effect or declared.network:
        return True
    said = ANSWER if declared.keeps and not text.key else CHUNK
    return len(text.words) >= said


def _says_much(result: Any, said: Collection[str]) -> bool:
    """Whether a result has more words in all than a service needs to say what it did, its names among them,
    but for what its call had `said`.
    """
    count, parts = 0, [result]
    while parts and count < PIECES:
        part = parts.pop()
        if isinstance(part, Mapping):
            parts += [*part.values(), *(name for name in part if name not in ENVELOPE)]
        elif isinstance(part, list | tuple):
            parts += part
        elif str(part).strip() not in said:
            count += _count_words(str(part))
    return count >= PIECES


def _count_words(text: str) -> int:
    """How many words a text may have, also where nothing seen stands between them: of a long one, many."""
    if len(text) > LONG_ANSWER:
        return PIECES
    plain = normalized("NFKC", words.INVISIBLE.sub(" ", text))
    runs = (part for word in words.WORD.findall(plain) for part in RUN.findall(word))
    signs = sum(unicodedata.category(letter) == "So" for letter in plain)
    return signs + sum(-(-len(run) // (2 if words.UNSPACED.match(run) else WORD_LENGTH)) for run in runs)


def values_of(
    arguments: Mapping[str, Any], declared: Declaration = UNKNOWN_TOOL
) -> Iterator[tuple[str, str, str]]:
    """(path, argument, value) of everything that is said in the arguments of a tool so declared. A name that
    its schema does not have is a value, too.
    """
    for argument, value in arguments.items():
        if _is_said(argument, declared.arguments):
            yield argument, argument, argument
        for path, leaf in _leaves(value, argument, declared.named):
            yield path, argument, leaf


def _is_said(name: str, named: frozenset[str] | None) -> bool:
    """Whether a name is a value as well: no schema has it, or it says whom to write to."""
    return bool(forms.canonical(name)) or (named is not None and name not in named)


def _leaves(value: Any, path: str, named: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if _is_said(key, named):
                yield path, key  # whom to write to, with how beside it
            yield from _leaves(inner, f"{path}/{key}", named)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}/{number}", named)
    elif value is not None and not isinstance(value, bool):
        yield path, str(value)


def _last(path: str) -> str:
    """The name nearest to a value; the numbers of a list's entries are none."""
    return next((part for part in reversed(path.split("/")) if not part.isdigit()), "")


def _only_option(path: str, value: str, declared: Declaration, argument: str) -> bool:
    """A number of entries or a way of sorting chooses nothing by itself."""
    last = noun(_last(path))
    if not declared.effect and value.isdigit() and last not in lexicon.IDENTIFIER:
        return True
    return not declared.steers(argument, path) and last in lexicon.OPTION


def _takes_all(path: str, value: str, entries: int) -> bool:
    """Whether a number of entries left none out of a result that has so many."""
    last = noun(_last(path))
    return last in lexicon.HOW_MANY and value.isdigit() and int(value) > entries


def _parts(norm: str) -> list[str]:
    """The parts a value may be composed of: an address's name and place, a link's host and path, words."""
    if "@" in norm:
        name, _, host = norm.partition("@")
        return [name, host]
    if re.match(r"[\w-]+(?:\.[\w-]+)+[/?]", norm):
        host, *rest = re.split(r"[/?&=#]+", norm)
        return [host, *(part for part in rest if part)]
    return words.tokens(norm)


def _leads(value: str, norm: str, parts: list[str]) -> bool:
    """Whether it is an address, in any script, or a link to a host that was not found as a whole."""
    leads = words.leads_somewhere(norm) or forms.kind(forms.canonical(value)) in ("mail", "link")
    return bool(MAILBOX.search(norm)) or (leads and not _known_host(parts))


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
        *(word for word, value in words.NUMERALS.items() if value == number),
        digits,
        digits[-3:],
        f"{int(digits):,}".split(",")[0],
    }


def _another_kind(key: str, argument: str) -> bool:
    """Whether a field's name says that its number is no name of the kind the argument wants."""
    last = noun(key)
    return last not in lexicon.IDENTIFIER and last not in split(argument)


def _sends_by_id(declared: Declaration) -> bool:
    """Whether it sends something, and none of its arguments says whom by name, nor to which channel."""
    names = declared.named or ()
    somebody = lexicon.WHOM | lexicon.ROOMS
    return "send" in declared.deeds and bool(names) and not any(choice.says_who(n, somebody) for n in names)


def _as_name(norm: str, argument: str) -> "re.Pattern[str]":
    """The number where the text calls something by it: `file 13`, `id: 13`, `#13`."""
    nouns = {*lexicon.IDENTIFIER, *split(argument)} - {""}
    called = "|".join(sorted(map(re.escape, nouns)))
    return re.compile(rf"(?:#|(?<!\w)(?:{called})s?[\s:=#'\"(]{{1,3}})({re.escape(norm)})(?!\w|[.:/-]\w)")
