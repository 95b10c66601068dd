"""The attacker's file and the released file side by side, the links between them, and which links are true.

Both files are sorted by their values. So no result depends on the order of rows, and ties never favor the truth.
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
from sdcmap.kernels.tables.record_order import rank_categories
from sdcmap.risk.linkage.assignment import TIE_BITS, assign_all_pairs, assign_from_candidates, round_to_tie
from sdcmap.risk.linkage.link_search import Links, block_links, distance_scores, nearest_links


def calibrate(score: Array, success: Array) -> Array:
    """Return P(success | score), increasing in the score, by isotonic regression; equal scores share a value.

    Its mean is the mean of `success`. Barlow et al. (1972); Zadrozny and Elkan (2002).
    """
    from scipy.optimize import isotonic_regression

    level, index, count = np.unique(score, return_inverse=True, return_counts=True)
    mean = np.bincount(index, success, minlength=len(level)) / count
    return isotonic_regression(mean, weights=count).x[index] if len(level) else mean


def running_precision(score: Array, success: Array) -> tuple[Array, Array]:
    """Return the order of the links, best score first, and the share of successes down to each; equal scores share a
    value.
    """
    order = np.argsort(-score, kind="stable")
    ranked = -score[order]
    last = np.searchsorted(ranked, ranked, side="right")  # number of links at or above each score
    return order, np.cumsum(success[order])[last - 1] / last if len(order) else ranked


Result = TypeVar("Result")

MAX_DENSE_PAIRS = 25_000_000  # pairs; up to here the full score matrix is assigned (200 MB)
CANDIDATES_PER_RECORD = 50  # for larger files: candidates of each known record to start with
MAX_CANDIDATES = 2_000_000  # in all; up to here candidates are added where the optimum needs them
SCORES_PER_BLOCK = 1 << 16  # scores computed at once, so that they stay in the cache
MAX_SIZE_RATIO = 100  # between the two files; one-to-one links of files that differ more mean nothing
ZONE_PRECISION = 0.2  # a careful attacker believes the best links down to this share of true ones
SHARE_TOLERANCE = 1e-12  # floating-point error of a share
GOLDEN_RATIO = 0.6180339887498949  # multiples of it, modulo 1, are spread evenly: they scatter positions


class LinkTable(NamedTuple):
    """The attacker's link of each released record, and how sure it is."""

    partner: Array  # row of the attacker's file; -1: none
    weight: Array  # score of the link, higher is likelier; NaN: none
    margin: Array  # score minus that of the next best candidate; NaN: none
    correct: Array  # 1 if the link is true, 0 if not; the expected share where records tie
    probability: Array  # calibrated: the share of true links among links with such a margin
    facts: Mapping[str, float] = {}

    @property
    def true_links(self) -> float:
        """Return the expected number of true links, summed exactly, so that the order of rows does not change it."""
        return math.fsum(self.correct)

    @property
    def link_count(self) -> int:
        """Return the number of links."""
        return int((self.partner >= 0).sum())

    @property
    def rate(self) -> float:
        """Return the true links divided by the released records."""
        return self.true_links / len(self.correct)

    def rank_links(self) -> tuple[Array, Array]:
        """Return the linked rows, best weight first, and the share of true links down to each."""
        linked = np.flatnonzero(self.partner >= 0)
        order, precision = running_precision(self.weight[linked], self.correct[linked])
        return linked[order], precision

    def zone(self, level: float = ZONE_PRECISION) -> Array:
        """Return the rows that a careful attacker believes.

        These are the best links, down to the last position where at least a share `level` of them is true.
        """
        rows, precision = self.rank_links()
        believed = np.flatnonzero(precision >= level - SHARE_TOLERANCE)
        return rows[: believed[-1] + 1] if len(believed) else rows[:0]


class Scoring(NamedTuple):
    """Scores of pairs: how likely each released record belongs to each known record."""

    block: Callable[[Array | slice], Array]  # scores of these known records against all released ones
    best: Callable[[Array, int], Links]  # the best candidates, so many, of these known records


def score_by_distance(known: Array, released: Array) -> Scoring:
    """Return the scoring of points: minus the squared distance."""
    best = lambda rows, keep: nearest_links(known[rows], released, keep)
    return Scoring(lambda rows: distance_scores(known[rows], released), best)


def score_in_blocks(block: Callable[[Array | slice], Array], m: int) -> Scoring:
    """Return the scoring by a function that scores any block; m: number of released records."""
    return Scoring(block, lambda rows, keep: block_links(lambda part: block(rows[part]), len(rows), m, keep))


