"""Routing by meaning beside words: how near a goal is to what each group says of itself and has done.

Without an embedding model nothing of this is loaded. The vectors come from whoever keeps them
(`register`): groups are the ground floor, and know of no model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol

from groups.scoring import Candidate, Router, Score, best_cut

Vectors = Mapping[str, Sequence[float]]

# Chosen on one half of the public sets, reported on the other (docs/routing.md).
WORDS = 0.5  # what words count beside meaning, each in units of its own usual spread over the groups
NEAREST = 3  # of a group's past goals that are looked at one by one
PROFILE = 2.0  # what a group says of itself weighs as much as two past goals
STRANGE = 0.5  # what a goal wrongly taken counts beside one wrongly refused, for the threshold
FEW = 60  # texts from which on what all of them have in common is taken off each
SAMPLE = 300  # examples the threshold is found from
STEEP = 1.5  # how quickly a score leaves 0.5 on both sides of the threshold


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


def router(candidates: Iterable[Candidate]) -> "Router | FusedRouter":
    """By words and meaning where there are vectors of the groups' texts; otherwise by words alone."""
    candidates = tuple(candidates)
    texts = [text for candidate in candidates for text in texts_of(candidate)]
    vectors = _sources[0].known(texts) if _sources and len(candidates) > 1 else {}
    words = Router(candidates)
    described = all(profile(candidate) in vectors for candidate in candidates)
    alike = len({len(vector) for vector in vectors.values()}) == 1
    if not described or not alike or find_spec("numpy") is None:
        return words
    return FusedRouter(words, candidates, vectors)


def texts_of(candidate: Candidate) -> list[str]:
    """What is embedded of a group."""
    return [profile(candidate), *candidate.examples]


def profile(candidate: Candidate) -> str:
    """What a group says of itself, as one text."""
    parts = (candidate.name, candidate.description, *candidate.capabilities, *candidate.roles)
    return ". ".join(dict.fromkeys(part.replace("_", " ").strip() for part in parts if part.strip()))


class FusedRouter:
    """Words and meaning in one score; by words alone where a goal has no vector."""

    def __init__(self, words: Router, candidates: Sequence[Candidate], vectors: Vectors) -> None:
        import numpy  # comes with requirements-embeddings.txt

        self._np: Any = numpy
        self._words, self._ids = words, [candidate.id for candidate in candidates]
        self._own = [self._matrix([profile(candidate)], vectors) for candidate in candidates]
        self._said = [profile(candidate) for candidate in candidates]
        known = [[text for text in candidate.examples if text in vectors] for candidate in candidates]
        self._texts = known
        self._examples: list[Any] = [self._matrix(texts, vectors) if texts else None for texts in known]
        every = numpy.concatenate([rows for rows in (*self._own, *self._examples) if rows is not None])
        self._mean = every.sum(axis=0) / (len(every) + FEW)
        self._own = [self._unit(rows - self._mean) for rows in self._own]
        self._examples = [None if rows is None else self._unit(rows - self._mean) for rows in self._examples]
        self._sums = [
            PROFILE * own[0] + (0 if rows is None else rows.sum(axis=0))
            for own, rows in zip(self._own, self._examples, strict=True)
        ]
        self._spreads = (1.0, 1.0)
        self._threshold = 0.0
        self._calibrate()

    def score(self, goal: str) -> list[Score]:
        """All candidates, best first; equals in their own order."""
        vector = _sources[0].of_goal(goal) if _sources else None
        if vector is None or len(vector) != len(self._mean):
            return self._words.score(goal)
        by_words = {score.id: score for score in self._words.score(goal)}
        asked = self._unit(self._unit(self._np.asarray([vector], dtype=float)) - self._mean)[0]
        joined = self._joined(self._words.raw(goal), self._near(asked))
        values = self._np.asarray(self._words.kept(goal))
        values = values / (1 + self._np.exp(-STEEP * (joined - self._threshold)))
        order = sorted(range(len(self._ids)), key=lambda i: -values[i])
        return [
            Score(self._ids[i], float(values[i]), bool(values[i] >= 0.5), by_words[self._ids[i]].matched)
            for i in order
        ]

    def _near(self, asked: Any, less: tuple[int, int] | None = None) -> Any:
        """How near a goal is to each group: half its centre, half its nearest goals.

        `less`: a group and which of its examples is left out, being the goal itself.
        """
        found = self._np.zeros(len(self._ids))
        for i, (total, rows) in enumerate(zip(self._sums, self._examples, strict=True)):
            if less is not None and less[0] == i:
                total = total - asked
                rows = self._np.delete(rows, less[1], axis=0) if len(rows) > 1 else None
            centre = asked @ self._unit(total[None])[0]
            if rows is None:
                found[i] = centre
                continue
            nearest = self._np.sort(rows @ asked)[-NEAREST:]
            found[i] = (centre + nearest.mean()) / 2
        return found

    def _joined(self, words: Sequence[float], near: Any) -> Any:
        return WORDS * self._np.asarray(words) / self._spreads[0] + near / self._spreads[1]

    def _calibrate(self) -> None:
        """The usual spreads, and the value that best parts goals of a group from goals of none."""
        np = self._np
        places = [(i, j) for i, texts in enumerate(self._texts) for j in range(len(texts))]
        sample = places[:: len(places) // SAMPLE + 1]
        seen = [
            (i, self._words.raw(self._texts[i][j], without=i), self._near(self._examples[i][j], (i, j)))
            for i, j in sample
        ] or [
            (i, self._words.raw(text), self._near(own[0]))
            for i, (text, own) in enumerate(zip(self._said, self._own, strict=True))
        ]
        spreads = [np.mean([np.std(values[kind]) for values in seen]) or 1.0 for kind in (1, 2)]
        self._spreads = (float(spreads[0]) or 1.0, float(spreads[1]) or 1.0)
        joined = [(i, self._joined(words, near)) for i, words, near in seen]
        strange = [float(np.delete(values, i).max()) for i, values in joined]
        if not sample:  # nobody has said yet what belongs where: what is nearer than groups are to each other
            self._threshold = float(np.mean(strange) - 1.5 * np.std(strange))
            return
        self._threshold = best_cut([float(values.max()) for _, values in joined], strange, STRANGE)

    def _matrix(self, texts: Sequence[str], vectors: Vectors) -> Any:
        return self._unit(self._np.asarray([vectors[text] for text in texts], dtype=float))

    def _unit(self, rows: Any) -> Any:
        return rows / self._np.maximum(self._np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
