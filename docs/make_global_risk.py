"""Compute the table and the chart of global-risk.md: global risk compared with other measures. Run it after a change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm

PAGE = Path(__file__).with_name("global-risk.md")
IMAGES = PAGE.parent / "img"
BEGIN, END = "<!-- computed -->", "<!-- end -->"
KNOWN, WANTED = ("hours", "rent", "tax"), "wage"
NUMBERS = (*KNOWN, WANTED)
RECORDS, REPLICATES, SEED = 400, 10, 2001
LIMIT = -0.5

INTRUDER = {"on": WANTED, "attack": sm.risk.Informed(on=KNOWN)}
SOCIETY = {"on": WANTED, "of": "coefficient", "formula": f"rent ~ {WANTED}", "user": "informed", "prior_records": 50}
MEASURES = {
    "IEK": sm.risk.IntruderKnowledge(**INTRUDER),
    "RDH": sm.risk.DiscreditHarm(**INTRUDER),
    "SEK": sm.utility.SocietyKnowledge(**SOCIETY),
    "DUS": sm.utility.SocietyUtility(**SOCIETY),
    "IEK, record known": sm.risk.IntruderKnowledge(on=WANTED, scenario="noise"),
    "Informed": sm.risk.Informed(on=KNOWN),
    "NearestRecord": sm.risk.NearestRecord(one_to_one=True, on=KNOWN),
    "KnownIndex (x variance)": sm.risk.KnownIndex(on=WANTED),
    "SmallCells": sm.SmallCells(on=("region", "size")),
}
METHODS = {
    **{f"noise {v:g}": sm.Noise(on=NUMBERS, variance=v) for v in (0.001, 0.01, 0.03, 0.1)},
    "noise 0.1, only the wage": sm.Noise(on=WANTED, variance=0.1),
    "noise 1.5, only the wage": sm.Noise(on=WANTED, variance=1.5),
    "noise 0.1, all but the wage": sm.Noise(on=KNOWN, variance=0.1),
    **{f"rank swap {p:g}": sm.RankSwap(on=NUMBERS, p=p) for p in (0.02, 0.1)},
    "swap of the region": sm.Swap(on="region", rate=0.2),
}
NAMES = {"Identity": "unchanged file"} | {method.text: name for name, method in METHODS.items()}


def file() -> sm.Microdata:
    """Return persons with a wage, three other numbers, and two keys."""
    rng = np.random.default_rng(SEED)
    z = rng.standard_normal((RECORDS, 4))
    wage = np.exp(7.5 + 0.5 * z[:, 0])
    columns = {
        "hours": 38 + 6 * z[:, 1],
        "rent": 200 + 0.25 * wage * np.exp(0.3 * z[:, 2]),
        "tax": 0.2 * wage * np.exp(0.2 * z[:, 3]),
        "wage": wage,
    }
    frame = pl.DataFrame({name: values.round(1) for name, values in columns.items()}).with_columns(
        region=pl.Series(rng.choice(list("abcdefgh"), RECORDS)), size=pl.Series(rng.choice(list("1234567"), RECORDS))
    )
    return sm.read(frame, numeric=NUMBERS, keys=["region", "size"])


def swept() -> sm.Scores:
    """Return the scores of all candidates."""
    measures = list(MEASURES.values())
    return sm.sweep(
        file(), sm.Plan(methods=list(METHODS.values()), measures=measures, replicates=REPLICATES, seed=SEED)
    )


def rule() -> sm.GlobalCriterion:
    """Return the criterion with the limits of the page."""
    four = {name.lower(): MEASURES[name].text for name in ("IEK", "RDH", "SEK", "DUS")}
    return sm.GlobalCriterion(**four, agency_limit=LIMIT, intruder_limit=LIMIT)


def table(scores: sm.Scores) -> list[str]:
    """Return the table as lines of Markdown: means over the replicates, and the values when nothing is released."""
    pooled = {name: dict(scores.pooled(m.text).select("method", "value").iter_rows()) for name, m in MEASURES.items()}
    variance = float(file().numbers(WANTED).var(ddof=1))
    lines = [
        "| candidate | " + " | ".join(MEASURES) + " | region |",
        "|---|" + "---:|" * len(MEASURES) + ":---:|",
    ]
    ru = sm.RUMap(scores, risk=MEASURES["IEK"], utility=MEASURES["SEK"])
    regions = dict(rule().table(ru).select("method", "region").iter_rows())
    for method, words in NAMES.items():
        cells = []
        for name in MEASURES:
            value = pooled[name].get(method)
            cells.append(_shown(None if value is None else value * (variance if "KnownIndex" in name else 1)))
        lines.append(f"| {words} | " + " | ".join(cells) + f" | {regions[method]} |")
    baseline = []
    for name, measure in MEASURES.items():
        level = measure.baseline(file())
        baseline.append(_shown(None if level is None else level * (variance if "KnownIndex" in name else 1)))
    return [*lines, "| no release | " + " | ".join(baseline) + " | |"]


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return "inf" if np.isinf(value) else "0" if abs(value) < 0.0005 else f"{value:.3g}"


def draw(scores: sm.Scores) -> sm.Choice:
    """Draw both planes of the criterion and save the chart."""
    ru = sm.RUMap(scores, risk=MEASURES["IEK"], utility=MEASURES["SEK"])
    choice = ru.choose(rule())
    sm.charts.draw_criterion(ru, choice, unit="of prior uncertainty", names=NAMES).save(IMAGES / "global-risk.svg")
    return choice


if __name__ == "__main__":
    scores = swept()
    draw(scores)
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text("\n".join([before + BEGIN, "", *table(scores), "", END]) + rest.partition(END)[2], encoding="utf-8")
