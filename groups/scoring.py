"""How well a goal suits each group: words only, no model, no database.

A group is one weighted vector of terms: what it says of itself (name, description, capabilities,
roles) plus each goal that went well in it (Rocchio's method). A goal's score is its cosine with that
vector, and half as much again by how much likelier its words are in the group than anywhere (naive Bayes);
less the more it is like one goal that a person took away from the group. docs/routing.md has what else was
tried.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from common.function_words import is_function_word
from common.text import terms

GOAL_LIMIT = 8_000  # characters of a goal that are read; what is wanted stands at its beginning
FITS = 0.5  # a score from which on a group fits; see Router._threshold

# Chosen on one half of the public sets, reported on the other (docs/routing.md).
_NAME, _DESCRIPTION, _CAPABILITY, _ROLE = 1.0, 1.0, 1.0, 0.5  # what one occurrence counts
_PROFILE = 2.0  # what a group says of itself weighs as much as two past goals
_CORRECTION = 2.0  # how quickly the memory of a goal taken away fades with likeness: likeness to this power
_PIVOT = 0.7  # how fully a long description is scaled down to a short one
_BALANCE = 0.8  # how fully a group with many examples is scaled down to one with few
_PIECE_IN_PROFILE, _PIECE_IN_EXAMPLE = 0.5, 0.3  # four letters of a word, against the word
_PAIR = 0.5  # two words in a row, against one word
_COMMON = 0.3  # a function word where a group describes itself
# What naive Bayes counts beside the cosine, each in units of its own spread over the groups, where examples
# are many. Of groups that only describe themselves it would know too little.
_EVIDENCE = 0.6
_SMOOTHING = 50.0  # words of all groups' language that each group's own are mixed with
# Times log2 of the number of groups: by chance alone the best of many looks better than the best of few.
_USUAL_THRESHOLD = 0.05
_USUAL_WORTH = 20  # examples' worth of trust in that number
_LENIENCE = 0.5  # of the even cut: refusing the right group costs more than trying a wrong one
_CALIBRATION = 300  # examples the threshold is found from
_EXPLAINED = 3  # groups, from the best, whose `matched` is filled
_WORDS_SHOWN = 6

_UNKNOWN_CHARACTER = 0.5
_FIRST_HAN = "\u3400"
_PIECE = "~"  # first letter of the feature for a piece of a word


@dataclass(frozen=True)
class Candidate:
    """A group as routing sees it. Candidates stand in the order in which their groups were made."""

    id: str
    name: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()  # names and descriptions of the members' roles
    examples: tuple[str, ...] = ()  # past goals that went well here
    against: tuple[str, ...] = ()  # goals that a person took from here to another group


@dataclass(frozen=True)
class Score:
    """A group's score for a goal, 0 to 1. `fits`: 0.5 or more.

    `matched`, for the best few: the goal's words that spoke for the group, the strongest first, and for
    the best one in quotation marks its past goal that is most like this one.
    """

    id: str
    score: float
    fits: bool
    matched: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weighed:
    """What a goal's words say, in the order of the candidates.

    `raw`: how well they suit each, as `Router.raw`; `kept`: what that is multiplied by, as `Router.kept`;
    `matched`: for the best few, as in `Score`.
    """

    raw: list[float]
    kept: list[float]
    matched: dict[int, tuple[str, ...]]

    @property
    def values(self) -> list[float]:
        return [value * share for value, share in zip(self.raw, self.kept, strict=True)]


_GOALS_KEPT = 200  # a run's goal is asked about at each of its steps

Bag = dict[str, float]  # features and how often they occur
Vector = dict[str, float]  # the same, weighed


class Router:
    """Scores goals against `candidates`. Built once, asked often; build it anew when a group changes."""

    def __init__(self, candidates: Iterable[Candidate]):
        self.candidates = tuple(candidates)
        profiles = [_profile(candidate) for candidate in self.candidates]
        examples = [[_features(text) for text in candidate.examples] for candidate in self.candidates]
        self._weigh_terms(profiles, examples)
        self._profiles = [self._weighted(bag, _PIECE_IN_PROFILE, _COMMON) for bag in profiles]
        self._examples = [[_unit(self._example(bag)) for bag in bags] for bags in examples]
        self._index()
        self._count(profiles, examples)
        self._lately: dict[str, Weighed] = {}

    def score(self, goal: str) -> list[Score]:
        """All candidates, best first; equals in their own order, so that no match at all gives the first."""
        found = self.weighed(goal)
        values = found.values
        order = sorted(range(len(values)), key=lambda i: -values[i])
        return [self._score(i, values[i], found.matched.get(i, ())) for i in order]

    def weighed(self, goal: str) -> "Weighed":
        """What the goal's words say of each candidate, before it is decided what fits."""
        if goal not in self._lately:
            if len(self._lately) >= _GOALS_KEPT:
                self._lately.clear()
            self._lately[goal] = self._weigh(goal)
        return self._lately[goal]

    def _weigh(self, goal: str) -> "Weighed":
        found = Weighed(self.raw(goal), self.kept(goal), {})
        values = found.values
        order = sorted(range(len(values)), key=lambda i: -values[i])
        asked = self._weighted(_features(goal))
        words = _surface(goal) if order and values[order[0]] > 0 else {}
        for rank, i in enumerate(order[:_EXPLAINED]):
            found.matched[i] = self._matched(i, asked, words, rank == 0)
        return found

    @cached_property
    def _threshold(self) -> float:
        """Found when somebody first asks what fits; where meaning decides that, nobody does."""
        return self._calibrated()

    def raw(self, goal: str, without: int | None = None) -> list[float]:
        """How well each candidate's words suit the goal: 0 and more, only to be compared with each other.

        `without`: the candidate of which the goal is an example, as if it were not.
        """
        bag = _features(goal)
        asked = self._weighted(bag)
        raw = self._raw(asked)
        if without is None:
            return _joined(raw, self._evidence(bag), self._worth)
        itself = _unit(self._example(bag))
        given = sum(weight * itself.get(term, 0.0) for term, weight in asked.items())
        raw[without] = max(raw[without] - given / self._scales[without] / self._asked_length(asked), 0.0)
        return _joined(raw, self._evidence(bag, (without, bag)), self._worth)

    def _score(self, i: int, raw: float, matched: tuple[str, ...]) -> Score:
        """The cosine, bent so that the threshold lies at 0.5 whatever the groups."""
        value = raw / (raw + self._threshold) if raw > 0 else 0.0
        return Score(self.candidates[i].id, value, value >= FITS, matched)

    def _weigh_terms(self, profiles: list[Bag], examples: list[list[Bag]]) -> None:
        """A term's weight: rare among the groups, and rare among their texts (geometric mean)."""
        groups: Counter[str] = Counter()
        texts: Counter[str] = Counter()
        for profile, bags in zip(profiles, examples, strict=True):
            groups.update(set(profile).union(*bags))
            for bag in (profile, *bags):
                texts.update(bag.keys())
        total = len(profiles) + sum(map(len, examples))

        def weight(among_groups: int, among_texts: int) -> float:
            return math.sqrt(_rarity(among_groups, len(profiles)) * _rarity(among_texts, total))

        self._weights = {term: weight(count, texts[term]) for term, count in groups.items()}
        self._unknown = weight(0, 0)

    def _weighted(self, bag: Bag, piece: float = 1.0, common: float = 1.0) -> Vector:
        """A bag as weights. Terms no group has keep the greatest weight: they speak against all of them."""
        weights, unknown = self._weights, self._unknown
        return {
            term: _damped(count) * weights.get(term, unknown) * _share(term, piece, common)
            for term, count in bag.items()
        }

    def _example(self, bag: Bag) -> Vector:
        return self._weighted(bag, _PIECE_IN_EXAMPLE)

    def _index(self) -> None:
        """The groups' vectors, turned round: for each term who has it, and how much."""
        lengths = [_length(profile) for profile in self._profiles]
        usual = sum(lengths) / len(lengths) if lengths else 1.0
        vectors, sizes = [], []
        for profile, length, examples in zip(self._profiles, lengths, self._examples, strict=True):
            # The pivot may favour a long description in scoring, not in how examples are balanced.
            sizes.append(_length(_sum([(profile, _PROFILE / length), *((v, 1.0) for v in examples)])))
            pivot = _PROFILE / (length**_PIVOT * usual ** (1 - _PIVOT))
            vectors.append(_sum([(profile, pivot), *((v, 1.0) for v in examples)]))
        usual = sum(sizes) / len(sizes) if sizes else 1.0
        self._scales = [size**_BALANCE * usual ** (1 - _BALANCE) for size in sizes]
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for i, vector in enumerate(vectors):
            for term, weight in vector.items():
                self._postings[term].append((i, weight / self._scales[i]))
        self._corrections: dict[str, list[tuple[tuple[int, int], float]]] = defaultdict(list)
        for i, candidate in enumerate(self.candidates):
            for j, text in enumerate(candidate.against):
                for term, weight in _unit(self._weighted(_features(text))).items():
                    self._corrections[term].append(((i, j), weight))

    def _count(self, profiles: list[Bag], examples: list[list[Bag]]) -> None:
        """How often each group says each term, and all of them together: for naive Bayes."""
        self._said: list[Vector] = [
            _sum([(_counted(profile), _PROFILE), *((_counted(bag), 1.0) for bag in bags)])
            for profile, bags in zip(profiles, examples, strict=True)
        ]
        self._sizes = [sum(said.values()) for said in self._said]
        everything = _sum([(said, 1.0) for said in self._said])
        total = sum(everything.values()) or 1.0
        learnt = sum(map(len, examples))
        self._worth = _EVIDENCE * learnt / (learnt + len(profiles)) if learnt else 0.0
        self._usual = {term: count / total for term, count in everything.items()}
        self._likelier: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for i, said in enumerate(self._said):
            for term, count in said.items():
                self._likelier[term].append((i, math.log1p(count / (_SMOOTHING * self._usual[term]))))

    def _evidence(self, bag: Bag, less: tuple[int, Bag] | None = None) -> list[float]:
        """For each group the logarithm of how much likelier it says this than all groups together do.

        `less`: a group and what one of its examples says, as if it were not among them.
        """
        known = {term: count for term, count in _counted(bag).items() if term in self._usual}
        total = sum(known.values())
        found = [total * -math.log1p(size / _SMOOTHING) for size in self._sizes]
        for term, count in known.items():
            for i, log in self._likelier[term]:
                found[i] += count * log
        if less is not None:
            i, given = less[0], _counted(less[1])
            size = self._sizes[i] - sum(given.values())
            found[i] = total * -math.log1p(max(size, 0.0) / _SMOOTHING)
            for term, count in known.items():
                said = max(self._said[i].get(term, 0.0) - given.get(term, 0.0), 0.0)
                found[i] += count * math.log1p(said / (_SMOOTHING * self._usual[term]))
        return found

    def _raw(self, asked: Vector) -> list[float]:
        totals = [0.0] * len(self.candidates)
        for term, weight in asked.items():
            for i, other in self._postings.get(term, ()):
                totals[i] += weight * other
        length = self._asked_length(asked)
        return [total / length for total in totals]

    def kept(self, goal: str) -> list[float]:
        """What each candidate's score for the goal is multiplied by, for what people took away from it.

        Each correction speaks alone, to goals like it: summed into the group's vector they drown what the
        group is for (measured: docs/routing.md). The very goal again scores nothing.
        """
        kept = [1.0] * len(self.candidates)
        if not self._corrections:
            return kept
        asked = self._weighted(_features(goal))
        likeness: dict[tuple[int, int], float] = defaultdict(float)
        for term, weight in _unit(asked).items():
            for correction, other in self._corrections.get(term, ()):
                likeness[correction] += weight * other
        for (i, _), like in likeness.items():
            kept[i] = min(kept[i], max(0.0, 1 - like**_CORRECTION))
        return [share if share > 1e-9 else 0.0 for share in kept]

    def _asked_length(self, asked: Vector) -> float:
        """How much the goal says, in words: unknown ones count in full, function words little.

        Most pairs of Chinese characters are no words, so that an unknown pair says nothing, and an unknown
        character is half a word.
        """
        total = 0.0
        for term, weight in asked.items():
            if term[0] == _PIECE or " " in term:
                continue
            if term not in self._weights and term[0] >= _FIRST_HAN:
                if len(term) == 2:
                    continue
                weight *= _UNKNOWN_CHARACTER
            total += (weight * _share(term, 1.0, _COMMON)) ** 2
        return math.sqrt(total) or 1.0

    def _calibrated(self) -> float:
        """Just below the raw score that best parts goals that belong to a group from goals of no group.

        Each example (of a sample) is asked twice as if it were new: once with its own group, less what it
        gave the group itself, and once as if that group did not exist.
        """
        belongs, strange = [], []
        for i, text in self._sample():
            raw = self.raw(text, without=i)
            belongs.append(max(raw))
            del raw[i]
            strange.append(max(raw))
        usual = _USUAL_THRESHOLD * math.log2(len(self.candidates) + 1)
        found = best_cut(belongs, strange)
        even = (found * len(belongs) + usual * _USUAL_WORTH) / (len(belongs) + _USUAL_WORTH)
        return even * _LENIENCE

    def _sample(self) -> list[tuple[int, str]]:
        if len(self.candidates) < 2:
            return []
        pairs = [(i, text) for i, candidate in enumerate(self.candidates) for text in candidate.examples]
        return pairs[:: len(pairs) // _CALIBRATION + 1]

    def _matched(self, i: int, asked: Vector, words: dict[str, str], best: bool) -> tuple[str, ...]:
        spoke = [
            (weight * other, term)
            for term, weight in asked.items()
            if term in words
            for j, other in self._postings.get(term, ())
            if j == i and other > 0
        ]
        shown = list(dict.fromkeys(words[term] for _, term in sorted(spoke, key=lambda pair: -pair[0])))
        shown = [word for word in shown if not any(word != other and word in other for other in shown)]
        return (*shown[:_WORDS_SHOWN], *(self._nearest(i, asked) if best else ()))

    def _nearest(self, i: int, asked: Vector) -> list[str]:
        likeness = [sum(asked.get(term, 0.0) * x for term, x in v.items()) for v in self._examples[i]]
        if not likeness or max(likeness) <= 0:
            return []
        return [f"“{self.candidates[i].examples[likeness.index(max(likeness))]}”"]


def _profile(candidate: Candidate) -> Bag:
    bag: Bag = defaultdict(float)
    fields: list[tuple[tuple[str, ...], float]] = [
        ((candidate.name,), _NAME),
        ((candidate.description,), _DESCRIPTION),
        (candidate.capabilities, _CAPABILITY),
        (candidate.roles, _ROLE),
    ]
    for texts, worth in fields:
        for text in texts:
            for feature, count in _features(text).items():
                bag[feature] += count * worth
    return bag


def _features(text: str) -> Bag:
    """Terms, pairs of neighbouring words, and pieces of words (four letters): `recommendation` meets
    `recommended` where the stems do not."""
    found = terms(text[:GOAL_LIMIT])
    bag: Bag = defaultdict(float, Counter(found))
    for one, other in pairwise(found):
        bag[f"{one} {other}"] += _PAIR
    for term in found:
        if term.isascii() and len(term) > 1:
            edged = f"<{term}>"
            for i in range(len(edged) - 3):
                bag[_PIECE + edged[i : i + 4]] += 1
    return bag


def _surface(goal: str) -> dict[str, str]:
    """For each term of the goal the word as it was written."""
    found: dict[str, str] = {}
    for word in goal[:GOAL_LIMIT].split():
        bare = word.strip(".,;:!?\"'()[]{}<>“”‘’。，；：！？（）《》「」、")
        for term in terms(bare):
            found.setdefault(term, bare if bare.isascii() else term)
    return {term: word for term, word in found.items() if not is_function_word(term)}


def _share(term: str, piece: float, common: float) -> float:
    if term[0] == _PIECE:
        return piece
    return common if common != 1.0 and is_function_word(term) else 1.0


def _counted(bag: Bag) -> Bag:
    return {term: _damped(count) * _share(term, _PIECE_IN_EXAMPLE, 1.0) for term, count in bag.items()}


def _joined(raw: list[float], evidence: list[float], worth: float) -> list[float]:
    """The cosines, each moved by how far the group's evidence is from the mean, in units of its spread."""
    spread, other = _spread(raw), _spread(evidence)
    if not spread or not other or not worth:
        return raw
    mean, unit = sum(evidence) / len(evidence), worth * spread / other
    return [max(x + unit * (e - mean), 0.0) if x > 0 else 0.0 for x, e in zip(raw, evidence, strict=True)]


def _spread(values: list[float]) -> float:
    """The standard deviation; 0 of none."""
    if not values:
        return 0.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((x - mean) ** 2 for x in values) / len(values))


def _rarity(count: int, total: int) -> float:
    return math.log(1 + (total + 1.5 - count) / (count + 0.5))


def _damped(count: float) -> float:
    return 1 + math.log(count) if count > 1 else count


def _length(vector: Vector) -> float:
    return math.sqrt(sum(x * x for x in vector.values())) or 1.0


def _unit(vector: Vector) -> Vector:
    length = _length(vector)
    return {term: x / length for term, x in vector.items()}


def _sum(parts: Sequence[tuple[Vector, float]]) -> Vector:
    total: dict[str, float] = defaultdict(float)
    for vector, factor in parts:
        for term, x in vector.items():
            total[term] += x * factor
    return total


def best_cut(belongs: list[float], strange: list[float], worth: float = 1.0) -> float:
    """The cut with the most of `belongs` at or above it and of `strange` below; 0 for empty lists.

    `worth`: what one of `strange` counts beside one of `belongs`.
    """
    steps = sorted([(x, -1.0) for x in belongs] + [(x, worth) for x in strange])
    best, at, gain, below = 0.0, 0.0, 0.0, steps[0][0] if steps else 0.0
    for x, kind in steps:
        if gain > best and x > below:
            best, at = gain, (below + x) / 2
        gain += kind
        below = x
    return at
