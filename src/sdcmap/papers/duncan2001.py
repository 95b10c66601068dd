"""Duncan, Keller-McNulty, Stokes (2001), Disclosure risk vs. data utility: the R-U confidentiality map.

Figures 2 to 4 from theory, figures 5 to 7 by simulation on an income file, each with the printed values; and the errata.
"""

from __future__ import annotations

import secrets
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.charts.curves import draw_curves
from sdcmap.core.chart import Chart
from sdcmap.papers.duncan2001_incomes import (
    RISK_LIMIT,
    TARGETS,
    EmpiricalMaps,
    Target,
    load_incomes,
    noise_variances,
    truncated_efficiency,
)
from sdcmap.papers.reference import Document, Result, errata
from sdcmap.theory import NoiseModel

NOISE_SHARES = (0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.21, 0.25, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2)  # lambda2 / sigma2
CURVES = {
    "R_population": ("population", "typical target (eq. 2)"),
    "R_in_sample": ("in_sample", "target in the sample (exact)"),
    "R_index": ("index", "index known (eq. 4)"),
    "R_percentile": ("percentile", "percentile known (eq. 8)"),
    "R_percentile_exact": ("percentile_exact", "percentile known (exact)"),
    "R_extreme": ("extreme", "largest known (eq. 10)"),
    "R_extreme_exact": ("extreme_exact", "largest known (exact moments)"),
}
FIGURES = {
    "2": ("R_population", "R_index"),
    "3": ("R_population", "R_index", "R_percentile", "R_percentile_exact"),
    "4": ("R_population", "R_index", "R_percentile", "R_extreme", "R_extreme_exact"),
}


def run(
    *, n: int = 200, sigma2: float = 1.0, p: float = 0.99, max_risk: float = 5.0, replicates: int = 1000,
    data: Path | None = None, seed: int | None = None,
) -> Result:  # fmt: skip
    """Run the experiment.

    n, sigma2, p : parameters of figures 2 to 4.
    max_risk : the largest tolerable R in figures 2 to 4.
    replicates : draws of each masking in figures 5 to 7 (the paper has 200).
    data : folder of reference files.
    seed : of the simulation; by default a random one.
    """
    model = NoiseModel(n=n, variance=sigma2, p=p)
    l2 = np.array(NOISE_SHARES) * sigma2
    columns = {"lambda2": l2, "U": model.utility(l2)}
    columns |= {name: model.risk(l2, knowledge) for name, (knowledge, _) in CURVES.items()}
    theory = pl.DataFrame(columns).to_dicts()
    people, which = load_incomes(data)
    maps = EmpiricalMaps.run(people, replicates, secrets.randbits(256) if seed is None else seed)
    statements = _statements(maps)
    simulated = {
        "5": maps.curve("maximum") + maps.curve("minimum"), "6": maps.curve(0.99),
        "7": maps.curve(0.99) + maps.curve(0.99, "unequal"),
    }  # fmt: skip
    document = {
        "figures": dict.fromkeys(FIGURES, theory) | simulated, "statements": statements,
        "solutions": _solutions(model, max_risk), "sample": which, "replicates": replicates,
    }  # fmt: skip
    lines = _lines(model, max_risk, statements, which, replicates)
    return Result(document, tuple(lines), _charts(theory, maps, max_risk))


def _solutions(model: NoiseModel, max_risk: float) -> Document:
    """Return the smallest noise within the tolerable risk, for each knowledge state of figures 2 to 4."""
    facts = ("status", "noise_variance", "risk", "utility", "efficiency", "intervals")
    solutions = {name: model.solve(max_risk, knowledge) for name, (knowledge, _) in CURVES.items()}
    return {name: {fact: getattr(solution, fact) for fact in facts} for name, solution in solutions.items()}


