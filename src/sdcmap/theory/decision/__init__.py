"""Choosing by decision theory: beliefs, losses, divergences, global risk and utility, and the criterion.

Trottini (2001) with the uncertainty functions of Duncan and Lambert (1986). An intruder wants theta_INT, society
theta_SOC; each believes a distribution before and after the release, and the agency, which has the original, believes one
too. Everything is a plain function of distributions and numbers, vectorised over records; no microdata are needed.

    distributions, atoms   Normal, Student, Discrete, Samples: a belief, or one a record
    losses                 Quadratic, Absolute, ZeroOne, Bounded, Log: best action, expected loss, uncertainty
    divergences            KullbackLeibler, PlugIn, Neighbours, WassersteinDistance, LossInduced, each with its notes
    decision_criterion     knowledge, its gain and relative gain; who acts; harm weights; the worst record
    criterion              RDH, IEK, DUS, SEK; regions A to D; disclosure; the choice; the choice as limits change
    robust                 the same over classes of priors, losses and models
    conjugate              additive noise with normal models: everybody's posterior in closed form

The names live here (`sdcmap.theory.decision.Normal`), not in `sdcmap` itself: a plan never names them.
"""

from __future__ import annotations

from sdcmap.theory.decision.atoms import Discrete, Samples
from sdcmap.theory.decision.conjugate import NoiseScenario, mean_posterior, normal_posterior
from sdcmap.theory.decision.decision_criterion import (
    REGIONS,
    Decision,
    GlobalRisk,
    GlobalUtility,
    Knowledge,
    LimitSweep,
    acts,
    decide,
    disclosed,
    estimated_knowledge,
    global_risk,
    global_utility,
    knowledge,
    normal_class,
    notes,
    own_knowledge,
    regions,
    robust_risk,
    robust_utility,
    share_of_harm,
    sweep_limits,
    weighed,
    worst,
)
from sdcmap.theory.decision.distributions import Distribution, Normal, Student
from sdcmap.theory.decision.divergences import (
    DIVERGENCES,
    Divergence,
    KullbackLeibler,
    LossInduced,
    Neighbours,
    PlugIn,
    WassersteinDistance,
)
from sdcmap.theory.decision.losses import LOSSES, Absolute, Bounded, Log, Loss, Quadratic, ZeroOne
