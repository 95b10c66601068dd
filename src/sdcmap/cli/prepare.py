"""Commands before the map: look, check, sweep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sdcmap.cli.app import File, Json, Names, app, note, print_json, read

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.study.plan import Plan


@app.command()
def look(
    file: File, keys: Names = "", numeric: Names = "", sensitive: Names = "", identifiers: Names = "", weight: Names = "",
    household: Names = "", stratum: Names = "", other: Names = "",
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Write a plan to start from.")] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Kinds, uniques, proposed roles, and a starting plan.

    Example: sdcmap look cps.csv --sensitive Income -o plan.toml
    """
    from dataclasses import asdict

    from sdcmap.explore.looking import look as look_at
    from sdcmap.explore.proposed_edits import proposed_edits

    data = read(file, keys=keys, numeric=numeric, sensitive=sensitive, identifiers=identifiers, weight=weight,
                 household=household, stratum=stratum, other=other)  # fmt: skip
    seen = look_at(data)
    if as_json:
        print_json(asdict(seen))
    else:
        from rich.console import Console
        from rich.table import Table

        table = Table(
            "variable", "kind", "role", "distinct", "missing", "alone", title=f"{file.name}: {seen.rows:,} rows"
        )
        for g in seen.variables:
            role = g.role if g.stated else f"{g.role}?"
            table.add_row(g.name, g.kind, role, f"{g.distinct:,}", f"{g.missing:,}", f"{g.once:,}")
        Console().print(table)
        small = ", ".join(f"{count:,} in cells of {words}" for words, count in seen.sizes.items())
        print(f"The keys make {seen.cells:,} combinations; records {small}." if seen.sizes else "No keys.")
        print("A role with ? is proposed: state it. `alone` counts records whose value no other record has.")
        edits = proposed_edits(data)
        if edits:
            print("Rules that no record breaks (for EditViolations; judge each):", *edits, sep="\n  ")
    if out is not None:
        plan = seen.plan(file.resolve())
        out.write_text(_PLAN_HEADER + plan.toml(), encoding="utf-8")
        note(f"{out} holds a starting plan. State every role, add a rule, then: sdcmap check {out}")


_PLAN_HEADER = """\
# A starting plan: every line is yours to change. Fix the rule before the first score, for example
#   [rule]
#   type = "Threshold"
#   risk = 0.01
# The seed is never written here.

"""


@app.command()
def check(
    plan: Annotated[Path, typer.Argument(help="A plan in TOML, with a [data] part.")], as_json: Json = False
) -> None:
    """Every problem of a plan at once; the number of candidates; a cost guess.

    Example: sdcmap check plan.toml
    """
    from sdcmap.errors import PlanError
    from sdcmap.study.cost import cost_guess

    try:
        data, parsed = _data_and_plan(plan)
        problems = parsed.problems_with(data)
    except PlanError as error:
        problems = list(error.problems)
    if problems:
        if as_json:
            print_json({"problems": problems})
        else:
            print(f"{len(problems)} problem(s) in {plan}:")
            print("\n".join(f"- {problem}" for problem in problems))
        raise typer.Exit(2)
    seconds = cost_guess(data, parsed)
    if as_json:
        print_json({"problems": [], "candidates": parsed.count, "seconds": seconds})
    else:
        print(
            f"{plan} is sound: {parsed.count:,} candidates, {len(parsed.measures)} measures; "
            f"about {_duration(seconds)} of one core."
        )


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.2g} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def _data_and_plan(path: Path, folder: Path = Path(), memory: int = 0) -> tuple[Microdata, Plan]:
    """The plan and its data; where memory is limited, by way of a working copy in `folder`."""
    import sdcmap as sm

    plan = sm.Plan.read(path)
    if plan.data is None:
        raise sm.errors.PlanError(
            f"{path} names no data: add a [data] part with path and roles, as `sdcmap look -o` writes it."
        )
    if memory:
        return sm.files.read_in_blocks(plan.data, folder, below=path.parent, memory=memory), plan
    return plan.data.read(path.parent), plan


@app.command()
def sweep(
    plan: Annotated[Path, typer.Argument(help="A plan in TOML, with a [data] part.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Study folder; an existing one is gone on with.")],
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    engine: Annotated[str, typer.Option(help="serial, threads, processes, dask, or dask://HOST:PORT.")] = "",
    memory: Annotated[
        str, typer.Option(help="Most memory to use, such as 2GB; the data are then read in blocks.")
    ] = "",
    quiet: Annotated[bool, typer.Option(help="No progress bar.")] = False,
) -> None:
    """Make and score every candidate of a plan; go on where an earlier sweep stopped.

    Example: sdcmap sweep plan.toml -o cps-study --workers 2

    Example: sdcmap sweep census.toml -o census-study --memory 4GB
    """
    import sdcmap as sm
    from sdcmap.files.blocks import bytes_of
    from sdcmap.study.progress import bar

    limit = bytes_of(memory) if memory else 0
    data, parsed = _data_and_plan(plan, out / "incoming", limit)
    with bar(False if quiet else None) as progress:
        scores = sm.sweep(
            data, parsed, out, workers=workers or None, engine=engine or None, progress=progress, memory=limit
        )
    counts = dict(scores.candidate.group_by("status").len().iter_rows())
    print(f"{out}: " + ", ".join(f"{counts[status]:,} {status}" for status in sorted(counts, reverse=True)) + ".")
