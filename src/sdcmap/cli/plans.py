"""Commands on a plan: check, schema, sweep, search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from sdcmap.cli import options
from sdcmap.cli.app import app, duration, note, print_json

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.searches.search_results import SearchResult
    from sdcmap.study.plan import Plan


@app.command()
def check(plan: options.PlanFile, as_json: options.Json = False) -> None:
    """Every problem of a plan at once; the number of candidates; a cost guess; what the plan is given unasked.

    Example: sdcmap check plan.toml
    """
    from sdcmap.errors import PlanError
    from sdcmap.study.cost import estimate_seconds
    from sdcmap.study.plan_remarks import remarks

    try:
        data, written = data_and_plan(plan)
        parsed = written.with_risk(data)
        problems = parsed.problems_with(data)
    except PlanError as error:
        problems = list(error.problems)
    if problems:
        if as_json:
            print_json({"problems": problems})
        else:
            print(f"{len(problems)} problem(s) in {plan}:", *problems, sep="\n- ")
        raise Exit(2)
    seconds, told = estimate_seconds(data, parsed), list(remarks(data, parsed, written))
    if as_json:
        policy = {"reason": parsed.policy.reason, **parsed.policy.numbers}
        print_json({"problems": [], "candidates": parsed.count, "seconds": seconds, "remarks": told, "policy": policy})
    else:
        counts = f"{parsed.count:,} candidates, {len(parsed.measures)} measures"
        print(f"{plan} is sound: {counts}; about {duration(seconds)} of one core.")
        print(*told, f"Release policy: {parsed.policy.description}", sep="\n")


def data_and_plan(path: Path, folder: Path = Path(), memory: int = 0) -> tuple[Microdata, Plan]:
    """The plan and its data; where memory is limited, by way of a working copy in `folder`."""
    import sdcmap as sm

    plan = sm.Plan.read(path)
    if plan.data is None:
        advice = "add a [data] part with path and roles, as `sdcmap look -o` writes it."
        raise sm.errors.PlanError(f"{path} names no data: {advice}")
    if memory:
        return sm.files.read_in_blocks(plan.data, folder, below=path.parent, memory=memory), plan
    return plan.data.read(path.parent), plan


@app.command()
def schema(
    out: Annotated[Path | None, Option("-o", "--out", help="The file to write; else it is printed.")] = None,
) -> None:
    """The JSON Schema of plan.toml, for editors that complete and check; plug-ins that are installed are in it.

    Example: sdcmap schema -o plan.schema.json
    """
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.explore.plan_schema import plan_schema

    text = json.dumps(plan_schema(), indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        write_atomically(out, text)
        note(f"{out}: {SCHEMA_HINT}")


SCHEMA_HINT = 'write "#:schema ./plan.schema.json" as the first line of a plan, and an editor of TOML finds it.'


@app.command()
def sweep(
    plan: options.PlanFile, out: options.NewStudy, workers: options.Workers = 0, engine: options.Engine = "",
    memory: Annotated[str, Option(help="Most memory to use, such as 2GB; the data are then read in blocks.")] = "",
    device: options.Device = "cpu", quiet: options.Quiet = False,
) -> None:  # fmt: skip
    """Make and score every candidate of a plan; go on where an earlier sweep stopped.

    Example: sdcmap sweep plan.toml -o cps-study --workers 2

    Example: sdcmap sweep census.toml -o census-study --memory 4GB
    """
    import sdcmap as sm
    from sdcmap.files.block_reader import parse_bytes
    from sdcmap.study.device_choice import resolve_device
    from sdcmap.study.progress import progress_bar

    limit, where = parse_bytes(memory) if memory else 0, resolve_device(device)
    data, parsed = data_and_plan(plan, out / "incoming", limit)
    with progress_bar(False if quiet else None, where.gpu) as progress:
        scores = sm.sweep(
            data, parsed, out, workers=workers or None, engine=engine or None, progress=progress, memory=limit,
            device=where.name,
        )  # fmt: skip
    counts = dict(scores.candidate.group_by("status").len().iter_rows())
    print(f"{out}: " + ", ".join(f"{counts[status]:,} {status}" for status in sorted(counts, reverse=True)) + ".")


@app.command()
def search(
    plan: Annotated[Path, Argument(help="A plan in TOML, with a [data] part; a [search] part says what is fixed.")],
    out: options.NewStudy,
    budget: Annotated[int | None, Option(help="Full evaluations of new methods (else the plan's, or 200).")] = None,
    minutes: Annotated[float | None, Option(min=0, help="End after the generation in which so many passed.")] = None,
    workers: options.Workers = 0, engine: options.Engine = "", device: options.Device = "cpu",
    charts: Annotated[bool, Option("--charts", help="Draw what was found into STUDY/search.")] = False,
    quiet: options.Quiet = False, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Find the releases that nothing beats: generation after generation of methods, and fresh draws of the best.

    The plan's own methods come first and are outside the budget, so the result is never worse than they are. The same
    command goes on where a search was stopped. The study is as `sdcmap sweep` makes it: map, choose and release read it.

    Example: sdcmap search plan.toml -o study --budget 200

    Example: sdcmap search plan.toml -o study --minutes 20 --json
    """
    import sdcmap as sm

    data, parsed = data_and_plan(plan)
    silent = (lambda *_: None) if quiet or as_json else None
    found = sm.search(
        data, parsed, budget, minutes=minutes, study=out, workers=workers or None, engine=engine or None,
        device=device, progress=silent, watch=silent,
    )  # fmt: skip
    if as_json:
        print_json(found.facts)
        return
    _show_found(found)
    if charts:
        folder = found.save_charts(out / "search")
        print(f"{folder}: {', '.join(sorted(file.name for file in folder.glob('*.html')))}.")


def _show_found(found: SearchResult) -> None:
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
    left = f"{found.dominated_early} of them left when others had less risk and less loss already"
    print(f"{found.evaluations:,} methods were evaluated ({left}); it stopped because {found.history.stopped}.")
    first, last = found.history.areas[0], found.history.areas[-1]
    print(f"Share of the area: {first:.3f} by the plan, {last:.3f} by the search.")
    print(f"Of the frontier above: {before:.3f} as it was found, {after:.3f} by fresh draws.")
    for row in found.losses.iter_rows(named=True):
        free = "on the axis" if row["loss"] == found.plan.utility else "watched"
        bound = free if row["bound"] is None else f"bound {row['bound']:.4g}"
        loss = found.map.scores.brief_of(row["loss"])
        print(f"{loss} ({bound}): plan {_span(row, 'plan')}, found {_span(row, 'found')}.")
    if found.choice is not None:
        print(found.choice.reason)
        if found.choice.member is not None:
            print(f"  id {found.choice.member.candidate}")


def _span(row: dict[str, float | None], whose: str) -> str:
    low, high = row[f"{whose}_low"], row[f"{whose}_high"]
    if low is None or high is None:
        return "no value"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
