"""Global risk and global utility, the four regions, disclosure from both points of view, and the optimality criterion.

Trottini (2001), section IV, with its errata: the safe region is D, not A; society's estimated knowledge is at most minus
the agency's uncertainty. Both coordinates of risk and of utility are at most 0 if losses are not negative.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdcmap.core import Floats, PlanError, Undefined
from sdcmap.kernels.decision import global_criterion as kernel
from sdcmap.theory.decision.distributions import Distribution, Normal, unwrap
from sdcmap.theory.decision.divergences import Divergence, LossInduced
from sdcmap.theory.decision.losses import Loss, Quadratic
from sdcmap.theory.parameter_checks import Flags, Numbers

Letters = NDArray[np.str_]
Index = NDArray[np.intp]
REGIONS = {
    "A": "discredit harm: the intruder is sure of the value, and wrong",
    "B": "both harms: the intruder is sure of the value, and right",
    "C": "disclosure harm: the intruder is right about the value, but not sure",
    "D": "safe: neither harm",
}


class GlobalRisk(NamedTuple):
    """(IEK, RDH): the intruder's knowledge as the agency estimates it, and the risk of discredit harm.  def. 5"""

    iek: Numbers
    rdh: Numbers


class GlobalUtility(NamedTuple):
    """(SEK, DUS): society's knowledge as the agency estimates it, and the utility as society sees it.  def. 8"""

    sek: Numbers
    dus: Numbers

    @property
    def distance(self) -> Numbers:
        """The Euclidean distance from (0, 0), the point of largest utility.  par. 26"""
        return unwrap(kernel.distances(np.asarray(self.sek), np.asarray(self.dus)))


class AgencyOptions(TypedDict, total=False):
    """Options of `global_risk` and `global_utility` about the agency."""

    agency_loss: Loss | None
    divergence: Divergence | None


class Options(AgencyOptions, total=False):
    """These options, and the loss of the intruder or of society."""

    loss: Loss | None


class PriorOptions(Options, total=False):
    """These options, and the belief of the intruder or of society before the release."""

    prior: Distribution | None


def own_knowledge(belief: Distribution, loss: Loss | None = None) -> Numbers:
    """Return -U(belief): RDH of the intruder (def. 1), DUS of society (def. 6)."""
    return -(loss or Quadratic()).uncertainty(belief)


def estimated_knowledge(
    agency: Distribution, other: Distribution, *, divergence: Divergence | None = None, loss: Loss | None = None
) -> Numbers:
    """Return -[D(agency, other) + U_A(agency)]: IEK of the intruder (def. 3), SEK of society (def. 7).

    divergence : by default the one induced by the agency's `loss`, so that the sum is E_A L(theta, a_other).
    loss : the agency's; quadratic by default.
    """
    loss = loss or Quadratic()
    return -((divergence or LossInduced(loss))(agency, other) + loss.uncertainty(agency))


def global_risk(
    agency: Distribution,
    intruder: Distribution,
    *,
    loss: Loss | None = None,
    agency_loss: Loss | None = None,
    divergence: Divergence | None = None,
    prior: Distribution | None = None,
) -> GlobalRisk:
    """Return G.RISK = (IEK, RDH) of the intruder's belief, given the agency's belief.  def. 5

    loss : the intruder's; quadratic by default. agency_loss : the agency's; by default the same.
    divergence : by default the one induced by the agency's loss. `KullbackLeibler()` is the paper's.
    prior : the intruder's belief before the release. Both coordinates are divided by its uncertainty, so that -1 means
        that nothing was learned. All losses and divergences must have one unit.

    >>> from sdcmap.theory.decision import KullbackLeibler, Normal
    >>> risk = global_risk(Normal(4.9, 0.001), Normal(-5, 1), divergence=KullbackLeibler())
    >>> [round(float(coordinate), 6) for coordinate in risk]
    [-51.960378, -1.0]
    """
    loss = loss or Quadratic()
    own_loss = agency_loss or loss
    between = divergence or LossInduced(own_loss)
    iek, rdh = (
        estimated_knowledge(agency, intruder, divergence=between, loss=own_loss),
        own_knowledge(intruder, loss),
    )
    if prior is None:
        return GlobalRisk(iek, rdh)
    if len({between.unit, own_loss.unit, loss.unit}) > 1 or loss.unit == "nats":
        raise PlanError(
            "dividing by the prior uncertainty needs losses and a divergence of one unit, which must not be nats."
        )
    before = loss.uncertainty(prior)
    if not np.all(np.isfinite(before) & (np.asarray(before) > 0)):
        raise Undefined("the prior uncertainty must be finite and above 0 to divide by it.")
    return GlobalRisk(iek / before, rdh / before)


