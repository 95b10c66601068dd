"""`sdcmap compare`: every method on one map, using only the roles of a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, add_file_options, app, note, print_json

if TYPE_CHECKING:
    from sdcmap.explore.method_comparison import Comparison


@app.command()
@add_file_options(*ROLES)
def compare(
    file: Annotated[
        Path, Argument(help="A data file, or a plan whose data, measures, axes, limits and rule are used.")
    ],
    given: dict[str, Any],
    out: Annotated[Path, Option("-o", "--out", help="Folder to create.")] = Path("comparison"),
    control: Annotated[
        Path | None, Option(help="File of people who are not in the data. Default: a fifth of the data is set aside.")
    ] = None,
    replicates: Annotated[int, Option(min=1, help="Random draws of each method.")] = 3,
    risk: Annotated[str, Option(help="Risk measure of the map, such as AttributeInference.")] = "",
    utility: Annotated[str, Option(help="Utility measure of the map, such as TableError.")] = "",
    workers: options.Workers = 0,
    as_json: options.Json = False,
) -> None:
    """Compare all suitable methods on one R-U map.

    Each method is tried at two or three strengths. Use it before you write your own plan. Without --keys and --numeric,
    the roles that `sdcmap look` proposes are used. The folder contains plan.toml, the study, the map and the compared
    files; none of them may be released.

    If you pass a plan (.toml), its data, roles, measures, axes, limits and rule are used, but not its methods.

    Example: sdcmap compare adult.csv --sensitive income -o adult-comparison

    Example: sdcmap compare plan.toml -o adult-comparison
    """
    import sdcmap as sm
    from sdcmap.cli.plans import data_and_plan

    data, plan = data_and_plan(file) if file.suffix == ".toml" else (sm.read(file, **given), None)
    compared = sm.compare(
        data,
        out,
        plan=plan,
        control=control,
        replicates=replicates,
        risk=risk,
        utility=utility,
        workers=workers or None,
    )
    for role, names in compared.proposed.items():
        note(f"{role}: {', '.join(names)}")
    if compared.outside is not None:
        held_out, records = len(compared.outside), len(compared.inside) + len(compared.outside)
        note(f"{held_out:,} of {records:,} records are set aside as people who are not in the data.")
    if as_json:
        ru, skipped = compared.map, compared.not_on_the_map
        facts = {"risk": ru.risk[0], "utility": ru.utility, "methods": compared.table.to_dicts()}
        print_json(facts | {"refine": list(compared.refine), "not on the map": skipped})
    else:
        _show(file.name, compared)
        print(f"{out}: plan.toml, refine.toml, study, map.html, map.png.")
        _show_next_steps(compared, out)


def _show_next_steps(compared: Comparison, out: Path) -> None:
    """Print what the rule would choose, and what to try next."""
    import polars as pl

    from sdcmap.core.limit import format_limit

    if compared.choice is not None:
        print(f"By the plan's rule: {compared.choice.reason}")
    titles = {m.text: f"{m.title} [{m.brief}]" for m in compared.plan.measures}
    if within := [f"{titles[name]}: {format_limit(limit)}" for name, limit in compared.plan.limits.items()]:
        count = sum(compared.table.filter(~pl.col("anchor"))["within"])
        print(f"{count} of {len(compared.table) - 1} methods are within every limit ({'; '.join(within)}).")
    print(f"Methods to refine: {' | '.join(compared.refine)}")
    print(f"  sdcmap sweep {out / 'refine.toml'} -o {out / 'refined'}")


def _show(title: str, compared: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "draws", "risk", "utility", "on the frontier", title=title)
    for row in compared.table.to_dicts():
        share = "" if row["membership"] is None else f"{row['membership']:.0%}"
        table.add_row(row["name"], str(row["count"]), f"{row['risk']:.4g}", f"{row['utility']:.4g}", share)
    Console().print(table)
    risk, utility = compared.map.labels
    print(f"risk: {risk}\nutility: {utility}")
    skipped = (f"Not on the map: {name}: {reason}" for name, reason in compared.not_on_the_map.items())
    print("On the frontier: share of draws for which no other method is better on both axes.", *skipped, sep="\n")
