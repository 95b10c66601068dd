"""Trottini (2001), A decision-theoretic approach to data disclosure problems.

Example 1 in closed form with the printed values, figures 1 and 2, the choice as the limits change, and the errata.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.charts.planes import draw_planes
from sdcmap.core.chart import Chart
from sdcmap.papers.reference import PRINTED, Document, Result, errata
from sdcmap.papers.trottini2001_choice import run_worked_choice
from sdcmap.theory import decision as theory
from sdcmap.theory.decision import GlobalRisk, GlobalUtility, KullbackLeibler, Normal
from sdcmap.theory.parameter_checks import Numbers

NAMES = ("D1", "D2")
# Posteriors given D1 and given D2; the second number is a variance.
INTRUDER = Normal(np.array([-5.0, 5.0]), np.ones(2))
SOCIETY = Normal(np.array([-7.0, 7.0]), np.full(2, 2.0))
AGENCY_OF_INTRUDERS_TARGET = Normal(4.9, 0.001)
AGENCY_OF_SOCIETYS_TARGET = Normal(-6.9, 0.001)
AGENCY_LIMIT, INTRUDER_LIMIT = -40.0, -0.8  # t_A and t_INT of figure 2
OTHER_LIMITS = ((-60.0, -0.8), (-2.0, -0.8), (-40.0, -1.2), (-40.0, -1.0))  # (t_A, t_INT)


def run(
    *, agency_limit: float = AGENCY_LIMIT, intruder_limit: float = INTRUDER_LIMIT, data: Path | None = None, seed: int = 1,
    worked: bool = True,
) -> Result:  # fmt: skip
    """Run example 1, and a worked choice on a real file.

    agency_limit, intruder_limit : t_A for IEK and t_INT for RDH of example 1, at most 0.
    data : folder of reference files.
    seed : of the candidates.
    worked : whether to include the worked choice.
    """
    risk, utility = _four(KullbackLeibler())
    decision = theory.decide(risk, utility, agency_limit=agency_limit, intruder_limit=intruder_limit)
    document: Document = {
        name: {
            "IEK": _of(risk.iek, i), "RDH": _of(risk.rdh, i), "SEK": _of(utility.sek, i), "DUS": _of(utility.dus, i),
            "distance": float(decision.distances[i]), "region": str(decision.regions[i]),
        }
        for i, name in enumerate(NAMES)
    }  # fmt: skip
    document["choice"] = None if decision.choice is None else NAMES[decision.choice]
    lines = tuple(_lines(document, risk, utility, decision, agency_limit, intruder_limit))
    charts = _charts(document, agency_limit, intruder_limit)
    if not worked:
        return Result(document, lines, charts)
    more = run_worked_choice(data=data, seed=seed)
    return Result({**document, "worked": more.document}, (*lines, *more.lines), charts | more.figures)


def _four(divergence: theory.Divergence) -> tuple[GlobalRisk, GlobalUtility]:
    risk = theory.global_risk(AGENCY_OF_INTRUDERS_TARGET, INTRUDER, divergence=divergence)
    utility = theory.global_utility(AGENCY_OF_SOCIETYS_TARGET, SOCIETY, divergence=divergence)
    return GlobalRisk(*np.broadcast_arrays(*risk)), GlobalUtility(*np.broadcast_arrays(*utility))


def _lines(
    document: Document, risk: GlobalRisk, utility: GlobalUtility, decision: theory.Decision, agency_limit: float,
    intruder_limit: float,
) -> Iterator[str]:  # fmt: skip
    printed = PRINTED["trottini2001"]["example1"]
    yield "Trottini (2001)"
    yield "Example 1: ours [printed]; KL in nats plus the agency's variance; N(m, v) has variance v"
    for name in NAMES:
        numbers = ", ".join(f"{key} {document[name][key]:.6f} [{value:.2f}]" for key, value in printed[name].items())
        yield f"  {name}: {numbers}"
        yield f"      distance from (0, 0) {document[name]['distance']:.6f}, region {document[name]['region']}"
    decided = f"release {document['choice']}" if document["choice"] else "release nothing: region D is empty"
    if decision.nearest_miss is not None:
        decided += f"; the nearest miss is {NAMES[decision.nearest_miss]}"
    yield f"  t_A = {agency_limit:g}, t_INT = {intruder_limit:g}: {decided}   [paper at -40, -0.8: D1]"
    sweep = theory.sweep_limits(risk, utility)
    yield "  Other limits (par. 29: D1, or nothing):"
    for pair in OTHER_LIMITS:
        choice = sweep.at(*pair)
        yield f"    t_A = {pair[0]:g}, t_INT = {pair[1]:g}: {'nothing' if choice is None else NAMES[choice]}"
    yield f"  Chosen at some pair of limits: {', '.join(NAMES[i] for i in sweep.winners)}"
    loss_risk, loss_utility = _four(theory.LossInduced())
    for i, name in enumerate(NAMES):
        numbers = f"IEK {_of(loss_risk.iek, i):.3f}, SEK {_of(loss_utility.sek, i):.3f}"
        yield f"  {name} with the loss-induced divergence (unit²): {numbers}"
    notes = theory.notes(AGENCY_OF_INTRUDERS_TARGET, INTRUDER, divergence=KullbackLeibler())
    yield from (f"  Note: {note}" for note in notes)
    yield from ("Errata of the printed paper:", *errata("trottini2001"))


def _charts(document: Document, agency_limit: float, intruder_limit: float) -> dict[str, Chart]:
    rows = [
        {"name": name, **{key.lower(): document[name][key] for key in ("IEK", "RDH", "SEK", "DUS")},
         "region": document[name]["region"], "chosen": name == document["choice"]}
        for name in NAMES
    ]  # fmt: skip
    limits: dict[str, Any] = {"agency_limit": agency_limit, "intruder_limit": intruder_limit}
    draw = partial(draw_planes, pl.DataFrame(rows), **limits, units=("nats + unit²", "unit²"))
    return {"figure1": draw(utility=False, width=420, height=340), "figure2": draw()}


def _of(values: Numbers, i: int) -> float:
    """Return the number of data set i."""
    return float(np.asarray(values)[i])
