"""Choosing by decision theory: beliefs, losses, divergences, global risk and utility, and the criterion.

Trottini (2001) with the uncertainty functions of Duncan and Lambert (1986). An intruder wants theta_INT, society wants
theta_SOC. Each has a belief (a distribution) before and after the release, and so does the agency, which has the original.
Everything is a plain function of distributions and numbers, vectorized over records; no microdata are needed.

    distributions, atoms   Normal, Student, Discrete, Samples: one belief, or one per record
    losses                 Quadratic, Absolute, ZeroOne, Bounded, Log: best action, expected loss, uncertainty
    divergences            KullbackLeibler, PlugIn, Neighbors, WassersteinDistance, LossInduced, each with its notes
    decision_criterion     RDH, IEK, DUS, SEK; regions A to D; disclosure; the choice, also for all limits and for classes
                           of priors, losses and models; knowledge gains; harm weights
    conjugate              additive noise with normal models: all posteriors in closed form
    prior, robust_cases    priors that a plan states, and the worst case over a class of priors and losses

The names are in this package (`sdcmap.theory.decision.Normal`), not in `sdcmap` itself. A plan uses `Prior` only.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
