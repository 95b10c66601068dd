"""The R-U confidentiality map of additive noise in closed form; no microdata are needed.

Duncan, Keller-McNulty, Stokes (2001): Y = x + e, Var e = l2 (`noise_variance`), data variance s2 (`variance`), n records.
U = 1/MSE of a user who estimates the mean, R = 1/MSE of an intruder who estimates one value, both in 1/unit^2. `NoiseModel`
has everything for one file; the plain functions are in the modules below. Where a formula is misprinted in the paper, the
correct one is used, and docs/theory.md names the erratum.

    typical_targets     any target: mean of the file (eq. 1-3), the largest R, index known (eq. 4), sampling fractions
    positions           a target at a percentile (eq. 5, 8), at an extreme (eq. 10), or at a rank of the file
    informed_intruders  intruders who know lambda, or estimate it from the masked variance
    fishing             an intruder for whom any entity will do
    noise_search        the strongest attack and where it changes; the smallest noise for a tolerable risk

`decision` chooses by decision theory (Trottini 2001): beliefs, losses, divergences, global risk and utility.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
