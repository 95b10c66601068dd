"""Choosing by decision theory: beliefs, losses, divergences, global risk and utility, and the criterion.

Trottini (2001) with the uncertainty functions of Duncan and Lambert (1986). An intruder wants theta_INT, society
theta_SOC; each believes a distribution before and after the release, and the agency, which has the original, believes one
too. Everything is a plain function of distributions and numbers, vectorized over records; no microdata are needed.

    distributions, atoms   Normal, Student, Discrete, Samples: a belief, or one a record
    losses                 Quadratic, Absolute, ZeroOne, Bounded, Log: best action, expected loss, uncertainty
    divergences            KullbackLeibler, PlugIn, Neighbors, WassersteinDistance, LossInduced, each with its notes
    decision_criterion     knowledge, its gain and relative gain; who acts; harm weights; the worst record
    criterion              RDH, IEK, DUS, SEK; regions A to D; disclosure; the choice; the choice as limits change
    robust                 the same over classes of priors, losses and models
    conjugate              additive noise with normal models: everybody's posterior in closed form

The names live here (`sdcmap.theory.decision.Normal`), not in `sdcmap` itself: a plan never names them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
