"""The whole line on demo data: a plan, a study, a map, a choice, a release and a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdcmap.choose import Threshold
from sdcmap.demo import population
from sdcmap.errors import SdcmapError
from sdcmap.grid import grid, subsets
from sdcmap.io import Source, write
from sdcmap.map import RUMap
from sdcmap.methods import Swap
from sdcmap.plan import Plan
from sdcmap.progress import bar
from sdcmap.release import release
from sdcmap.report import report
from sdcmap.risk import SmallCells
from sdcmap.scoring import score
from sdcmap.study import Study
from sdcmap.sweep import sweep
from sdcmap.utility import Hellinger

MARK = "made by sdcmap demo"


def tour(folder: Path, rows: int = 20_000) -> Iterator[str]:
    """Go the whole line in `folder` and say what was made, line by line; an earlier tour there is made anew."""
    if (folder / MARK).exists():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise SdcmapError(f"{folder} is not empty: name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    people = population(rows)
    write(people, folder / "population.csv")
    roles: dict[str, Any] = {
        "keys": people.keys, "sensitive": people.sensitive, "numeric": people.numeric,
        "household": people.household or (), "weight": people.weight or (),
        "other": people.schema.of_role("other"),
    }  # fmt: skip
    small = SmallCells()
    limit = round(0.9 * score(people, people, small)[small.text].value, 4)
    plan = Plan(
        grid(Swap, on=subsets(people.keys, 1, 2), rate=[0.02, 0.05, 0.1, 0.2]), [small, Hellinger()], replicates=10,
        rule=Threshold(risk=limit), data=Source("population.csv", **roles),
    )  # fmt: skip
    (folder / "plan.toml").write_text(plan.toml(), encoding="utf-8")
    yield f"{folder / 'plan.toml'}: {plan.count:,} candidates of {rows:,} persons"
    with bar() as progress:
        scores = sweep(people, plan, folder / "study", progress=progress)
    yield f"{folder / 'study'}: every candidate made and scored"
    ru = RUMap(scores, plan.risk, plan.utility)
    choice = ru.choose(Threshold(risk=limit))
    yield choice.reason
    ru.draw(mark=choice).save(folder / "map.html")
    yield f"{folder / 'map.html'}: the R-U map"
    study = Study.open(folder / "study")
    release(people, plan, choice, study=study, ledger=folder / "ledger").write(folder / "public")
    yield f"{folder / 'public'}: the release, with its note, codebook and checksums"
    report(study, choice).save(folder / "report.html")
    yield f"{folder / 'report.html'}: the report for the board"
