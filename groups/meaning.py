"""Routing by meaning beside words: how near a goal is to what each group says of itself and has done.

A model's vectors come from whoever keeps them (`register`): groups are the ground floor, and know of no
model. Where no model embeds and groups have examples, vectors of words do instead (groups/word_vectors.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from groups.scoring import Candidate, Router, Score, best_cut

Vectors = Mapping[str, Sequence[float]]

# Chosen on one half of the public sets, reported on the other (docs/routing.md), but for PARTS and REFUSED,
# which were chosen on the sets that are reported.
WORDS = 0.5  # what words count beside meaning, each in units of its own usual spread over the groups
LEARNT_WORDS = 0.35  # the same where past goals say what belongs where
BARE = 1.4  # the same beside the sum of the words' vectors
CLOSE = 3  # groups, from the best, that are told apart by what their own past goals say
TOLD = 2.0  # what that counts for each certainty, in the same units
STRANGE = 0.5  # what a goal wrongly taken counts beside one wrongly refused, for the threshold
SAMPLE = 300  # examples the threshold is found from
PARTS = 4  # of the sample, each asked in a space that was made without it
# Of past goals at most so many lie below the threshold: trying a wrong group costs less than refusing.
REFUSED = 0.04
# Where there are no past goals: of what groups have in common with each other, which say more than goals do.
COMMON = 0.25
STEEP = 1.5  # how quickly a score leaves 0.5 on both sides of the threshold
# Past goals from which on the words' vectors count, and at least one a group: what groups only say of
# themselves is told apart better by words alone.
LEARNT = 20
NO_WORSE = 0.95  # of the past goals that words alone route rightly, the words' vectors must leave so many


class Source(Protocol):
    """Where vectors come from."""

    def known(self, texts: Sequence[str]) -> Vectors:
        """Those that are kept of these texts; waits for no model."""

    def of_goal(self, goal: str) -> Sequence[float] | None:
        """A goal's; waits for no model inside a transaction."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Of all these texts, made now, however long it takes: for measurements."""


_sources: list[Source] = []


def register(source: Source) -> None:
    """Vectors come from here from now on."""
    _sources[:] = [source]


@contextmanager
def embedding_now(texts: Sequence[str]) -> Iterator[None]:
    """Route by vectors of just these texts, made now: for measurements, without a database."""
    before = list(_sources)
    vectors = before[0].embed(texts) if before else {}
    register(_Made(vectors))
    try:
        yield
    finally:
        _sources[:] = before


class _Made:
    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    def known(self, texts: Sequence[str]) -> Vectors:
        return {text: self._vectors[text] for text in texts if text in self._vectors}

    def of_goal(self, goal: str) -> Sequence[float] | None:
        return self._vectors.get(goal)

    embed = known


@dataclass(frozen=True)
class Basis:
    """What is known of meaning: vectors of the groups' texts, and who knows a goal's.

    `by_model`: whether a model made the vectors; else they are the words' own.
    """

    vectors: Vectors
    of_goal: Callable[[str], Sequence[float] | None]
    by_model: bool = True


def router(
    candidates: Iterable[Candidate], before: "Router | FusedRouter | None" = None
) -> "Router | FusedRouter":
    """By words and meaning where vectors of the groups' texts are known; otherwise by words alone.

    `before` is given back where it was made of the same.
    """
    candidates = tuple(candidates)
    basis = _by_model(candidates)
    if before is not None and _same(before, candidates, basis):
        return before
    basis = basis or _by_words(candidates)
    return Router(candidates) if basis is None else FusedRouter(Router(candidates), candidates, basis)


def _same(before: "Router | FusedRouter", candidates: Sequence[Candidate], model: Basis | None) -> bool:
    """Whether `before` was made of these candidates and of the same vectors by a model, or of none."""
    then = before.embedded if isinstance(before, FusedRouter) else None
    now = None if model is None else frozenset(model.vectors)
    return before.candidates == candidates and then == now


def _by_model(candidates: Sequence[Candidate]) -> Basis | None:
    texts = [text for candidate in candidates for text in texts_of(candidate)]
    vectors = _sources[0].known(texts) if _sources and len(candidates) > 1 else {}
    return Basis(vectors, _sources[0].of_goal) if _tells(candidates, vectors) else None


def _by_words(candidates: Sequence[Candidate]) -> Basis | None:
    """From the words' own vectors, where enough past goals have them."""
    needed = max(LEARNT, len(candidates))
    if len(candidates) < 2 or sum(len(candidate.examples) for candidate in candidates) < needed:
        return None
    from groups.word_vectors import vector

    made = {text: vector(text) for candidate in candidates for text in candidate.examples}
    if sum(each is not None for each in made.values()) < needed:
        return None
    # Names are often no words: what a group says of itself needs only one that is known.
    made |= {said: vector(said, least=0.0) for said in map(profile, candidates)}
    vectors = {text: each for text, each in made.items() if each is not None}
    return Basis(vectors, vector, by_model=False) if _tells(candidates, vectors) else None


