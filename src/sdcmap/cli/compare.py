"""Every method on one map, from the roles of a file alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, app, note, print_json, reads_a_file

if TYPE_CHECKING:
    from sdcmap.explore.method_comparison import Comparison


@app.command()
@reads_a_file(*ROLES)
def compare(
    file: Annotated[Path, Argument(help="A data file; or a plan, for its data, measures, axes, limits and rule.")],
    given: dict[str, Any],
    out: Annotated[Path, Option("-o", "--out", help="Folder to make.")] = Path("comparison"),
    control: Annotated[Path | None, Option(help="People not in the file; else a fifth of it is set aside.")] = None,
    replicates: Annotated[int, Option(min=1, help="Random draws of each method.")] = 3,
    risk: Annotated[str, Option(help="Risk measure of the map, such as AttributeInference.")] = "",
    utility: Annotated[str, Option(help="Utility measure of the map, such as TableError.")] = "",
    workers: options.Workers = 0, as_json: options.Json = False,
) -> None:  # fmt: skip
    """Every method that fits a file, at two or three strengths, on one R-U map: a first look before a plan of your own.

    Without keys and numbers, the roles that `sdcmap look` proposes are taken. The folder holds plan.toml, the study, the
    map and the files that were compared: none of it may be released.

    A plan in place of the file (.toml) gives data, roles, measures, axes, limits and rule; its methods are not asked.

    Example: sdcmap compare adult.csv --sensitive income -o adult-comparison

    Example: sdcmap compare plan.toml -o adult-comparison
    """
    import sdcmap as sm
    from sdcmap.cli.plans import data_and_plan

    data, plan = data_and_plan(file) if file.suffix == ".toml" else (sm.read(file, **given), None)
    compared = sm.compare(data, out, plan=plan, control=control, replicates=replicates, risk=risk, utility=utility,
                          workers=workers or None)  # fmt: skip
    for role, names in compared.proposed.items():
        note(f"{role}: {', '.join(names)}")
    if compared.outside is not None:
        apart, records = len(compared.outside), len(compared.inside) + len(compared.outside)
        note(f"{apart:,} of {records:,} records are set aside as people who are not in the file.")
    if as_json:
        ru, skipped = compared.map, compared.not_on_the_map
        facts = {"risk": ru.risk[0], "utility": ru.utility, "methods": compared.table.to_dicts()}
        print_json(facts | {"refine": list(compared.refine), "not on the map": skipped})
    else:
        _show(file.name, compared)
        print(f"{out}: plan.toml, refine.toml, study, map.html, map.png.")
        _lead_on(compared, out)


def _lead_on(compared: Comparison, out: Path) -> None:
    """What the rule would choose here, and what to try next."""
    import polars as pl

    if compared.choice is not None:
        print(f"By the plan's rule: {compared.choice.reason}")
    brief = {measure.text: measure.brief for measure in compared.plan.measures}
    if within := [f"{brief[name]} {limit:g}" for name, limit in compared.plan.limits.items()]:
        count = sum(compared.table.filter(~pl.col("anchor"))["within"])
        print(f"{count} of {len(compared.table) - 1} methods are within every limit: {', '.join(within)}.")
    print(f"Refine these {len(compared.refine)}: {' | '.join(compared.refine)}")
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
    print("On the frontier: the share of draws for which no other method is better on both.", *skipped, sep="\n")
