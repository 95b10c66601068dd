"""How well a model tells released records from original ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.data.cells import common_codes
from sdcmap.kernels.statistics.regression import logit
from sdcmap.kernels.statistics.trees import bin_edges, binned
from sdcmap.kernels.tables.coding import compress
from sdcmap.utility import _propensity_models as models
from sdcmap.utility._numeric import WeightedMeasure, numbers_of
from sdcmap.utility._two_way import TwoWay, count_terms

MANY_TERMS = 1_000  # of the original, beyond which slopes have a ridge
RIDGE = 1.0  # records
MOST_TERMS = 6_000  # that occur
MOST_POSSIBLE = 1 << 25
PRODUCT, LOOK, FACTOR = 1.8e-9, 6e-9, 3e-11  # seconds: of two terms of a row; of one; of a cubed number of terms
NEWTON, PASSES = 8, 60  # informations of a fit without a ridge; gradients of one with
TOO_LARGE = "a logit of these variables cannot be fitted: their numbers are too large."


@dataclass(frozen=True)
class Propensity(WeightedMeasure):
    """How well a model that sees both files tells released records from original ones: pMSE, 0 when it cannot.

    Parameters
    ----------
    weighted : records count with their survey weights, which are scaled to a mean of 1 in each file; needs a weight and
        a logit.
    model : "logit", or "trees": classification trees that each begin with another variable, cut into halves, of which
        the best counts (a tree that chooses its first question stops at once where each variable kept its distribution).
    order : of a logit: 1, each variable alone; 2, also the products of two variables and the squares of numbers. With 1 a
        variable that was shuffled whole goes unseen.
    leaf : of a tree: fewest records of a leaf, at least 1; by default 20, or a thousandth of the records if that is more.
    resamples : of a tree, and of a logit with many terms: how many draws its null is the mean of, at least 0.

    Formula: pMSE = 1/N sum (p_i - c)^2 over the N records of both files, p_i the model's probability that record i is a
    released one, c the share of released records. At most c(1 - c) <= 1/4, when every record is told for certain.
    `parts` hold "null", the mean of pMSE when masking made no difference. For a masked file, whose records are paired with
    the original's, the labels "original" and "released" are swapped at random within pairs (for a logit its mean in
    closed form, to first order). The usual null, (k - 1)(1 - c)^2 c/N for k terms, is for records drawn anew: it is used
    for synthetic files alone, which also have the "ratio" pMSE/null, and times 1 - n'/n for a sample of n' of n records.
    Many terms: slopes of dummies and of numbers in standard deviations have a ridge, r/2 times their squares is taken from
    the log-likelihood; r = 1e-6, or r = 1 where the original has more than 1,000 terms, the same for every release of it
    ("ridge" in `parts`). The null is then that of the ridge: p - c = c(1 - c) X (c(1 - c) X'X + r)^-1 X'(y - c), one Newton
    step, for `resamples` draws of y - c with the covariance above; k is in effect the trace of the squared hat matrix.
    Undefined where more than 6,000 terms occur.
    Missing is a category of its own, of a number too. Weights: used when `weighted`. Households are not used. New
    categories tell records apart; undefined where numbers were recoded into categories.
    Reference: Woo, Reiter, Oganian, Karr (2009); Snoke, Raab, Nowok, Dibben, Slavkovic (2018), section 3.

    Examples
    --------
    >>> Propensity(on=["age", "sex"], order=1).text
    "Propensity(on=['age', 'sex'], order=1)"
    """

    label: ClassVar[str] = "Propensity score error (pMSE)"
    description: ClassVar[str] = "How well a model can tell released records from original ones; 0 means not at all."

    revision: ClassVar[int] = 2  # 2: a value where there are many terms
    unit: ClassVar[str] = "mean squared propensity error"
    paired: ClassVar[bool] = False
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 0.25)
    sampled: ClassVar[bool] = True
    nulled: ClassVar[bool] = True  # it has a mean where masking made no difference

    model: Literal["logit", "trees"] = "logit"
    order: Literal[1, 2] = 2
    leaf: Annotated[int | None, Range(1)] = None
    resamples: Annotated[int, Range(0)] = 10

    def problems(self) -> Iterator[str]:
        if self.weighted and self.model == "trees":
            yield ".weighted needs model = 'logit'."

    def told_apart(self, p: Array, released: Array, original: Array) -> float:
        """How far the probabilities of units that hold so many records of each file tell them apart; of a logit."""
        return models.mean_squared(p, released, original)

    def seconds(self, data: Microdata) -> float | None:
        if self.model == "trees":
            return None
        levels = [column.levels for column in map(data.column, self.variables(data))]
        sizes = [len(own) for own in levels if own is not None]
        amounts = len(levels) - len(sizes)
        terms = count_terms([*(size - 1 for size in sizes), *[1] * amounts], amounts, self.order)
        rows = 2.0 * len(data) if amounts else min(2.0 * len(data), float(np.prod(sizes, dtype=float)))
        met = 1 + len(levels) if self.order == 1 else (len(levels) + 1) * (len(levels) + 2) / 2  # terms of a row
        if terms <= MANY_TERMS:
            return NEWTON * (rows * met**2 * PRODUCT + terms**3 * FACTOR)
        met, terms = met / 2, min(terms, MOST_TERMS)  # half of the categories are the commonest
        return rows * met * (met * PRODUCT + PASSES * LOOK) + terms**3 * FACTOR * 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        same_rows = masked.base is original and masked.origin is None and masked.paired
        if same_rows and masked.changes.keys().isdisjoint(self.with_weight(masked, *names)):
            return Estimate(value=0.0, parts={"null": 0.0} if self.nulled else {})
        seen = [_Seen.of(original, masked, name) for name in names]
        by = self._by_trees if self.model == "trees" else self._by_logit
        value, parts = by(original, masked, seen, rng)
        if parts.get("null") and not masked.paired:
            parts["ratio"] = value / parts["null"]
        return Estimate(value=value, parts=parts)

    # ---- logit ------------------------------------------------------------------------------------------------
    def _by_logit(
        self, original: Microdata, masked: Microdata, seen: list[_Seen], rng: Generator
    ) -> tuple[float, dict[str, float]]:
        amounts = sum(variable.number is not None for variable in seen)
        weights = np.concatenate([own / own.mean() for own in map(self.weights_of, (original, masked))])
        n, total = len(original), len(original) + len(masked)
        unit = first = np.arange(total)  # the unit of each record, and a record of each unit
        if not amounts:
            unit, count = compress([variable.codes for variable in seen])
            first = np.empty(len(count), dtype=np.int64)
            first[unit[::-1]] = np.arange(total - 1, -1, -1)
        many = count_terms([variable.width_in(n) for variable in seen], amounts, self.order) > MANY_TERMS
        design = self._design(seen, first, by_count=many)
        held = [np.bincount(unit[part], weights[part], minlength=len(first)) for part in (slice(n), slice(n, None))]
        rows = np.arange(n) if masked.origin is None else masked.origin
        moved = None  # of pairs of records: the units before and after, and their weights
        if not _drawn(original, masked):
            moved = _distinct_pairs(unit[:n][rows], unit[n:], weights[:n][rows] * weights[n:], len(first))
        left = max(1.0 - len(masked) / n, 0.0) if masked.paired else 1.0  # by a sample without replacement
        effect = float((weights[n:] ** 2).mean()) * left  # of unequal weights, and of a sample
        if many:
            return self._penalized(design, held, moved, effect, rng)
        fitted = logit(design, held[1], held[0])
        if fitted is None:
            raise Undefined(TOO_LARGE)
        value = self.told_apart(fitted[1], held[1], held[0])
        if not self.nulled:
            return value, {}
        inverse, rank = models.inverse_and_rank(design, held[0] + held[1])
        if moved is None:
            return value, {"null": effect * models.drawn_null(rank, len(masked), n)}
        old, new, share = moved
        return value, {"null": models.paired_null(design.take(old), design.take(new), inverse, share, float(total))}

    def _penalized(
        self, design: TwoWay, held: list[Array], moved: tuple[Array, Array, Array] | None, effect: float, rng: Generator
    ) -> tuple[float, dict[str, float]]:
        """pMSE of a logit with many terms, and its null, the mean of some draws to first order."""
        size, units = held[0] + held[1], len(held[0])
        fit = models.ridge_logit(design, held[1], held[0], RIDGE)
        if fit is None:
            raise Undefined(TOO_LARGE)
        value = self.told_apart(fit.p, held[1], held[0])
        if self.resamples == 0 or not self.nulled:
            return value, {"ridge": RIDGE}

        def draw_signs(spread: Array) -> Array:
            """Residuals with these variances, one column a draw."""
            signs = 2.0 * rng.integers(2, size=(len(spread), self.resamples)) - 1.0
            return np.asarray(np.sqrt(spread)[:, np.newaxis] * signs)

        if moved is None:
            intercept = fit.share * (1 - fit.share) ** 2 * effect
            residuals = draw_signs(intercept * size)
        else:
            old, new, share = moved
            intercept, swapped = 0.0, draw_signs(0.25 * share).T
            moves = [np.bincount(new, own, units) - np.bincount(old, own, units) for own in swapped]
            residuals = np.column_stack(moves)
        squares = size @ fit.first_step(design, residuals) ** 2
        return value, {"null": (float(squares.mean()) - intercept) / float(size.sum()), "ridge": RIDGE}

    def _design(self, seen: list[_Seen], rows: Array, *, by_count: bool) -> TwoWay:
        """The terms of these rows; Undefined where there are too many."""
        codes = [column for variable in seen for column in variable.categories(rows, by_count=by_count)]
        numbers = [np.nan_to_num(variable.number[rows]) for variable in seen if variable.number is not None]
        widths = [*(int(column.max(initial=0)) for column in codes), *[1] * len(numbers)]
        terms = count_terms(widths, len(numbers), self.order)
        if terms <= MOST_POSSIBLE:
            none = np.empty((len(rows), 0))  # so that a design may have no categories, or no numbers
            design = TwoWay.of(np.column_stack([none, *codes]), np.column_stack([none, *numbers]), self.order)
            terms = design.width
        if terms > MOST_TERMS:
            way_out = "name fewer variables, recode them, set order = 1 or model = 'trees'"
            raise Undefined(f"a logit of these variables has {terms:,} terms, more than {MOST_TERMS:,}: {way_out}.")
        return design

    # ---- trees ------------------------------------------------------------------------------------------------
    def _by_trees(
        self, original: Microdata, masked: Microdata, seen: list[_Seen], rng: Generator
    ) -> tuple[float, dict[str, float]]:
        bins, sizes = zip(*(variable.bins(len(original)) for variable in seen), strict=True)
        columns, ordered = np.column_stack(bins), np.array([variable.ordered for variable in seen])
        total = len(original) + len(masked)
        leaf = self.leaf or max(20, total // 1000)
        labels = np.repeat([0, 1], [len(original), len(masked)])

        def pmse(rows: Array, released: Array) -> float:
            return models.tree_pmse(columns[rows], np.array(sizes), ordered, released, leaf)

        value = pmse(np.arange(total), labels)
        if self.resamples == 0:
            return value, {}
        draws = [pmse(*_draw_null(original, masked, labels, rng)) for _ in range(self.resamples)]
        return value, {"null": float(np.mean(draws))}


def _drawn(original: Microdata, masked: Microdata) -> bool:
    """Whether the released records are drawn anew or are a sample, so that they are not all the original's, in pairs."""
    return not masked.paired or len(masked) != len(original)


def _draw_null(original: Microdata, masked: Microdata, labels: Array, rng: Generator) -> tuple[Array, Array]:
    """Rows and labels under the null: released records drawn from the original, or labels swapped within pairs."""
    n, m = len(original), len(masked)
    if _drawn(original, masked):
        return np.concatenate([np.arange(n), rng.choice(n, m, replace=not masked.paired or m > n)]), labels
    rows = np.arange(n) if masked.origin is None else masked.origin
    swap = rng.random(m) < 0.5
    own = labels.copy()
    own[rows[swap]], own[n:][swap] = 1, 0
    return np.arange(n + m), own


def _distinct_pairs(old: Array, new: Array, weights: Array, units: int) -> tuple[Array, Array, Array]:
    """The pairs of units, before and after, that differ, each once, with the sum of its weights."""
    moved = old != new
    pairs, place = np.unique(old[moved] * np.int64(units) + new[moved], return_inverse=True)
    return (*np.divmod(pairs, units), np.bincount(place.ravel(), weights[moved], minlength=len(pairs)))


class _Seen(NamedTuple):
    """One variable of both files, the original's records first: as a number, or as codes."""

    codes: Array
    number: Array | None
    ordered: bool

    @classmethod
    def of(cls, original: Microdata, masked: Microdata, name: str) -> _Seen:
        if original.column(name).levels is None:
            before = numbers_of(original, name)
            known = before[~np.isnan(before)]
            middle, spread = (known.mean(), known.std()) if len(known) else (0.0, 0.0)
            both = (np.concatenate([before, numbers_of(masked, name)]) - middle) / (spread or 1.0)
            return cls(np.isnan(both), both, True)
        codes = common_codes(original, masked, name)
        first, second = original.column(name).levels, masked.column(name).levels
        same = first is not None and second is not None and first.equals(second)
        return cls(codes, None, same and original.schema[name].kind == "ordinal")

    def width_in(self, n: int) -> int:
        """How many columns the original's records have, the first n: a dummy of every category but one, or the number
        and whether it is missing."""
        return len(np.unique(self.codes[:n])) - (self.number is None)

    def categories(self, rows: Array, *, by_count: bool) -> list[Array]:
        """Its categories from 0, the commonest first or as they come; of a number, whether it is missing, if some are."""
        levels, code, count = np.unique(self.codes, return_inverse=True, return_counts=True)
        place = np.argsort(np.argsort(-count, kind="stable")) if by_count else np.arange(len(levels))
        return [place[code.ravel()[rows]]] if self.number is None or len(levels) > 1 else []

    def bins(self, n: int) -> tuple[Array, int]:
        """Its bins for a tree, those of a number by the original, and how many there are."""
        if self.number is None:
            return self.codes.astype(np.int64), int(self.codes.max()) + 1
        edges = bin_edges(self.number[:n])
        return binned(self.number, edges), len(edges) + 2


# Other readings of propensity scores: how far apart their distributions are, and how many records are told rightly.


ROUNDING = 9  # decimals of a probability: those that are equal but for rounding are one


@dataclass(frozen=True)
class _PropensityTest(Propensity):
    """Of a logit alone, and without a null."""

    revision: ClassVar[int] = 1
    nulled: ClassVar[bool] = False

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.model != "logit":
            yield ".model must be 'logit'."


@dataclass(frozen=True)
class SPECKS(_PropensityTest):
    """How far apart the propensity scores of released and original records are: Kolmogorov-Smirnov's distance, 0 when a
    model that sees both files cannot tell them apart.

    Parameters
    ----------
    weighted : records count with their survey weights, which are scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees have no scores that could be compared here.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: sup over t of |F(t) - G(t)|, F and G the distribution functions of the fitted probabilities of being a released
    record, among the original and among the released records. Probabilities are those of Propensity, with its ridge.
    Missing is a category of its own, of a number too. Weights: used when `weighted`. Households are not used. New
    categories tell records apart; undefined where numbers were recoded into categories, or where more than 6,000 terms
    occur. Where files hardly differ it falls slowly: the square root of what pMSE is.
    Reference: Bowen, Liu, Su (2021), section 2.3; Raab, Nowok, Dibben (2021), where it is compared with pMSE and PO50.

    Examples
    --------
    >>> SPECKS(on=["age", "sex"], order=1).text
    "SPECKS(on=['age', 'sex'], order=1)"
    """

    label: ClassVar[str] = "Propensity score distance (SPECKS)"
    description: ClassVar[str] = (
        "Largest difference between the propensity scores of released and original records; 0 means none."
    )

    unit: ClassVar[str] = "distance, 0 to 1"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)

    def told_apart(self, p: Array, released: Array, original: Array) -> float:
        _, place = np.unique(np.round(p, ROUNDING), return_inverse=True)
        sides = [np.cumsum(np.bincount(place.ravel(), side)) / side.sum() for side in (released, original)]
        return float(np.abs(sides[0] - sides[1]).max())


@dataclass(frozen=True)
class PO50(_PropensityTest):
    """How many more records than by guessing a model that sees both files assigns to the right one.

    Parameters
    ----------
    weighted : records count with their survey weights, which are scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees are judged by pMSE.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: share of records of both files that are on the right side of probability 1/2, less that of always naming the
    larger file; synthpop's PO50 is that times 100, for files of one size. A record at 1/2 is right by half.
    Missing is a category of its own, of a number too. Weights: used when `weighted`. Households are not used. New
    categories tell records apart; undefined where numbers were recoded into categories, or where more than 6,000 terms
    occur.
    Reference: Raab, Nowok, Dibben (2021), section 2.

    Examples
    --------
    >>> PO50(on=["age", "sex"]).text
    "PO50(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Records told apart by a model (PO50)"
    description: ClassVar[str] = (
        "Share of records, beyond guessing, that a model assigns correctly to the released or the original file."
    )

    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 0.5)

    def told_apart(self, p: Array, released: Array, original: Array) -> float:
        side = np.sign(np.round(p - 0.5, ROUNDING))
        right = (released @ (1 + side) + original @ (1 - side)) / 2
        sizes = released.sum(), original.sum()
        return max(float((right - max(sizes)) / sum(sizes)), 0.0)