@dataclass(frozen=True, eq=False)
class Pair:
    """The attacker's file and the released file as numbers.

    Categories are codes that are equal in both files; NaN is missing. The records of both files are sorted; a
    "position" is an index into the sorted order, a "row" an index into the file.
    """

    names: tuple[str, ...]
    categorical: Array
    known_columns: tuple[Array, ...]
    released: Array
    known_rows: Array  # row of the attacker's file at each position
    released_rows: Array
    truth: Array  # position of the known record that each released one was made from; -1: not in the attacker's file
    known_group: Array  # records with equal values form a group
    released_group: Array
    known_file: Microdata
    released_file: Microdata
    holds_originals: bool  # the attacker holds the original records without errors, not an archive
    shares_known_columns: bool  # the known columns are the same for all releases, so results can be reused
    _cache: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def remember(self, key: Hashable, learn: Callable[[], Result]) -> Result:
        """Compute what several attacks need from these files, once."""
        if key not in self._cache:
            self._cache[key] = learn()
        learned: Result = self._cache[key]
        return learned

    def remember_known(self, key: Hashable, learn: Callable[[], Result]) -> Result:
        """Compute what depends only on the known columns, once for all releases; its arrays are read-only."""
        if not self.shares_known_columns:
            return self.remember(key, learn)
        return self.known_file.remember(("of known", self.names, key), lambda: freeze_arrays(learn()))

    @property
    def known(self) -> Array:
        """Return the known columns as a table."""
        return self.remember_known("table", lambda: np.column_stack(self.known_columns))

    @cached_property
    def known_size(self) -> Array:
        """Return the number of records in each known group."""
        return np.bincount(self.known_group)

    @cached_property
    def released_size(self) -> Array:
        """Return the number of records in each released group."""
        return np.bincount(self.released_group)

    @cached_property
    def targets(self) -> Array:
        """Return the positions of the released records whose person is in the attacker's file.

        Raise Undefined if there is none: then the attack tests nothing.
        """
        targets = np.flatnonzero(self.truth >= 0)
        if len(targets) == 0:
            raise Undefined("none of the people in the attacker's file is in the released file, so nothing is tested.")
        return targets

    def order_of_targets(self) -> Array:
        """Return the positions of the targets in an order that depends only on values.

        They are sorted by the values of their person, then by their own.
        """
        own, group = self.known_group[self.truth[self.targets]], self.released_group[self.targets]
        return self.targets[np.lexsort([group, own])]

    def average_over_targets(self, correct: Array) -> Array:
        """Return the mean of `correct` (by row of the released file) over the targets of each group, by position.

        A link table gives records with equal values the same share of true links, whether or not their person is in
        the attacker's file. Only targets can be linked truly, so the sum of a group belongs to its targets.
        """
        correct = correct[self.released_rows]
        if len(self.targets) == len(correct):
            return correct
        total = np.bincount(self.released_group, correct)
        targets = np.bincount(self.released_group[self.targets], minlength=len(total))
        return np.asarray((total / np.maximum(targets, 1))[self.released_group])


def lay_out(known: Microdata, person: Array, original: Microdata, released: Microdata, names: tuple[str, ...]) -> Pair:
    """Lay out both files for linking; the known file is laid out once for all releases.

    person : the original row of each known record; the number of original rows stands for a person who is not in it
    """
    side = known.remember(("laid out", names), lambda: freeze_arrays(_sort_known_file(known, names)))
    known_rows, known_group, sorted_columns = side
    columns, released_columns, categorical = list(sorted_columns), [], []
    for index, name in enumerate(names):
        before, after = known.column(name).levels, released.column(name).levels
        categorical.append(before is not None or after is not None)
        if not categorical[-1]:
            released_columns.append(infinite_to_missing(released.numbers(name)))
            continue
        both = common_codes(known, released, name).astype(float)
        if before is None or after is None:
            # Numbers became categories, or the reverse: this release needs its own codes of the known column.
            columns[index] = np.where(known.missing(name), np.nan, both[: len(known)])[known_rows]
        released_columns.append(np.where(released.missing(name), np.nan, both[len(known) :]))
    released_rows, released_group = _sort_by_values(released_columns, categorical)
    # Scatter the released records. Otherwise true pairs would stand at similar positions in both files, and ties broken
    # by position would favor the truth.
    scatter = np.argsort(np.arange(len(released_rows)) * GOLDEN_RATIO % 1, kind="stable")
    released_rows, released_group = released_rows[scatter], released_group[scatter]
    position_of_person = np.full(len(original) + 1, -1)  # the last entry: not in the original
    position_of_person[person[known_rows]] = np.arange(len(known))
    position_of_person[-1] = -1
    truth = position_of_person[released_rows if released.origin is None else released.origin[released_rows]]
    shares_known_columns = all(used is shared for used, shared in zip(columns, sorted_columns, strict=True))
    return Pair(
        names, np.array(categorical), tuple(columns), np.column_stack(released_columns)[released_rows], known_rows,
        released_rows, truth, known_group, released_group, known, released, known is original, shares_known_columns,
    )  # fmt: skip