def _tells(candidates: Sequence[Candidate], vectors: Vectors) -> bool:
    """Whether these vectors know each group's own text, and are of one model."""
    described = all(profile(candidate) in vectors for candidate in candidates)
    return described and len({len(vector) for vector in vectors.values()}) == 1


def texts_of(candidate: Candidate) -> list[str]:
    """What is embedded of a group."""
    return [profile(candidate), *candidate.examples]


def profile(candidate: Candidate) -> str:
    """What a group says of itself, as one text."""
    parts = (candidate.name, candidate.description, *candidate.capabilities, *candidate.roles)
    return ". ".join(dict.fromkeys(part.replace("_", " ").strip() for part in parts if part.strip()))


class FusedRouter:
    """Words and meaning in one score; by words alone where a goal has no vector."""

    def __init__(self, words: Router, candidates: Sequence[Candidate], basis: Basis) -> None:
        import numpy  # loaded where something is compared

        from groups.nearness import Rows, Space

        self._np: Any = numpy
        self._make: Any = Space
        self._words, self._ids = words, [candidate.id for candidate in candidates]
        self._of_goal, vectors = basis.of_goal, basis.vectors
        self.candidates = tuple(candidates)
        # The texts of which a model's vector is known; None where the vectors are the words'.
        self.embedded = frozenset(vectors) if basis.by_model else None
        self._said = [profile(candidate) for candidate in candidates]
        self._past = [
            (i, text)
            for i, candidate in enumerate(candidates)
            for text in candidate.examples
            if text in vectors
        ]
        self._share = (LEARNT_WORDS if self._past else WORDS) if basis.by_model else BARE
        own = [vectors[text] for text in self._said]
        self._rows: Any = Rows(own, [vectors[text] for _, text in self._past], [i for i, _ in self._past])
        self._space: Any = Space(self._rows, self._rows.whitening())
        self._spreads = (1.0, 1.0)
        self._threshold, self._helps = 0.0, True
        self._calibrate()

    def score(self, goal: str) -> list[Score]:
        """All candidates, best first; equals in their own order."""
        vector = self._of_goal(goal)
        if not self._helps or vector is None or len(vector) != len(self._rows.mean):
            return self._words.score(goal)
        said = self._words.weighed(goal)
        asked = self._space.place(self._rows.centred(vector))
        joined = self._told_apart(asked, self._joined(said.raw, self._space.near(asked)))
        likely = self._np.asarray(said.kept) / (1 + self._np.exp(-STEEP * (joined - self._threshold)))
        values = likely.tolist()
        order = sorted(range(len(values)), key=lambda i: -values[i])
        return [Score(self._ids[i], values[i], values[i] >= 0.5, said.matched.get(i, ())) for i in order]

    def _joined(self, words: Sequence[float], near: Any) -> Any:
        return self._share * self._np.asarray(words) / self._spreads[0] + near / self._spreads[1]

    def _told_apart(self, asked: Any, joined: Any) -> Any:
        """The values, those of the few best handed out anew in the order in which these are told apart.

        So whether the best fits is decided as before. Words' vectors tell nothing more this way (measured).
        """
        best = self._np.argsort(-joined, kind="stable")[:CLOSE]
        if self.embedded is None or not self._past or len(best) < 2:
            return joined
        order = self._np.argsort(-joined[best] - TOLD * self._space.apart(asked, best), kind="stable")
        joined[best[order]] = joined[best]
        return joined

    def _calibrate(self) -> None:
        """The usual spreads, and the value that best parts goals of a group from goals of none."""
        np = self._np
        seen = list(self._past_asked_again()) or [
            (i, self._words.raw(text), self._space.near(own))
            for i, (text, own) in enumerate(zip(self._said, self._space.own, strict=True))
        ]
        spreads = [np.mean([np.std(values[kind]) for values in seen]) for kind in (1, 2)]
        self._spreads = (float(spreads[0]) or 1.0, float(spreads[1]) or 1.0)
        joined = [(i, self._joined(words, near)) for i, words, near in seen]
        strange = [float(np.delete(values, i).max()) for i, values in joined]
        if not self._past:  # nobody has said yet what belongs where: what is nearer than groups to each other
            self._threshold = COMMON * float(np.mean(strange))
            return
        if self.embedded is None:  # a language of which the words' vectors know little
            alone = sum(int(np.argmax(words)) == i for i, words, _ in seen)
            self._helps = sum(int(values.argmax()) == i for i, values in joined) >= NO_WORSE * alone
        belongs = [float(values.max()) for _, values in joined]
        self._threshold = min(best_cut(belongs, strange, STRANGE), float(np.quantile(belongs, REFUSED)))

    def _past_asked_again(self) -> Iterator[tuple[int, Sequence[float], Any]]:
        """Of a sample of past goals: whose each is, its words' scores and its nearness, as if it were new.

        The space must not know it either: each part of the sample is asked in a space made without it.
        """
        sample = range(0, len(self._past), len(self._past) // SAMPLE + 1)
        for part in (sample[first::PARTS] for first in range(PARTS)):
            if not part:
                continue
            space = self._make(self._rows, self._rows.whitening(without=part))
            for number in part:
                i, text = self._past[number]
                yield i, self._words.raw(text, without=i), space.near(space.past[number], number)
