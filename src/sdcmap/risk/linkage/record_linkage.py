"""Probabilistic record linkage of numeric and categorical fields with the weights of Fellegi and Sunter.

EM estimates the weights. It separates two classes of pairs, links and others, by which fields agree. Pairs are counted
by agreement pattern (agree, disagree or missing in each field) in blocks, so the pairs themselves are never in memory.
Fellegi, Sunter (1969); Winkler (1988).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Microdata, Range, Undefined
from sdcmap.kernels.jit import jit
from sdcmap.risk.linkage.agreement_patterns import Patterns, count_patterns
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import MAX_TABLE_CELLS, apply_labels, has_labels
from sdcmap.risk.linkage.cost_models import (
    CostModel,
    build_cost_model,
    find_open_fields,
    link_one_to_one_by_cost,
    require_equality,
)
from sdcmap.risk.linkage.field_costs import CATEGORY, MIN_REACH, NEAR_ZERO, RELATIVE, SAME, Cost
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, Scoring, link_one_to_one
from sdcmap.risk.linkage.link_search import Links, agreement_links

EM_TOLERANCE = 1e-10  # gain in log-likelihood per pair below which EM has converged
SHARE_SLACK = 1e-12  # floating-point error of a share that equals its limit exactly
MAX_LINKS_PER_RECORD = 3.0  # expected links per record; beyond, EM has found similar people, not the same ones


class FellegiSunter(NamedTuple):
    """The classes that EM found."""

    share: float  # p: the share of pairs in the class of links
    m: Array  # P(field agrees | link)
    u: Array  # P(field agrees | no link)
    links: float  # expected links of each known record: the share times the number of released records
    trace: tuple[float, ...]  # log-likelihood per pair after each step, increasing
    converged: bool
    doubts: tuple[str, ...]  # reasons why the class of links may not be the true matches
    patterns: Patterns

    @property
    def agree(self) -> Array:
        """Return wA = log m/u of each field."""
        return np.log(self.m / self.u)

    @property
    def disagree(self) -> Array:
        """Return wD = log (1 - m)/(1 - u) of each field."""
        return np.asarray(np.log((1 - self.m) / (1 - self.u)))

    def thresholds(self, mu: float, lam: float) -> tuple[float, float]:
        """Return (T_mu, T_lambda): pairs of weight at least T_mu are links, at most T_lambda non-links, between
        undecided.

        Under the model, T_mu is the least weight with P(weight >= T_mu | no link) <= mu, and T_lambda the greatest
        with P(weight <= T_lambda | link) <= lambda; infinite where no weight satisfies this. If they cross, either can
        be used alone.
        """
        weight, posterior = self._pattern_weights()
        level, index = np.unique(weight, return_inverse=True)
        of_links = np.bincount(index, self.patterns.pairs * posterior)
        of_others = np.bincount(index, self.patterns.pairs * (1 - posterior))
        above = np.cumsum(of_others[::-1])[::-1] / of_others.sum()
        below = np.cumsum(of_links) / of_links.sum()
        high, low = level[above <= mu + SHARE_SLACK], level[below <= lam + SHARE_SLACK]
        return float(high.min()) if len(high) else np.inf, float(low.max()) if len(low) else -np.inf

    def _pattern_weights(self) -> tuple[Array, Array]:
        """Return the weight of each agreement pattern, and P(link | pattern) under the model."""
        from scipy.special import expit

        weight = (self.patterns.field == 1) @ self.agree + (self.patterns.field == 0) @ self.disagree
        return weight, expit(weight + np.log(self.share / (1 - self.share)))

    def decide(self, mu: float, lam: float) -> LinkDecision:
        """Return the decision of Fellegi and Sunter: links, possible links and nonlinks, with the expected errors.

        mu : the share of nonlinks that may be called links. lam : the share of links that may be called nonlinks.
        Pairs of weight at least T_mu are links, at most T_lambda nonlinks; those between are held for clerical review. If
        the thresholds cross, no pair is left for review, and T_mu decides.
        """
        upper, lower = self.thresholds(mu, lam)
        weight, posterior = self._pattern_weights()
        is_link = weight >= upper
        is_nonlink = (weight <= lower) & ~is_link
        region = np.where(is_link, 0, np.where(is_nonlink, 2, 1))
        pairs = np.bincount(region, self.patterns.pairs, minlength=3)
        true = np.bincount(region, self.patterns.pairs * posterior, minlength=3)
        return LinkDecision(upper, lower, *map(float, pairs), *map(float, true))


class LinkDecision(NamedTuple):
    """The decision about all pairs of two files, and the true links that the model expects in each region.

    Yancey, Winkler, Creecy (2002), section 3.4.
    """

    upper: float  # T_mu
    lower: float  # T_lambda
    links: float  # pairs of weight at least T_mu
    possible: float  # pairs between the thresholds: the clerical review
    nonlinks: float
    true_links: float  # expected true links among the links
    true_possible: float  # expected true links that the review would find
    missed: float  # expected true links among the nonlinks


def fit_em(patterns: Patterns, n: int, steps: int = 1000, m: float = 0.9) -> FellegiSunter:
    """Fit two classes of pairs by EM, with fields independent within each class.

    It starts at p = 1/n, m = 0.9 and u = the share of all pairs that agree.
    """
    agree, differ = (patterns.field == 1).astype(float), (patterns.field == 0).astype(float)
    count = patterns.pairs.astype(float)
    pairs = count.sum()
    edge = 0.5 / pairs  # keeps logarithms finite

    def rate(weight: Array) -> Array:
        yes, no = weight @ agree, weight @ differ
        return np.asarray(np.clip(yes / np.maximum(yes + no, edge), edge, 1 - edge))

    p, m_field, u_field = min(n / pairs, 0.5), np.full(agree.shape[1], m), rate(count)
    trace: list[float] = []
    converged = False
    while len(trace) < steps and not converged:
        # E step: the probability that a pattern belongs to a link, given p, m and u.
        link = np.log(p) + agree @ np.log(m_field) + differ @ np.log1p(-m_field)
        other = np.log1p(-p) + agree @ np.log(u_field) + differ @ np.log1p(-u_field)
        both = np.logaddexp(link, other)
        trace.append(float(count @ both / pairs))
        converged = len(trace) > 1 and trace[-1] - trace[-2] < EM_TOLERANCE
        posterior = np.exp(link - both)
        # M step: p, m and u from the patterns weighted by these probabilities.
        p = float(np.clip(count @ posterior / pairs, edge, 1 - edge))
        m_field, u_field = rate(count * posterior), rate(count * (1 - posterior))
    links = float(p * pairs / n)
    doubts = {
        "many links": links > MAX_LINKS_PER_RECORD,  # the class holds similar people, not the same ones
        "agreement against": (m_field <= u_field).any(),  # a field agrees less often among links than among others
        "not converged": not converged,
    }
    reasons = tuple(reason for reason, holds in doubts.items() if holds)
    return FellegiSunter(p, m_field, u_field, links, tuple(trace), converged, reasons, patterns)


def agreement_matrix(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """Return the agreement scores of all pairs of two small files; the compiled twin of
    `link_search.agreement_scores`.
    """
    score = np.zeros((len(known), len(released)))
    _add_fields(score, known, np.ascontiguousarray(released.T), reach, low, gain)
    return score


@jit
def _add_fields(score: Array, known: Array, fields: Array, reach: Array, low: Array, gain: Array) -> None:
    for i in range(score.shape[0]):
        row = score[i]
        for f in range(fields.shape[0]):
            a, width, base, more = known[i, f], reach[i, f], low[f], gain[f]
            field = fields[f]
            for j in range(len(field)):
                ratio = abs(a - field[j]) / width
                gain_here = base + more * max(0.0, 1.0 - ratio)
                row[j] += gain_here if ratio == ratio else 0.0


FREQ_M = 0.9  # m of weights "freq", the value with the best fit to Table 2 of Yancey, Winkler, Creecy (2002)
Weights = tuple[Array, Array, Mapping[str, float]]  # wD, wA - wD, and facts about them for `parts`


# The units in which the metrics compare two numbers; the difference is then taken relative to max(|known|, 0.1).
NO_LOGARITHM = 1e12  # stands for the logarithm of a value that has none; far from every logarithm
MAX_RATIO = 1e300  # of a value to the smallest of its column, so that no difference overflows


def paper_log(x: Array) -> Array:
    """Return log x for x > 0.

    Zero and negative values have no logarithm. They are placed far away on two sides: zero agrees only with zero, and
    a negative value only with negative ones, whatever their size.
    """
    is_positive = x > 0
    logarithm = np.log(np.where(is_positive, x, 1.0))
    return np.where(np.isnan(x), np.nan, np.where(is_positive, logarithm, np.where(x < 0, 1.0, -1.0) * NO_LOGARITHM))


def smallest_size(x: Array) -> float:
    """Return the smallest |x| that is not 0, or 1 if there is none."""
    sizes = np.abs(x[(x != 0) & ~np.isnan(x)])
    return float(sizes.min()) if len(sizes) else 1.0


def ratio_to_smallest(x: Array, smallest: float) -> Array:
    """Return x / s, at most 1e300 in size."""
    with np.errstate(over="ignore"):
        return np.clip(x / smallest, -MAX_RATIO, MAX_RATIO)


def unit_free_log(x: Array, smallest: float) -> Array:
    """Return sign(x) (1 + log(|x| / s)); values below s/e in size, which only a released file has, count as 0."""
    with np.errstate(divide="ignore"):
        return np.sign(x) * np.maximum(1.0 + np.log(np.abs(ratio_to_smallest(x, smallest))), 0.0)


METRICS: dict[str, Callable[[Array, float], Array]] = {  # a column and the smallest size of its known values
    "d": lambda x, smallest: x,
    "l": lambda x, smallest: paper_log(x),
    "unit-free d": ratio_to_smallest,
    "unit-free l": unit_free_log,
}


def coincidence_probability(x: Array) -> float:
    """Return the probability that two values drawn from a column are equal, without missing ones."""
    count = np.unique(x[~np.isnan(x)], return_counts=True)[1]
    return float(((count / max(count.sum(), 1)) ** 2).sum())


def log_weights(m: Array, u: Array) -> tuple[Array, Array]:
    """Return (wD, wA - wD) with wA = log m/u and wD = log (1 - m)/(1 - u); agreement never counts against a link."""
    low = np.log((1 - m) / (1 - u))
    return low, np.maximum(np.log(m / u) - low, 0.0)


def frequency_weights(known: Array) -> tuple[Array, Array]:
    """Return the weights for m = 0.9 and u = the probability that two values coincide; 0 for fields with u >= m."""
    u = np.array([coincidence_probability(column) for column in known.T])
    is_informative = (u < FREQ_M) & (u > 0)
    low, gain = log_weights(np.full(len(u), FREQ_M), np.where(is_informative, u, 0.5))
    return np.where(is_informative, low, 0.0), np.where(is_informative, gain, 0.0)


def value_cost(known: Array, released: Array) -> Cost | None:
    """Return the cost of a category whose agreement counts by the frequency of the value: log(m / u_v) and log((1 - m) /
    (1 - u_v)), m = 0.9 and u_v the share of the value among the known ones; None for a column with too many values.

    The cost is the largest weight minus the weight; a value that is missing weighs 0, and one with u_v >= m too.
    Yancey, Winkler, Creecy (2002), section 3.4: "the relative frequency with which specific surnames occur".
    """
    values = np.unique(np.concatenate([known[~np.isnan(known)], released[~np.isnan(released)]]))
    size = len(values) + 1  # missing is the last code
    if size * size > MAX_TABLE_CELLS or size == 1:
        return None
    code, released_code = (np.where(np.isnan(x), size - 1, np.searchsorted(values, x)) for x in (known, released))
    count = np.bincount(code[code < size - 1], minlength=size - 1)
    u = count / max(count.sum(), 1)
    is_informative = (u > 0) & (u < FREQ_M)
    low, gain = log_weights(np.full(size - 1, FREQ_M), np.where(is_informative, u, 0.5))
    weight = np.zeros((size, size))
    weight[:-1, :-1] = np.where(is_informative, low, 0.0)[:, np.newaxis]
    np.fill_diagonal(weight[:-1, :-1], np.where(is_informative, low + gain, 0.0))
    table = weight.max() - weight
    return Cost(CATEGORY, code.astype(float), released_code.astype(float), float(size), table=table.ravel())


@dataclass(frozen=True)
class Linkage(Attack):
    """The share of records re-identified by one-to-one probabilistic record linkage.

    The attacker holds records of people whom they can name, and compares each with each released record, field by
    field: a field that is close counts for the pair, one that is far against it. They take the one-to-one links with
    the largest sum of weights. They succeed when a released record is linked to the record it was made from.

    Parameters
    ----------
    metric : "d", the difference relative to the known value; "l", the difference of logarithms relative to the
        logarithm of the known value. Both depend on the unit of the variable, "l" strongly: see the formula. "unit-free
        d" and "unit-free l" do not; use them for files with zeros, negative values or values near 1.
    tolerance : the relative difference t from which on a field disagrees completely, in (0, 1].
    weights : "freq", m = 0.9 and u = the probability that two known values coincide; "equal"; "em", m and u by EM over
        agreement patterns (agreement: a relative difference of at most t); "value", as "freq", but agreement on a
        rare category counts more than on a common one; "known", m and u counted on the true pairs,
        which no attacker can do; or a number for each variable, how much its agreement counts, at least 0.
    open_columns : columns that were released unchanged for all records. "exact": an attacker who holds the original
        records reads in the method note which these are, and requires them to be equal; "as any": they are compared as
        all others, as in experiments of the literature.
    mu, lam : with "em": the share of wrong pairs that may be called links, and of true pairs that may be called
        nonlinks, in [0, 1]. Pairs between the two thresholds are possible links. `parts` then has "review pairs", those
        to review by hand for each target, "review links", the true links expected among them for each target, and "links
        above mu", the share of targets that are linked correctly with a weight above the upper threshold.
    on : the variables the attacker knows; by default every column that an attacker could know (all but weights,
        households and strata). Categories agree when they are equal; in a recoded column, when the value matches the
        label: 37 matches "37", "(35, 40]" and "*".

    Formula: weight of a pair = sum over fields of max(wA - (wA - wD) r/t, wD), r = |a - b| / max(|a|, 0.1), a the
    known value, b the released one; wA = log m/u, wD = log (1-m)/(1-u). "l": log a and log b replace a and b; zero
    agrees with zero only, negative values with any negative value. "unit-free d": a/s and b/s, s the smallest nonzero
    |a| of the column. "unit-free l": sign(x) (1 + log(|x|/s)) of both. Value: expected true links / targets in the
    file; records with equal values are exchanged at random. Up to 25 million pairs (2 million with open columns) the
    assignment is optimal. Beyond, it is made on the best candidates; `parts` then has the share "linked" (below 0.99
    the value is low by what is not linked) and the "gap", a bound on how far the optimum lies above. "zone": the true
    links among the best links, down to where a fifth of them are true. With "em": "em_links" (links per record) and
    "em_doubts", not 0 if the class found is not the matches.
    Missing: a field that is missing in one of two records weighs 0; in an open column missing is a value of its own.
    Weights and households are not used. A constant column does not count.
    Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002), section 3.4; Fellegi, Sunter (1969).

    Examples
    --------
    >>> Linkage("l", tolerance=0.1).text
    "Linkage(metric='l', tolerance=0.1)"
    """

    label: ClassVar[str] = "Re-identified by record linkage"
    description: ClassVar[str] = "Share of records re-identified by probabilistic record linkage."

    # 5: ties are broken the same way on every machine; 6: "l" takes the logarithm of values below 1, and the value is
    # the share of the targets in the file; 7: the fields mu and lam; 8: the review is relative to the targets; 9: an
    # order that does not depend on the codes of categories
    revision: ClassVar[int] = 9

    metric: Literal["d", "l", "unit-free d", "unit-free l"] = "d"
    tolerance: Annotated[float, Range(0, 1, "(]")] = 0.2
    weights: Literal["freq", "value", "equal", "em", "known"] | tuple[float, ...] = field(  # type: ignore[misc, assignment]
        default="freq", kw_only=True
    )
    open_columns: Literal["exact", "as any"] = field(default="exact", kw_only=True)
    mu: Annotated[float | None, Range(0, 1)] = field(default=None, kw_only=True)
    lam: Annotated[float | None, Range(0, 1)] = field(default=None, kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if isinstance(self.weights, tuple) and (not self.weights or min(self.weights) < 0 or not any(self.weights)):
            yield ".weights must be numbers of at least 0, not all 0."
        if (self.mu is None) != (self.lam is None):
            yield ".mu and .lam are stated together: two errors bound the links that are held for review."
        if self.mu is not None and self.weights != "em":
            yield '.mu and .lam need weights "em", which estimate the probability of each agreement pattern.'

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = list(super().incompatibilities(data))
        yield from problems
        if not problems and isinstance(self.weights, tuple) and len(self.weights) != (k := len(self.variables(data))):
            yield f"Linkage.weights has {len(self.weights)} numbers for {k} variables."

    def cost_models(self, pair: Pair) -> list[CostModel]:
        """Return wA minus the weight of each field as its cost; agreement never counts against a link."""
        return [build_cost_model(pair, self._costs(pair, *self._weights(pair)[:2]))]

    def _costs(self, pair: Pair, low: Array, gain: Array) -> list[Cost]:
        known, released = self._known_in_metric(pair), self._released_in_metric(pair)
        absent = np.maximum(low + gain, 0.0)
        costs = []
        for f, is_category in enumerate(pair.categorical):
            kind, missing = SAME if is_category else RELATIVE, absent[f]
            cost = Cost(kind, known[f], released[:, f], self.tolerance, gain[f], both=missing, one=missing)
            by_label = apply_labels(pair, f, cost, missing) if is_category else cost
            # Labels of a recoded column stand for several values, so only equal values have a weight of their own.
            by_value = value_cost(known[f], released[:, f]) if is_category and self.weights == "value" else None
            costs.append(by_label if by_value is None or by_label is not cost else by_value)
        return costs

    def link(self, pair: Pair) -> LinkTable:
        open_costs = find_open_fields(pair) if self.open_columns == "exact" else {}
        low, gain, facts = self._weights(pair)
        if open_costs or has_labels(pair) or (self.weights == "value" and any(pair.categorical)):
            model = build_cost_model(pair, self._costs(pair, low, gain))
            table = link_one_to_one_by_cost(pair, require_equality([model], open_costs, has_column_costs=True))
            table = table._replace(weight=table.weight + float((low + gain).sum()))
            return table._replace(facts={**table.facts, **facts, **self._review_parts(pair, table)})
        known, released, reach = self._comparable(pair)

        def best(rows: Array, keep: int) -> Links:
            return agreement_links(known[rows], released, reach[rows], low, gain, keep)

        block = lambda rows: agreement_matrix(known[rows], released, reach[rows], low, gain)
        table = link_one_to_one(pair, Scoring(block, best))
        return table._replace(facts={**table.facts, **facts, **self._review_parts(pair, table)})

    def _review_parts(self, pair: Pair, table: LinkTable) -> dict[str, float]:
        """Return the clerical review that the two errors leave, for `parts`; nothing where none are stated."""
        if self.mu is None or self.lam is None:
            return {}
        decision = agreement_classes(*self._comparable(pair)).decide(self.mu, self.lam)
        is_sure = table.weight >= decision.upper
        targets = len(pair.targets)  # without an archive, all released records
        return {
            "review pairs": decision.possible / targets,
            "review links": decision.true_possible / targets,
            "links above mu": float(table.correct[is_sure].sum()) / targets,
        }

    def classes(self, original: Microdata, masked: Microdata) -> FellegiSunter:
        """Return what EM finds in the agreement patterns of this file: m and u, trace, doubts and thresholds."""
        return agreement_classes(*self._comparable(self.pair(original, masked, self.check_variables(original))))

    def _comparable(self, pair: Pair) -> tuple[Array, Array, Array]:
        """Return both files in the units of the metric, and the difference t max(|a|, 0.1) from which on a field
        disagrees.
        """
        known, released = np.column_stack(self._known_in_metric(pair)), self._released_in_metric(pair)
        reach = np.maximum(self.tolerance * np.maximum(np.abs(known), NEAR_ZERO), MIN_REACH)
        reach = np.where(np.isnan(reach), 1.0, reach)
        return known, released, np.where(pair.categorical, 0.5, reach)  # codes differ by at least 1

    def _known_in_metric(self, pair: Pair) -> tuple[Array, ...]:
        """Return the known columns in the units of the metric."""
        return pair.remember_known(("in metric", self.metric), lambda: self._convert(pair, pair.known_columns))

    def _released_in_metric(self, pair: Pair) -> Array:
        """Return the released columns in the units of the metric, as a table."""
        return pair.released if self.metric == "d" else np.column_stack(self._convert(pair, pair.released.T))

    def _convert(self, pair: Pair, columns: Iterable[Array]) -> tuple[Array, ...]:
        """Return the numeric ones of these columns in the units of the metric, and the others as they are."""
        smallest = pair.remember_known(
            "smallest sizes", lambda: np.array([smallest_size(x) for x in pair.known_columns])
        )
        convert = METRICS[self.metric]
        each = zip(columns, smallest.tolist(), pair.categorical, strict=True)
        return tuple(x if is_category else convert(x, size) for x, size, is_category in each)

    def _weights(self, pair: Pair) -> Weights:
        if isinstance(self.weights, tuple):
            gain = np.array(self.weights)
            return -gain / 2, gain, {}
        if self.weights == "equal":
            return np.full(len(pair.names), -0.5), np.ones(len(pair.names)), {}
        if self.weights in ("freq", "value"):
            return *pair.remember_known("frequency weights", lambda: frequency_weights(pair.known)), {}
        if self.weights == "known":
            return *log_weights(*_true_rates(pair, *self._comparable(pair))), {}
        classes = agreement_classes(*self._comparable(pair))
        low, gain = log_weights(classes.m, classes.u)
        return low, gain, {"em_links": classes.links, "em_doubts": float(len(classes.doubts))}


def agreement_classes(known: Array, released: Array, reach: Array) -> FellegiSunter:
    """Fit EM to the agreement patterns of all pairs."""
    return fit_em(count_patterns(known, released, reach), len(known))


def _true_rates(pair: Pair, known: Array, released: Array, reach: Array) -> tuple[Array, Array]:
    """Return (m, u): how often fields agree among true pairs, and among all pairs."""
    with_truth = np.flatnonzero(pair.truth >= 0)
    if len(with_truth) == 0:
        raise Undefined('weights "known" need true pairs, but the attacker\'s file has none of the released records.')
    own = pair.truth[with_truth]
    distance = np.abs(known[own] - released[with_truth])
    rates = [((distance <= reach[own]).sum(axis=0), (~np.isnan(distance)).sum(axis=0))]
    patterns = count_patterns(known, released, reach)
    rates.append((patterns.pairs @ (patterns.field == 1), patterns.pairs @ (patterns.field >= 0)))
    true, every = ((yes + 0.5) / (total + 1) for yes, total in rates)  # smoothed, so that no rate is 0 or 1
    return true, every