def global_utility(agency: Distribution, society: Distribution, **how: Unpack[PriorOptions]) -> GlobalUtility:
    """Return G.UTILITY = (SEK, DUS) of society's belief; parameters as in `global_risk`.  def. 8"""
    return GlobalUtility(*global_risk(agency, society, **how))


def notes(
    agency: Distribution, other: Distribution, *, agency_loss: Loss | None = None, divergence: Divergence | None = None
) -> tuple[str, ...]:
    """Return sentences that a reader of IEK or SEK must know: mixed units, and the notes of the divergence."""
    loss = agency_loss or Quadratic()
    between = divergence or LossInduced(loss)
    mixed = (
        f"it adds a divergence in {between.unit} to an uncertainty in {loss.unit}: another unit of the variable can "
        "change the choice. LossInduced has one unit."
    )
    return (*(() if between.unit == loss.unit else (mixed,)), *between.notes(agency, other))


def regions(risk: GlobalRisk, *, agency_limit: float, intruder_limit: float) -> str | Letters:
    """Return the region of each global risk, "A" to "D" (`REGIONS`); a value on a limit does not exceed it.

    agency_limit, intruder_limit : t_A for IEK and t_INT for RDH, at most 0.
    """
    iek, rdh = _check_limits(risk, agency_limit, intruder_limit)
    letters = kernel.regions(iek, rdh, agency_limit, intruder_limit)
    return str(letters) if letters.ndim == 0 else letters


def is_disclosed(before: ArrayLike, after: ArrayLike, limit: float) -> Flags:
    """Return whether the release crosses the limit: before <= limit < after.

    With RDH and t_INT this is disclosure from the intruder's point of view (def. 2, whose printed "<" is read as "<=", as
    in def. 4), with IEK and t_A from the agency's point of view (def. 4).
    """
    return (unwrap(before) <= limit) & (unwrap(after) > limit)


class Decision(NamedTuple):
    """The index of the data set to release (None for none), and the criterion of each data set."""

    choice: int | None
    regions: Letters
    distances: Floats
    safe: tuple[int, ...]  # nearest to (0, 0) first
    nearest_miss: int | None  # if none is safe: the one that exceeds its limit least, as a share of the limit


def decide(risk: GlobalRisk, utility: GlobalUtility, *, agency_limit: float, intruder_limit: float) -> Decision:
    """Choose the safe data set whose global utility is nearest to (0, 0), or none if none is safe.  par. 26

    risk, utility : one entry per data set.
    """
    iek, rdh = (np.atleast_1d(coordinate) for coordinate in _check_limits(risk, agency_limit, intruder_limit))
    if iek.size == 0:
        raise PlanError("there is no data set to choose from.")
    distances = _distances(utility, iek)
    letters = kernel.regions(iek, rdh, agency_limit, intruder_limit)
    order = kernel.rank_by_utility(iek, rdh, distances)
    # Candidates in region D are safe; the best by utility comes first.
    if safe := tuple(order[letters[order] == "D"].tolist()):
        return Decision(safe[0], letters, distances, safe, None)
    return Decision(None, letters, distances, (), int(np.argmin(kernel.excess(iek, rdh, agency_limit, intruder_limit))))


