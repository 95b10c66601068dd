"""`sdcmap demo`: run the whole workflow on demo data, from a plan to a release and a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sdcmap as sm
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.bundle.procedure import Try
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.profiles import find_profile
from sdcmap.workflow import choose, open_map, write_release

MARK = "made by sdcmap demo"
ROLES = ("keys", "sensitive", "numeric", "household", "weight")


def run_demo(folder: Path, rows: int = 1500) -> Iterator[str]:
    """Run the whole workflow in `folder` and yield a line for each result; an earlier demo in the folder is replaced."""
    if (folder / MARK).exists():
        shutil.rmtree(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise sm.errors.SdcmapError(f"{folder} is not empty. Name another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    population = sm.demo.population(rows)
    sm.write(population, folder / "population.csv")
    roles: dict[str, Any] = {role: getattr(population, role) for role in ROLES}
    source = sm.Source("population.csv", **roles, other=population.schema.of_role("other"))
    people = source.read(folder)
    plan = starting_plan(people, find_profile("public-use"), source)
    plan.write(folder / "plan.toml")
    yield f"{folder / 'plan.toml'}: {plan.count:,} candidates for a file of {rows:,} persons"
    sm.sweep(people, plan, folder / "study")
    yield f"{folder / 'study'}: every candidate was created and scored"
    with sm.Study.open(folder / "study") as study:
        ru = open_map(study)
        choice = choose(study, plan.rule or sm.Threshold(risk=1.0), on=ru)
        before = ru.points.filter("anchor")["risk"][0]
        yield f"Risk of the unmasked file: {before:.1f} times its limit. Risk of the choice: {choice.risk or 0.0:.2f}."
        yield choice.reason
        tries: list[Try] = []
        try:
            with separate_state(folder / "state"):  # the people are made up
                released = write_release(
                    study, choice, folder / "public", on_try=tries.append, ledger=folder / "ledger"
                )
        except sm.errors.Refused:
            yield from map(str, tries)
            yield "No candidate passed the release checks, so nothing was released. Map and report describe the study."
        else:
            yield from map(str, tries)
            choice = released.choice
            yield f"{released.folder}: {choice.name}, released with method note, codebook and checksums"
        ru.draw(mark=choice).save(folder / "map.html")
        yield f"{folder / 'map.html'}: the R-U map"
        sm.report(study, choice).save(folder / "report.html")
        yield f"{folder / 'report.html'}: the report for the review board"
