"""Knowledge before and after a release, the action threshold, and harm weights of records.

Duncan and Lambert (1986): U(posterior), U(prior) - U(posterior) and its share of U(prior), of the intruder as measures of
disclosure, of society as measures of utility (Trottini 2001, par. 8-9).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sdcmap.errors import PlanError, Undefined
from sdcmap.kernels.arrays import Floats
from sdcmap.theory.decision.distributions import Distribution, unwrap
from sdcmap.theory.decision.losses import Loss, Quadratic
from sdcmap.theory.parameter_checks import Flags, Numbers


class Knowledge(NamedTuple):
    """Uncertainty before and after, the gain, and the gain as a share of what was there before."""

    prior: Numbers
    posterior: Numbers
    gain: Numbers
    relative: Numbers  # NaN where an uncertainty is below 0 or the prior one is 0: there is no share of it

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a relative gain is missing."""
        missing = int(np.isnan(self.relative).sum())
        if not missing:
            return ()
        which = f"of {missing} of {np.size(self.relative)} " if np.size(self.relative) > 1 else ""
        return (f"the relative gain {which}has no meaning: it needs a prior uncertainty above 0 and none below 0.",)


def knowledge(prior: Distribution, posterior: Distribution, loss: Loss | None = None) -> Knowledge:
    """Knowledge, knowledge gain and relative knowledge gain, of the intruder or of society; the default loss is quadratic.

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
    """Whether the intruder acts: his uncertainty is below `limit`, k_INT of assumption 4.

    It is RDH > -k_INT, so k_INT is minus the limit of the risk of discredit harm.
    """
    if not (np.isfinite(limit) and limit >= 0):
        raise PlanError("the uncertainty below which the intruder acts must be finite and at least 0.")
    return (loss or Quadratic()).uncertainty(belief) < limit


def weighed(risk: ArrayLike, harm: ArrayLike) -> Numbers:
    """Global risk with what a disclosure costs: risk/harm, for RDH or IEK (at most 0) and a harm weight of each record.

    A record of harm 2 must leave the intruder twice the uncertainty of a record of harm 1 to be as safe; one of harm 0
    has nothing to fear (minus infinity). Duncan, Keller-McNulty, Stokes (2001), section 2, the third component of risk.

    >>> weighed([-1.0, -1.0], harm=[1, 2]).tolist()
    [-1.0, -0.5]
    """
    values, weights = np.broadcast_arrays(unwrap(risk), unwrap(harm))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise PlanError("harm weights must be finite and not below 0.")
    if not (values <= 0).all():
        raise Undefined("harm weights divide risks that are at most 0; a log loss can have others.")
    with np.errstate(divide="ignore", invalid="ignore"):
        return unwrap(np.where(weights > 0, values / weights, -np.inf))


def worst(risk: ArrayLike, harm: ArrayLike = 1.0) -> float:
    """The risk of the record that has most of it: protect against the worst."""
    values = np.asarray(weighed(risk, harm))
    if values.size == 0 or np.isnan(values).any():
        raise Undefined("the worst record has no risk: there is none, or one has no value.")
    return float(values.max())


def share_of_harm(over: ArrayLike, harm: ArrayLike = 1.0) -> float:
    """The harm of the records that are over a limit, as a share of all harm."""
    flags, weights = np.broadcast_arrays(np.asarray(over, dtype=bool), unwrap(harm))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
        raise PlanError("harm weights must be finite and not below 0, with a sum above 0.")
    return float(weights[flags].sum() / weights.sum())


def _number(values: Floats) -> Numbers:
    return float(values) if np.ndim(values) == 0 else np.array(values)
