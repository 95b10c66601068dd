"""Seri (2005), A graphical framework to evaluate risk assessment and information loss at individual level.

Figures 1 and 3 and the densities of eq. 3 for 157 firms, then two real business files: one under growing noise, one under a
change of units.
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
NOISE = (0.1, 0.3, 0.6)  # standard deviations on the log scale
MEAN, SD, CORRELATION, MASKING = ((3.6, 9.8), (0.8, 1.1), 0.6, 0.626)  # log-normal firms that fit delta and links
UNITS = (1000.0, 1000.0)  # from million dollars and thousand employees to thousand dollars and persons


def run(*, data: Path | None = None, seed: int = 1, alpha: float = 0.05, k: int = 15, r: float = 0.15) -> Result:
    """The experiment. data : folder of reference files. seed : of the noise added here. alpha, k, r : the paper's rule."""
    rule = {"alpha": alpha, "k": k, "r": r}
    x, y, which = _firms(data, seed)
    firms = _table(x, y, ("turnover", "employees"), rule)
    document: Document = {"firms157": _facts(firms)}
    lines = [
        "Seri (2005)",
        f"157 firms ({which}): {_said(firms)}",
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
    """The record table of two arrays that are on the log scale already."""
    return records(pl.DataFrame(x, schema=list(names)), pl.DataFrame(y, schema=list(names)), names, **rule)


def _facts(table: RecordTable) -> Document:
    return {fact: value for fact, value in table.summary().items() if fact in FACTS}


def _said(table: RecordTable) -> str:
    facts = _facts(table)
    tied = f" ({table.ties} tied)" if table.ties else ""
    return (
        f"delta {facts['delta']:.6f}, {facts['links_in_reach']} links in reach, {facts['nearest_links']} nearest "
        f"links{tied}, {facts['empty']} without a neighbor, unsafe {facts['unsafe_line']} (line) and "
        f"{facts['unsafe_curve']} (curve), mean perturbation {facts['mean_perturbation']:.4f}"
    )


def like_the_paper(rng: Generator, n: int = 157) -> tuple[Array, Array]:
    """Log turnover and log employees of n firms that fit the printed delta and links in reach, and their masking."""
    covariance = np.outer(SD, SD) * np.array([[1, CORRELATION], [CORRELATION, 1]])
    x: Array = rng.multivariate_normal(MEAN, covariance, n, method="cholesky")
    return x, x + MASKING * rng.standard_normal(x.shape)


def _firms(data: Path | None, seed: int) -> tuple[Array, Array, str]:
    first, second = (reference_file(f"firms157_{which}.csv", data) for which in ("X", "Y"))
    if first is None or second is None:
        return *like_the_paper(np.random.default_rng(seed)), "a generated stand-in"
    return np.loadtxt(first, delimiter=","), np.loadtxt(second, delimiter=","), "reference files"


def _tarragona(data: Path | None, seed: int, rule: dict[str, Any]) -> Result:
    """Log sales and labour costs of the companies where both are positive, under three strengths of noise."""
    names = ("SALES", "LABOR_COSTS")
    x, which = _logs("casc_tarragona", names, data, seed)
    tables = {s: _table(x, x + s * np.random.default_rng(seed).standard_normal(x.shape), names, rule) for s in NOISE}
    shown = tables[NOISE[1]]
    document = {**_facts(shown), "noise": NOISE[1], "records": len(shown), "sample": which,
                "by_noise": {f"{s:g}": {**_facts(table), "ties": table.ties} for s, table in tables.items()}}  # fmt: skip
    lines = [f"casc_tarragona ({which}), {len(shown)} companies, log {' and '.join(names)}:"]
    lines += [f"  noise {s:g}: {_said(table)}" for s, table in tables.items()]
    return Result({"casc_tarragona": document}, tuple(lines), {"casc_tarragona": shown.draw()})


def _innovation(data: Path | None, seed: int, rule: dict[str, Any]) -> Result:
    """The same masking of the firms of one sector in two systems of units; and the log-difference, which has no units."""
    names = ("turnover_musd", "employees_k")
    x, which = _logs("firm_innovation", names, data, seed)
    y = x + NOISE[1] * np.random.default_rng(seed).standard_normal(x.shape)
    shift = np.log(UNITS)
    first, second = _table(x, y, names, rule), _table(x + shift, y + shift, names, rule)
    free = _table(x, y, names, {**rule, "distance": "absolute"})
    document = {**_facts(first), "noise": NOISE[1], "records": len(first), "sample": which, "other_units": _facts(second),
                "log_difference": _facts(free)}  # fmt: skip
    lines = [
        f"firm_innovation ({which}), {len(first)} firms of sector 32 in 1991, noise {NOISE[1]:g}:",
        f"  million dollars, thousand employees: {_said(first)}",
        f"  thousand dollars, employees:         {_said(second)}",
        f"  log-difference, in any units:        {_said(free)}",
    ]
    figures = {"firm_innovation": first.draw(), "firm_innovation_other_units": second.draw()}
    return Result({"firm_innovation": document}, tuple(lines), figures)


def _logs(name: str, names: tuple[str, str], data: Path | None, seed: int) -> tuple[Array, str]:
    file = reference_file(f"{name}.parquet", data)
    if file is None:
        return like_the_paper(np.random.default_rng(seed), 500)[0], "a generated stand-in"
    frame = pl.read_parquet(file)
    if name == "firm_innovation":
        frame = frame.filter(pl.col("year").cast(pl.Int64) == 1991, pl.col("sector2").cast(pl.String) == "32")
    values = frame.select(names).to_numpy().astype(np.float64)
    return np.log(values[(values > 0).all(axis=1)]), name
