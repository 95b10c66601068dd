"""`sdcmap records`: the confidentiality plot of a candidate, or of a file made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import add_file_options, app, note, print_json

if TYPE_CHECKING:
    from sdcmap.core import Array
    from sdcmap.recordwise.neighborhood import Unsafe
    from sdcmap.recordwise.table import RecordSets, RecordTable
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
    on: Annotated[
        list[str],
        Option(help="Comma-separated variables to compare; if repeated, the key sets are compared. Default: the keys."),
    ] = [],  # noqa: B006
    within: Annotated[
        str, Option(help="Comma-separated categories that must agree, such as the economic activity.")
    ] = "",
    archive: Annotated[
        Path | None,
        Option(help="The attacker's own file, such as a business register; with --population, a population file."),
    ] = None,
    row: Annotated[str, Option(help="Column of the archive with the row number in the original, counted from 0.")] = "",
    intervals: Annotated[
        list[str],
        Option(help="NAME=LOW:HIGH: the masked file has these two columns, and their midpoint is used. Repeatable."),
    ] = [],  # noqa: B006
    size: Annotated[str, Option(help="Variable by which a unit is large. Default: the first one.")] = "",
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
        bool, Option("--population", help="Use population frequencies, by weights or counted in --archive.")
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

    The plot shows each record by its number of neighbors and its perturbation. Repeat --on to compare several sets of
    key variables. A column that looks like a code is compared as an amount only if --numeric names it.

    Example: sdcmap records cps-study 3f2a91 -o records.html

    Example: sdcmap records original.csv masked.csv --on turnover,employees --within nace --scale log -o records.html

    Example: sdcmap records original.csv masked.csv --on turnover --on turnover,employees --archive register.csv
    """
    import sdcmap as sm
    from sdcmap.workflow import choose

    key_sets = [names.split(",") for names in on] or [[]]
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
        "leave_out": leave_out or None,
        "within": within.split(",") if within else None,
    }
    rule: dict[str, Any] = {name: value for name, value in stated.items() if value is not None}
    attack: dict[str, Any] = {"archive" if not population else "population": archive, "row": row, "size": size}
    is_study = original.is_dir()
    if is_study:
        _refuse_unused({"--by": by, "--intervals": intervals, "the options for reading a file": given})
    if frontier:
        others = archive or size or unsafe or external or as_json or figure != "plot"
        _check_frontier(original, masked, len(key_sets), others)
        with sm.Study.open(original) as study:
            _write_linked(study, sm.recordwise.Unsafe(**{**rule, "on": key_sets[0]}), out.with_suffix(""))
        return
    if is_study:
        with sm.Study.open(original) as study:
            data = study.data
            released: Any = study.plan.make(data, masked or choose(study))
    else:
        if not masked:
            raise sm.errors.PlanError(f"{original} is not a study folder. Name the masked file as well.")
        data, released = sm.read(original, **given), masked
        attack |= {"by": by or None, "intervals": _split_intervals(intervals)}
    tables = {
        ", ".join(names) or "keys": sm.records(
            data,
            released,
            rule=sm.recordwise.Unsafe(**rule, on=tuple(names), amounts=_stated_amounts(given, names)),
            **attack,
        )
        for names in key_sets
    }
    if len(tables) == 1:
        _show(next(iter(tables.values())), out, unsafe, figure, external, as_json)
    else:
        _show_comparison(sm.recordwise.RecordSets(tables), out, unsafe, figure, external, as_json)


def _refuse_unused(options: Mapping[str, object]) -> None:
    """Raise PlanError if an option is stated that has no effect on a study."""
    from sdcmap.errors import PlanError

    if stated := [name for name, value in options.items() if value]:
        raise PlanError(f"a study has no use for {' and '.join(stated)}. Leave them out.")


