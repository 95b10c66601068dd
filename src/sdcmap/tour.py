"""The whole line on demo data: a plan, a study, a map, a choice, a release and a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdcmap.bundle import release
from sdcmap.choose import Threshold
from sdcmap.core.grid import grid, subsets
from sdcmap.dossier import report
from sdcmap.errors import SdcmapError
from sdcmap.explore.demo import population
from sdcmap.files.reading import Source
from sdcmap.files.writing import write
from sdcmap.map import RUMap
from sdcmap.methods import Swap
from sdcmap.risk import SmallCells
from sdcmap.study.folder import Study
from sdcmap.study.jobs import score
from sdcmap.study.plan import Plan
from sdcmap.study.sweeping import sweep
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
    made = population(rows)
    write(made, folder / "population.csv")
    roles: dict[str, Any] = {
        "keys": made.keys, "sensitive": made.sensitive, "numeric": made.numeric, "household": made.household,
        "weight": made.weight, "other": made.schema.of_role("other"),
    }  # fmt: skip
    source = Source("population.csv", **roles)
    people = source.read(folder)
    small = SmallCells()
    limit = round(0.9 * score(people, people, small)[small.text].value, 4)
    rule = Threshold(risk=limit)
    swaps = grid(Swap, on=subsets(people.keys, 1, 2), rate=[0.02, 0.05, 0.1, 0.2])
    plan = Plan(swaps, [small, Hellinger(), Hellinger(weighted=True)], replicates=10, rule=rule, data=source)
    plan.write(folder / "plan.toml")
    yield f"{folder / 'plan.toml'}: {plan.count:,} candidates of {rows:,} persons"
    scores = sweep(people, plan, folder / "study")
    yield f"{folder / 'study'}: every candidate made and scored"
    ru = RUMap(scores, plan.risk, plan.utility)
    choice = ru.choose(rule)
    yield choice.reason
    ru.draw(mark=choice).save(folder / "map.html")
    yield f"{folder / 'map.html'}: the R-U map"
    study = Study.open(folder / "study")
    release(people, plan, choice, study=study, ledger=folder / "ledger").write(folder / "public")
    yield f"{folder / 'public'}: the release, with its note, codebook and checksums"
    report(study, choice).save(folder / "report.html")
    yield f"{folder / 'report.html'}: the report for the board"
