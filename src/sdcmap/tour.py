"""The whole line on demo data: a plan, a study, a map, a choice, a release and a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sdcmap.bundle import release
from sdcmap.choose import Threshold
from sdcmap.errors import SdcmapError
from sdcmap.explore.demo import population
from sdcmap.explore.starting import starting_plan
from sdcmap.files.reading import Source
from sdcmap.files.writing import write
from sdcmap.map import RUMap
from sdcmap.study.folder import Study
from sdcmap.study.profiles import profile_named
from sdcmap.study.sweeping import sweep
from sdcmap.workflow import report

MARK = "made by sdcmap demo"


def tour(folder: Path, rows: int = 1500) -> Iterator[str]:
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
    plan = starting_plan(people, profile_named("public-use"), source)
    plan.write(folder / "plan.toml")
    yield f"{folder / 'plan.toml'}: {plan.count:,} candidates of {rows:,} persons"
    scores = sweep(people, plan, folder / "study")
    yield f"{folder / 'study'}: every candidate made and scored"
    ru = RUMap.of_plan(scores, plan)
    choice = ru.choose(plan.rule or Threshold(risk=1.0))
    before = ru.points.filter("anchor")["risk"][0]
    yield f"unmasked, the risk is {before:.1f} times its limit; chosen: {choice.risk or 0.0:.2f} times"
    yield choice.reason
    ru.draw(mark=choice).save(folder / "map.html")
    yield f"{folder / 'map.html'}: the R-U map"
    study = Study.open(folder / "study")
    release(people, plan, choice, study=study, ledger=folder / "ledger").write(folder / "public")
    yield f"{folder / 'public'}: the release, with its note, codebook and checksums"
    report(study, choice).save(folder / "report.html")
    yield f"{folder / 'report.html'}: the report for the board"
