"""Commands on a plan: check, schema, sweep, search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from sdcmap.cli import options
from sdcmap.cli.app import app, format_duration, note, print_json

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.searches.search_results import SearchResult
    from sdcmap.study.plan import Plan


@app.command()
def check(plan: options.PlanFile, as_json: options.Json = False) -> None:
    """Check a plan and estimate its run time.

    The output lists all problems, or the number of candidates, the run time, the limits that can be shown to hold with
    this number of records, and the defaults that apply. The exit code is 2 if the plan has a problem. It is one if no
    candidate can be released, because a limit cannot be shown to hold for any file of this size.

    Example: sdcmap check plan.toml
    """
    from sdcmap.core.formatting import count_of
    from sdcmap.errors import PlanError
    from sdcmap.study.cost import PATIENT_SECONDS, estimate_seconds
    from sdcmap.study.limits_at_size import describe_limits, limits_at_size, nothing_can_pass
    from sdcmap.study.plan import limits_of_plan
    from sdcmap.study.plan_remarks import remarks

    try:
        data, written = data_and_plan(plan)
        parsed = written.with_risk(data)
        problems = parsed.problems_with(data)
        prospects = () if problems else limits_at_size(data, limits_of_plan(parsed), parsed.policy)
        sentences = list(describe_limits(prospects, data))
        problems += [" ".join(sentences)] if nothing_can_pass(prospects) else []
    except PlanError as error:
        problems = list(error.problems)
    if problems:
        if as_json:
            print_json({"problems": problems})
        else:
            print(f"{plan} has {len(problems)} problem{'' if len(problems) == 1 else 's'}:", *problems, sep="\n- ")
        raise Exit(2)
    seconds, notes = estimate_seconds(data, parsed, PATIENT_SECONDS), list(remarks(data, parsed, written))
    if as_json:
        policy = {"reason": parsed.policy.reason, **parsed.policy.numbers}
        facts = {"candidates": parsed.count, "seconds": seconds, "remarks": notes, "policy": policy}
        print_json({"problems": [], **facts, "limits": prospects})
    else:
        counts = f"{count_of(parsed.count, 'candidate')}, {count_of(len(parsed.measures), 'measure')}"
        print(f"{plan} is valid: {counts}; about {format_duration(seconds)} on one core.")
        others = f"Other numbers that can refuse a file ([policy] of the plan): {parsed.policy.description}"
        print(*sentences, *notes, others, sep="\n")


def data_and_plan(path: Path, folder: Path = Path(), memory: int = 0) -> tuple[Microdata, Plan]:
    """Return the data and the plan; with a memory limit, the data are read through a working copy in `folder`."""
    import sdcmap as sm

    plan = sm.Plan.read(path)
    if plan.data is None:
        advice = "Add a [data] part with path and roles, as `sdcmap look -o` writes it."
        raise sm.errors.PlanError(f"{path} names no data. {advice}")
    if memory:
        return sm.files.read_in_blocks(plan.data, folder, below=path.parent, memory=memory), plan
    return plan.data.read(path.parent), plan


@app.command()
def schema(
    out: Annotated[Path | None, Option("-o", "--out", help="File to write. Default: print it.")] = None,
) -> None:
    """Print the JSON Schema of plan.toml for text editors.

    It includes installed plug-ins; editors use it to complete and check plans.

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


SCHEMA_HINT = 'start a plan with the line "#:schema ./plan.schema.json" so that TOML editors use it.'


