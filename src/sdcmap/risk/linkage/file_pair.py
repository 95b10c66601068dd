"""Two files side by side: the snooper's records and the released ones, the links between them, and which are true.

Files are laid out in an order that depends on their values alone, so no result depends on the order of rows, and ties
never lean to the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sdcmap.core import Array, Microdata, Undefined
from sdcmap.data.cells import common_codes
from sdcmap.risk.linkage.assignment import TIE_BITS, dense, one_to_one, round_to_tie
from sdcmap.risk.linkage.link_search import Links, block_links, distance_scores, nearest_links

# How sure a link is: the share of true links among links of such a score, and among all links above it.


def calibrated(score: Array, success: Array) -> Array:
    """P(success | score), rising in the score: the least-squares fit of pool-adjacent-violators; equal scores count as one.

    Its mean is the mean of `success`. Barlow et al. (1972); Zadrozny and Elkan (2002).
    """
    from scipy.optimize import isotonic_regression

    level, place, count = np.unique(score, return_inverse=True, return_counts=True)
    mean = np.bincount(place, success, minlength=len(level)) / count
    return isotonic_regression(mean, weights=count).x[place] if len(level) else mean


def running_precision(score: Array, success: Array) -> tuple[Array, Array]:
    """The order of the links, best score first, and the share of successes down to each; equal scores share a number."""
    order = np.argsort(-score, kind="stable")
    ranked = -score[order]
    last = np.searchsorted(ranked, ranked, side="right")  # how many stand at or above each score
    return order, np.cumsum(success[order])[last - 1] / last if len(order) else ranked


Learned = TypeVar("Learned")

DENSE_PAIRS = 25_000_000  # up to so many pairs every score is held at once
KEEP = 50  # beyond: so many candidates of each known record
CANDIDATES = 2_000_000  # in all, up to which more are added where the optimum needs them
BLOCK = 1 << 16  # scores computed at once: they stay in the cache
SIZE_RATIO = 100  # files that differ more in size have no one-to-one links worth the name
ZONE = 0.2  # links are believed down to where so large a share of them is true
ROUNDING = 1e-12  # of a share
GOLDEN = 0.6180339887498949  # its multiples scatter places evenly


class LinkTable(NamedTuple):
    """One line for each released record: the link that the snooper makes, and what it is worth."""

    partner: Array  # row of the snooper's file; -1: none
    weight: Array  # score of the link, higher is likelier; NaN: none
    margin: Array  # by how much it beats the next best candidate; NaN: none
    found: Array  # 1 where the link is the true one, 0 where not; between where records tie: the share expected
    probability: Array  # calibrated: the share of true links among links of such a margin
    facts: Mapping[str, float] = {}

    @property
    def rate(self) -> float:
        """The share of true links; its sum is exact, so no order of rows makes one attack better than its equal."""
        return math.fsum(self.found) / len(self.found)

    def ranked(self) -> tuple[Array, Array]:
        """The link file: linked rows, the best weight first, and the share of true links down to each."""
        linked = np.flatnonzero(self.partner >= 0)
        order, precision = running_precision(self.weight[linked], self.found[linked])
        return linked[order], precision

    def zone(self, level: float = ZONE) -> Array:
        """The rows that a careful snooper believes: the best links, down to the last place where a share of at least
        `level` of them is true."""
        rows, precision = self.ranked()
        believed = np.flatnonzero(precision >= level - ROUNDING)
        return rows[: believed[-1] + 1] if len(believed) else rows[:0]


class Scoring(NamedTuple):
    """How likely pairs are, each known record against all released ones."""

    block: Callable[[Array | slice], Array]  # scores of these known records
    best: Callable[[Array, int], Links]  # so many best candidates of these known records


def scored_by_distance(known: Array, released: Array) -> Scoring:
    """The scoring of points: minus the squared distance."""
    best = lambda rows, keep: nearest_links(known[rows], released, keep)
    return Scoring(lambda rows: distance_scores(known[rows], released), best)


def scored_in_blocks(block: Callable[[Array | slice], Array], m: int) -> Scoring:
    """The scoring of any block of scores; m: how many released records there are."""
    return Scoring(block, lambda rows, keep: block_links(lambda part: block(rows[part]), len(rows), m, keep))


@dataclass(frozen=True, eq=False)
class Pair:
    """The snooper's records and the released ones, as numbers (a category: a code equal in both files; NaN: missing)."""

    names: tuple[str, ...]
    categorical: Array
    known_columns: tuple[Array, ...]
    released: Array
    known_rows: Array  # row of the snooper's file at each place
    released_rows: Array
    truth: Array  # place of the known record that each released one was made from; -1: the snooper does not know it
    known_group: Array  # records with equal values are one group
    released_group: Array
    known_file: Microdata
    released_file: Microdata
    originals: bool  # the snooper holds the original records, without errors; else a file of his own
    as_ever: bool  # the known columns are those of every other file that the snooper's is compared with
    _learned: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def remember(self, key: Hashable, learn: Callable[[], Learned]) -> Learned:
        """What several attacks learn from these files, learned once."""
        if key not in self._learned:
            self._learned[key] = learn()
        learned: Learned = self._learned[key]
        return learned

    def of_known(self, key: Hashable, learn: Callable[[], Learned]) -> Learned:
        """What only the known columns tell, computed once for all files that they are compared with, and closed to
        writing."""
        if not self.as_ever:
            return self.remember(key, learn)
        return self.known_file.remember(("of known", self.names, key), lambda: closed(learn()))

    @property
    def known(self) -> Array:
        """The known columns as a table."""
        return self.of_known("table", lambda: np.column_stack(self.known_columns))

    @cached_property
    def known_size(self) -> Array:
        """How many records each known group has."""
        return np.bincount(self.known_group)

    @cached_property
    def released_size(self) -> Array:
        return np.bincount(self.released_group)

    def order_of_targets(self) -> Array:
        """Places of the released records in an order that values alone decide: their people's, then their own."""
        own = np.where(self.truth >= 0, self.known_group[self.truth], -1)
        return np.lexsort([self.released_group, own])


