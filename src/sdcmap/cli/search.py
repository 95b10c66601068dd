"""The search for the frontier."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdcmap.cli.app import Json, app, print_json

if TYPE_CHECKING:
    from sdcmap.frontier.found import Found


@app.command()
def search(
    plan: Annotated[
        Path, typer.Argument(help="A plan in TOML, with a [data] part; a [search] part says what is fixed.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Study folder; an existing one is gone on with.")],
    budget: Annotated[
        int | None, typer.Option(help="Full evaluations of new methods, at least 24; else the plan's, or 200.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0, help="End after the generation in which so many have passed.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    engine: Annotated[str, typer.Option(help="serial, threads, processes, dask, or dask://HOST:PORT.")] = "",
    device: Annotated[str, typer.Option(help="cpu, gpu, or auto: a GPU where one can be used.")] = "cpu",
    charts: Annotated[bool, typer.Option("--charts", help="Draw what was found into STUDY/search.")] = False,
    quiet: Annotated[bool, typer.Option(help="No progress bar.")] = False,
    as_json: Json = False,
) -> None:
    """Find the releases that nothing beats: generation after generation of methods, and fresh draws of the best.

    The plan's own methods come first and are outside the budget, so the result is never worse than they are. The same
    command goes on where a search was stopped. The study is as `sdcmap sweep` makes it: map, choose and release read it.

    Example: sdcmap search plan.toml -o study --budget 200

    Example: sdcmap search plan.toml -o study --minutes 20 --json
    """
    import sdcmap as sm
    from sdcmap.cli.prepare import data_and_plan

    data, parsed = data_and_plan(plan)
    silent = (lambda *_: None) if quiet or as_json else None
    found = sm.search(
        data, parsed, budget, minutes=minutes, study=out, workers=workers or None, engine=engine or None,
        device=device, progress=silent, watch=silent,
    )  # fmt: skip
    if as_json:
        print_json(found.facts)
        return
    _show(found)
    if charts:
        folder = found.save_charts(out / "search")
        print(f"{folder}: {', '.join(sorted(file.name for file in folder.glob('*.html')))}.")


def _show(found: Found) -> None:
    from rich.console import Console
    from rich.table import Table

    risk, utility = found.map.labels
    table = Table("frontier", "risk", "fresh", "utility", "fresh", "under the limit")
    table.columns[0].ratio = 1
    for member in found.members:
        under = "" if member.under is None else f"{round(member.under * member.tried)} of {member.tried}"
        fresh = ["-" if value is None else f"{value:.3g}" for value in (member.fresh_risk, member.fresh_utility)]
        table.add_row(member.name, f"{member.risk:.3g}", fresh[0], f"{member.utility:.3g}", fresh[1], under)
    Console().print(table)
    print(f"risk: {risk}\nutility: {utility}\nfresh: the mean of draws that it was not chosen by")
    before, after = found.fresh_areas
    print(
        f"{found.evaluations:,} methods were evaluated ({found.left} of them left when others had less risk and less loss "
        f"already); it stopped because {found.growth.stopped}."
    )
    first, last = found.growth.areas[0], found.growth.areas[-1]
    print(f"Share of the area: {first:.3f} by the plan, {last:.3f} by the search.")
    print(f"Of the frontier above: {before:.3f} as it was found, {after:.3f} by fresh draws.")
    for row in found.losses.iter_rows(named=True):
        free = "on the axis" if row["loss"] == found.plan.utility else "watched"
        bound = free if row["bound"] is None else f"bound {row['bound']:.4g}"
        print(
            f"{found.map.scores.brief_of(row['loss'])} ({bound}): plan {_span(row, 'plan')}, found {_span(row, 'found')}."
        )
    if found.choice is not None:
        print(found.choice.reason)
        if found.choice.member is not None:
            print(f"  id {found.choice.member.candidate}")


def _span(row: dict[str, float | None], whose: str) -> str:
    low, high = row[f"{whose}_low"], row[f"{whose}_high"]
    if low is None or high is None:
        return "no value"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