def _check_frontier(original: Path, masked: str, key_sets: int, others: object) -> None:
    """Raise PlanError where --frontier is used without a study, or with an option that has no effect beside it."""
    from sdcmap.errors import PlanError

    if not original.is_dir():
        raise PlanError(f"{original} is not a study folder. --frontier needs one.")
    if masked or key_sets > 1 or others:
        raise PlanError(
            "--frontier draws the plots of all frontier candidates. Leave out the candidate and all other options but the "
            "rule and the folder."
        )


def _stated_amounts(given: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    """Return the compared variables that --numeric states to be amounts."""
    numeric = given.get("numeric", [])
    return tuple(name for name in names if numeric == "all" or name in numeric)


def _split_intervals(stated: list[str]) -> dict[str, tuple[str, str]]:
    """Return the columns of interval ends by variable."""
    from sdcmap.errors import PlanError

    intervals = {}
    for text in stated:
        name, equals, ends = text.partition("=")
        low, colon, high = ends.partition(":")
        if not (name and equals and low and colon and high):
            raise PlanError(f"--intervals {text!r} must have the form NAME=LOW:HIGH, such as turnover=low:high.")
        intervals[name] = low, high
    return intervals


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
    from sdcmap.data.private_folder import write_atomically

    _check_output(out, unsafe, figure, external, as_json)
    if out.suffix == ".csv":
        write_atomically(out, table.frame().write_csv())
    elif figure == "plot":
        table.draw(audience="external" if external else "internal").save(out)
    else:
        (table.draw_zoom() if figure == "zoom" else table.draw_densities()).save(out)
    _write_unsafe(unsafe, table.unsafe)
    facts = table.summary()
    if as_json:
        print_json({"out": str(out), "rule": table.rule.text, **facts})
    elif external:
        print(out)
    else:
        counts = [f"{len(table):,} records", f"{facts['unsafe']:,} unsafe"]
        if facts["linked"]:
            counts.append(f"{facts['links_in_reach']:,} with their original in the neighborhood")
            counts.append(f"{facts['nearest_links']:,} nearest to their own original")
        else:  # an archive whose units nobody can assign to records
            counts.append("no unit of the archive is known to be one of the records, so links are not counted")
        print(f"{out}: {', '.join(counts)}.")


def _show_comparison(
    compared: RecordSets, out: Path, unsafe: Path | None, figure: str, external: bool, as_json: bool
) -> None:
    from sdcmap.data.private_folder import write_atomically
    from sdcmap.errors import PlanError

    _check_output(out, unsafe, figure, external, as_json)
    if figure != "plot":
        raise PlanError("--figure draws one set of key variables. Name --on once.")
    counts = compared.frame()
    if out.suffix == ".csv":
        write_atomically(out, counts.write_csv())
    else:
        compared.draw(audience="external" if external else "internal").save(out)
    _write_unsafe(unsafe, compared.unsafe)
    if as_json:
        print_json({"out": str(out), "unsafe_in_any": len(compared.unsafe), "attacks": counts.to_dicts()})
        return
    print(out)
    if not external:
        for facts in counts.to_dicts():
            print(f"{facts['attack']}: {facts['records']:,} records, {facts['unsafe']:,} unsafe.")
        print(f"{len(compared.unsafe):,} records are unsafe for at least one set of key variables.")


def _check_output(out: Path, unsafe: Path | None, figure: str, external: bool, as_json: bool) -> None:
    """Raise PlanError where an output option has no effect, or shows more than --external allows."""
    from sdcmap.errors import PlanError

    if external and (figure != "plot" or out.suffix == ".csv" or unsafe is not None or as_json):
        raise PlanError("--external allows only the binned plot: no table, list, zoom or density.")
    if out.suffix == ".csv" and figure != "plot":
        raise PlanError("--figure has no effect on a .csv file, which contains the table. Write .html, .svg or .png.")


def _write_unsafe(path: Path | None, rows: Array) -> None:
    import polars as pl

    from sdcmap.data.private_folder import write_atomically

    if path is not None:
        write_atomically(path, pl.DataFrame({"row": rows}).write_csv())
        note(f"{path}: {len(rows):,} rows of the masked file, counted from 0. Do not publish this file.")
