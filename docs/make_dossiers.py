"""Writes the sample dossiers of docs/dossiers: a social survey, a business file and a census extract, all of them made up.

Each is the report for the board, and the one for anybody, of a study of a starting plan. No record is anybody's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

import sdcmap as sm
from sdcmap.explore.looking import look

FOLDER = Path(__file__).parent / "dossiers"
SEED = 0x5A3B_1E0D_0551_E250_0000_0000_0000_0000_0000_0001  # the data are made up, so it need not be secret
OWNER = "Office of Statistics of Utopia"


def survey() -> sm.Microdata:
    """Persons with an income, in households: the demo population."""
    return sm.demo.population(1000, seed=21)


def businesses(count: int = 700) -> sm.Microdata:
    """Firms by sector, region and size; profit is what turnover leaves of wages and other costs."""
    rng = np.random.default_rng(21)
    staff = np.ceil(rng.lognormal(2.3, 1.1, count))
    turnover = (staff * rng.lognormal(4.2, 0.5, count)).round(0)
    wages = (turnover * rng.uniform(0.15, 0.5, count)).round(0)
    costs = (turnover * rng.uniform(0.2, 0.45, count)).round(0)
    size = np.select([staff < 10, staff < 50], ["1 to 9", "10 to 49"], "50 or more")
    frame = pl.DataFrame(
        {
            "sector": rng.choice(["trade", "industry", "building", "services", "transport"], count),
            "region": rng.choice(["north", "south", "east", "west"], count),
            "size": size,
            "turnover": turnover,
            "wages": wages,
            "costs": costs,
            "profit": turnover - wages - costs,
        }
    )
    keys, amounts = ["sector", "region", "size"], ["turnover", "wages", "costs", "profit"]
    return sm.read(frame, keys=keys, numeric=amounts, sensitive=["turnover", "profit"])


def census(count: int = 1200) -> sm.Microdata:
    """Everybody of a small town: categories alone, each known to the neighbours."""
    rng = np.random.default_rng(22)
    age = rng.integers(0, 90, count)
    married = (age >= 18) & (rng.random(count) < np.clip((age - 18) / 40, 0, 0.7))
    work = np.where(age < 15, "none", rng.choice(["none", "employed", "own account"], count, p=[0.35, 0.55, 0.1]))
    frame = pl.DataFrame(
        {
            "age": np.char.add((age // 10 * 10).astype(str), "s"),
            "sex": rng.choice(["f", "m"], count),
            "marital": np.where(married, "married", "not married"),
            "birthplace": rng.choice(["here", "elsewhere", "abroad"], count, p=[0.5, 0.4, 0.1]),
            "quarter": rng.choice(["old town", "harbour", "hill", "station", "meadows"], count),
            "work": work,
        }
    )
    return sm.read(frame, keys=frame.columns, census=True)


EDITS = {"census-extract": ['age = "0s" -> marital = "not married"', 'age = "0s" -> work = "none"']}
SAMPLES: dict[str, tuple[str, str, Callable[[], sm.Microdata]]] = {
    "social-survey": ("Social survey of Utopia", "public-use", survey),
    "business-file": ("Structural business survey of Utopia", "business", businesses),
    "census-extract": ("Census extract of Utopia", "public-use", census),
}


def write(name: str, title: str, profile: str, data: sm.Microdata, room: Path) -> None:
    """The two reports of one sample."""
    plan = of_made_up_data(look(data).plan("", profile), EDITS.get(name, ()))
    sm.sweep(data, plan, room / name)
    for audience in ("internal", "external"):
        page = sm.report(room / name, audience=audience, title=title, owner=OWNER)
        page.save(FOLDER / f"{name}-{audience}.html").chmod(0o644)


def of_made_up_data(plan: sm.Plan, edits: Sequence[str]) -> sm.Plan:
    """The plan with a stated seed and edit rules, and without its data, so that the pages name no file."""
    return replace(plan, seed=SEED, data=None, edits=tuple(edits))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for sample, (words, whom, made) in SAMPLES.items():
            write(sample, words, whom, made(), Path(folder))
            print(sample)
