"""How well a model distinguishes released records from original ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Microdata, Range, Undefined
from sdcmap.data.cells import common_codes
from sdcmap.kernels.statistics.regression import logit
from sdcmap.kernels.statistics.trees import assign_bins, bin_edges
from sdcmap.kernels.tables.coding import compress
from sdcmap.utility import _propensity_models as models
from sdcmap.utility._numeric import WeightedMeasure, numbers_of
from sdcmap.utility._two_way import TwoWay, count_terms

RIDGE_ABOVE_TERMS = 1_000  # if the original has more terms, the slopes are regularized
RIDGE_PENALTY = 1.0  # as strong as the information of about one record
MAX_TERMS = 6_000  # that occur; the information matrix grows with their square
MAX_POSSIBLE_TERMS = 1 << 25  # before those that are always 0 are left out
SECONDS_PER_PRODUCT = 1.8e-9  # of two terms of a row
SECONDS_PER_TERM = 6e-9  # of a row
SECONDS_PER_CUBED_TERM = 3e-11  # of a factorization
NEWTON_STEPS = 8  # of a fit without a ridge, each with an information matrix
RIDGE_PASSES = 60  # of a fit with a ridge, each with a gradient
TOO_LARGE = "a logit of these variables cannot be fitted, because their numbers are too large: rescale them."


@dataclass(frozen=True)
class Propensity(WeightedMeasure):
    """How well a model that sees both files distinguishes released from original records: pMSE, 0 if not at all.

    Parameters
    ----------
    weighted : records count with their survey weights, scaled to a mean of 1 in each file; needs a weight and a logit.
    model : "logit", or "trees": the best of several classification trees that each start with another variable, split
        in half (a tree that chooses its first split stops at once if each variable kept its distribution).
    order : for a logit: 1, each variable alone; 2, also the products of two variables and the squares of numbers. With
        1, shuffling a whole variable is not detected.
    leaf : for a tree: the smallest number of records in a leaf, at least 1; by default 20, or 0.1 % of the records if
        that is more.
    resamples : for a tree, and for a logit with many terms: the number of draws whose mean is the null, at least 0.

    Formula: pMSE = 1/N sum (p_i - c)^2 over the N records of both files, p_i the model's probability that record i is
        released, c the share of released records. At most c(1 - c) <= 1/4, if every record is recognized with
        certainty.
    `parts`: "null", the mean of pMSE if masking made no difference. For a masked file with paired records, the labels
    "original" and "released" are swapped at random within pairs (for a logit in closed form, to first order). The usual
    null, (k - 1)(1 - c)^2 c/N for k terms, assumes newly drawn records; it is used for synthetic files, which also have
    the "ratio" pMSE/null, and, times 1 - n'/n, for a sample of n' of n records. Many terms: the log-likelihood is
    reduced by r/2 times the squared slopes of dummies and standardized numbers; r = 1e-6, or r = 1 if the original has
    more than 1,000 terms, the same for every release of it ("ridge" in `parts`). The null is then that of the ridge: p
    - c = c(1 - c) X (c(1 - c) X'X + r)^-1 X'(y - c), one Newton step, for `resamples` draws of y - c with the
    covariance above; k becomes the trace of the squared hat matrix. Undefined if more than 6,000 terms occur.
    Missing is a category of its own, also for numbers. Weights: used when `weighted`. Households are not used. New
    categories distinguish records; undefined if numbers were recoded into categories.
    Reference: Woo, Reiter, Oganian, Karr (2009); Snoke, Raab, Nowok, Dibben, Slavkovic (2018), section 3.

    Examples
    --------
    >>> Propensity(on=["age", "sex"], order=1).text
    "Propensity(on=['age', 'sex'], order=1)"
    """

    label: ClassVar[str] = "Propensity score error (pMSE)"
    description: ClassVar[str] = "How well a model can distinguish released from original records; 0 means not at all."

    revision: ClassVar[int] = 2  # 2: a value also with many terms
    unit: ClassVar[str] = "mean squared propensity error"
    paired: ClassVar[bool] = False
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 0.25)
    sampled: ClassVar[bool] = True
    has_null: ClassVar[bool] = True  # whether its mean is known if masking makes no difference

    model: Literal["logit", "trees"] = "logit"
    order: Literal[1, 2] = 2
    leaf: Annotated[int | None, Range(1)] = None
    resamples: Annotated[int, Range(0)] = 10

    def problems(self) -> Iterator[str]:
        if self.weighted and self.model == "trees":
            yield ".weighted needs model = 'logit'."

    def separation(self, p: Array, released: Array, original: Array) -> float:
        """Return how far the probabilities of a logit separate the files, given the records of each file in each unit."""
        return models.compute_pmse(p, released, original)

    def seconds(self, data: Microdata) -> float | None:
        if self.model == "trees":
            return None
        levels = [column.levels for column in map(data.column, self.variables(data))]
        sizes = [len(own) for own in levels if own is not None]
        amounts = len(levels) - len(sizes)
        terms = count_terms([*(size - 1 for size in sizes), *[1] * amounts], amounts, self.order)
        rows = 2.0 * len(data) if amounts else min(2.0 * len(data), float(np.prod(sizes, dtype=float)))
        row_terms = 1 + len(levels) if self.order == 1 else (len(levels) + 1) * (len(levels) + 2) / 2
        if terms <= RIDGE_ABOVE_TERMS:
            return NEWTON_STEPS * (rows * row_terms**2 * SECONDS_PER_PRODUCT + terms**3 * SECONDS_PER_CUBED_TERM)
        # with many terms about half of the values are the most common category, whose dummy is 0
        row_terms, terms = row_terms / 2, min(terms, MAX_TERMS)
        passes = rows * row_terms * (row_terms * SECONDS_PER_PRODUCT + RIDGE_PASSES * SECONDS_PER_TERM)
        return passes + terms**3 * SECONDS_PER_CUBED_TERM * 2

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names = self.check_variables(original)
        same_rows = masked.base is original and masked.origin is None and masked.paired
        if same_rows and masked.changes.keys().isdisjoint(self.with_weight(masked, *names)):
            return Estimate(value=0.0, parts={"null": 0.0} if self.has_null else {})
        variables = [_JointVariable.of(original, masked, name) for name in names]
        by = self._by_trees if self.model == "trees" else self._by_logit
        value, parts = by(original, masked, variables, rng)
        if parts.get("null") and not masked.paired:
            parts["ratio"] = value / parts["null"]
        return Estimate(value=value, parts=parts)

    # ---- logit ------------------------------------------------------------------------------------------------
    def _by_logit(
        self, original: Microdata, masked: Microdata, variables: list[_JointVariable], rng: Generator
    ) -> tuple[float, dict[str, float]]:
        """Return the value of a logit and its `parts`."""
        amounts = sum(variable.number is not None for variable in variables)
        weights = np.concatenate([own / own.mean() for own in map(self.weights_of, (original, masked))])
        n, total = len(original), len(original) + len(masked)
        unit = first = np.arange(total)  # the unit of each record, and the first record of each unit
        # without numbers many records are equal: one unit for each combination of categories
        if not amounts:
            unit, count = compress([variable.codes for variable in variables])
            first = np.empty(len(count), dtype=np.int64)
            first[unit[::-1]] = np.arange(total - 1, -1, -1)
        many = count_terms([variable.width_in(n) for variable in variables], amounts, self.order) > RIDGE_ABOVE_TERMS
        design = self._design(variables, first, by_count=many)
        counts = [np.bincount(unit[part], weights[part], minlength=len(first)) for part in (slice(n), slice(n, None))]
        rows = np.arange(n) if masked.origin is None else masked.origin
        pairs = None  # of records: their units before and after, and their weights
        if not _is_new_sample(original, masked):
            pairs = _distinct_pairs(unit[:n][rows], unit[n:], weights[:n][rows] * weights[n:], len(first))
        correction = max(1.0 - len(masked) / n, 0.0) if masked.paired else 1.0  # for a finite population
        effect = float((weights[n:] ** 2).mean()) * correction  # design effect of unequal weights and sampling
        if many:
            return self._fit_with_ridge(design, counts, pairs, effect, rng)
        fitted = logit(design, counts[1], counts[0])
        if fitted is None:
            raise Undefined(TOO_LARGE)
        value = self.separation(fitted[1], counts[1], counts[0])
        if not self.has_null:
            return value, {}
        inverse, rank = models.inverse_and_rank(design, counts[0] + counts[1])
        if pairs is None:
            return value, {"null": effect * models.expected_pmse_of_draws(rank, len(masked), n)}
        old, new, share = pairs
        null = models.expected_pmse_of_pairs(design.take(old), design.take(new), inverse, share, float(total))
        return value, {"null": null}

    def _fit_with_ridge(
        self,
        design: TwoWay,
        counts: list[Array],
        pairs: tuple[Array, Array, Array] | None,
        effect: float,
        rng: Generator,
    ) -> tuple[float, dict[str, float]]:
        """Return the value of a logit with many terms, and its null as a mean of draws, to first order."""
        size, units = counts[0] + counts[1], len(counts[0])
        fit = models.ridge_logit(design, counts[1], counts[0], RIDGE_PENALTY)
        if fit is None:
            raise Undefined(TOO_LARGE)
        value = self.separation(fit.p, counts[1], counts[0])
        if self.resamples == 0 or not self.has_null:
            return value, {"ridge": RIDGE_PENALTY}

        def draw_signs(spread: Array) -> Array:
            """Return residuals with these variances, one column per draw."""
            signs = 2.0 * rng.integers(2, size=(len(spread), self.resamples)) - 1.0
            return np.asarray(np.sqrt(spread)[:, np.newaxis] * signs)

        # residuals of newly drawn records, or of labels swapped within pairs
        if pairs is None:
            intercept = fit.share * (1 - fit.share) ** 2 * effect
            residuals = draw_signs(intercept * size)
        else:
            old, new, share = pairs
            intercept, swapped = 0.0, draw_signs(0.25 * share).T
            moves = [np.bincount(new, own, units) - np.bincount(old, own, units) for own in swapped]
            residuals = np.column_stack(moves)
        squares = size @ fit.first_step(design, residuals) ** 2
        return value, {"null": (float(squares.mean()) - intercept) / float(size.sum()), "ridge": RIDGE_PENALTY}

    def _design(self, variables: list[_JointVariable], rows: Array, *, by_count: bool) -> TwoWay:
        """Return the terms of these rows; raise `Undefined` if there are too many."""
        codes = [column for variable in variables for column in variable.categories(rows, by_count=by_count)]
        numbers = [np.nan_to_num(variable.number[rows]) for variable in variables if variable.number is not None]
        widths = [*(int(column.max(initial=0)) for column in codes), *[1] * len(numbers)]
        terms = count_terms(widths, len(numbers), self.order)
        if terms <= MAX_POSSIBLE_TERMS:
            none = np.empty((len(rows), 0))  # so that a design may have no categories, or no numbers
            design = TwoWay.of(np.column_stack([none, *codes]), np.column_stack([none, *numbers]), self.order)
            terms = design.width
        if terms > MAX_TERMS:
            remedy = "name fewer variables, recode them, set order = 1 or model = 'trees'"
            raise Undefined(f"a logit of these variables has {terms:,} terms, more than {MAX_TERMS:,}: {remedy}.")
        return design

    # ---- trees ------------------------------------------------------------------------------------------------
    def _by_trees(
        self, original: Microdata, masked: Microdata, variables: list[_JointVariable], rng: Generator
    ) -> tuple[float, dict[str, float]]:
        """Return the pMSE of trees and its `parts`."""
        bins, sizes = zip(*(variable.bins(len(original)) for variable in variables), strict=True)
        columns, ordered = np.column_stack(bins), np.array([variable.ordered for variable in variables])
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


def _is_new_sample(original: Microdata, masked: Microdata) -> bool:
    """Return whether the released records were newly drawn or are a sample, so that they do not pair with all originals."""
    return not masked.paired or len(masked) != len(original)


def _draw_null(original: Microdata, masked: Microdata, labels: Array, rng: Generator) -> tuple[Array, Array]:
    """Return rows and labels under the null: records drawn from the original, or labels swapped within pairs."""
    n, m = len(original), len(masked)
    if _is_new_sample(original, masked):
        return np.concatenate([np.arange(n), rng.choice(n, m, replace=not masked.paired or m > n)]), labels
    rows = np.arange(n) if masked.origin is None else masked.origin
    swap = rng.random(m) < 0.5
    own = labels.copy()
    own[rows[swap]], own[n:][swap] = 1, 0
    return np.arange(n + m), own


def _distinct_pairs(old: Array, new: Array, weights: Array, units: int) -> tuple[Array, Array, Array]:
    """Return the distinct pairs of different units, before and after, with the sum of their weights."""
    differ = old != new
    pairs, index = np.unique(old[differ] * np.int64(units) + new[differ], return_inverse=True)
    return (*np.divmod(pairs, units), np.bincount(index.ravel(), weights[differ], minlength=len(pairs)))


class _JointVariable(NamedTuple):
    """One variable of both files, original records first: as a number, or as codes."""

    codes: Array
    number: Array | None
    ordered: bool

    @classmethod
    def of(cls, original: Microdata, masked: Microdata, name: str) -> _JointVariable:
        """Read one variable of both files; numbers are standardized by the original."""
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
        """Return the number of design columns of the first n records, the original's.

        These are dummies for every category but one, or the number and whether it is missing.
        """
        return len(np.unique(self.codes[:n])) - (self.number is None)

    def categories(self, rows: Array, *, by_count: bool) -> list[Array]:
        """Return the categories from 0, by frequency or as they come; for a number, whether it is missing, if some are."""
        levels, code, count = np.unique(self.codes, return_inverse=True, return_counts=True)
        number = np.argsort(np.argsort(-count, kind="stable")) if by_count else np.arange(len(levels))
        return [number[code.ravel()[rows]]] if self.number is None or len(levels) > 1 else []

    def bins(self, n: int) -> tuple[Array, int]:
        """Return the bins for a tree, for a number from the original's records, and how many there are."""
        if self.number is None:
            return self.codes.astype(np.int64), int(self.codes.max()) + 1
        edges = bin_edges(self.number[:n])
        return assign_bins(self.number, edges), len(edges) + 2


# Other summaries of propensity scores: the distance of their distributions, and the records assigned correctly.


PROBABILITY_DECIMALS = 9  # probabilities that are equal to so many decimals count as tied


@dataclass(frozen=True)
class _PropensityTest(Propensity):
    """Base of the measures for a logit only, without a null."""

    revision: ClassVar[int] = 1
    has_null: ClassVar[bool] = False

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if self.model != "logit":
            yield ".model must be 'logit'."


@dataclass(frozen=True)
class SPECKS(_PropensityTest):
    """Kolmogorov-Smirnov distance between the propensity scores of released and original records; 0 if they are equal.

    Parameters
    ----------
    weighted : records count with their survey weights, scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees have no scores that could be compared here.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: sup over t of |F(t) - G(t)|, F and G the distribution functions of the fitted probabilities of being
        released, among the original and among the released records. The probabilities are those of Propensity, with its
        ridge.
    Missing is a category of its own, also for numbers. Weights: used when `weighted`. Households are not used. New
    categories distinguish records; undefined if numbers were recoded into categories, or if more than 6,000 terms
    occur. For files that hardly differ it falls slowly, as the square root of pMSE.
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

    def separation(self, p: Array, released: Array, original: Array) -> float:
        _, index = np.unique(np.round(p, PROBABILITY_DECIMALS), return_inverse=True)
        sides = [np.cumsum(np.bincount(index.ravel(), side)) / side.sum() for side in (released, original)]
        return float(np.abs(sides[0] - sides[1]).max())


@dataclass(frozen=True)
class PO50(_PropensityTest):
    """Share of records, beyond guessing, that a model that sees both files assigns to the correct file.

    Parameters
    ----------
    weighted : records count with their survey weights, scaled to a mean of 1 in each file; needs a weight.
    model : "logit"; trees are judged by pMSE.
    order : 1, each variable alone; 2, also the products of two variables and the squares of numbers.
    leaf : not used.
    resamples : not used: there is no null.

    Formula: share of records of both files on the correct side of probability 1/2, minus the share of the larger file;
        synthpop's PO50 is that times 100, for files of equal size. A record at 1/2 counts one half.
    Missing is a category of its own, also for numbers. Weights: used when `weighted`. Households are not used. New
    categories distinguish records; undefined if numbers were recoded into categories, or if more than 6,000 terms
    occur.
    Reference: Raab, Nowok, Dibben (2021), section 2.

    Examples
    --------
    >>> PO50(on=["age", "sex"]).text
    "PO50(on=['age', 'sex'])"
    """

    label: ClassVar[str] = "Records classified correctly (PO50)"
    description: ClassVar[str] = (
        "Share of records, beyond guessing, that a model assigns correctly to the released or the original file."
    )

    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 0.5)

    def separation(self, p: Array, released: Array, original: Array) -> float:
        side = np.sign(np.round(p - 0.5, PROBABILITY_DECIMALS))
        right = (released @ (1 + side) + original @ (1 - side)) / 2
        sizes = released.sum(), original.sum()
        return max(float((right - max(sizes)) / sum(sizes)), 0.0)