class LimitSweep(NamedTuple):
    """The choice for every pair of limits; it is constant between two edges of each limit."""

    agency_edges: Floats
    intruder_edges: Floats
    choices: Index  # [i, j]: limits in [agency_edges[i], ...[i+1]) x [intruder_edges[j], ...[j+1]); -1: none is safe

    def at(self, agency_limit: float, intruder_limit: float) -> int | None:
        """Return the choice for these limits, or None for none."""
        row = int(np.searchsorted(self.agency_edges, agency_limit, side="right")) - 1
        column = int(np.searchsorted(self.intruder_edges, intruder_limit, side="right")) - 1
        choice = int(self.choices[row, column]) if min(row, column) >= 0 else -1
        return None if choice < 0 else choice

    @property
    def winners(self) -> tuple[int, ...]:
        """The data sets that are chosen for some pair of limits."""
        return tuple(np.unique(self.choices[self.choices >= 0]).tolist())


def sweep_limits(risk: GlobalRisk, utility: GlobalUtility) -> LimitSweep:
    """Return how the choice changes as both limits go from minus infinity to 0.  par. 29"""
    iek, rdh = (np.atleast_1d(coordinate) for coordinate in _check_limits(risk, 0.0, 0.0))
    return LimitSweep(*kernel.choices_by_limits(iek, rdh, _distances(utility, iek)))


def _check_limits(risk: GlobalRisk, agency_limit: float, intruder_limit: float) -> tuple[Floats, Floats]:
    for name, limit in (("agency_limit", agency_limit), ("intruder_limit", intruder_limit)):
        if not math.isfinite(limit) or limit > 0:
            reason = "knowledge is never above 0, so a larger limit would exclude nothing."
            raise PlanError(f"{name} must be a finite number of at most 0: {reason}")
    iek, rdh = np.broadcast_arrays(unwrap(risk.iek), unwrap(risk.rdh))
    if np.isnan(iek).any() or np.isnan(rdh).any():
        raise Undefined("a data set without a global risk has no region.")
    return iek, rdh


def _distances(utility: GlobalUtility, like: Floats) -> Floats:
    distances = np.broadcast_to(np.atleast_1d(utility.distance), like.shape)
    if np.isnan(distances).any():
        raise Undefined("a data set without a global utility cannot be compared.")
    return distances


# The agency may only know a class that contains the priors, losses or models of others. Trottini (2001), par. 14.
#
# A data set is then safe if its largest IEK and its largest RDH over the class are within their limits, and it is ranked
# by its smallest SEK and DUS. `decide` on these values uses the worst case.


def normal_class(mean: tuple[float, float], variance: tuple[float, float], points: int = 41) -> Normal:
    """Return a grid of points x points normal distributions with mean and variance between these ends.

    Variances are in equal ratios.

    >>> normal_class((-1, 1), (0.5, 4)).shape
    (41, 41)
    """
    if points < 2 or not (mean[0] <= mean[1] and 0 < variance[0] <= variance[1]):
        raise PlanError("a class of normal priors needs ascending ends, variances above 0 and at least 2 points.")
    means, variances = np.meshgrid(np.linspace(*mean, points), np.geomspace(*variance, points), indexing="ij")
    return Normal(means, variances)


def robust_risk(
    agency: Distribution,
    intruders: Iterable[Distribution],
    *,
    losses: Sequence[Loss] = (),
    **how: Unpack[AgencyOptions],
) -> GlobalRisk:
    """Return the largest IEK and the largest RDH of one data set over the possible beliefs and losses of the intruder.

    intruders : possible posteriors, one distribution per model; one that holds many beliefs counts with all of them.
    losses : possible losses, of one unit; quadratic by default. how : `agency_loss`, `divergence`, as in `global_risk`.
    """
    risks = [global_risk(agency, intruder, loss=loss, **how) for intruder in intruders for loss in _one_unit(losses)]
    return GlobalRisk(*(max(float(np.max(pair[i])) for pair in risks) for i in (0, 1)))


def robust_utility(
    agency: Distribution,
    societies: Iterable[Distribution],
    *,
    losses: Sequence[Loss] = (),
    **how: Unpack[AgencyOptions],
) -> GlobalUtility:
    """Return the smallest SEK and the smallest DUS of one data set over the possible beliefs and losses of society."""
    pairs = [global_utility(agency, society, loss=loss, **how) for society in societies for loss in _one_unit(losses)]
    return GlobalUtility(*(min(float(np.min(pair[i])) for pair in pairs) for i in (0, 1)))