@app.command()
def sweep(
    plan: options.PlanFile,
    out: options.NewStudy,
    workers: options.Workers = 0,
    engine: options.Engine = "",
    memory: Annotated[str, Option(help="Memory limit, such as 2GB; the data are then read in blocks.")] = "",
    device: options.Device = "cpu",
    quiet: options.Quiet = False,
) -> None:
    """Create and score every candidate of a plan.

    Run the same command to continue an interrupted sweep.

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
            data,
            parsed,
            out,
            workers=workers or None,
            engine=engine or None,
            progress=progress,
            memory=limit,
            device=where.name,
        )
    counts = dict(scores.candidate.group_by("status").len().iter_rows())
    print(f"{out}: " + ", ".join(f"{counts[status]:,} {status}" for status in sorted(counts, reverse=True)) + ".")


@app.command()
def search(
    plan: Annotated[Path, Argument(help="A plan in TOML, with a [data] part; a [search] part states what is fixed.")],
    out: options.NewStudy,
    budget: Annotated[
        int | None, Option(help="Number of new methods to evaluate. Default: the plan's budget, or 200.")
    ] = None,
    minutes: Annotated[
        float | None, Option(min=0, help="Stop after the generation in which this time is over.")
    ] = None,
    workers: options.Workers = 0,
    engine: options.Engine = "",
    device: options.Device = "cpu",
    charts: Annotated[bool, Option("--charts", help="Write charts of the search to STUDY/search.")] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Search for methods on the risk-utility frontier.

    The search works in generations and scores new draws of the best methods. The plan's own methods come first and do
    not count towards the budget, so the result is never worse than they are. Run the same command to continue a stopped
    search. The study can be used with map, choose and release, as after a sweep.

    Example: sdcmap search plan.toml -o study --budget 200

    Example: sdcmap search plan.toml -o study --minutes 20 --json
    """
    import sdcmap as sm

    data, parsed = data_and_plan(plan)
    silent = (lambda *_: None) if quiet or as_json else None
    result = sm.search(
        data,
        parsed,
        budget,
        minutes=minutes,
        study=out,
        workers=workers or None,
        engine=engine or None,
        device=device,
        progress=silent,
        watch=silent,
    )
    if as_json:
        print_json(result.facts)
        return
    _show_result(result)
    if charts:
        folder = result.save_charts(out / "search")
        print(f"{folder}: {', '.join(sorted(file.name for file in folder.glob('*.html')))}.")


def _show_result(result: SearchResult) -> None:
    from rich.console import Console
    from rich.table import Table

    risk, utility = result.map.labels
    table = Table("method on the frontier", "risk", "new draws", "utility", "new draws", "within the limit")
    table.columns[0].ratio = 1
    for member in result.members:
        under = "" if member.under is None else f"{round(member.under * member.tried)} of {member.tried}"
        fresh = ["-" if value is None else f"{value:.3g}" for value in (member.fresh_risk, member.fresh_utility)]
        table.add_row(member.name, f"{member.risk:.3g}", fresh[0], f"{member.utility:.3g}", fresh[1], under)
    Console().print(table)
    print(f"risk: {risk}\nutility: {utility}\nnew draws: mean of draws that did not influence the selection")
    before, after = result.fresh_areas
    stopped = f"{result.dominated_early} of them stopped early because others already had less risk and less loss"
    print(
        f"{result.evaluations:,} methods were evaluated ({stopped}). The search ended because {result.history.stopped}."
    )
    first, last = result.history.areas[0], result.history.areas[-1]
    print(f"Dominated share of the area: {first:.3f} by the plan, {last:.3f} by the search.")
    print(f"For the frontier above: {before:.3f} by the selected draws, {after:.3f} by new draws.")
    for row in result.losses.iter_rows(named=True):
        free = "on the axis" if row["loss"] == result.plan.utility else "not limited"
        bound = free if row["bound"] is None else f"limit {row['bound']:.4g}"
        loss = result.map.scores.title_of(row["loss"])
        print(f"{loss} ({bound}): plan {_span(row, 'plan')}, search {_span(row, 'found')}.")
    if result.choice is not None:
        print(result.choice.reason)
        if result.choice.member is not None:
            print(f"  id {result.choice.member.candidate}")


def _span(row: dict[str, float | None], prefix: str) -> str:
    low, high = row[f"{prefix}_low"], row[f"{prefix}_high"]
    if low is None or high is None:
        return "no value"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
