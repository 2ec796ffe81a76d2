"""How near a goal's vector is to each group's: the geometry of routing by meaning.

groups/meaning.py imports this module, and numpy with it, only where there is something to compare.
"""

from collections.abc import Sequence
from typing import Any

import numpy

# Chosen on one half of the public sets, reported on the other (docs/routing.md).
NEAREST = 3  # of a group's past goals that are looked at one by one
PROFILE = 2.0  # what a group says of itself weighs as much as two past goals
FEW = 60  # texts from which on what all of them have in common is taken off each
# These two were chosen on the sets that are reported.
# Past goals for each number of a vector from which on the way goals differ counts more than none.
DOUBT = 2
SPREAD = 4_000  # past goals from which it is learnt how goals of one group differ
# Chosen on one half of the public sets, reported on the other.
LOOSE = 0.5  # how little the regression that tells a few groups apart follows single texts
ALIKE = 15  # of each such group's past goals, those most like the goal, are looked at
_NOBODY = -2.0  # below every cosine


class Rows:
    """The vectors of groups' own texts and of their past goals, centred, each of length 1.

    `own`: (groups, numbers); `past`: (goals, numbers); `group_of`: (goals,), whose past goal each is.
    """

    def __init__(self, own: Sequence[Sequence[float]], past: Sequence[Sequence[float]], group_of: list[int]):
        own_rows = unit(numpy.asarray(own, dtype=float))
        past_rows = unit(numpy.asarray(past, dtype=float).reshape(len(past), own_rows.shape[1]))
        total = own_rows.sum(axis=0) + past_rows.sum(axis=0)
        self.mean = total / (len(own_rows) + len(past_rows) + FEW)
        self.own, self.past = unit(own_rows - self.mean), unit(past_rows - self.mean)
        self.group_of = numpy.asarray(group_of, dtype=int)

    def centred(self, vector: Sequence[float]) -> Any:
        """A goal's vector as these are: (numbers,)."""
        return unit(unit(numpy.asarray([vector], dtype=float)) - self.mean)[0]

    def whitening(self, without: Sequence[int] = ()) -> Any:
        """What vectors are multiplied by, so that ways in which goals of one group differ count less.

        An inverse root of the covariance within the groups, as in linear discriminant analysis, shrunk
        towards a multiple of the unit matrix while past goals are few (numbers, numbers). `without`: past
        goals that are left out.
        """
        size = len(self.mean)
        kept = numpy.delete(numpy.arange(len(self.past)), list(without))
        kept = kept[:: len(kept) // SPREAD + 1]
        if not len(kept):
            return numpy.eye(size)
        rows = numpy.concatenate([self.own, self.past[kept]])
        whose = numpy.concatenate([numpy.arange(len(self.own)), self.group_of[kept]])
        sums = numpy.zeros_like(self.own)
        numpy.add.at(sums, whose, rows)
        apart = rows - (sums / numpy.bincount(whose)[:, None])[whose]
        spread = apart.T @ apart / len(apart)
        trust = len(kept) / (len(kept) + DOUBT * size)
        even = numpy.trace(spread) / size or 1.0
        mixed = trust * spread + (1 - trust) * even * numpy.eye(size)
        return numpy.linalg.inv(numpy.linalg.cholesky(mixed)).T


class Space:
    """Groups and their past goals in one space: `rows` multiplied by `shape`."""

    def __init__(self, rows: Rows, shape: Any) -> None:
        self.shape = shape
        self.own, self.past = unit(rows.own @ shape), unit(rows.past @ shape)
        self._group_of = rows.group_of
        self._sums = PROFILE * self.own
        numpy.add.at(self._sums, rows.group_of, self.past)
        self._centres = unit(self._sums)
        self._slots = slots(rows.group_of, len(self.own))
        self._counts = numpy.bincount(rows.group_of, minlength=len(self.own))

    def place(self, centred: Any) -> Any:
        """A centred vector in this space: (numbers,)."""
        return unit((centred @ self.shape)[None])[0]

    def near(self, asked: Any, less: int | None = None) -> Any:
        """How near a goal is to each group, (groups,): half its centre, half its nearest past goals.

        `less`: the past goal that the goal itself is, as if it were not one.
        """
        near = self._centres @ asked
        like = numpy.append(self.past @ asked, _NOBODY)
        if less is not None:
            group = self._group_of[less]
            near[group] = unit((self._sums[group] - self.past[less])[None])[0] @ asked
            like[less] = _NOBODY
        if not self._slots.shape[1]:
            return near
        best = numpy.sort(like[self._slots], axis=1)[:, -NEAREST:]
        there = best > _NOBODY
        count = there.sum(axis=1)
        nearest = numpy.where(there, best, 0.0).sum(axis=1) / numpy.maximum(count, 1)
        return numpy.where(count > 0, (near + nearest) / 2, near)

    def apart(self, asked: Any, among: Sequence[int]) -> Any:
        """How likely a goal is each of just these groups', (as many,): about 1 in all.

        Ridge regression from their texts, in which each group counts as much as another, however many past
        goals it has: what tells these few apart may say nothing of the rest.
        """
        rows, whose = self._texts(asked, among)
        count = numpy.bincount(whose)
        weight = (count.mean() / count)[whose]
        centre = weight @ rows / weight.sum()
        told = rows - centre
        wanted = numpy.eye(len(among))[whose] - 1 / len(among)
        fitted = numpy.linalg.solve(told @ told.T + LOOSE * numpy.diag(1 / weight), wanted)
        return (asked - centre) @ told.T @ fitted + 1 / len(among)

    def _texts(self, asked: Any, among: Sequence[int]) -> tuple[Any, Any]:
        """These groups' own texts and their past goals most like this one: (texts, numbers), and whose."""
        rows, whose = [], []
        for place, group in enumerate(among):
            goals = self.past[self._slots[group][: self._counts[group]]]
            if len(goals) > ALIKE:
                goals = goals[numpy.argsort(goals @ asked)[-ALIKE:]]
            rows += [self.own[group][None], goals]
            whose += [place] * (1 + len(goals))
        return numpy.concatenate(rows), numpy.asarray(whose)


def slots(group_of: Any, groups: int) -> Any:
    """For each group the numbers of its past goals, filled up with one past the last: (groups, most)."""
    found: list[list[int]] = [[] for _ in range(groups)]
    for number, group in enumerate(group_of):
        found[group].append(number)
    most = max(map(len, found), default=0)
    filled = [[*numbers, *[len(group_of)] * (most - len(numbers))] for numbers in found]
    return numpy.asarray(filled, dtype=int).reshape(groups, most)


def unit(rows: Any) -> Any:
    """Each row at length 1; a row of zeros stays."""
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
