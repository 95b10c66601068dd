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

from __future__ import annotations

from sdcmap.theory import decision
from sdcmap.theory.fishing import fishing_in_file, fishing_in_population, fishing_linked
from sdcmap.theory.informed import noise_guessed, noise_known
from sdcmap.theory.model import EXACT, KNOWLEDGE, PAPER, NoiseModel
from sdcmap.theory.positions import (
    extreme,
    extreme_exact,
    large_sample_moments,
    normal_scores,
    percentile,
    percentile_exact,
    percentile_in_file,
    percentile_of_any,
    position_in_file,
    position_known,
    rank_of,
)
from sdcmap.theory.solving import Solution, Switch, crossings, noise_grid, solve, strongest, switches
from sdcmap.theory.typical import (
    each_record,
    fixed_target,
    in_file,
    in_population,
    in_sample,
    index_known,
    largest_in_file,
    largest_in_population,
    link_probability,
    linked,
    perhaps_in_sample,
    utility,
    utility_of_variance,
)
