"""Section 4 of Duncan et al. (2001): empirical maps of an income file, by simulating the masking."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from sdcmap import Microdata, Noise, Plan, Scores, read, sweep
from sdcmap.core import Array
from sdcmap.methods import Identity
from sdcmap.papers.reference import Document, reference_file
from sdcmap.risk import Index, Position
from sdcmap.utility import MeanPrecision

Target = Literal["maximum", "minimum"] | float
TARGETS: tuple[Target, ...] = ("minimum", 0.01, 0.10, 0.90, 0.99, "maximum")
NOISE_LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 21))  # noise variance as a share of S^2
SENSITIVE_INCOME = 35_000.0  # dollars; above it, unequal masking doubles the noise variance
RISK_LIMIT = 4e-8  # the paper's largest tolerable risk: an error of 5,000 dollars
RECORDS = 177


def load_incomes(data: Path | None) -> tuple[Microdata, str]:
    """Return the 177 incomes in dollars, of the reference sample or else generated; and which they are."""
    file = reference_file("tfs_synth.csv", data)
    if file is not None:
        thousands = pl.read_csv(file, has_header=False, new_columns=["income"])["income"].to_numpy()
        return read(pl.DataFrame({"income": 1000 * thousands}), numeric="all"), f"reference sample {file.name}"
    return read(
        pl.DataFrame({"income": generate_incomes()}), numeric="all"
    ), "generated stand-in with the published summaries"


def generate_incomes() -> Array:
    """Return 177 incomes with the summaries of Table 1: min, percentiles and max exact, mean and sd within 1 %.

    The order statistics of the table are connected by curves in log income. One shape parameter for each side is chosen so
    that mean and sd agree with the table.
    """
    ranks = np.array([1, *(math.ceil(share * RECORDS) for share in (0.01, 0.10, 0.90, 0.99)), RECORDS])
    fixed = np.log([2000, 2000, 7200, 35_000, 70_000, 95_200.0])
    whole, part = np.divmod(np.interp(np.arange(1, RECORDS + 1), ranks, np.arange(6)), 1)
    low, high = fixed[whole.astype(int)], fixed[np.minimum(whole.astype(int) + 1, 5)]

    def interpolate(lower: float, upper: float) -> Array:
        curve = np.where(whole == 2, part**lower, np.where(whole == 3, part**upper, part))
        return np.asarray(np.exp(low + curve * (high - low)))

    files = (interpolate(*shape) for shape in product(np.linspace(0.3, 3, 28), repeat=2))
    return min(files, key=lambda x: abs(x.mean() / 20_100 - 1) + abs(x.std(ddof=1) / 13_300 - 1))


def truncated_efficiency(x: Array, noise_variance: Array | float) -> float:
    """Return U(lambda2)/U(0) of Y = max(0, x + e), exactly: eq. 13 with the moments of the truncated normal.

    noise_variance : Var e of each record, or one for all; above 0.
    m1 = x Phi(a) + l phi(a), m2 = (x^2 + l^2) Phi(a) + x l phi(a), a = x/l.
    """
    from scipy.special import ndtr

    n = len(x)
    noise = np.sqrt(noise_variance)
    a = x / noise
    density = np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    m1 = x * ndtr(a) + noise * density
    m2 = (x * x + noise**2) * ndtr(a) + x * noise * density
    mean_s2 = (m2.sum() - ((m2 - m1**2).sum() + m1.sum() ** 2) / n) / (n - 1)  # E s^2
    return float(x.var(ddof=1) / n / (mean_s2 / n + (m1.mean() - x.mean()) ** 2))


def noise_variances(x: Array, share: float, masking: str) -> Array:
    """Return Var e of each record: share S^2, or twice that above the sensitive income if masking is unequal."""
    return np.asarray(share * x.var(ddof=1) * np.where((x > SENSITIVE_INCOME) & (masking == "unequal"), 2.0, 1.0))


def noise(
    level: float, masking: str, on: str = "income", lower: float | None = 0.0, sensitive: float = SENSITIVE_INCOME
) -> Noise:
    """Return noise with this share of the variance, or twice that above the sensitive value if masking is unequal."""
    above: dict[str, Any] = {"above": sensitive, "variance_above": 2 * level} if masking == "unequal" else {}
    return Noise(on=(on,), variance=level, lower=lower, **above)


@dataclass(frozen=True)
class EmpiricalMaps:
    """R and U of equal and unequal noise at every level, pooled over replicates."""

    data: Microdata
    scores: Scores

    @staticmethod
    def run(data: Microdata, replicates: int, seed: int) -> EmpiricalMaps:
        """Sweep one plan: two maskings, 20 levels, 6 targets under two knowledge states."""
        methods = [noise(level, masking) for masking in ("equal", "unequal") for level in NOISE_LEVELS]
        risks = [knows(on="income", target=target) for knows in (Position, Index) for target in TARGETS]
        plan = Plan(methods, [*risks, MeanPrecision(on="income")], replicates=replicates, seed=seed)
        return EmpiricalMaps(data, sweep(data, plan))

    def curve(self, target: Target, masking: str = "equal") -> list[Document]:
        """Return one row per level: noise_share, efficiency, R_index, R_position, and their standard errors."""
        measures = Index(on="income", target=target), Position(on="income", target=target), MeanPrecision(on="income")
        index, position, utility = (self.scores.pooled_estimates(measure.text) for measure in measures)
        whole = utility[Identity().text].value
        methods = {level: noise(level, masking).text for level in NOISE_LEVELS}
        return [
            {
                "masking": masking, "target": target, "noise_share": level, "efficiency": utility[method].value / whole,
                "R_index": index[method].value, "R_index_se": index[method].se,
                "R_position": position[method].value, "R_position_se": position[method].se,
            }
            for level, method in methods.items()
        ]  # fmt: skip

    def crossing(self, target: Target, risk: str, masking: str = "equal") -> dict[str, float] | None:
        """Return the smallest noise share within the limit and its exact efficiency; None if no level is within it.

        The share is interpolated by a line through the nearest levels in log risk and log share.
        """
        curve = self.curve(target, masking)
        share = np.log([row["noise_share"] for row in curve])
        over = np.log([row[risk] for row in curve]) - math.log(RISK_LIMIT)
        if over.min() > 0:
            return None
        # Fit the line to the levels within a factor 2.5 of the first level within the limit.
        near = np.abs(share - share[np.argmax(over <= 0)]) < math.log(2.5)
        slope, start = np.polyfit(share[near], over[near], 1)
        level, x = math.exp(-start / slope), self.data["income"]
        return {"noise_share": level, "efficiency": truncated_efficiency(x, noise_variances(x, level, masking))}
