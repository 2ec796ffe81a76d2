"""Whether the person's words choose a record among several: by a word, by a rule, or by wanting all of them.

A rule is checked against the records themselves ("the cheapest" has the lowest price), so whoever wrote a
text that was read meanwhile has no say in it.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, partial
from itertools import dropwhile, islice, takewhile

from policy.provenance import forms, given, lexicon, words
from policy.provenance.infer import akin, singular
from policy.provenance.intent import NEVER
from policy.provenance.terms import TRUSTED
from policy.provenance.texts import MOST_PASSAGES, Piece, Text, words_of
from policy.provenance.verbs import noun, split

_ATTRIBUTE = {name: "|".join(sorted(nouns)) for name, nouns in lexicon.ATTRIBUTES.items()}
# (what the words say, the attribute compared, whether the highest is meant)
RULES: tuple[tuple[re.Pattern[str], str, bool], ...] = tuple(
    (re.compile(pattern), attribute, highest)
    for pattern, attribute, highest in (
        (r"\bcheapest\b|\bas cheap as\b|\bleast expensive\b|最便宜", "price", False),
        (
            rf"\b(?:lowest|smallest|minimum|least)\b[^.;]{{0,20}}\b(?:{_ATTRIBUTE['price']})s?\b",
            "price",
            False,
        ),
        (r"\bmost expensive\b|\bpriciest\b|最贵", "price", True),
        (
            rf"\b(?:highest|largest|maximum|biggest)\b[^.;]{{0,20}}\b(?:{_ATTRIBUTE['price']})s?\b",
            "price",
            True,
        ),
        (
            rf"\b(?:highest|best|top)\b[^.;]{{0,20}}\b(?:{_ATTRIBUTE['rating']}|rated|ratings|reviews)\b",
            "rating",
            True,
        ),
        (r"\b(?:best|top|highest)[- ]rated\b|评分最高", "rating", True),
        (rf"\b(?:lowest|worst)\b[^.;]{{0,20}}\b(?:{_ATTRIBUTE['rating']}|rated|ratings)\b", "rating", False),
        (r"\b(?:largest|biggest)\b|最大", "size", True),
        (r"\bsmallest\b|最小", "size", False),
        (r"\b(?:newest|latest|most recent|last)\b|最新|最近", "date", True),
        (r"\b(?:oldest|earliest|first)\b|最早", "date", False),
        (r"\blongest\b", "duration", True),
        (r"\b(?:shortest|fastest|quickest)\b", "duration", False),
        (r"\b(?:nearest|closest)\b|最近的", "distance", False),
    )
)
MOST_OFTEN = re.compile(r"\bmost\b(?! (?:expensive|recent))[^.;]{0,30}|\bmost active\b|最多")
OF_A_KIND = frozenset(("size", "date", "duration"))  # such words are said of anything: they need their noun
LABELLED = re.compile(r"(?P<name>[a-z][a-z ]{0,20}?)\s*:\s*(?P<number>\d+(?:\.\d+)?)(?![\d.]*\d)")
CLAUSES = re.compile(r"[.;!?\n]\s|\b(?:and|then|but)\b|[。；，]")
ENDS = re.compile(r"[.;!?\n]\s|[。；]")
LIKE = re.compile(r"\blike\b")
THING = re.compile(r"\b(?:the|an?|my|our|this|that|these|those)\s(\w+)")
MOST_NAMES = 100  # of a request that are looked for; each takes milliseconds
FAR = 8  # words in which the person says what something is to be like
SAME = re.compile(r"\bsame (\w+(?: \w+)?) (?:as|like)\b")
SUM = re.compile(
    r"[$€£¥]\s?\d|\d\s?(?:[$€£¥]|usd|eur|gbp|chf|dollars?|euros?|pounds?|francs?|元|块)"
    r"|\b(?:pay|send|transfer|refund|wire|donate|deposit|give|lend|repay|reimburse)\s(?:\S+\s)?\d"
)
# A clause that speaks of what was read before; and one that says itself whom or how much to pay.
COMES_BACK = re.compile(
    r"\b(?:it|this|that|them|these|those|accordingly|there"
    r"|the (?:bill|invoice|amount|total|rent|sum|fee|fine|balance))\b|它|其中",
    re.IGNORECASE,
)
ON_ITS_OWN = re.compile(rf"(?i:{SUM.pattern})|\b(?:to|for)\s(?:{given.NAME}|(?:my|our|the|his|her)\s\w)")
# "Reply that I agree", "answer it"; not "reply to me", "answer my question", "thank you", "acknowledge.".
ANSWER = re.compile(
    r"\b(?:(?:reply|respond|answer)(?!\s(?:to\s)?(?:me|us|my|our|here|when|once|if|now|yes|no|with\sa\ssummary)\b)"
    r"|(?:acknowledge|react\sto|thank)\s(?!(?:you|me|us|my|our)\b)\w)"
)
ANSWER_CHINESE = re.compile(r"(?:^|请|帮我|帮忙|麻烦|并|然后|再)\s*(?:回复|答复)(?!我)")
EXCEPT = re.compile(r"\b(?:except|excluding|other than|besides|apart from|but not)\b[^.;,]*")
# A no or an exception in any form, up to where its sentence ends.
BARRED = re.compile(
    rf"(?:{words.NO}|\b(?:except|excluding|other than|besides|apart from|but|without"
    r"|save|bar|minus|skip|skipping|omit|omitting|leave out|leaving out|instead of|rather than|exception)\b)"
    r"[^.;!?\n]*"
)


@dataclass(frozen=True)
class Request:
    """The person's words, and what the call at hand does by them. What they say is worked out once: each of
    thousands of records may be compared with it.

    `means`: whether a clause of theirs asks for the call; `serves`: whether an address that it gives is for
    the call. `deletes`: whether the call takes something away;
    `invites`: whether it adds somebody to something. `by_id`: whether it sends something and no argument
    of its says whom by name: to the writer of a mail, to a list.
    `pieces`: all results so far, which may tell more of the same records.
    """

    written: tuple[str, ...]
    words: frozenset[str]
    verbs: frozenset[str] = frozenset()  # what the words command names no record
    means: Callable[[str], bool] = lambda clause: True
    serves: Callable[[str], bool] = lambda said: True
    deletes: bool = False
    invites: bool = False
    by_id: bool = False
    pieces: tuple[Piece, ...] = ()

    @cached_property
    def said(self) -> tuple[str, ...]:
        return tuple(words.normalise(each) for each in self.written)

    @cached_property
    def meant(self) -> list[tuple[list[str], list[str]]]:
        """The words of the clauses that ask for the call, each with the rest of its sentence."""
        sentences = (each for said in self.said for each in ENDS.split(EXCEPT.sub(" ", said)))
        clauses = (_clauses(each) for each in sentences)
        return [(found, rest) for each in clauses for clause, found, rest in each if self.means(clause)]

    @cached_property
    def spared(self) -> frozenset[str]:
        """The words by which they except something."""
        excepted = (each for said in self.said for each in EXCEPT.findall(said))
        return frozenset(word for each in excepted for word in words.tokens(each))

    @cached_property
    def barred(self) -> frozenset[str]:
        """The words beside a no, or an exception, of any form."""
        return frozenset(word for each in self._noes for word in words.tokens(each)) - lexicon.GLUE

    @cached_property
    def _noes(self) -> list[str]:
        return [each for said in self.said for each in BARRED.findall(said)]

    @cached_property
    def unbarred(self) -> frozenset[str]:
        """All others: "the one about lunch", and not "all but the one about lunch"."""
        return frozenset(word for said in self.said for word in words.tokens(BARRED.sub(" ", said)))

    def bars(self, text: Text) -> bool:
        """Whether they say no to the value itself: "and never A17"."""
        said = words_of(text) - lexicon.GLUE
        return bool(said) and said <= self.barred

    @cached_property
    def bars_by_rule(self) -> bool:
        """Whether a rule says whom they except: "all but the newest"."""
        return any(pattern.search(each) for each in self._noes for pattern, *_ in RULES)

    @cached_property
    def answers(self) -> bool:
        """Whether they want whoever wrote to be answered: "reply that I agree", and not "thanks!", nor "tell
        me the answer", "reply to me when done".
        """
        clauses = (each for sentence in self._sentences for each in CLAUSES.split(sentence))
        return any(map(_orders_answer, clauses))

    @cached_property
    def answered(self) -> list[frozenset[str]]:
        """Whom they say to answer: the words of each name, and of whoever has none ("my boss")."""
        clauses = (each for sentence in self._sentences for each in CLAUSES.split(sentence))
        answers = (
            each for each in clauses if lexicon.ANSWERS.intersection(words.tokens(words.normalise(each)))
        )
        found = (given.whom(each) for each in answers)
        return [frozenset(words.tokens(words.normalise(name))) for each in found for name in each]

    @cached_property
    def says_how_much(self) -> bool:
        """Whether they say a sum of money: "pay 500 to …", "20 euros"."""
        return any(SUM.search(words.normalise(each)) for each in self._own)

    @cached_property
    def rules(self) -> list[tuple[str, bool, list[str], bool]]:
        """By what they choose: the attribute, whether the highest is meant, the next words, and whether it
        says to whom something goes.
        """
        return [
            (attribute, highest, _phrase(words.tokens(said[found.end() :])), self._says_to_whom(said, found))
            for said in (BARRED.sub(words.spaces, each) for each in self.said)
            for pattern, attribute, highest in RULES
            if (found := pattern.search(said))
        ]

    @cached_property
    def most_often(self) -> list[bool]:
        """For each time they choose by what is there most often: whether it says to whom something goes."""
        found = ((said, MOST_OFTEN.search(said)) for said in self.said)
        return [self._says_to_whom(said, each) for said, each in found if each]

    def _says_to_whom(self, said: str, rule: re.Match[str]) -> bool:
        """ "Email the newest contact", "find the newest contact and email them"; not "send it to Bob"."""
        before, goes_on = CLAUSES.split(said[: rule.start()])[-1], ENDS.split(said[rule.start() :])[0]
        after, *others = CLAUSES.split(goes_on)
        if self.means(before + after):
            place = len(tokens := words.tokens(before))
            found, rest = tokens + words.tokens(after), words.tokens(" ".join(others))
            return _as_recipients(found, place - (tokens[-1:] == ["the"]), rest, self)
        return any(
            word in lexicon.THEM and _as_recipients(clause, place, rest, self)
            for clause, rest in self.meant
            for place, word in enumerate(clause)
        )

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset().union(*(names_in(words.without_addresses(said)) for said in self.written))

    @cached_property
    def remembered(self) -> Counter[str]:
        """In how many lines of the organization's memories that stand in the prompts each word is."""
        memories = (piece.texts for piece in self.pieces if piece.recalled and not piece.has_lines)
        ours = ([text for text in texts if text.trust == "organization"] for texts in memories)
        return Counter(word for texts in ours for word in frozenset().union(*map(words_of, texts)))

    def gives(self, text: Text, named: Set[str]) -> bool:
        """Whether they say one of these names, or the address itself, as whom to write to, pay or invite."""
        form = forms.canonical(text.raw)
        by_address = any(self.serves(said) for each in self._addresses for said in each.get(form, ()))
        return by_address or self.gives_name(named)

    def gives_name(self, named: Set[str]) -> bool:
        """The same of names alone; of "her", too, where they speak of nobody else."""
        alone = bool(self._people) and self._people.issubset(named)
        return any(map(self._gives, sorted(named))) or (alone and self._gives(""))

    @cached_property
    def _people(self) -> frozenset[str]:
        """The names that stand without an article: "the Budget" is nobody."""
        things = (word for said in self.said for word in THING.findall(said))
        return self.names - frozenset(things)

    def _gives(self, name: str) -> bool:
        """`name`: a pronoun where it is empty."""
        if name not in self._given:
            if len(self._given) >= MOST_NAMES:
                return False
            found = (given.names(each, name) if name else given.pronouns(each) for each in self._own)
            self._given[name] = any(self.serves(said) for each in found for said in each)
        return self._given[name]

    @cached_property
    def _given(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _addresses(self) -> list[Mapping[str, set[str]]]:
        return [given.addresses(each) for each in self._own]

    @cached_property
    def _own(self) -> list[str]:
        """What they say, without what they quote."""
        return [words.without(each, words.quoted(each)) for each in self.written]

    @cached_property
    def _sentences(self) -> list[str]:
        return [each for whole in self._own for each in words.sentences(whole)]

    @cached_property
    def sentences(self) -> list[tuple[str, list[str], frozenset[str]]]:
        """Each sentence, its words, and the names in it."""
        found = (each for whole in self.written for each in words.sentences(whole))
        return [(each, words.tokens(each), names_in(" ".join(words.tokens(each)))) for each in found]


def _orders_answer(clause: str) -> bool:
    """Whether a clause orders that whoever wrote is answered."""
    norm = words.normalise(clause)
    if NEVER.search(norm):
        return False
    if words.UNSPACED.search(norm):
        return bool(ANSWER_CHINESE.search(norm))
    return any(given.commands(words.tokens(norm[: found.start()])) for found in ANSWER.finditer(norm))


def chosen(text: Text, request: Request, somebody: bool = True) -> bool:
    """Whether the person's words choose the record this text stands in: where something goes to `somebody`,
    as whom it goes to.
    """
    piece = text.piece
    common = lexicon.READS | request.verbs | piece.nouns | piece.keyed_words | (text.kind or frozenset())
    own = {word for word in piece.own_words.get(text.record, set()) if not {word, singular(word)} & common}
    if piece.recalled:  # one of all that is remembered; of several addresses in it a word names none
        several = piece.has_lines or _several(text)
        own = set() if several else {word for word in own if request.remembered[word] == 1}
    if own & request.spared:
        return not somebody and not request.deletes and bool(own & request.words)
    said = own & request.words & request.unbarred
    if said and somebody:
        return request.gives(text, said & _called(text)) or chosen_of(text, request, somebody)
    return bool(said) or chosen_of(text, request, somebody)


def _clauses(sentence: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each clause, its words, and those behind it."""
    found = [(clause, words.tokens(clause)) for clause in CLAUSES.split(sentence)]
    for number, (clause, said) in enumerate(found):
        yield clause, said, [word for _, later in found[number + 1 :] for word in later]


def _called(text: Text) -> frozenset[str]:
    """The words by which somebody is called in the record it stands in. What is written freely there calls
    nobody: strangers put names into it. Of a payment to somebody the subject is its sender's.
    """
    piece = text.piece
    paid = bool(piece.nouns & lexicon.RECEIVED) and noun(text.key) in lexicon.PAID
    return piece.once(("called", text.record, paid), lambda: _names_of(piece, text.record, paid))


def _names_of(piece: Piece, record: int, paid: bool) -> frozenset[str]:
    free = lexicon.LONG if paid else lexicon.FREE
    texts = (each for each in piece.texts if each.record == record)
    called = (each for each in texts if noun(each.key) not in free)
    return frozenset().union(*map(words_of, called))


def _several(text: Text) -> bool:
    """Whether two addresses of one kind stand in it."""
    kinds = [forms.kind(form) for form in {form for form, *_ in text.leads}]
    return len(set(kinds)) < len(kinds)


def chosen_of(text: Text, request: Request, somebody: bool) -> bool:
    """Whether all of the kind are meant, or a rule of the person's finds this one."""
    return wants_all(text, request, somebody) or _by_rule(text, request, somebody)


def is_named(text: Text, request: Request) -> bool:
    """Whether the person says the name that is written there: "Zoe", of zoe.king@example.com.

    A word that is no name does not count: anybody may write from budget@example.com.
    """
    named = request.names.intersection(text.words)
    return bool(named) if request.deletes else request.gives_name(named)


def names_in(said: str) -> frozenset[str]:
    """The words of a text that are written as names are, in small letters; those that command are none."""
    words_ = (token for token in words.tokens(said) if token[:1].isupper() and len(token) > 2)
    return frozenset(word.lower() for word in words_) - lexicon.NO_NAMES


def is_meant(text: Text, request: Request, somebody: bool) -> bool:
    """Whether the only one that was found by the person's words is whom they mean: "write to Zoe", and not
    "tell Bob that Zoe is ill".
    """
    if not somebody:
        return True
    named = request.words & (text.piece.keyed_words | _called(text))
    kinds = text.kind or frozenset(map(singular, split(text.key)))
    same = (frozenset(map(singular, each.split())) for said in request.said for each in SAME.findall(said))
    return (
        request.gives(text, named)
        or any(akin(kinds, nouns) for nouns in same)
        or _is_like(text, request)
        or (_may_be_answered(text, request) and is_answered(text, request))
        or chosen_of(text, request, somebody)
    )


def _is_like(text: Text, request: Request) -> bool:
    """Whether what the person wants is to be like the record, and so for the same people."""
    if not lexicon.GUESTS.intersection(map(singular, split(text.key))):
        return False
    title = text.piece.own_words.get(text.record, set()) - lexicon.GLUE
    behind = (
        words.tokens(said[found.end() :])[:FAR] for said in request.said for found in LIKE.finditer(said)
    )
    return any(title.intersection(found) for found in behind)


def is_correspondent(text: Text) -> bool:
    """Whether it says from whom, or to whom, what somebody wrote was sent."""
    last = noun(text.key)
    written = bool(text.piece.nouns & lexicon.WRITTEN) and last in lexicon.SENT_BY
    return written or (bool(text.piece.nouns & lexicon.RECEIVED) and last in lexicon.AUTHOR | {"from"})


def _may_be_answered(text: Text, request: Request) -> bool:
    """Whether it is who wrote, and none of those whom they name beside, or what they wrote where that is
    answered by its id.
    """
    if request.by_id and not is_correspondent(text):
        return bool(text.piece.nouns & lexicon.WRITTEN)
    place = forms.kind(forms.canonical(text.raw)) not in forms.PERSONAL  # "reply there": a channel's name
    return is_correspondent(text) and (place or noun(text.key) in lexicon.AUTHOR)


def is_answered(text: Text, request: Request) -> bool:
    """Whether the person wants an answer to go to whom the only record comes from; who says whom to answer
    means nobody else.
    """
    if not request.answers or not text.piece.only_one(text):
        return False
    return all(not called.isdisjoint(_called(text)) for called in request.answered)


def all_addressed(text: Text, request: Request, somebody: bool) -> bool:
    """The same of who wrote: a rule chooses what they wrote, and them only where they are to be answered or
    wrote most often.
    """
    by_rule = request.answers or request.deletes or bool(request.most_often)
    return wants_all(text, request, somebody) or (by_rule and _by_rule(text, request, somebody))


def wants_all(text: Text, request: Request, somebody: bool) -> bool:
    """Whether every record of the kind is meant ("each user"), in a clause that asks for the call; of people
    none is that a no or an exception speaks of ("all contacts, but not Mallory").
    """
    said = _called(text) if somebody else text.piece.own_words.get(text.record, set())
    if request.bars_by_rule or ((somebody or request.deletes) and said & request.barred):
        return False
    return any(_all_of_kind(text, clause, rest, request, somebody) for clause, rest in request.meant)


def _all_of_kind(text: Text, found: list[str], rest: list[str], request: Request, somebody: bool) -> bool:
    kinds = text.kind or frozenset(map(singular, split(text.key))) or text.piece.nouns
    for place, word in enumerate(found):
        if somebody and lexicon.TELLING.intersection(found[:place]):
            break  # "email Ann what we wrote to all contacts"
        if word in lexicon.EVERY or (word == "other" and found[place - 1 : place] == ["the"]):
            nouns = frozenset(map(singular, _phrase(found[place + 1 :])))
            if somebody and not _as_recipients(found, place - (word == "other"), rest, request):
                continue  # all that is sent is nobody to send it to
            if somebody:
                nouns -= lexicon.ANY_THING | lexicon.LETTERS
            if is_correspondent(text):
                nouns &= lexicon.CORRESPONDENTS
            if (somebody or request.deletes) and not _is_one_of(text, found[place + 1 :]):
                continue
            if nouns & lexicon.ANY_THING or any(akin(kinds, frozenset((each,))) for each in nouns):
                return True
    return False


def _is_one_of(text: Text, found: list[str]) -> bool:
    """Whether it may be one of those whom the words behind "all" restrict: "contacts at firm.example"."""
    behind = list(dropwhile(lambda word: word not in lexicon.RESTRICTS, found[:FAR]))
    which = frozenset(behind) - lexicon.GLUE - lexicon.MAILED
    return not which or bool(which & (_called(text) | text.piece.keyed_words | text.piece.nouns))


def _phrase(found: list[str]) -> list[str]:
    """The next words, up to one that says where to, from or with whom."""
    return list(takewhile(lambda word: word not in lexicon.TOWARDS, found[:3]))


def goes_to_somebody(text: Text, request: Request, argument: str) -> bool:
    """Whether something may go to it by this argument of the call: an address, the name of somebody to write
    to, whatever it is called where it was read, or a line that is remembered of them.
    """
    led = [form for form, *_ in text.leads] if text.piece.recalled else [forms.canonical(text.raw)]
    personal = any(forms.kind(form) in forms.PERSONAL for form in led)
    somebody = (
        request.by_id or personal or says_who(text.key, lexicon.SOMEBODY) or says_who(argument, lexicon.WHOM)
    )
    return somebody and not request.deletes


def says_who(key: str, names: Set[str]) -> bool:
    """Whether a field or an argument says who somebody is: a `user_id` does as a `user` does."""
    called = [*split(key)]
    while called[1:] and called[-1] in lexicon.IDENTIFIER:
        called.pop()
    return bool(called) and singular(called[-1]) in names


def _as_recipients(found: list[str], place: int, rest: list[str], request: Request) -> bool:
    """Whether "all …" says to whom: "to all users", "email all users", and not "send all reports to Bob".
    `rest`: of the sentence, behind the clause.
    """
    before = found[place - 1] if place else ""
    if before in lexicon.TOWARDS:
        return before not in ("with", "for", "from") or not request.verbs & given.SENDS
    goes_on = takewhile(lambda word: word not in lexicon.VERBS, rest)
    verb = not before or before in request.verbs
    return verb and (request.invites or "to" not in [*found[place:], *goes_on])


def told_by(said: str, places: Iterable[str]) -> Iterator[str]:
    """The clauses that say what to do by one of these places: those that name it, those behind them that come
    back to it ("read bill.txt and pay it"), and what it only explains ("pay Ann. Her account is in ann.txt").
    """
    sentences = words.sentences(said)
    for number, sentence in enumerate(sentences):
        parts = CLAUSES.split(sentence)
        naming = [place for place, part in enumerate(parts) if _names_place(part, places)]
        if not naming:
            continue
        yield from (parts[place] for place in naming)
        later = [*parts[naming[0] + 1 :], *sentences[number + 1 : number + 2]]
        yield from (part for part in later if COMES_BACK.search(part) and not ON_ITS_OWN.search(part))
        if number and lexicon.ORDERS.isdisjoint(words.tokens(words.normalise(sentence))):
            yield sentences[number - 1]


def _names_place(said: str, places: Iterable[str]) -> bool:
    norm = words.normalise(said)
    return any(place in norm for place in places)


def passed_on(text: Text, link: str, request: Request) -> bool:
    """Whether a person asks for the one link that somebody they name passed on ("the article Bob posted"), or
    for all of the links in a place they name.
    """
    for sentence, tokens, names in request.sentences:
        small = [token.lower() for token in tokens]
        if _all_links(small) and text.piece.looked_up(sentence):
            return True
        if not lexicon.PASSED_ON.isdisjoint(small) and _only_link_of(text, link, names):
            return True
    return False


def _all_links(found: list[str]) -> bool:
    return any(
        word in lexicon.EVERY and lexicon.LINKS & set(map(singular, found[place + 1 : place + 4]))
        for place, word in enumerate(found)
    )


def _only_link_of(text: Text, link: str, names: frozenset[str]) -> bool:
    """Whether the record is by one of these, and none of them passed on another link."""
    piece = text.piece
    by, links = piece.once(("links of", names), lambda: _links_of(piece, names))
    return text.record in by and links == {words.bare(words.normalise(link))}


def _links_of(piece: Piece, names: frozenset[str]) -> tuple[set[int], set[str]]:
    """The records by people of these names, and the links in them."""
    by = {each.record for each in piece.texts if _by_whom(each) and names & set(each.words)}
    links = {
        words.bare(words.normalise(found))
        for each in piece.texts
        if each.record in by and not _by_whom(each)
        for found, *_ in words.leads(each.raw)
        if "@" not in found
    }
    return by, links


def _by_whom(text: Text) -> bool:
    return noun(text.key) in lexicon.AUTHOR


def _by_rule(text: Text, request: Request, somebody: bool) -> bool:
    if somebody and _called(text) & request.barred:
        return False
    for attribute, highest, after, to_whom in request.rules:
        if attribute in OF_A_KIND and not _of_kind(text, after):
            continue
        if somebody and not to_whom:
            continue  # what is sent is nobody to send it to
        candidates = len(text.piece.records[text.key])
        records = (text, *_same_elsewhere(text, request.pieces))
        if any(_is_best(each, attribute, highest, candidates) for each in records):
            return True
    often = request.most_often if not somebody else [each for each in request.most_often if each]
    return bool(often) and _most_often(text)


def _of_kind(text: Text, after: list[str]) -> bool:
    """Whether the next words name what the record is: "the last order", and not "as last time"."""
    kinds = text.piece.nouns | (text.kind or frozenset())
    return any(akin(kinds, frozenset((singular(word),))) for word in after)


def _same_elsewhere(text: Text, pieces: Iterable[Piece]) -> Iterator[Text]:
    """Records of the same name in other results that nobody from outside had looked up."""
    for piece in pieces:
        if piece is not text.piece and piece.keys in TRUSTED:
            same = piece.once("by name", partial(_by_name, piece)).get(text.norm, ())
            yield from islice(same, MOST_PASSAGES)


def _by_name(piece: Piece) -> dict[str, list[Text]]:
    found: dict[str, list[Text]] = defaultdict(list)
    for each in piece.texts:
        if each.key == "name":
            found[each.norm].append(each)
    return found


def _is_best(text: Text, attribute: str, highest: bool, candidates: int) -> bool:
    """Whether the record alone has the highest (lowest) of an attribute that all candidates have."""
    piece = text.piece
    number, best = piece.once((attribute, highest), lambda: _best(piece, attribute, highest))
    return best == text.record and number >= max(2, candidates)


def _best(piece: Piece, attribute: str, highest: bool) -> tuple[int, int | None]:
    """How many records have the attribute, and the one that alone has the most (least) of it."""
    marks = measures(piece, attribute)
    most = (max if highest else min)(marks.values(), default=None)
    alone = [record for record, value in marks.items() if value == most]
    return len(marks), alone[0] if len(alone) == 1 else None


def measures(piece: Piece, attribute: str) -> dict[int, Decimal]:
    """For each record that says it: how much of an attribute it has."""
    found: dict[int, Decimal] = {}
    for text in piece.texts:
        value = _measure(text, attribute)
        if value is not None:
            found.setdefault(text.record, value)
    return found


def _measure(text: Text, attribute: str) -> Decimal | None:
    """From a field of that name, or from a text that begins with it: "Rating: 4.2"."""
    if set(split(text.key)[-1:]) & lexicon.ATTRIBUTES[attribute]:
        return _moment(text) if attribute == "date" else words.number(words.bare(text.norm))
    labelled = LABELLED.match(text.norm) if not text.key else None
    if labelled and set(words.tokens(labelled["name"])) & lexicon.ATTRIBUTES[attribute]:
        return Decimal(labelled["number"])
    return None


def _moment(text: Text) -> Decimal | None:
    digits = re.sub(r"\D", "", text.norm)[:14]
    return Decimal(digits.ljust(14, "0")) if re.match(r"\d{4}-\d{2}-\d{2}", text.norm) else None


def _most_often(text: Text) -> bool:
    """Whether the value stands in more records than any other under its name."""
    piece, key = text.piece, text.key
    return piece.once(("often", key, len(piece.like)), lambda: _commonest(piece, key)) == text.norm


def _commonest(piece: Piece, key: str) -> str | None:
    counts = Counter(each.norm for each in piece.siblings if each.key == key)
    (most, number), *others = counts.most_common(2) or [("", 0)]
    return most if number > 1 and not any(n == number for _, n in others) else None
