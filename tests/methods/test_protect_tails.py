"""Extremes of amounts: known answers of the tail, and the attack by the largest released value.

The attack shares no code with the package: it sees the largest number of a release, and knows one person's amount.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.masking.tails import fit_excess, fit_tails, replace_tails
from sdcmap.methods import ProtectTails, RankSwap, Shuffle
from sdcmap.testing import check_method
from sizes import size

ONCE = Stream.of_seed(1)


# ---- the attack -------------------------------------------------------------------------------------------------
def lognormal_incomes(z: np.ndarray) -> np.ndarray:
    """Return the quantiles of a log-normal income, given those of a standard normal variable."""
    return np.exp(7 + 0.9 * z)


def pareto_turnovers(z: np.ndarray) -> np.ndarray:
    """Return the quantiles of a Pareto turnover with an infinite variance."""
    from scipy.special import ndtr

    return 20 * ndtr(-z) ** (-1 / 1.5)


def modest_amounts(z: np.ndarray) -> np.ndarray:
    return 15 + 4 * z


def largest_of(n: int, share: float) -> float:
    """Return the quantile of the largest of n standard normal variables."""
    from scipy.special import ndtri

    return float(ndtri(share ** (1 / n)))


AMOUNTS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], Callable[[int], float]]] = {  # and that of the person
    "lognormal": (lognormal_incomes, lambda n: float(lognormal_incomes(np.array(largest_of(n, 0.95))))),
    "pareto": (pareto_turnovers, lambda n: float(pareto_turnovers(np.array(largest_of(n, 0.95))))),
    "outlier": (modest_amounts, lambda n: 84.0 * n + 15),  # moves the mean from 15 to 99
}


def people(kind: str, n: int, seed: int, with_top: bool) -> Microdata:
    """Return n people; the first is the one that the attacker looks for, or anybody else."""
    rng = np.random.default_rng([seed, with_top])
    amounts, top = AMOUNTS[kind]
    z, school = rng.standard_normal(n), rng.integers(0, 5, n)
    amount = amounts(z)
    if with_top:
        amount[0] = top(n)
    frame = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], n),
            "school": np.clip(school + np.rint(z).astype(int), 0, 5).astype(str),
            "amount": amount.round(1),
            "rent": (200 + 20 * school + 50 * rng.standard_normal(n)).round(),
        }
    )
    return sm.read(frame, keys=["sex", "school"], numeric=["amount", "rent"])


def attack(kind: str, n: int, method: Method, releases: int) -> tuple[float, float]:
    """Return the AUC of membership by the largest released amount, and how much more often it is within 10 %.

    Half of the releases are made with the person. All other people are drawn anew for each release.
    """
    largest = np.array(
        [
            [
                method.apply(people(kind, n, seed, with_top), Stream.of_seed(2 * seed + with_top)).numbers("amount").max()
                for seed in range(releases)
            ]
            for with_top in (False, True)
        ]
    )
    without, with_top = largest
    higher = (with_top[:, np.newaxis] > without).mean() + 0.5 * (with_top[:, np.newaxis] == without).mean()
    near = (np.abs(largest / AMOUNTS[kind][1](n) - 1) <= 0.1).mean(axis=1)
    return float(higher), float(near[1] - near[0])


ALL = ("sex", "school", "amount", "rent")
METHODS: dict[str, Method] = {
    "trees": sm.Synthesize(ALL),
    "copula": sm.Synthesize(ALL, model="copula"),
    "rank swap": sm.Chain([ProtectTails(("amount", "rent")), RankSwap(("amount", "rent"), 0.1)]),
}
