"""When the agency knows only a class that the priors, losses or models of others belong to.  Trottini (2001), par. 14.

A data set is safe if its largest IEK and its largest RDH over the class are below their limits, and it is ranked by its
smallest SEK and DUS: `decide` on these takes the worst case for the real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

import numpy as np

from sdcmap.errors import PlanError
from sdcmap.theory.decision.criterion import AgencyOptions, GlobalRisk, GlobalUtility, global_risk, global_utility
from sdcmap.theory.decision.distributions import Distribution, Normal
from sdcmap.theory.decision.losses import Loss, Quadratic


def normal_class(mean: tuple[float, float], variance: tuple[float, float], points: int = 41) -> Normal:
    """All normal distributions with mean and variance between these ends, as a grid of points x points of them;
    variances in equal ratios.

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
    """The largest IEK and the largest RDH of one data set over what the intruder may believe and lose.

    intruders : his possible posteriors, a distribution a model; one that holds many beliefs counts with all of them.
    losses : his possible losses, of one unit; quadratic by default. how : `agency_loss`, `divergence`, as in `global_risk`.
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
    """The smallest SEK and the smallest DUS of one data set over what society may believe and lose."""
    utilities = [
        global_utility(agency, society, loss=loss, **how) for society in societies for loss in _one_unit(losses)
    ]
    return GlobalUtility(*(min(float(np.min(pair[i])) for pair in utilities) for i in (0, 1)))


def _one_unit(losses: Sequence[Loss]) -> Sequence[Loss]:
    if len({loss.unit for loss in losses}) > 1:
        raise PlanError("a class of losses needs one unit: a largest risk over squared and absolute errors has none.")
    return losses or (Quadratic(),)