def _sort_known_file(known: Microdata, names: tuple[str, ...]) -> tuple[Array, Array, tuple[Array, ...]]:
    """Sort the attacker's records by their values; return rows, the group at each position, and sorted columns."""
    values = {name: infinite_to_missing(known.column(name).values.astype(float)) for name in names}
    columns = [np.where(known.missing(name), np.nan, numbers) for name, numbers in values.items()]
    rows, group = _sort_by_values(columns, [known.column(name).levels is not None for name in names])
    return rows, group, tuple(column[rows] for column in columns)


def infinite_to_missing(values: Array) -> Array:
    """Return the values with infinities replaced by NaN."""
    return np.where(np.isinf(values), np.nan, values)


def freeze_arrays(result: Result) -> Result:
    """Make the arrays of a result read-only, and return it."""
    for part in result if isinstance(result, tuple) else (result,):
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
        elif isinstance(part, tuple):
            freeze_arrays(part)
    return result


def _sort_by_values(columns: Sequence[Array], categorical: Sequence[bool]) -> tuple[Array, Array]:
    """Return the rows sorted by their values, and the group of equal rows at each position.

    The order does not depend on the codes of categories, so neither does the link that is chosen among equally good ones.
    """
    columns = rank_categories(columns, categorical)
    order = np.lexsort(columns[::-1])
    new = np.zeros(max(len(order) - 1, 0), dtype=np.bool_)
    for column in columns:
        above, below = column[order[:-1]], column[order[1:]]
        new |= ~((above == below) | (np.isnan(above) & np.isnan(below)))
    return order, np.concatenate([[0], np.cumsum(new)]) if len(order) else order


