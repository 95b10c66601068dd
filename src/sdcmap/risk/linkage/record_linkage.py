"""Probabilistic record linkage of numeric and categorical fields, with Fellegi and Sunter's weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from sdcmap.core import Array, Microdata, Range, Undefined
from sdcmap.kernels.jit import jit
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.column_readings import as_read, labeled
from sdcmap.risk.linkage.cost_models import CostModel, asking_first, cost_model_of, links_one_to_one, open_fields
from sdcmap.risk.linkage.field_costs import LEAST_REACH, NEAR_ZERO, RELATIVE, SAME, Cost
from sdcmap.risk.linkage.file_pair import LinkTable, Pair, Scoring, link_one_to_one
from sdcmap.risk.linkage.link_search import Links, agreement_links

# Fellegi and Sunter's weights by EM: two classes of pairs, links and others, told apart by which fields agree.
#
# Pairs are counted by agreement pattern (agree, disagree or missing in each field), in blocks; no pair is held.
# Fellegi, Sunter (1969); Winkler (1988).


DENSE_PATTERNS = 1 << 24
MOST_FIELDS = 39  # 3^39 patterns have a number of 64 bits
TOLERANCE = 1e-10  # of the log-likelihood of one pair
SLACK = 1e-12  # of a share that is met exactly
MOST_LINKS = 3.0  # links a record beyond which the class found is not the matches


class Patterns(NamedTuple):
    """Agreement patterns that occur, and in how many pairs."""

    field: Array  # patterns x fields: 1 agree, 0 disagree, -1 missing
    pairs: Array


class FellegiSunter(NamedTuple):
    """What EM found.

    links : expected links for each known record, the class's share of the pairs times the released records.
    trace : log-likelihood a pair after each step, rising. doubts : why the class found is not the matches; none: no reason.
    """

    share: float  # p: of the pairs that are in the class of links
    m: Array  # P(field agrees | link)
    u: Array  # P(field agrees | no link)
    links: float
    trace: tuple[float, ...]
    converged: bool
    doubts: tuple[str, ...]
    patterns: Patterns

    @property
    def agree(self) -> Array:
        """wA = log m/u of each field."""
        return np.log(self.m / self.u)

    @property
    def disagree(self) -> Array:
        """wD = log (1 - m)/(1 - u) of each field."""
        return np.asarray(np.log((1 - self.m) / (1 - self.u)))

    def thresholds(self, mu: float, lam: float) -> tuple[float, float]:
        """(T_mu, T_lambda): pairs of at least T_mu are called links, of at most T_lambda no links; between, looked at.

        T_mu is the least weight with P(weight >= T_mu | no link) <= mu, T_lambda the greatest with
        P(weight <= T_lambda | link) <= lambda, under the model; infinite where no weight will do. Where they cross,
        either serves alone.
        """
        from scipy.special import expit

        agree, differ = self.patterns.field == 1, self.patterns.field == 0
        weight = agree @ self.agree + differ @ self.disagree
        posterior = expit(weight + np.log(self.share / (1 - self.share)))  # P(link | pattern)
        level, place = np.unique(weight, return_inverse=True)
        of_links = np.bincount(place, self.patterns.pairs * posterior)
        of_others = np.bincount(place, self.patterns.pairs * (1 - posterior))
        above = np.cumsum(of_others[::-1])[::-1] / of_others.sum()
        below = np.cumsum(of_links) / of_links.sum()
        high, low = level[above <= mu + SLACK], level[below <= lam + SLACK]
        return float(high.min()) if len(high) else np.inf, float(low.max()) if len(low) else -np.inf


def count_patterns(agreement: Callable[[slice], Array], n: int, m: int, fields: int) -> Patterns:
    """Patterns of all n x m pairs; agreement(rows): int8, rows x m x fields, of 1, 0 and -1 as in `Patterns`."""
    if fields > MOST_FIELDS:
        raise Undefined(f'weights "em" and "known" take at most {MOST_FIELDS} variables; there are {fields}.')
    place = 3 ** np.arange(fields, dtype=np.int64)
    dense = int(3**fields) <= DENSE_PATTERNS
    total = np.zeros(3**fields if dense else 0, dtype=np.int64)
    met: Counter[int] = Counter()
    step = max(1, 2_000_000 // max(1, m * fields))
    for start in range(0, n, step):
        code = ((agreement(slice(start, min(n, start + step))) + 1) @ place).ravel()
        if dense:
            total += np.bincount(code, minlength=len(total))
        else:
            met.update(dict(zip(*(part.tolist() for part in np.unique(code, return_counts=True)), strict=True)))
    patterns = np.flatnonzero(total) if dense else np.array(sorted(met), dtype=np.int64)
    count = total[patterns] if dense else np.array([met[pattern] for pattern in sorted(met)], dtype=np.int64)
    return Patterns((patterns[:, np.newaxis] // place % 3 - 1).astype(np.int8), count)


def em(patterns: Patterns, n: int, steps: int = 1000, m: float = 0.9) -> FellegiSunter:
    """Two classes, fields independent within each; starts at p = 1/n, m = .9 and u = how often all pairs agree."""
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
        link = np.log(p) + agree @ np.log(m_field) + differ @ np.log1p(-m_field)
        other = np.log1p(-p) + agree @ np.log(u_field) + differ @ np.log1p(-u_field)
        both = np.logaddexp(link, other)
        trace.append(float(count @ both / pairs))
        converged = len(trace) > 1 and trace[-1] - trace[-2] < TOLERANCE
        posterior = np.exp(link - both)
        p = float(np.clip(count @ posterior / pairs, edge, 1 - edge))
        m_field, u_field = rate(count * posterior), rate(count * (1 - posterior))
    links = float(p * pairs / n)
    doubts = {
        "many links": links > MOST_LINKS,  # a class of similar people, not of the same
        "agreement against": (m_field <= u_field).any(),  # a field that agrees less among links than among others
        "not converged": not converged,
    }
    reasons = tuple(reason for reason, holds in doubts.items() if holds)
    return FellegiSunter(p, m_field, u_field, links, tuple(trace), converged, reasons, patterns)


# Agreement scores of all pairs of two small files, compiled: the plain formula is `links.agreement_scores`.


def agreement_matrix(known: Array, released: Array, reach: Array, low: Array, gain: Array) -> Array:
    """n x m: the sum over the fields present on both sides of low + gain max(0, 1 - |known - released| / reach)."""
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
                far = abs(a - field[j]) / width
                near = base + more * max(0.0, 1.0 - far)
                row[j] += near if far == far else 0.0


AGREES = 0.9  # m of weights "freq"
Weights = tuple[Array, Array, Mapping[str, float]]  # wD, wA - wD, and what is to be said of them


def signed_log(x: Array) -> Array:
    """sign(x) log max(|x|, 1): log x from 1 on, and defined for zero and below."""
    return np.sign(x) * np.log(np.maximum(np.abs(x), 1.0))


def coincidence(x: Array) -> float:
    """P(two values drawn from a column are equal), missing ones left out."""
    count = np.unique(x[~np.isnan(x)], return_counts=True)[1]
    return float(((count / max(count.sum(), 1)) ** 2).sum())


def weigh(m: Array, u: Array) -> tuple[Array, Array]:
    """(wD, wA - wD) with wA = log m/u, wD = log (1 - m)/(1 - u); agreement never counts against a link."""
    low = np.log((1 - m) / (1 - u))
    return low, np.maximum(np.log(m / u) - low, 0.0)


def frequency_weights(known: Array) -> tuple[Array, Array]:
    """m = .9 and u = how often two values coincide; a field with u >= m says nothing.  YWC notes: best fit to Table 2"""
    u = np.array([coincidence(column) for column in known.T])
    telling = (u < AGREES) & (u > 0)
    low, gain = weigh(np.full(len(u), AGREES), np.where(telling, u, 0.5))
    return np.where(telling, low, 0.0), np.where(telling, gain, 0.0)


@dataclass(frozen=True)
class Linkage(Attack):
    """The share of records that probabilistic record linkage, one to one, gives back to their owners.

    The snooper holds records of people he can name, and compares each with each released record, field by field: a
    field that is near counts for the pair, one that is far against it. He takes the one-to-one links with the largest sum
    of weights. He succeeds when a released record is linked to the record it was made from.

    Parameters
    ----------
    metric : "d", the difference relative to his value; "l", the difference of logarithms relative to the logarithm of
        his value (of zero and negative values: the signed log, sign(x) log max(|x|, 1)).
    tolerance : the relative difference t from which on a field disagrees wholly, in (0, 1].
    weights : "freq", m = .9 and u = the probability that two of his values coincide; "equal"; "em", m and u by EM over
        agreement patterns (agreement: a relative difference of at most t); "known", m and u counted on the true pairs,
        which no snooper can; or a number for each variable, how much its agreement counts, at least 0.
    open_columns : of columns that are released as they were, for everybody. "exact": a snooper who holds the original
        records reads in the note which these are, and asks first that they are equal; "as any": he compares them as all
        others, as experiments of the literature do.
    on : the variables he knows; by default every column that somebody could know (all but weights, households and strata).
        Categories agree when they are equal; of a column that was recoded, when the value may be behind the label: 37
        behind "37", "(35, 40]" and "*".

    Formula: weight of a pair = sum over fields of max(wA - (wA - wD) r/t, wD), r = |a - b| / max(|a|, 0.1), a his value,
    b the released one; wA = log m/u, wD = log (1-m)/(1-u). Value: expected hits / released records; records with equal
    values are exchanged at random. Up to 25 million pairs (2 million where columns are open) the assignment is optimal;
    beyond, it is made on the best candidates (50 a record, more where needed), with the share "linked" (below .99 the value
    is low by what is not linked) and the "gap", a bound on how far the optimum lies above, in `parts`. "zone": the hits
    among the best links, down to where a fifth of them are true. With "em", "em_links" (links a record) and "em_doubts":
    not 0 where the class found is not the matches (over 3 links a record, a field with m <= u, or no convergence).
    Missing: a field that is missing in one of two records weighs 0; in an open column missing is a value of its own.
    Weights and households are not used. A constant column says nothing.
    Releasing nothing leaves a guess: 1/n.
    Reference: Yancey, Winkler, Creecy (2002), section 4; Fellegi, Sunter (1969).

    Examples
    --------
    >>> Linkage("l", tolerance=0.1).text
    "Linkage(metric='l', tolerance=0.1)"
    """

    label: ClassVar[str] = "Re-identified by record linkage"
    description: ClassVar[str] = "Share of records re-identified by probabilistic record linkage."

    revision: ClassVar[int] = 5  # 3: open columns are exact; 4: labels are read; 5: ties alike on every machine

    metric: Literal["d", "l"] = "d"
    tolerance: Annotated[float, Range(0, 1, "(]")] = 0.2
    weights: Literal["freq", "equal", "em", "known"] | tuple[float, ...] = field(  # type: ignore[misc, assignment]
        default="freq", kw_only=True
    )
    open_columns: Literal["exact", "as any"] = field(default="exact", kw_only=True)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        if isinstance(self.weights, tuple) and (not self.weights or min(self.weights) < 0 or not any(self.weights)):
            yield ".weights must be numbers of at least 0, not all 0."

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = list(super().incompatibilities(data))
        yield from problems
        if not problems and isinstance(self.weights, tuple) and len(self.weights) != (k := len(self.variables(data))):
            yield f"Linkage.weights has {len(self.weights)} numbers for {k} variables."

    def courses(self, pair: Pair) -> list[CostModel]:
        """wA less the weight of each field; agreement never counts against a link."""
        return [cost_model_of(pair, self._costs(pair, *self._weights(pair)[:2]))]

    def _costs(self, pair: Pair, low: Array, gain: Array) -> list[Cost]:
        known, released = self._known_columns(pair), self._as_seen(pair, pair.released)
        absent = np.maximum(low + gain, 0.0)
        costs = []
        for f, is_category in enumerate(pair.categorical):
            kind, missing = SAME if is_category else RELATIVE, absent[f]
            cost = Cost(kind, known[f], released[:, f], self.tolerance, gain[f], both=missing, one=missing)
            costs.append(as_read(pair, f, cost, missing) if is_category else cost)
        return costs

    def link(self, pair: Pair) -> LinkTable:
        opened = open_fields(pair) if self.open_columns == "exact" else {}
        low, gain, said = self._weights(pair)
        if opened or labeled(pair):
            course = cost_model_of(pair, self._costs(pair, low, gain))
            table = links_one_to_one(pair, asking_first([course], opened, by_column=True))
            return table._replace(weight=table.weight + float((low + gain).sum()), facts={**table.facts, **said})
        known, released, reach = self._comparable(pair)

        def best(rows: Array, keep: int) -> Links:
            return agreement_links(known[rows], released, reach[rows], low, gain, keep)

        block = lambda rows: agreement_matrix(known[rows], released, reach[rows], low, gain)
        table = link_one_to_one(pair, Scoring(block, best))
        return table._replace(facts={**table.facts, **said})

    def classes(self, original: Microdata, masked: Microdata) -> FellegiSunter:
        """What EM finds in the agreement patterns of this file: m and u, its trace, doubts and thresholds."""
        return agreement_classes(*self._comparable(self.pair(original, masked, self.check_variables(original))))

    def _comparable(self, pair: Pair) -> tuple[Array, Array, Array]:
        """Both files as the metric sees them, and the difference t max(|a|, 0.1) from which on a field disagrees."""
        known, released = np.column_stack(self._known_columns(pair)), self._as_seen(pair, pair.released)
        reach = np.maximum(self.tolerance * np.maximum(np.abs(known), NEAR_ZERO), LEAST_REACH)
        reach = np.where(np.isnan(reach), 1.0, reach)
        return known, released, np.where(pair.categorical, 0.5, reach)  # codes differ by 1 at least

    def _known_columns(self, pair: Pair) -> tuple[Array, ...]:
        """The known columns as the metric sees them."""
        if self.metric == "d":
            return pair.known_columns
        both = list(zip(pair.known_columns, pair.categorical, strict=True))
        return pair.of_known("logarithms", lambda: tuple(x if category else signed_log(x) for x, category in both))

    def _as_seen(self, pair: Pair, table: Array) -> Array:
        return table if self.metric == "d" else np.where(pair.categorical, table, signed_log(table))

    def _weights(self, pair: Pair) -> Weights:
        if isinstance(self.weights, tuple):
            gain = np.array(self.weights)
            return -gain / 2, gain, {}
        if self.weights == "equal":
            return np.full(len(pair.names), -0.5), np.ones(len(pair.names)), {}
        if self.weights == "freq":
            return *pair.of_known("frequency weights", lambda: frequency_weights(pair.known)), {}
        if self.weights == "known":
            return *weigh(*_true_rates(pair, *self._comparable(pair))), {}
        classes = agreement_classes(*self._comparable(pair))
        low, gain = weigh(classes.m, classes.u)
        return low, gain, {"em_links": classes.links, "em_doubts": float(len(classes.doubts))}


def agreements(known: Array, released: Array, reach: Array) -> Array:
    """known x released x fields: 1 where the difference is at most `reach`, 0 where it is more, -1 where one is missing."""
    apart = np.abs(known[:, np.newaxis, :] - released[np.newaxis, :, :])
    return np.where(np.isnan(apart), -1, apart <= reach[:, np.newaxis, :]).astype(np.int8)


def agreement_classes(known: Array, released: Array, reach: Array) -> FellegiSunter:
    """EM over the agreement patterns of all pairs."""
    return em(_patterns(known, released, reach), len(known))


def _patterns(known: Array, released: Array, reach: Array) -> Patterns:
    sizes = len(known), len(released), known.shape[1]
    return count_patterns(lambda rows: agreements(known[rows], released, reach[rows]), *sizes)


def _true_rates(pair: Pair, known: Array, released: Array, reach: Array) -> tuple[Array, Array]:
    """(m, u): how often fields agree among true pairs, and among all pairs."""
    held = np.flatnonzero(pair.truth >= 0)
    if len(held) == 0:
        raise Undefined('weights "known" need true pairs, and the snooper knows none of the released records.')
    own = pair.truth[held]
    apart = np.abs(known[own] - released[held])
    rates = [((apart <= reach[own]).sum(axis=0), (~np.isnan(apart)).sum(axis=0))]
    patterns = _patterns(known, released, reach)
    rates.append((patterns.pairs @ (patterns.field == 1), patterns.pairs @ (patterns.field >= 0)))
    true, every = ((yes + 0.5) / (total + 1) for yes, total in rates)  # never 0 or 1
    return true, every
