"""Every method on one map, from the roles of a file alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sdcmap.cli.app import File, Json, Names, app, note, print_json, read

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.explore.comparing import Comparison
    from sdcmap.map import RUMap

OUTSIDE = 0.2  # share of the records set aside as people who are not in the file


@app.command()
def compare(
    file: File, keys: Names = "", numeric: Names = "", sensitive: Names = "", identifiers: Names = "", weight: Names = "",
    household: Names = "", stratum: Names = "",
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to make.")] = Path("comparison"),
    control: Annotated[Path | None, typer.Option(help="People not in the file; else a fifth of it is set aside.")] = None,
    replicates: Annotated[int, typer.Option(min=1, help="Random draws of each method.")] = 3,
    risk: Annotated[str, typer.Option(help="Risk measure of the map, such as AttributeInference.")] = "",
    utility: Annotated[str, typer.Option(help="Utility measure of the map, such as TableError.")] = "",
    workers: Annotated[int, typer.Option(min=0, help="Number of workers; 0: one per core.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Every method that fits a file, at two or three strengths, on one R-U map: a first look before a plan of your own.

    Without roles, those that `sdcmap look` proposes are taken. The folder holds plan.toml, the study, the map and the
    files that were compared: none of it may be released.

    Example: sdcmap compare adult.csv --sensitive income -o adult-comparison
    """
    import numpy as np

    import sdcmap as sm
    from sdcmap.explore.comparing import compare as compared
    from sdcmap.explore.comparing import set_aside
    from sdcmap.study.progress import bar

    stated = {"keys": keys, "numeric": numeric, "sensitive": sensitive, "identifiers": identifiers, "weight": weight,
              "household": household, "stratum": stratum}  # fmt: skip
    if out.exists() and any(out.iterdir()):
        raise sm.errors.PlanError(f"{out} is not empty: name another folder.")
    data = _with_roles(file, stated)
    out.mkdir(parents=True, exist_ok=True)
    if control is None:
        data, outside = set_aside(data, OUTSIDE, np.random.default_rng())
        control = out / "outside.study.parquet"
        sm.write(outside, control)
        share = f"{len(outside):,} of {len(outside) + len(data):,} records"
        note(f"{share} are set aside as people who are not in the file.")
    sm.write(data, out / "inside.study.parquet")
    source = _source(data, "inside.study.parquet")
    data = source.read(out)
    found = compared(data, str(control.resolve()), replicates=replicates, source=source)
    axes = _axis(found, "risk", risk), _axis(found, "utility", utility)
    (out / "plan.toml").write_text(found.plan.toml(), encoding="utf-8")
    with bar() as progress:
        scores = sm.sweep(data, found.plan, out / "study", workers=workers or None, progress=progress)
    ru = sm.RUMap(scores, (axes[0],), axes[1])
    chart = ru.draw(by="release", names=found.names, label="all", width=760, height=560)
    for name in ("map.html", "map.png"):
        chart.save(out / name)
    facts = _facts(found, ru)
    if as_json:
        print_json(facts)
    else:
        _show(file.name, facts, ru.labels)
        print(f"{out}: plan.toml, study, map.html, map.png.")


def _with_roles(file: Path, stated: dict[str, str]) -> Microdata:
    """The file with the columns that were named, or, without keys and numbers, with the roles that a look proposes."""
    import sdcmap as sm
    from sdcmap.explore.looking import look

    data = read(file, **stated)
    if stated["keys"] or stated["numeric"]:
        return data.only([v.name for v in data.schema.variables if v.role is not None])
    seen = look(data)
    roles: dict[str, Any] = {"keys": seen.named("key"), "numeric": seen.named("numeric")}
    roles |= {f"{role}s" if role == "identifier" else role: seen.named(role)
              for role in ("sensitive", "identifier", "weight", "household", "stratum")}  # fmt: skip
    for role, names in roles.items():
        if names:
            note(f"{role}: {', '.join(names)}")
    data = sm.read(file, **roles)
    return data.only([v.name for v in data.schema.variables if v.role is not None])


def _source(data: Microdata, path: str) -> Any:
    import sdcmap as sm

    kinds = {kind: tuple(v.name for v in data.schema.variables if v.kind == kind) for kind in ("nominal", "ordinal")}
    of = data.schema.of_role
    return sm.Source(path, keys=of("key"), numeric=data.numeric, sensitive=of("sensitive"), identifiers=of("identifier"),
                     weight=of("weight"), household=of("household"), stratum=of("stratum"),
                     other=tuple(name for name in of("other") if name not in data.numeric), **kinds)  # fmt: skip


def _axis(found: Comparison, axis: str, wanted: str) -> str:
    """The measure of the plan that is meant by a class name or a text; by default the plan's own."""
    import sdcmap as sm
    from sdcmap.errors import did_you_mean

    if not wanted:
        return str(found.plan.risk[0] if axis == "risk" else found.plan.utility)
    texts: dict[str, str] = {m.text: type(m).__name__ for m in found.plan.measures if m.axis == axis}
    matching = [text for text, name in texts.items() if wanted in (text, name)]
    if not matching:
        names = sorted(texts.values())
        raise sm.errors.PlanError(
            f"no {axis} measure {wanted!r} here: {', '.join(names)}.{did_you_mean(wanted, names)}"
        )
    return matching[0]


def _facts(found: Comparison, ru: RUMap) -> dict[str, Any]:
    """What is printed: a row for each method on the map, and why others are not on it."""
    rows = ru.means.sort("risk").select("method", "count", "risk", "utility", "anchor", "frontier", "membership")
    table = [{**row, "name": found.names.get(row["method"], row["method"])} for row in rows.to_dicts()]
    on_map = {row["method"] for row in table}
    missing = dict(found.left_out)
    for method, name in found.names.items():
        if method not in on_map:
            missing[name] = _why(ru, method)
    return {"risk": ru.risk[0], "utility": ru.utility, "methods": table, "not on the map": missing}


def _why(ru: RUMap, method: str) -> str:
    import polars as pl

    tried = ru.scores.candidate.filter(pl.col("method") == method)
    reasons = [*tried["reason"]]
    scored = ru.scores.score.filter(pl.col("candidate").is_in(tried["id"].implode()))
    reasons += [*scored.filter(pl.col("measure").is_in([*ru.risk, ru.utility]))["reason"]]
    return next(filter(None, reasons), "not made.")


def _show(title: str, facts: dict[str, Any], labels: tuple[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("method", "draws", "risk", "utility", "on the frontier", title=title)
    for row in facts["methods"]:
        share = "" if row["membership"] is None else f"{row['membership']:.0%}"
        table.add_row(row["name"], str(row["count"]), f"{row['risk']:.4g}", f"{row['utility']:.4g}", share)
    Console().print(table)
    print(f"risk: {labels[0]}\nutility: {labels[1]}")
    print("On the frontier: the share of draws for which no other method is better on both.")
    for name, reason in facts["not on the map"].items():
        print(f"Not on the map: {name}: {reason}")
