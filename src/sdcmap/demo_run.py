"""`sdcmap demo`: run the whole workflow on demo data, from a plan to a release and a report."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import sdcmap as sm
from sdcmap.explore.starting_plan import starting_plan
from sdcmap.study.profiles import find_profile

MARK = "made by sdcmap demo"
ROLES = ("keys", "sensitive", "numeric", "household", "weight")


def run_demo(folder: Path, rows: int = 1500) -> Iterator[str]:
    """Run the whole workflow in `folder` and yield a line for each result; an earlier demo in the folder is replaced.

    If a candidate fails the release checks, the next one in the order of the rule is tried.
    """
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
    scores = sm.sweep(people, plan, folder / "study")
    yield f"{folder / 'study'}: every candidate was created and scored"
    ru = sm.RUMap.of_plan(scores, plan)
    study = sm.Study.open(folder / "study")
    rule = plan.rule or sm.Threshold(risk=1.0)
    first = choice = ru.choose(rule)
    before = ru.points.filter("anchor")["risk"][0]
    yield f"Risk of the unmasked file: {before:.1f} times its limit. Risk of the choice: {first.risk or 0.0:.2f} times."
    yield first.reason
    while choice.candidate is not None:
        try:
            sm.release(people, plan, choice, study=study, ledger=folder / "ledger").write(folder / "public")
        except sm.errors.Refused as refused:
            yield f"{choice.name} failed the release checks, so the next candidate is tried ({refused})"
            # Without the method that failed, the rule chooses the next best one.
            scores = replace(scores, candidate=scores.candidate.filter(pl.col("method") != choice.method))
            choice = replace(ru, scores=scores).choose(rule)
        else:
            yield f"{folder / 'public'}: {choice.name}, released with method note, codebook and checksums"
            break
    else:
        yield "No candidate passed the release checks, so nothing was released. Map and report describe the study."
        choice = first
    ru.draw(mark=choice).save(folder / "map.html")
    yield f"{folder / 'map.html'}: the R-U map"
    sm.report(study, choice).save(folder / "report.html")
    yield f"{folder / 'report.html'}: the report for the review board"