def lay_out(known: Microdata, person: Array, original: Microdata, released: Microdata, names: tuple[str, ...]) -> Pair:
    """Both files in an order of their own. person: the original's row that each known record is; its length: none.

    What the known file needs is laid out once, however many files it is compared with.
    """
    side = known.remember(("laid out", names), lambda: closed(_known_side(known, names)))
    known_rows, known_group, own_columns = side
    columns, theirs, categorical = list(own_columns), [], []
    for place, name in enumerate(names):
        before, after = known.column(name).levels, released.column(name).levels
        categorical.append(before is not None or after is not None)
        if not categorical[-1]:
            theirs.append(finite(released.numbers(name)))
            continue
        both = common_codes(known, released, name).astype(float)
        if before is None or after is None:  # numbers that became categories, or the reverse
            columns[place] = np.where(known.missing(name), np.nan, both[: len(known)])[known_rows]
        theirs.append(np.where(released.missing(name), np.nan, both[len(known) :]))
    released_rows, released_group = _ordered(theirs)
    scattered = np.argsort(np.arange(len(released_rows)) * GOLDEN % 1, kind="stable")
    released_rows, released_group = released_rows[scattered], released_group[scattered]
    person_at = np.full(len(original) + 1, -1)  # the last: nobody
    person_at[person[known_rows]] = np.arange(len(known))
    person_at[-1] = -1
    truth = person_at[released_rows if released.origin is None else released.origin[released_rows]]
    as_ever = all(mine is first for mine, first in zip(columns, own_columns, strict=True))
    return Pair(
        names, np.array(categorical), tuple(columns), np.column_stack(theirs)[released_rows], known_rows,
        released_rows, truth, known_group, released_group, known, released, known is original, as_ever,
    )  # fmt: skip


def _known_side(known: Microdata, names: tuple[str, ...]) -> tuple[Array, Array, tuple[Array, ...]]:
    """The snooper's records in the order of their values: rows, the group of equal records at each place, and columns."""
    values = {name: finite(known.column(name).values.astype(float)) for name in names}
    columns = [np.where(known.missing(name), np.nan, numbers) for name, numbers in values.items()]
    rows, group = _ordered(columns)
    return rows, group, tuple(column[rows] for column in columns)


def finite(values: Array) -> Array:
    return np.where(np.isinf(values), np.nan, values)


