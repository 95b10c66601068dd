"""What an intruder believes about every record of a file once he has seen a release of it.

Beliefs are means and variances: all that quadratic loss asks for. Before a release he believes N(mean, variance) of the
file about everybody, which a published table tells him.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sdcmap.core import Array, Method, Microdata, SchemaError, Undefined
from sdcmap.core.added_noise import AddedNoise, undo_rescaling
from sdcmap.core.likelihood import IMPOSSIBLE, Field, Same
from sdcmap.data.cells import cells
from sdcmap.kernels.statistics.beliefs import normal_posterior, posterior_moments
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.linkage.file_pair import LinkTable, Pair

BLOCK = 4096  # released values whose posteriors are looked at together
REACH = 8.0  # standard deviations of the prior beyond which nothing is believed


@dataclass(frozen=True)
class Beliefs:
    """Mean and variance of the belief about each record, the link weight that it rests on, and the prior; where only some
    records were linked, which."""

    mean: Array
    variance: Array
    weight: Array
    prior: tuple[float, float]
    among: Array | None = None

    @classmethod
    def before(cls, n: int, prior: tuple[float, float]) -> Beliefs:
        """The prior about each of n records."""
        return cls(np.full(n, prior[0]), np.full(n, prior[1]), np.zeros(n), prior)


def prior_of(data: Microdata, name: str) -> tuple[float, float]:
    """Mean and variance of a variable, missing values left out: what is known of anybody before a release."""
    x = data.numbers(name)
    x = x[np.isfinite(x)]
    if len(x) < 2 or not x.max() > x.min():
        raise Undefined(f"{name!r} has no two different values, so there is nothing to learn about it.")
    return float(x.mean()), float(x.var())


# ---- the record is known, the noise is normal -----------------------------------------------------------------
def conjugate_beliefs(original: Microdata, masked: Microdata, name: str, method: Method | None) -> Beliefs:
    """Of an intruder who knows the record and sees x + e: N(prior) updated by y ~ N(x, l2), who is told l2."""
    prior = prior_of(original, name)
    if method is None:
        raise Undefined("nobody said how the file was made: score it in a sweep, or give the measure its method.")
    rows = released_rows(original, masked)
    beliefs = Beliefs.before(len(original), prior)
    if name in method.masked_names:
        noise = method.added_noise()
        seen, spread = undo_rescaling(masked, (name,), noise)[:, 0], noise_variances(original, name, noise)
    else:
        seen, spread = masked.numbers(name), np.zeros(len(original))
    here = np.flatnonzero(rows >= 0)
    here = here[np.isfinite(seen[rows[here]])]
    beliefs.mean[here], beliefs.variance[here] = normal_posterior(prior, seen[rows[here]], spread[here])
    beliefs.weight[rows >= 0] = 1.0
    return beliefs


def noise_variances(original: Microdata, name: str, noise: AddedNoise) -> Array:
    """l2 of each record: the share of the variance of its stratum, as the noise was drawn."""
    code = original.view(cells, noise.within).code if noise.within else np.zeros(len(original), dtype=np.int64)
    x = original.numbers(name)
    variances = np.zeros(len(original))
    for stratum in np.unique(code):
        rows = np.flatnonzero(code == stratum)
        known = x[rows][~np.isnan(x[rows])]
        variances[rows] = noise.share * (float(known.var(ddof=1)) if len(known) > 1 else 0.0)
    return variances


def released_rows(original: Microdata, masked: Microdata) -> Array:
    """The released row that was each original record; -1: it was not released."""
    if masked.origin is None:
        if len(masked) != len(original):
            raise Undefined("the masked file does not say which record each of its rows was.")
        return np.arange(len(original))
    rows = np.full(len(original), -1)
    rows[masked.origin] = np.arange(len(masked))
    return rows


# ---- any method, with links -----------------------------------------------------------------------------------
def linked_beliefs(
    original: Microdata, masked: Microdata, name: str, method: Method | None, pair: Pair, table: LinkTable,
    person: Array, inclusion: float,
) -> Beliefs:  # fmt: skip
    """Of an intruder who links: a mixture of what the linked records say, each with the probability that its link is
    true, and of the prior with the rest.

    person : the original's row that each of his records is (its length: nobody). inclusion : the probability that his
    target is in the file at all. Records that are equal in what he knows are exchanged at random, so a link of group A
    to group B says the mean of B about everybody in A, with |B| times the probability of one such link.
    """
    prior = prior_of(original, name)
    linked = np.flatnonzero(table.partner >= 0)
    people, records = len(pair.known_size), len(pair.released_size)  # groups of them
    known_group = pair.known_group[np.argsort(pair.known_rows)]
    group = pair.released_group[np.argsort(pair.released_rows)]
    key, at = np.unique(known_group[table.partner[linked]] * records + group[linked], return_index=True)
    mine, theirs = np.divmod(key, records)
    weight = np.minimum(pair.released_size[theirs] * table.probability[linked[at]], 1.0)
    weight = inclusion * weight / np.maximum(np.bincount(mine, weight, minlength=people), 1.0)[mine]
    center, spread = released_beliefs(original, masked, name, method, prior)
    count = np.maximum(np.bincount(group, minlength=records), 1)
    sums = (np.bincount(group, values, minlength=records) for values in (center, spread + center**2))
    moments = (np.ones(len(mine)), *((total / count)[theirs] for total in sums))
    share, once, twice = (np.bincount(mine, weight * moment, minlength=people) for moment in moments)
    variance = np.maximum(twice + (1 - share) * prior[1] - once**2, 0.0)
    beliefs = Beliefs.before(len(original), prior)
    who = person[pair.known_rows]
    here = who < len(original)
    for column, values in ((beliefs.mean, prior[0] + once), (beliefs.variance, variance), (beliefs.weight, share)):
        column[who[here]] = values[pair.known_group[here]]
    return beliefs


def released_beliefs(
    original: Microdata, masked: Microdata, name: str, method: Method | None, prior: tuple[float, float]
) -> tuple[Array, Array]:
    """Mean less the prior's and variance of the belief that each released record says of its owner, once he is known.

    A variable that the method did not mask is believed as it stands; so is one whose masking nobody described, or whose
    method states no likelihood. A missing value leaves the prior.
    """
    seen = masked.numbers(name)
    known = np.isfinite(seen)
    center, variance = np.where(known, seen, prior[0]) - prior[0], np.where(known, 0.0, prior[1])
    if method is None or name not in method.masked_names:
        return center, variance
    try:
        parts = _likelihoods(original, masked, name, method)
    except Undefined:
        return center, variance
    reach = REACH * np.sqrt(prior[1])
    for rows, log_likelihood, ends in parts:
        span = min(ends[0], prior[0] - reach), max(ends[1], prior[0] + reach)
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            mean, spread = posterior_moments(partial(log_likelihood, some), seen[some], prior, span)
            possible = np.isfinite(mean)
            center[some[possible]], variance[some[possible]] = (mean - prior[0])[possible], spread[possible]
    return center, variance


LogLikelihood = Callable[[Array, Array], Array]


def _likelihoods(
    original: Microdata, masked: Microdata, name: str, method: Method
) -> list[tuple[Array, LogLikelihood, tuple[float, float]]]:
    """The released rows of each stratum, log P(their released value | value) as a function of the value, and its ends.

    The method states its likelihood of known records; a field's coordinate is a monotone function of the value, so it is
    known between the values of the file too, and beyond them where it is a straight line.
    """
    rows = np.flatnonzero(np.isfinite(original.numbers(name)))
    rows = rows[np.argsort(original.numbers(name)[rows], kind="stable")]
    known = original.only([n for n in original.names if n == name or n not in method.masked_names]).take(rows)
    try:
        fields = method.log_likelihood(Microdata(known.schema, known.columns), masked)
    except SchemaError as reason:
        raise Undefined(str(reason)) from None
    x = known.numbers(name)
    apart = [np.concatenate([field.known, field.released]) for field in fields if isinstance(field.density, Same)]
    both = [np.unique(values, return_inverse=True)[1] for values in apart]
    code = compress(both)[0] if both else np.zeros(len(x) + len(masked), dtype=np.int64)
    noisy = [field for field in fields if not isinstance(field.density, Same)]
    seen, likelihoods = np.isfinite(masked.numbers(name)), []
    for stratum in np.unique(code[: len(x)]):
        mine, theirs = np.flatnonzero(code[: len(x)] == stratum), np.flatnonzero((code[len(x) :] == stratum) & seen)
        known_fields = [field for field in noisy if not np.isnan(field.known[mine]).any()]
        curves = [(_curve(x[mine], field.known[mine]), field) for field in known_fields]
        if curves and len(theirs):
            likelihoods.append((theirs, _summed(curves), (float(x[mine[0]]), float(x[mine[-1]]))))
    return likelihoods


Curve = Callable[[Array], Array]


def _summed(curves: list[tuple[Curve, Field]]) -> LogLikelihood:
    def log_likelihood(rows: Array, values: Array) -> Array:
        total = np.zeros(values.shape)
        for curve, field in curves:
            at = curve(values)
            released = np.broadcast_to(field.released[rows][:, None], at.shape)
            total += np.where(np.isnan(at), IMPOSSIBLE, field.density(np.where(np.isnan(at), 0.0, at), released))
        return total

    return log_likelihood


def _curve(x: Array, coordinate: Array) -> Curve:
    """The coordinate of a field as a function of the value, from its points (x, coordinate) in rising order of x."""
    met, first = np.unique(x, return_index=True)
    at = coordinate[first]
    slope = (at[-1] - at[0]) / (met[-1] - met[0]) if len(met) > 1 else 0.0
    if np.allclose(at[0] + slope * (met - met[0]), at, rtol=1e-9, atol=1e-9 * float(np.abs(at).max())):
        return lambda values: at[0] + slope * (values - met[0])
    return lambda values: np.interp(values, met, at, left=np.nan, right=np.nan)