# ---- links ----------------------------------------------------------------------------------------------------
def link_one_to_one(pair: Pair, scoring: Scoring) -> LinkTable:
    """Link each known record to at most one released record, so that the sum of scores is largest.

    Records with equal values are exchanged at random, so a link of group A to group B is true with probability #{true
    pairs in A x B} / (|A| |B|).
    """
    n, m = len(pair.known), len(pair.released)
    check_sizes(n, m)
    if n * m <= MAX_DENSE_PAIRS:
        score = np.empty((n, m))
        step = max(1, SCORES_PER_BLOCK // m)
        for start in range(0, n, step):
            score[start : start + step] = scoring.block(slice(start, min(n, start + step)))
        partner, gap = assign_all_pairs(score), 0.0
        known = np.flatnonzero(partner >= 0)
        released = partner[known]
        weight = score[known, released]
        # Without the links themselves, the row maximum is the score of the next best candidate.
        score[known, released] = -np.inf
        other = score.max(axis=1)[known]
    else:
        links = scoring.best(np.arange(n), CANDIDATES_PER_RECORD)
        partner, gap = assign_from_candidates(links, scoring.best, m, limit=MAX_CANDIDATES)
        known = np.flatnonzero(partner >= 0)
        released = partner[known]
        is_listed = links.index[known] == released[:, np.newaxis]
        weight = np.where(is_listed, links.score[known], 0.0).sum(axis=1)
        unlisted = np.flatnonzero(~is_listed.any(axis=1))  # linked to a candidate added later
        for rows in np.array_split(unlisted, 1 + len(unlisted) * m // SCORES_PER_BLOCK):
            weight[rows] = scoring.block(known[rows])[np.arange(len(rows)), released[rows]]
        other = np.where(is_listed[:, 0], links.score[known, 1], links.score[known, 0])
    return one_to_one_table(pair, released, known, weight, other, gap)


def one_to_one_table(pair: Pair, released: Array, known: Array, weight: Array, other: Array, gap: float) -> LinkTable:
    """Return the table of one-to-one links.

    other : the score of the next best candidate, infinite where there is none
    """
    margin = np.where(np.isfinite(other), weight - other, 0.0)
    facts = {"linked": linked_share(pair, released), "gap": gap}
    return link_table(pair, released, known, weight, margin, true_shares(pair, released, known), facts)


def linked_share(pair: Pair, released: Array) -> float:
    """Return the share of the records that could be linked one-to-one and are: those at the positions `released`."""
    return len(released) / min(len(pair.known), len(pair.released))


def true_shares(pair: Pair, released: Array, known: Array) -> Array:
    """Return the probability that each of these one-to-one links is true; records with equal values are exchanged."""
    a, b = pair.known_group[known], pair.released_group[released]
    return np.asarray(true_pairs(pair, a, b) / (pair.known_size[a] * pair.released_size[b]))


def mean_over_equals(pair: Pair, released: Array, values: Array) -> Array:
    """Return the values of these links as one for each row of the released file.

    Records with equal values cannot be told apart, so each gets the mean of its group.
    """
    mean = np.bincount(pair.released_group[released], values, len(pair.released_size)) / pair.released_size
    column = np.empty(len(pair.released_rows))
    column[pair.released_rows] = mean[pair.released_group]
    return column


def check_sizes(n: int, m: int) -> None:
    """Raise Undefined where the files differ too much in size for one-to-one links."""
    if max(n, m) > MAX_SIZE_RATIO * min(n, m):
        raise Undefined(
            f"one-to-one links need files of similar size, but the attacker's file has {n} records and the released "
            f"one {m}. Use NearestRecord without one_to_one."
        )


def true_pairs(pair: Pair, a: Array, b: Array) -> Array:
    """Return the number of true pairs between the known groups `a` and the released groups `b`."""
    span = len(pair.released_size)

    def count_true() -> tuple[Array, Array]:
        with_truth = pair.truth >= 0
        key = pair.known_group[pair.truth[with_truth]] * span + pair.released_group[with_truth]
        return np.unique(key, return_counts=True)

    observed, count = pair.remember("true pairs of groups", count_true)
    if len(observed) == 0:
        return np.zeros(len(a))
    index = np.minimum(np.searchsorted(observed, a * span + b), len(observed) - 1)
    return np.where(observed[index] == a * span + b, count[index], 0)


def link_nearest(
    pair: Pair, nearest: Callable[[Array, int], Links], positions: Array | None = None, groups: Array | None = None,
    keep: int = CANDIDATES_PER_RECORD,
) -> LinkTable:  # fmt: skip
    """Link each released record to its best known record.

    If t records tie, the first is linked, and the link counts as true with probability 1/t if the true record is among
    them.

    Parameters
    ----------
    nearest : nearest(first, k) returns the k best of the known records at positions `first`, for each linked record
    positions : positions of the released records to link; by default all
    groups : keep only links to these groups of known records; by default all
    keep : the best records, without their equals, that are looked for; t counts no others
    """
    # Records with equal values are searched once and count as many candidates as they are.
    first = np.unique(pair.known_group, return_index=True)[1]
    links = nearest(first, keep)
    positions = np.arange(len(pair.released)) if positions is None else positions
    best = links.score[:, :1]
    tied = (links.index >= 0) & (links.score >= best - 1e-9 * np.abs(best) - 1e-12)
    ties = np.where(tied, pair.known_size[links.index], 0).sum(axis=1)
    own = np.where(pair.truth >= 0, pair.known_group[pair.truth], -1)[positions]
    true = (tied & (links.index == own[:, np.newaxis])).any(axis=1) / ties
    other = links.score[:, 1] if links.score.shape[1] > 1 else best[:, 0]
    margin = np.where(ties > 1, 0.0, best[:, 0] - np.where(np.isfinite(other), other, best[:, 0]))
    nearest_one = np.where(tied, links.index, len(first)).min(axis=1)  # the first of those that tie
    selected = slice(None) if groups is None else np.isin(nearest_one, groups)
    known = first[nearest_one]
    return link_table(
        pair, positions[selected], known[selected], best[selected, 0], margin[selected], true[selected], {}
    )


def link_table(
    pair: Pair, released: Array, known: Array, weight: Array, margin: Array, true: Array, facts: Mapping[str, float]
) -> LinkTable:
    """Return the links (positions `released` and `known`) as one entry for each row of the released file.

    Weights and margins are rounded, so that those that differ only by floating-point error tie on every machine.
    """
    rows = pair.released_rows
    unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(weight), np.abs(weight - margin)))[1] - TIE_BITS)
    margin, weight = np.round(margin / unit) * unit, weight.copy()
    round_to_tie(weight)

    def by_row(values: Array, empty: float) -> Array:
        column = np.full(len(rows), empty, dtype=np.asarray(values).dtype)
        column[rows[released]] = values
        return column

    links = by_row(pair.known_rows[known], -1), by_row(weight, np.nan), by_row(margin, np.nan)
    probability = mean_over_equals(pair, released, calibrate(margin, true))
    return LinkTable(*links, mean_over_equals(pair, released, true), probability, facts)