def closed(result: Learned) -> Learned:
    """The same, its arrays closed to writing."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
        elif isinstance(part, tuple):
            closed(part)
    return result


def _ordered(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Rows in the order of their values, and the number of the group of equal rows that each place belongs to."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        above, below = column[order[:-1]], column[order[1:]]
        new |= ~((above == below) | (np.isnan(above) & np.isnan(below)))
    return order, np.concatenate([[0], np.cumsum(new)]) if len(order) else order


# ---- links ----------------------------------------------------------------------------------------------------
def link_one_to_one(pair: Pair, scoring: Scoring) -> LinkTable:
    """Each known record takes one released record at most, and the sum of scores is the largest.

    Records with equal values are exchanged at random, so a link of group A to group B is true with probability
    #{true pairs in A x B} / (|A| |B|).
    """
    n, m = len(pair.known), len(pair.released)
    check_sizes(n, m)
    if n * m <= DENSE_PAIRS:
        score = np.empty((n, m))
        step = max(1, BLOCK // m)
        for start in range(0, n, step):
            score[start : start + step] = scoring.block(slice(start, min(n, start + step)))
        partner, gap = dense(score), 0.0
        known = np.flatnonzero(partner >= 0)
        taken = partner[known]
        weight = score[known, taken]
        score[known, taken] = -np.inf
        other = score.max(axis=1)[known]
    else:
        links = scoring.best(np.arange(n), KEEP)
        partner, gap = one_to_one(links, scoring.best, m, limit=CANDIDATES)
        known = np.flatnonzero(partner >= 0)
        taken = partner[known]
        here = links.index[known] == taken[:, np.newaxis]
        weight = np.where(here, links.score[known], 0.0).sum(axis=1)
        later = np.flatnonzero(~here.any(axis=1))  # linked to a candidate that was added
        for rows in np.array_split(later, 1 + len(later) * m // BLOCK):
            weight[rows] = scoring.block(known[rows])[np.arange(len(rows)), taken[rows]]
        other = np.where(here[:, 0], links.score[known, 1], links.score[known, 0])
    return one_to_one_table(pair, taken, known, weight, other, gap)


def one_to_one_table(pair: Pair, taken: Array, known: Array, weight: Array, other: Array, gap: float) -> LinkTable:
    """The one-to-one links; other: the score of the next best candidate, infinite where there is none."""
    margin = np.where(np.isfinite(other), weight - other, 0.0)
    a, b = pair.known_group[known], pair.released_group[taken]
    true = true_pairs(pair, a, b) / (pair.known_size[a] * pair.released_size[b])
    facts = {"linked": len(known) / min(len(pair.known), len(pair.released)), "gap": gap}
    return link_table(pair, taken, known, weight, margin, true, facts)


def check_sizes(n: int, m: int) -> None:
    if max(n, m) > SIZE_RATIO * min(n, m):
        raise Undefined(
            f"one-to-one links need files of similar size; the snooper's has {n} records, the released {m}: "
            "use NearestRecord without one-to-one."
        )


def true_pairs(pair: Pair, a: Array, b: Array) -> Array:
    """How many true pairs the known groups `a` and the released groups `b` hold together."""
    span = len(pair.released_size)
    held = pair.truth >= 0
    key = pair.known_group[pair.truth[held]] * span + pair.released_group[held]
    met, count = np.unique(key, return_counts=True)
    if len(met) == 0:
        return np.zeros(len(a))
    place = np.minimum(np.searchsorted(met, a * span + b), len(met) - 1)
    return np.where(met[place] == a * span + b, count[place], 0)


def link_nearest(
    pair: Pair, nearest: Callable[[Array, int], Links], places: Array | None = None, groups: Array | None = None
) -> LinkTable:
    """Each released record is linked to its best known record, the first of t that tie; the true one of them is taken with
    probability 1/t.

    nearest(first, k): the k best of the known records at these places for each released one, or for each of those at
    `places`, which alone are linked then; and where `groups` of known records are given, to these alone.
    """
    first = np.unique(pair.known_group, return_index=True)[1]  # equal records are one candidate with their number
    links = nearest(first, KEEP)
    places = np.arange(len(pair.released)) if places is None else places
    best = links.score[:, :1]
    tied = (links.index >= 0) & (links.score >= best - 1e-9 * np.abs(best) - 1e-12)
    ties = np.where(tied, pair.known_size[links.index], 0).sum(axis=1)
    own = np.where(pair.truth >= 0, pair.known_group[pair.truth], -1)[places]
    true = (tied & (links.index == own[:, np.newaxis])).any(axis=1) / ties
    other = links.score[:, 1] if links.score.shape[1] > 1 else best[:, 0]
    margin = np.where(ties > 1, 0.0, best[:, 0] - np.where(np.isfinite(other), other, best[:, 0]))
    nearest_one = np.where(tied, links.index, len(first)).min(axis=1)  # the first of those that tie
    kept = slice(None) if groups is None else np.isin(nearest_one, groups)
    known = first[nearest_one]
    return link_table(pair, places[kept], known[kept], best[kept, 0], margin[kept], true[kept], {})


def link_table(
    pair: Pair, taken: Array, known: Array, weight: Array, margin: Array, true: Array, facts: Mapping[str, float]
) -> LinkTable:
    """The links (released place `taken`, known place `known`) as one line for each row of the released file.

    Weights and margins are rounded, so that those that are equal but for rounding tie on every machine.
    """
    rows, group = pair.released_rows, pair.released_group
    unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(weight), np.abs(weight - margin)))[1] - TIE_BITS)
    margin, weight = np.round(margin / unit) * unit, weight.copy()
    round_to_tie(weight)

    def placed(values: Array, empty: float) -> Array:
        column = np.full(len(rows), empty, dtype=np.asarray(values).dtype)
        column[rows[taken]] = values
        return column

    def shared(values: Array) -> Array:  # equal records share what is expected of each
        column = np.empty(len(rows))
        column[rows] = (np.bincount(group[taken], values, len(pair.released_size)) / pair.released_size)[group]
        return column

    links = placed(pair.known_rows[known], -1), placed(weight, np.nan), placed(margin, np.nan)
    return LinkTable(*links, shared(true), shared(calibrated(margin, true)), facts)
