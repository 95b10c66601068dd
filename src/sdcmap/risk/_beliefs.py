"""What an intruder believes about every record of a file after seeing a release of it.

A belief about a number is a mean and a variance, which is all that quadratic loss needs, and the mixture that has them.
Before the release, the intruder believes the prior that the agency states, or N(mean, variance) of the file about every
record, as a published table would tell them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sdcmap.core import Array, Method, Microdata, SchemaError, Undefined
from sdcmap.core.added_noise import AddedNoise, undo_rescaling
from sdcmap.core.likelihood import IMPOSSIBLE, Field, Same
from sdcmap.data.cells import cells
from sdcmap.kernels.statistics.beliefs import normal_posterior, posterior_moments
from sdcmap.kernels.tables.coding import compress
from sdcmap.risk.linkage.file_pair import LinkTable, Pair

POSTERIOR_BLOCK_ROWS = 4096  # released values whose posteriors are integrated together; bounds the memory
MAX_COMPONENTS = 5_000_000  # linked records of all mixtures; beyond, each released group is one normal
MAX_PRIOR_SDS = 8.0  # integrate over so many standard deviations of the prior; the rest has negligible mass


@dataclass(frozen=True)
class Components:
    """Beliefs as mixtures of normals: groups of records share a mixture, and the prior gets the rest of the weight."""

    source: Array  # group of each component, in rising order
    weight: Array
    mean: Array
    variance: Array
    group: Array  # of each original record; -1: the prior
    groups: int  # number of groups


@dataclass(frozen=True)
class Beliefs:
    """Mean and variance of the belief about each record, the link weight behind it, the prior, and the whole mixtures."""

    mean: Array
    variance: Array
    weight: Array
    prior: tuple[float, float]
    expand: Callable[[], Components]  # the mixtures, which only losses other than the quadratic one need

    @classmethod
    def from_prior(cls, n: int, prior: tuple[float, float]) -> Beliefs:
        """Return the prior belief about each of n records."""
        none = np.empty(0)
        components = Components(none.astype(np.int64), none, none, none, np.full(n, -1), 0)
        return cls(np.full(n, prior[0]), np.full(n, prior[1]), np.zeros(n), prior, lambda: components)


def estimate_prior(data: Microdata, name: str) -> tuple[float, float]:
    """Return mean and variance of a variable without its missing values: the belief about any record before the release."""
    x = data.numbers(name)
    x = x[np.isfinite(x)]
    if len(x) < 2 or not x.max() > x.min():
        raise Undefined(f"{name!r} is constant or missing, so there is nothing to learn about it.")
    return float(x.mean()), float(x.var())


# ---- the intruder knows the record, and the noise is normal ---------------------------------------------------
def beliefs_from_noise(
    original: Microdata, masked: Microdata, name: str, method: Method | None, prior: tuple[float, float]
) -> Beliefs:
    """Return the beliefs of an intruder who knows which record is the target's and sees x + e.

    The prior N(mean, variance) is updated by y ~ N(x, l2); the intruder knows the noise variance l2.
    """
    if method is None:
        raise Undefined("the method of the file is not known: score it in a sweep, or set `method`.")
    rows = find_released_rows(original, masked)
    beliefs = Beliefs.from_prior(len(original), prior)
    if name in method.masked_names:
        noise = method.added_noise()
        y, l2 = undo_rescaling(masked, (name,), noise)[:, 0], noise_variances(original, name, noise)
    else:
        y, l2 = masked.numbers(name), np.zeros(len(original))
    # records that were not released, or whose value is missing, keep the prior
    updated = np.flatnonzero(rows >= 0)
    updated = updated[np.isfinite(y[rows[updated]])]
    mean, variance = normal_posterior(prior, y[rows[updated]], l2[updated])
    beliefs.mean[updated], beliefs.variance[updated] = mean, variance
    beliefs.weight[rows >= 0] = 1.0
    group = np.full(len(original), -1)
    group[updated] = np.arange(len(updated))
    components = Components(np.arange(len(updated)), np.ones(len(updated)), mean, variance, group, len(updated))
    return replace(beliefs, expand=lambda: components)


def noise_variances(original: Microdata, name: str, noise: AddedNoise) -> Array:
    """Return the noise variance l2 of each record: the stated share of the variance of its stratum."""
    code = original.view(cells, noise.within).code if noise.within else np.zeros(len(original), dtype=np.int64)
    x = original.numbers(name)
    variances = np.zeros(len(original))
    for stratum in np.unique(code):
        rows = np.flatnonzero(code == stratum)
        known = x[rows][~np.isnan(x[rows])]
        variances[rows] = noise.share * (float(known.var(ddof=1)) if len(known) > 1 else 0.0)
    return variances


def find_released_rows(original: Microdata, masked: Microdata) -> Array:
    """Return the released row of each original record, or -1 if it was not released."""
    if masked.origin is None:
        if len(masked) != len(original):
            raise Undefined("the masked file does not state which original record each row came from.")
        return np.arange(len(original))
    rows = np.full(len(original), -1)
    rows[masked.origin] = np.arange(len(masked))
    return rows


# ---- any method, with links -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class LinkWeights:
    """Which released records an intruder takes for those of each target, and with which probability.

    Records that are equal on the variables used for linking are interchangeable. A link of group A to group B therefore
    gives everyone in A the mean of B, with |B| times the probability of a single link.
    """

    source: Array  # known group of each link, in rising order
    target: Array  # released group of each link
    weight: Array  # probability of each link; those of one known group sum to at most `inclusion`
    group: Array  # known group of each original record; -1: not in the intruder's file
    released_group: Array  # of each released record
    released_size: Array  # records of each released group
    groups: int  # number of known groups
    inclusion: float  # the probability that the target is in the file

    @property
    def share(self) -> Array:
        """The sum of the weights of each known group."""
        return np.bincount(self.source, self.weight, minlength=self.groups)

    def to_records(self, values: Array, outside: Array | float) -> Array:
        """Return the value of each original record, given one for each known group; `outside` where it has none."""
        return np.where(self.group >= 0, values[np.maximum(self.group, 0)], outside)


def weigh_links(pair: Pair, table: LinkTable, person: Array, records: int, inclusion: float) -> LinkWeights:
    """Return the links of groups of records: each counts with the probability that it is correct.

    person : the original row of each record of the intruder; the number of original rows, `records`, where it has none
    inclusion : the probability that the target is in the file
    """
    # one link per pair of groups, because the records of a group are interchangeable
    linked = np.flatnonzero(table.partner >= 0)
    known_groups, released_groups = len(pair.known_size), len(pair.released_size)
    known_group = pair.known_group[np.argsort(pair.known_rows)]
    released_group = pair.released_group[np.argsort(pair.released_rows)]
    key = known_group[table.partner[linked]] * released_groups + released_group[linked]
    key, first = np.unique(key, return_index=True)
    source, target = np.divmod(key, released_groups)
    weight = np.minimum(pair.released_size[target] * table.probability[linked[first]], 1.0)
    weight = inclusion * weight / np.maximum(np.bincount(source, weight, minlength=known_groups), 1.0)[source]
    owner = person[pair.known_rows]
    in_file = owner < records
    group = np.full(records, -1)
    group[owner[in_file]] = pair.known_group[in_file]
    size = np.maximum(np.bincount(released_group, minlength=released_groups), 1)
    return LinkWeights(source, target, weight, group, released_group, size, known_groups, inclusion)


def beliefs_from_links(
    original: Microdata, masked: Microdata, name: str, method: Method | None, links: LinkWeights,
    prior: tuple[float, float],
) -> Beliefs:  # fmt: skip
    """Return the beliefs of an intruder who links records: a mixture over the linked records and the prior.

    Each linked record counts with the probability that its link is correct; the prior gets the rest.
    """
    # first and second moment of what the records of each released group imply, around the prior mean
    center, spread = beliefs_from_records(original, masked, name, method, prior)
    sums = (
        np.bincount(links.released_group, values, len(links.released_size)) for values in (center, spread + center**2)
    )
    group_mean, group_square = (total / links.released_size for total in sums)
    moments = (np.ones(len(links.source)), group_mean[links.target], group_square[links.target])
    # moments of the mixture with the prior
    share, first_moment, second_moment = (
        np.bincount(links.source, links.weight * moment, minlength=links.groups) for moment in moments
    )
    mean, variance = prior[0] + first_moment, second_moment + (1 - share) * prior[1] - first_moment**2

    def expand() -> Components:
        if links.released_size[links.target].sum() <= MAX_COMPONENTS:
            return _by_record(links, prior[0] + center, spread)
        spreads = np.maximum(group_square - group_mean**2, 0.0)[links.target]
        means = prior[0] + group_mean[links.target]
        return Components(links.source, links.weight, means, spreads, links.group, links.groups)

    return Beliefs(
        links.to_records(mean, prior[0]), links.to_records(np.maximum(variance, 0.0), prior[1]),
        links.to_records(share, 0.0), prior, expand,
    )  # fmt: skip


def _by_record(links: LinkWeights, mean: Array, variance: Array) -> Components:
    """Return the beliefs of known groups as mixtures over single released records."""
    order = np.argsort(links.released_group, kind="stable")
    start = np.concatenate([[0], np.cumsum(links.released_size)])
    size = links.released_size[links.target]
    within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    record = order[np.repeat(start[links.target], size) + within]
    weight = np.repeat(links.weight / size, size)
    return Components(np.repeat(links.source, size), weight, mean[record], variance[record], links.group, links.groups)


def beliefs_from_records(
    original: Microdata, masked: Microdata, name: str, method: Method | None, prior: tuple[float, float]
) -> tuple[Array, Array]:
    """Return, for each released record, the belief about its owner: mean minus the prior mean, and variance.

    An unmasked variable is believed as it stands. So is a masked one whose method is not known or states no likelihood.
    A missing value leaves the prior.
    """
    y = masked.numbers(name)
    present = np.isfinite(y)
    center, variance = np.where(present, y, prior[0]) - prior[0], np.where(present, 0.0, prior[1])
    if method is None or name not in method.masked_names:
        return center, variance
    try:
        parts = _stratum_likelihoods(original, masked, name, method)
    except Undefined:
        return center, variance
    reach = MAX_PRIOR_SDS * np.sqrt(prior[1])
    for rows, log_likelihood, value_range in parts:
        span = min(value_range[0], prior[0] - reach), max(value_range[1], prior[0] + reach)
        for start in range(0, len(rows), POSTERIOR_BLOCK_ROWS):
            block = rows[start : start + POSTERIOR_BLOCK_ROWS]
            mean, spread = posterior_moments(partial(log_likelihood, block), y[block], prior, span)
            # a value that the method cannot have produced has no posterior: it is believed as it stands
            possible = np.isfinite(mean)
            center[block[possible]], variance[block[possible]] = (mean - prior[0])[possible], spread[possible]
    return center, variance


LogLikelihood = Callable[[Array, Array], Array]


def _stratum_likelihoods(
    original: Microdata, masked: Microdata, name: str, method: Method
) -> list[tuple[Array, LogLikelihood, tuple[float, float]]]:
    """Return, for each stratum, its released rows, their log-likelihood as a function of the true value, and its range.

    The method states the likelihood of known records only. The coordinate of a field is a monotone function of the
    value, so it can be interpolated between the values of the file, and extrapolated where it is a straight line.
    """
    rows = np.flatnonzero(np.isfinite(original.numbers(name)))
    rows = rows[np.argsort(original.numbers(name)[rows], kind="stable")]
    known = original.only([n for n in original.names if n == name or n not in method.masked_names]).take(rows)
    try:
        fields = method.log_likelihood(Microdata(known.schema, known.columns), masked)
    except SchemaError as reason:
        raise Undefined(str(reason)) from None
    x = known.numbers(name)
    # fields that must be equal divide the records into strata
    equal = [np.concatenate([field.known, field.released]) for field in fields if isinstance(field.density, Same)]
    codes = [np.unique(values, return_inverse=True)[1] for values in equal]
    stratum_of = compress(codes)[0] if codes else np.zeros(len(x) + len(masked), dtype=np.int64)
    noisy = [field for field in fields if not isinstance(field.density, Same)]
    present, likelihoods = np.isfinite(masked.numbers(name)), []
    for stratum in np.unique(stratum_of[: len(x)]):
        known_rows = np.flatnonzero(stratum_of[: len(x)] == stratum)
        released_rows = np.flatnonzero((stratum_of[len(x) :] == stratum) & present)
        known_fields = [field for field in noisy if not np.isnan(field.known[known_rows]).any()]
        curves = [(_fit_curve(x[known_rows], field.known[known_rows]), field) for field in known_fields]
        if curves and len(released_rows):
            value_range = float(x[known_rows[0]]), float(x[known_rows[-1]])
            likelihoods.append((released_rows, _sum_curves(curves), value_range))
    return likelihoods


Curve = Callable[[Array], Array]


def _sum_curves(curves: list[tuple[Curve, Field]]) -> LogLikelihood:
    """Return the log-likelihood that sums the densities of all fields."""

    def log_likelihood(rows: Array, values: Array) -> Array:
        total = np.zeros(values.shape)
        for curve, field in curves:
            coordinate = curve(values)
            unknown = np.isnan(coordinate)
            released = np.broadcast_to(field.released[rows][:, None], coordinate.shape)
            total += np.where(unknown, IMPOSSIBLE, field.density(np.where(unknown, 0.0, coordinate), released))
        return total

    return log_likelihood


def _fit_curve(x: Array, coordinate: Array) -> Curve:
    """Return the coordinate of a field as a function of the value, given points in rising order of x."""
    knots, first = np.unique(x, return_index=True)
    at = coordinate[first]
    slope = (at[-1] - at[0]) / (knots[-1] - knots[0]) if len(knots) > 1 else 0.0
    # a straight line may be extrapolated; any other curve is unknown outside the values of the file
    if np.allclose(at[0] + slope * (knots - knots[0]), at, rtol=1e-9, atol=1e-9 * float(np.abs(at).max())):
        return lambda values: at[0] + slope * (values - knots[0])
    return lambda values: np.interp(values, knots, at, left=np.nan, right=np.nan)
