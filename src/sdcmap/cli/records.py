"""`sdcmap records`: the confidentiality plot of a candidate, or of a file made elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import add_file_options, app, note, print_json

if TYPE_CHECKING:
    from sdcmap.recordwise.neighborhood import Unsafe
    from sdcmap.recordwise.table import RecordTable
    from sdcmap.study.folder import Study

Scale = Literal["raw", "log", "standardized"]
Distance = Literal["relative", "absolute"]
Neighborhood = Literal["distance", "fellegi-sunter", "frequency"]


@app.command()
@add_file_options("keys", "numeric", "weight")
def records(
    original: Annotated[Path, Argument(help="A study folder, or the original file.")],
    given: dict[str, Any],
    masked: Annotated[
        str, Argument(help="Name or id of a candidate (default: the rule's choice), or the masked file.")
    ] = "",
    out: Annotated[
        Path, Option("-o", "--out", help="File to write: .html, .svg or .png for the plot, .csv for the table.")
    ] = Path("records.html"),
    on: Annotated[str, Option(help="Comma-separated variables to compare. Default: the keys.")] = "",
    alpha: Annotated[float | None, Option(help="Share of wrong pairs in a neighborhood. Default: 0.05.")] = None,
    delta: Annotated[float | None, Option(help="Critical distance, instead of alpha.")] = None,
    k: Annotated[int | None, Option(help="Number of neighbors that makes a record safe. Default: 15.")] = None,
    r: Annotated[float | None, Option(help="Perturbation that makes a record safe. Default: 0.15.")] = None,
    q: Annotated[
        float | None, Option(help="Shape of the boundary between safe and unsafe; 1 is a straight line.")
    ] = None,
    scale: Annotated[Scale | None, Option(help="Scale of the variables.")] = None,
    distance: Annotated[
        Distance | None, Option(help="Distance relative to the size of the record, or absolute.")
    ] = None,
    neighborhood: Annotated[Neighborhood | None, Option(help="Definition of a neighbor.")] = None,
    population: Annotated[
        bool, Option("--population", help="Use population frequencies, estimated with weights.")
    ] = False,
    leave_out: Annotated[
        bool, Option("--leave-out", help="Leave out records that have no value on the scale.")
    ] = False,
    by: Annotated[str, Option(help="Id column in both files that matches the records.")] = "",
    figure: Annotated[Literal["plot", "zoom", "densities"], Option(help="What to draw.")] = "plot",
    unsafe: Annotated[Path | None, Option(help="Write the rows of unsafe records to this CSV file.")] = None,
    frontier: Annotated[
        bool, Option("--frontier", help="Write the map and linked plots of all frontier candidates to a folder.")
    ] = False,
    external: Annotated[
        bool, Option("--external", help="Show binned counts only, none below 10, for publication.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Draw the confidentiality plot of a candidate or a file.

    The plot shows each record by its number of neighbors and its perturbation.

    Example: sdcmap records cps-study 3f2a91 -o records.html

    Example: sdcmap records original.csv masked.csv --on turnover,employees --scale log -o records.html
    """
    import sdcmap as sm
    from sdcmap.workflow import choose

    stated = {
        "alpha": alpha,
        "delta": delta,
        "k": k,
        "r": r,
        "q": q,
        "scale": scale,
        "distance": distance,
        "neighborhood": neighborhood,
        "frequency": "population" if population else None,
        "on": on.split(",") if on else None,
        "leave_out": leave_out or None,
    }
    rule = sm.recordwise.Unsafe(**{name: value for name, value in stated.items() if value is not None})  # type: ignore[arg-type]
    if original.is_dir():
        with sm.Study.open(original) as study:
            if frontier:
                _write_linked(study, rule, out.with_suffix(""))
                return
            data = study.data
            table = sm.records(data, study.plan.make(data, masked or choose(study)), rule=rule)
    else:
        if not masked or frontier:
            raise sm.errors.PlanError(f"{original} is not a study folder. Name the masked file as well.")
        table = sm.records(sm.read(original, **given), masked, rule=rule, by=by or None)
    _show(table, out, unsafe, figure, external, as_json)


def _write_linked(study: Study, rule: Unsafe, folder: Path) -> None:
    import sdcmap as sm
    from sdcmap.charts.confidentiality import draw_linked
    from sdcmap.workflow import open_map, own_choice

    data, plan, ru = study.data, study.plan, open_map(study)
    tables = {name: sm.records(data, plan.make(data, name), rule=rule) for name in ru.frontier["id"]}
    charts = draw_linked(ru, tables, mark=own_choice(study, ru))
    folder.mkdir(parents=True, exist_ok=True)
    for name, chart in charts.items():
        chart.save(folder / name)
    print(f"{folder}: {', '.join(charts)}")


def _show(table: RecordTable, out: Path, unsafe: Path | None, figure: str, external: bool, as_json: bool) -> None:
    import polars as pl

    from sdcmap.data.private_folder import write_atomically
    from sdcmap.errors import PlanError

    if external and (figure != "plot" or out.suffix == ".csv" or unsafe is not None or as_json):
        raise PlanError("--external allows only the binned plot: no table, list, zoom or density.")
    if out.suffix == ".csv":
        write_atomically(out, table.frame().write_csv())
    elif figure == "plot":
        table.draw(audience="external" if external else "internal").save(out)
    else:
        (table.draw_zoom() if figure == "zoom" else table.draw_densities()).save(out)
    if unsafe is not None:
        write_atomically(unsafe, pl.DataFrame({"row": table.unsafe}).write_csv())
        note(f"{unsafe}: {len(table.unsafe):,} rows of the masked file, counted from 0. Do not publish this file.")
    facts = table.summary()
    if as_json:
        print_json({"out": str(out), "rule": table.rule.text, **facts})
    elif external:
        print(out)
    else:
        print(
            f"{out}: {len(table):,} records, {facts['unsafe']:,} unsafe, {facts['links_in_reach']:,} with their "
            f"original in the neighborhood, {facts['nearest_links']:,} nearest to their own original."
        )
