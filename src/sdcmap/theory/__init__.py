"""The R-U confidentiality map of additive noise in closed form; no microdata are needed.

Duncan, Keller-McNulty, Stokes (2001): Y = x + e, Var e = l2 (`noise_variance`), data variance s2 (`variance`), n records,
U = 1/MSE of a user who wants the mean, R = 1/MSE of a snooper who wants one value, both in 1/unit^2. `NoiseModel` has it
all for one file; the plain functions are below. Where the paper's printed formula is wrong, the right one is used and
docs/theory.md names the erratum.

    typical      the target may be anybody: mean of the file (eq. 1-3), the largest R, index known (eq. 4)
    percentiles  the target is at a percentile of the population (eq. 5, 8), large-sample and exact
    extremes     the target is the largest, smallest or r-th (eq. 10), large-sample and with exact moments
    positions    the target is at a rank of the file: exact, given the file or over normal samples
    informed     snoopers who know lambda, or back it out of the masked variance
    linking      what a sampling fraction protects
    fishing      a snooper who is content with anybody
    best, solving  the strongest attack and where it switches; the smallest noise for a tolerable risk

`decision` chooses by decision theory (Trottini 2001): beliefs, losses, divergences, global risk and utility.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
