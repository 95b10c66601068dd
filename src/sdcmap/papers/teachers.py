"""Section 4 of Duncan et al. (2001): empirical maps of one income file, by simulation of the masking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from sdcmap.core import Array, Measure, Microdata
from sdcmap.core.grid import grid
from sdcmap.files.reading import read
from sdcmap.methods import Identity, Noise
from sdcmap.papers.reference import Document, reference_file
from sdcmap.risk import Index, Position
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores
from sdcmap.study.sweeping import sweep
from sdcmap.utility import MeanPrecision

Target = Literal["maximum", "minimum"] | float
TARGETS: tuple[Target, ...] = ("minimum", 0.01, 0.10, 0.90, 0.99, "maximum")
LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 21))  # noise variance as a share of S^2
SENSITIVE = 35_000.0  # dollars: above it, unequal masking doubles the noise variance
LIMIT = 4e-8  # the paper's largest tolerable risk: an error of 5,000 dollars
N = 177


def incomes(data: Path | None) -> tuple[Microdata, str]:
    """The 177 incomes in dollars: the reference sample where it is at hand, else a generated one; and which it is."""
    file = reference_file("tfs_synth.csv", data)
    if file is not None:
        thousands = pl.read_csv(file, has_header=False, new_columns=["income"])["income"].to_numpy()
        return read(pl.DataFrame({"income": 1000 * thousands}), numeric="all"), f"reference sample {file.name}"
    return read(pl.DataFrame({"income": generated()}), numeric="all"), "generated stand-in with the published summaries"


def generated() -> Array:
    """177 incomes with the summaries of the paper's Table 1: min, percentiles and max exact, mean and sd within 1 %.

    The order statistics that the table fixes are joined by curves in log income; one shape parameter for each side is set
    so that mean and sd come out.
    """
    ranks = np.array([1, math.ceil(0.01 * N), math.ceil(0.10 * N), math.ceil(0.90 * N), math.ceil(0.99 * N), N])
    fixed = np.array([2000, 2000, 7200, 35_000, 70_000, 95_200.0])
    best: tuple[float, Array] | None = None
    for bend in np.linspace(0.3, 3, 28):
        for top in np.linspace(0.3, 3, 28):
            position = np.interp(np.arange(1, N + 1), ranks, np.arange(6))
            whole, part = np.divmod(position, 1)
            part = np.where(whole == 2, part**bend, np.where(whole == 3, part**top, part))
            low, high = fixed[whole.astype(int)], fixed[np.minimum(whole.astype(int) + 1, 5)]
            x = np.exp(np.log(low) + part * (np.log(high) - np.log(low)))
            miss = abs(x.mean() / 20_100 - 1) + abs(x.std(ddof=1) / 13_300 - 1)
            if best is None or miss < best[0]:
                best = (float(miss), x)
    assert best is not None
    return best[1]


def truncated_efficiency(x: Array, noise_variance: Array | float) -> float:
    """U(lambda2)/U(0) of Y = max(0, x + e), exactly: eq. 13 with the moments of the truncated normal.

    noise_variance : Var e of each record, or one for all; above 0.
    m1 = x Phi(a) + l phi(a), m2 = (x^2 + l^2) Phi(a) + x l phi(a), a = x/l.
    """
    from scipy.special import ndtr

    n, s2 = len(x), float(x.var(ddof=1))
    noise = np.sqrt(noise_variance)
    a = x / noise
    density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    m1 = x * ndtr(a) + noise * density
    m2 = (x * x + noise**2) * ndtr(a) + x * noise * density
    variance_of_sum = float((m2 - m1**2).sum())
    mean_s2 = (m2.sum() - (variance_of_sum + m1.sum() ** 2) / n) / (n - 1)  # E s^2
    return (s2 / n) / float(mean_s2 / n + (m1.mean() - x.mean()) ** 2)


def noise_variances(x: Array, share: float, masking: str) -> Array:
    """Var e of each record: share S^2, and twice that above the sensitive income when masking is unequal."""
    doubled = 2.0 if masking == "unequal" else 1.0
    variances: Array = share * x.var(ddof=1) * np.where(x > SENSITIVE, doubled, 1.0)
    return variances


@dataclass(frozen=True)
class EmpiricalMaps:
    """R and U of equal and unequal noise at every level, pooled over replicates."""

    data: Microdata
    scores: Scores

    @staticmethod
    def run(data: Microdata, replicates: int, seed: int) -> EmpiricalMaps:
        """One plan, one sweep: two maskings, 20 levels, 6 targets under two knowledge states."""
        levels = list(LEVELS)
        equal = grid(Noise, on="income", variance=levels, lower=0.0)
        unequal = [
            Noise(on=("income",), variance=level, lower=0.0, above=SENSITIVE, variance_above=2 * level)
            for level in levels
        ]
        risks = [knows(on="income", target=target) for knows in (Position, Index) for target in TARGETS]
        plan = Plan([equal, *unequal], [*risks, MeanPrecision(on="income")], replicates=replicates, seed=seed)
        return EmpiricalMaps(data, sweep(data, plan))

    @cached_property
    def rows(self) -> list[Document]:
        """One row a masking, level and target: noise_share, efficiency, R_index, R_position, and their standard errors."""
        utility = self._pooled(MeanPrecision(on="income"))
        whole = utility[Identity().text][0]
        rows = []
        for target in TARGETS:
            position, index = (self._pooled(knows(on="income", target=target)) for knows in (Position, Index))
            for masking, level, method in self._methods():
                rows.append({
                    "masking": masking, "target": target, "noise_share": level,
                    "efficiency": utility[method][0] / whole,
                    "R_index": index[method][0], "R_index_se": index[method][1],
                    "R_position": position[method][0], "R_position_se": position[method][1],
                })  # fmt: skip
        return rows

    def _pooled(self, measure: Measure) -> dict[str, tuple[float, float | None]]:
        table = self.scores.pooled(measure.text).select("method", "value", "se")
        return {method: (value, se) for method, value, se in table.iter_rows()}

    def _methods(self) -> list[tuple[str, float, str]]:
        maskings = []
        for level in LEVELS:
            maskings.append(("equal", level, Noise(on=("income",), variance=level, lower=0.0).text))
            double = Noise(on=("income",), variance=level, lower=0.0, above=SENSITIVE, variance_above=2 * level)
            maskings.append(("unequal", level, double.text))
        return maskings

    def curve(self, target: Target, masking: str = "equal") -> list[Document]:
        return [row for row in self.rows if row["target"] == target and row["masking"] == masking]

    def crossing(self, target: Target, risk: str, limit: float, masking: str = "equal") -> dict[str, float] | None:
        """The smallest noise share with risk <= limit, by a line through the nearest levels in log risk and log share, and
        the exact efficiency there; None where no level reaches the limit."""
        curve = self.curve(target, masking)
        share = np.log([row["noise_share"] for row in curve])
        over = np.log([row[risk] for row in curve]) - math.log(limit)
        if over.min() > 0:
            return None
        near = np.abs(share - share[np.argmax(over <= 0)]) < math.log(2.5)
        slope, start = np.polyfit(share[near], over[near], 1)
        level = math.exp(-start / slope)
        x = self.data["income"]
        return {"noise_share": level, "efficiency": truncated_efficiency(x, noise_variances(x, level, masking))}
