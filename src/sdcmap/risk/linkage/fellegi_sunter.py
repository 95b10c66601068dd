"""Fellegi and Sunter's weights by EM: two classes of pairs, links and others, told apart by which fields agree.

Pairs are counted by agreement pattern (agree, disagree or missing in each field), in blocks; no pair is held.
Fellegi, Sunter (1969); Winkler (1988).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sdcmap.kernels.arrays import Array

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
        weight: Array = np.log(self.m / self.u)
        return weight

    @property
    def disagree(self) -> Array:
        """wD = log (1 - m)/(1 - u) of each field."""
        weight: Array = np.log((1 - self.m) / (1 - self.u))
        return weight

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
        raise ValueError(f"at most {MOST_FIELDS} fields have patterns that can be numbered.")
    place = 3 ** np.arange(fields, dtype=np.int64)
    dense = int(3**fields) <= DENSE_PATTERNS
    total = np.zeros(3**fields if dense else 0, dtype=np.int64)
    met: dict[int, int] = {}
    step = max(1, 2_000_000 // max(1, m * fields))
    for start in range(0, n, step):
        code = ((agreement(slice(start, min(n, start + step))) + 1) @ place).ravel()
        if dense:
            total += np.bincount(code, minlength=len(total))
            continue
        for pattern, count in zip(*np.unique(code, return_counts=True), strict=True):
            met[int(pattern)] = met.get(int(pattern), 0) + int(count)
    patterns = np.flatnonzero(total) if dense else np.array(sorted(met), dtype=np.int64)
    count = total[patterns] if dense else np.array([met[int(pattern)] for pattern in patterns], dtype=np.int64)
    return Patterns((patterns[:, np.newaxis] // place % 3 - 1).astype(np.int8), count)


def em(patterns: Patterns, n: int, steps: int = 1000, m: float = 0.9) -> FellegiSunter:
    """Two classes, fields independent within each; starts at p = 1/n, m = .9 and u = how often all pairs agree."""
    agree, differ = (patterns.field == 1).astype(float), (patterns.field == 0).astype(float)
    count = patterns.pairs.astype(float)
    pairs = count.sum()
    edge = 0.5 / pairs  # keeps logarithms finite

    def rate(weight: Array) -> Array:
        yes, no = weight @ agree, weight @ differ
        share: Array = np.clip(yes / np.maximum(yes + no, edge), edge, 1 - edge)
        return share

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
    doubts = _doubts(links, m_field, u_field, converged)
    return FellegiSunter(p, m_field, u_field, links, tuple(trace), converged, doubts, patterns)


def _doubts(links: float, m: Array, u: Array, converged: bool) -> tuple[str, ...]:
    doubts = []
    if links > MOST_LINKS:
        doubts.append("many links")  # a class of similar people, not of the same
    if (m <= u).any():
        doubts.append("agreement against")  # a field that agrees less among links than among others
    if not converged:
        doubts.append("not converged")
    return tuple(doubts)
