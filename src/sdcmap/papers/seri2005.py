"""Seri (2005), A graphical framework to evaluate risk assessment and information loss at individual level.

Figures 1 and 3 and the densities of eq. 3 for 157 firms; then two real business files, one with growing noise and one with
a change of units.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Array, Generator
from sdcmap.papers.reference import Document, Result, errata, reference_file
from sdcmap.recordwise.table import RecordTable, records

FACTS = ("delta", "links_in_reach", "nearest_links", "empty", "unsafe_line", "unsafe_curve", "mean_perturbation")
PRINTED = {"delta": 0.040838, "links_in_reach": 33, "nearest_links": 5}
NOISE_SDS = (0.1, 0.3, 0.6)  # standard deviations on the log scale
# Figure 1 prints the two triangles as (7.3, 15.5) and (3.4, 9.6): the first axis is log employees, the second log turnover.
FIRM_VARIABLES = ("log employees", "log turnover")
MEAN, SD, CORRELATION, MASKING = (
    (3.6, 9.8),
    (0.8, 1.1),
    0.6,
    0.626,
)  # of log-normal firms that reproduce delta and links
UNITS = (1000.0, 1000.0)  # from million dollars and thousand employees to thousand dollars and persons


def run(*, data: Path | None = None, seed: int = 1, alpha: float = 0.05, k: int = 15, r: float = 0.15) -> Result:
    """Run the experiment.

    data : folder of reference files.
    seed : of the added noise.
    alpha, k, r : parameters of the paper's rule.
    """
    rule = {"alpha": alpha, "k": k, "r": r}
    x, y, which = _firms(data, seed)
    firms = _table(x, y, FIRM_VARIABLES, {**rule, "size": FIRM_VARIABLES[1]})
    document: Document = {"firms157": _facts(firms)}
    lines = [
        "Seri (2005)",
        f"157 firms ({which}): {_format_facts(firms)}",
        "  [paper: delta 0.040838, 33 links in reach (crosses), 5 nearest links (squares); its data and its model-based "
        "masking are not published]",
    ]
    figures = {"figure1": firms.draw_zoom(), "figure3": firms.draw(), "densities": firms.draw_densities()}
    for part in (_tarragona(data, seed, rule), _innovation(data, seed, rule)):
        document |= part.document
        lines += part.lines
        figures |= part.figures
    lines += ["Errata of the printed paper:", *errata("seri2005")]
    document |= {"sample": which, "printed": PRINTED}
    return Result(document, tuple(lines), figures)


def _table(x: Array, y: Array, names: tuple[str, str], rule: dict[str, Any]) -> RecordTable:
    """Return the record table of two arrays on the log scale."""
    return records(pl.DataFrame(x, schema=list(names)), pl.DataFrame(y, schema=list(names)), names, **rule)


def _facts(table: RecordTable) -> Document:
    return {fact: value for fact, value in table.summary().items() if fact in FACTS}


def _format_facts(table: RecordTable) -> str:
    facts = _facts(table)
    tied = f" ({table.ties} tied)" if table.ties else ""
    return (
        f"delta {facts['delta']:.6f}, {facts['links_in_reach']} links in reach, {facts['nearest_links']} nearest "
        f"links{tied}, {facts['empty']} without a neighbor, unsafe {facts['unsafe_line']} (line) and "
        f"{facts['unsafe_curve']} (curve), mean perturbation {facts['mean_perturbation']:.4f}"
    )


def simulate_firms(rng: Generator, n: int = 157) -> tuple[Array, Array]:
    """Return log employees and log turnover of n firms that reproduce the printed delta and links, and their masking."""
    covariance = np.outer(SD, SD) * np.array([[1, CORRELATION], [CORRELATION, 1]])
    x: Array = rng.multivariate_normal(MEAN, covariance, n, method="cholesky")
    return x, x + MASKING * rng.standard_normal(x.shape)


def _firms(data: Path | None, seed: int) -> tuple[Array, Array, str]:
    first, second = (reference_file(f"firms157_{which}.csv", data) for which in ("X", "Y"))
    if first is None or second is None:
        return *simulate_firms(np.random.default_rng(seed)), "a generated stand-in"
    return np.loadtxt(first, delimiter=","), np.loadtxt(second, delimiter=","), "reference files"


def _tarragona(data: Path | None, seed: int, rule: dict[str, Any]) -> Result:
    """Return the results for log sales and labor costs of companies with both positive, for three strengths of noise."""
    names = ("SALES", "LABOR_COSTS")
    x, which = _logs("casc_tarragona", names, data, seed)
    tables = {
        s: _table(
            x, x + s * np.random.default_rng(seed).standard_normal(x.shape), ("log SALES", "log LABOR_COSTS"), rule
        )
        for s in NOISE_SDS
    }
    shown = tables[NOISE_SDS[1]]
    document = {**_facts(shown), "noise": NOISE_SDS[1], "records": len(shown), "sample": which,
                "by_noise": {f"{s:g}": {**_facts(table), "ties": table.ties} for s, table in tables.items()}}  # fmt: skip
    lines = [f"casc_tarragona ({which}), {len(shown)} companies, log {' and '.join(names)}:"]
    lines += [f"  noise {s:g}: {_format_facts(table)}" for s, table in tables.items()]
    return Result({"casc_tarragona": document}, tuple(lines), {"casc_tarragona": shown.draw()})


def _innovation(data: Path | None, seed: int, rule: dict[str, Any]) -> Result:
    """Return the results of one masking in two systems of units, and with the log-difference, which has no units."""
    names = ("turnover_musd", "employees_k")
    x, which = _logs("firm_innovation", names, data, seed)
    y = x + NOISE_SDS[1] * np.random.default_rng(seed).standard_normal(x.shape)
    shift = np.log(UNITS)
    in_millions = ("log turnover (million dollars)", "log employees (thousands)")
    in_thousands = ("log turnover (thousand dollars)", "log employees (persons)")
    first, second = _table(x, y, in_millions, rule), _table(x + shift, y + shift, in_thousands, rule)
    unit_free = _table(x, y, in_millions, {**rule, "distance": "absolute"})
    document = {**_facts(first), "noise": NOISE_SDS[1], "records": len(first), "sample": which,
                "other_units": _facts(second),
                "log_difference": _facts(unit_free)}  # fmt: skip
    lines = [
        f"firm_innovation ({which}), {len(first)} firms of sector 32 in 1991, noise {NOISE_SDS[1]:g}:",
        f"  million dollars, thousand employees: {_format_facts(first)}",
        f"  thousand dollars, employees:         {_format_facts(second)}",
        f"  log-difference, in any units:        {_format_facts(unit_free)}",
    ]
    figures = {"firm_innovation": first.draw(), "firm_innovation_other_units": second.draw()}
    return Result({"firm_innovation": document}, tuple(lines), figures)


def _logs(name: str, names: tuple[str, str], data: Path | None, seed: int) -> tuple[Array, str]:
    file = reference_file(f"{name}.parquet", data)
    if file is None:
        return simulate_firms(np.random.default_rng(seed), 500)[0], "a generated stand-in"
    frame = pl.read_parquet(file)
    if name == "firm_innovation":
        frame = frame.filter(pl.col("year").cast(pl.Int64) == 1991, pl.col("sector2").cast(pl.String) == "32")
    values = frame.select(names).to_numpy().astype(np.float64)
    return np.log(values[(values > 0).all(axis=1)]), name