def _statements(maps: EmpiricalMaps) -> Document:
    """Return the four statements of section 4 with our values."""
    x = maps.data["income"]
    lowest = min(row["R_position"] for row in maps.curve("minimum"))
    ratios = {str(t): min(row["R_position"] / row["R_index"] for row in maps.curve(t)) for t in TARGETS}
    return {
        "a": {
            "says": "position knowledge of the minimum: no noise brings R down to 4e-8",
            "lowest_R": lowest, "holds": lowest > RISK_LIMIT, "index_crossing": maps.crossing("minimum", "R_index"),
        },
        "b": {
            "says": "known maximum: lambda2 = 0.12 S2 suffices, efficiency 89 %",
            "crossing": maps.crossing("maximum", "R_position"),
            "exact_share_if_isolated": 1 / (RISK_LIMIT * x.var(ddof=1)),
            "efficiency_at_0.12": truncated_efficiency(x, noise_variances(x, 0.12, "equal")),
        },
        "c": {"says": "position tells more than index, for every target", "smallest_ratio": ratios},
        "d": {
            "says": "unequal noise meets the limit for the 99th percentile with more utility",
            "equal": maps.crossing(0.99, "R_position"),
            "unequal": maps.crossing(0.99, "R_position", "unequal"),
        },
    }  # fmt: skip


def _lines(model: NoiseModel, max_risk: float, facts: Document, which: str, replicates: int) -> list[str]:
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in facts["c"]["smallest_ratio"].items())
    return [
        "Duncan, Keller-McNulty, Stokes (2001)",
        f"Figures 2 to 4, theory: n = {model.n}, sigma2 = {model.variance:g}, p = {model.p:g}",
        f"  index known, R <= {max_risk:g}: {model.solve(max_risk, 'index')}   [paper at 5: lambda2 = 0.21, U = 165]",
        f"  percentile known, R <= {max_risk:g}: {model.solve(max_risk, 'percentile')}",
        *(f"  most harmful knowledge: {switch}" for switch in model.switches()),
        f"Figures 5 to 7, simulation: {which}, {replicates} replicates",
        f"  (a) position of the minimum: lowest R {facts['a']['lowest_R']:.3g} > 4e-8   [paper: never below 4e-8]",
        f"  (b) position of the maximum reaches 4e-8 {_format_crossing(facts['b']['crossing'])}   [paper: 0.12 S2, 89 %]",
        f"      efficiency at 0.12 S2, exact: {facts['b']['efficiency_at_0.12']:.4f}",
        f"  (c) smallest ratio of position to index risk: {ratios}",
        f"  (d) 99th percentile, equal noise {_format_crossing(facts['d']['equal'])}; "
        f"unequal {_format_crossing(facts['d']['unequal'])}",
        "Errata of the printed paper:",
        *errata("duncan2001"),
    ]


def _format_crossing(at: dict[str, float] | None) -> str:
    return "never" if at is None else f"at {at['noise_share']:.3f} S2, efficiency {at['efficiency']:.3f}"


def _charts(theory: list[dict[str, float]], maps: EmpiricalMaps, max_risk: float) -> dict[str, Chart]:
    charts = {}
    for figure, names in FIGURES.items():
        rows = [
            {"series": CURVES[name][1], "x": row["U"], "y": row[name], "lambda2": row["lambda2"]}
            for name in names for row in theory
        ]  # fmt: skip
        charts[f"figure{figure}"] = draw_curves(
            pl.DataFrame(rows), x="Utility of the mean: U (1/unit²), higher is better",
            y="Risk: R (1/unit²), lower is better", threshold=max_risk,
        )  # fmt: skip
    shown: dict[str, list[tuple[Target, str, str, str]]] = {
        "figure5": [(end, "equal", "R_position", f"{end} known") for end in ("maximum", "minimum")],
        "figure6": [(0.99, "equal", "R_position", "99th percentile known"), (0.99, "equal", "R_index", "its record known")],
        "figure7": [(0.99, "equal", "R_position", "equal noise"), (0.99, "unequal", "R_position", "doubled above 35,000")],
    }  # fmt: skip
    for name, curves in shown.items():
        rows = [
            {"series": words, "x": row["efficiency"], "y": row[risk], "se": row[f"{risk}_se"],
             "noise share of S²": row["noise_share"]}
            for target, masking, risk, words in curves for row in maps.curve(target, masking)
        ]  # fmt: skip
        charts[name] = draw_curves(
            pl.DataFrame(rows), x="Efficiency: U as a share of the unmasked file's, higher is better",
            y="Risk: R (1/dollar²), lower is better", threshold=RISK_LIMIT,
        )  # fmt: skip
    return charts