def _one_unit(losses: Sequence[Loss]) -> Sequence[Loss]:
    if len({loss.unit for loss in losses}) > 1:
        raise PlanError("a class of losses needs one unit: squared and absolute errors have no common largest risk.")
    return losses or (Quadratic(),)


# Knowledge before and after a release, the action threshold, and harm weights of records.
#
# Duncan and Lambert (1986): U(posterior), U(prior) - U(posterior) and its share of U(prior). For the intruder they measure
# disclosure, for society utility (Trottini 2001, par. 8-9).


class Knowledge(NamedTuple):
    """The uncertainty before and after, the gain, and the gain as a share of the uncertainty before."""

    prior: Numbers
    posterior: Numbers
    gain: Numbers
    relative: Numbers  # NaN if an uncertainty is negative or the prior one is 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that say why a relative gain is missing."""
        if not (missing := int(np.isnan(self.relative).sum())):
            return ()
        which = f"of {missing} of {np.size(self.relative)} " if np.size(self.relative) > 1 else ""
        return (f"the relative gain {which}is not defined: it needs a prior uncertainty above 0, and none below 0.",)


def knowledge(prior: Distribution, posterior: Distribution, loss: Loss | None = None) -> Knowledge:
    """Return knowledge, knowledge gain and relative gain of the intruder or of society; the default loss is quadratic.

    >>> from sdcmap.theory.decision import Normal
    >>> knowledge(Normal(0, 4), Normal(1, 1))
    Knowledge(prior=4.0, posterior=1.0, gain=3.0, relative=0.75)
    """
    loss = loss or Quadratic()
    before, after = np.broadcast_arrays(loss.uncertainty(prior), loss.uncertainty(posterior))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where((before > 0) & (after >= 0), (before - after) / before, np.nan)
    return Knowledge(*map(_number, (before, after, before - after, relative)))


def acts(belief: Distribution, limit: float, loss: Loss | None = None) -> Flags:
    """Return whether the intruder acts, because the uncertainty is below `limit`, k_INT of assumption 4.

    This is RDH > -k_INT, so k_INT is minus the limit of the risk of discredit harm.
    """
    if not (np.isfinite(limit) and limit >= 0):
        raise PlanError("the uncertainty below which the intruder acts must be finite and at least 0.")
    return (loss or Quadratic()).uncertainty(belief) < limit


def weigh_by_harm(risk: ArrayLike, harm: ArrayLike) -> Numbers:
    """Return risk/harm, for RDH or IEK (at most 0) and a harm weight per record.

    To be equally safe, a record of harm 2 must leave the intruder twice the uncertainty of a record of harm 1. A record of
    harm 0 has no risk (minus infinity). Duncan, Keller-McNulty, Stokes (2001), section 2, the third component of risk.

    >>> weigh_by_harm([-1.0, -1.0], harm=[1, 2]).tolist()
    [-1.0, -0.5]
    """
    values, weights = np.broadcast_arrays(unwrap(risk), unwrap(harm))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise PlanError("harm weights must be finite and not below 0.")
    if not (values <= 0).all():
        raise Undefined("harm weights need risks of at most 0; a log loss can have positive ones.")
    with np.errstate(divide="ignore", invalid="ignore"):
        return unwrap(np.where(weights > 0, values / weights, -np.inf))


def worst(risk: ArrayLike, harm: ArrayLike = 1.0) -> float:
    """Return the largest risk of a record: protect against the worst."""
    values = np.asarray(weigh_by_harm(risk, harm))
    if values.size == 0 or np.isnan(values).any():
        raise Undefined("the worst record has no risk: there is no record, or a risk is missing.")
    return float(values.max())


def share_of_harm(over: ArrayLike, harm: ArrayLike = 1.0) -> float:
    """Return the harm of the records that exceed a limit, as a share of all harm."""
    flags, weights = np.broadcast_arrays(np.asarray(over, dtype=bool), unwrap(harm))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise PlanError("harm weights must be finite and not below 0, with a sum above 0.")
    return float(weights[flags].sum() / weights.sum())


def _number(values: Floats) -> Numbers:
    return float(values) if np.ndim(values) == 0 else np.array(values)
