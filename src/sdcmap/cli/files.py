"""Commands for single files: score one made elsewhere, mask one for study, or see a demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sdcmap.cli.app import (
    Decimal,
    Encoding,
    File,
    Json,
    Missing,
    Names,
    Quote,
    Sep,
    Thousands,
    app,
    note,
    print_json,
    read,
)

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata
    from sdcmap.study.folder import Study


@app.command()
def score(
    original: File,
    masked: Annotated[Path, typer.Argument(help="The masked file; rows in the same order, or matched with --by.")],
    measure: Annotated[
        list[str], typer.Option(help="Such as SmallCells or 'SmallCells(n=5)'; may be repeated. Default: the study's.")
    ] = [],  # noqa: B006
    keys: Names = "", numeric: Names = "", sensitive: Names = "", identifiers: Names = "", weight: Names = "",
    sep: Sep = "", decimal: Decimal = "", thousands: Thousands = "", quote: Quote = "", encoding: Encoding = "",
    missing: Missing = "",
    by: Annotated[str, typer.Option(help="An id column in both files that says which record is which.")] = "",
    unpaired: Annotated[bool, typer.Option("--unpaired", help="The rows are nobody's: a synthetic file.")] = False,
    control: Annotated[Path | None, typer.Option(help="A file of people who are not in the original.")] = None,
    study: Annotated[Path | None, typer.Option(help="Put the file beside the candidates of this study.")] = None,
    name: Annotated[str, typer.Option(help="Its name there.")] = "",
    device: Annotated[str, typer.Option(help="cpu, gpu, or auto: a GPU where one can be used.")] = "cpu",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Score a masked file made elsewhere.

    Rows are taken to be in the order of the original, unless an id column or --unpaired says otherwise. A column that the
    file lacks was not released, and measures that need it say so. With --study, the original is read with the study's roles
    and codes for missing values unless some are given here, and must be its file.

    Example: sdcmap score cps.csv masked.csv --keys all --measure SmallCells --measure Hellinger --json

    Example: sdcmap score survey.csv synthetic.csv --unpaired --control others.csv --measure ClosestRecord

    Example: sdcmap score cps.csv masked.csv --study cps-study --name "swapped by hand"
    """
    from dataclasses import replace

    from sdcmap.core.measure import Measure
    from sdcmap.core.value import parse
    from sdcmap.errors import PlanError
    from sdcmap.study.jobs import score_file

    measures = {text: parse(text, Measure) for text in measure}
    if not measures and study is not None:
        measures = {m.text: m for m in _opened(study).plan.measures}
    if not measures:
        raise PlanError("name at least one --measure, or a --study whose measures are meant.")
    if control is not None:
        measures = {
            text: replace(m, control_file=str(control)) if hasattr(m, "control_file") else m  # type: ignore[call-arg]
            for text, m in measures.items()
        }
    given: dict[str, Any] = {
        "keys": keys, "numeric": numeric, "sensitive": sensitive, "identifiers": identifiers, "weight": weight,
        "sep": sep, "decimal": decimal, "thousands": thousands, "quote": quote, "encoding": encoding, "missing": missing,
    }  # fmt: skip
    data = read(original, **given) if study is None or any(given.values()) else _of_study(study, original)
    file = score_file(
        data,
        masked,
        list(measures.values()),
        by=by or None,
        paired=not unpaired,
        name=name or masked.name,
        device=device,
    )
    rows = dict(zip(measures, file.scores, strict=True))
    if study is not None:
        from sdcmap.study.folder import Study

        with Study.open(study) as opened, opened.writing():
            opened.add_file(file)
        note(f"{study}: the file is on its maps as {file.name!r}.")
    if as_json:
        facts = ("value", "se", "status", "reason")
        print_json({text: {fact: getattr(row, fact) for fact in facts} for text, row in rows.items()})
        return
    for text, row in rows.items():
        shown = row.reason if row.value is None else f"{row.value:.6g}" + (f" (se {row.se:.2g})" if row.se else "")
        print(f"{measures[text].brief:<30} {shown or row.status}")


def _opened(folder: Path) -> Study:
    from sdcmap.study.folder import Study

    return Study.open(folder)


def _of_study(folder: Path, original: Path) -> Microdata:
    """The original of a study, with the study's roles and codes; StudyMismatch where the file is another."""
    from dataclasses import replace

    from sdcmap.errors import StudyMismatch

    with _opened(folder) as opened:
        plan = opened.plan
        if plan.data is None:
            return opened.data
        data = replace(plan.data, path=str(original)).read()
        if data.digest != opened.manifest["data"]:
            raise StudyMismatch(f"{original} is not the file of {folder}: score against the original of that study.")
    return data


@app.command()
def mask(
    file: File,
    method: Annotated[str, typer.Option(help="Such as \"Swap(on=['Age', 'Sex'], rate=0.01)\".")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Named *.study.*, such as masked.study.csv.")],
    keys: Names = "", numeric: Names = "", sensitive: Names = "", identifiers: Names = "", weight: Names = "",
    household: Names = "", stratum: Names = "",
    sep: Sep = "", decimal: Decimal = "", thousands: Thousands = "", quote: Quote = "", encoding: Encoding = "",
    missing: Missing = "",
    seed: Annotated[int | None, typer.Option(min=0, help="For study only; by default 256 random bits.")] = None,
) -> None:  # fmt: skip
    """Make one masked file for study, without a plan; it may not be released.

    Example: sdcmap mask income.csv --numeric all --method "Noise(on='wage', variance=0.1)" -o wage.study.csv
    """
    import secrets

    import sdcmap as sm
    from sdcmap.core.method import Method
    from sdcmap.core.value import parse

    if ".study." not in out.name:
        raise sm.errors.PlanError(f"{out.name} must be named *.study.*, so that nobody takes it for a release.")
    data = read(file, keys=keys, numeric=numeric, sensitive=sensitive, identifiers=identifiers, weight=weight,
                household=household, stratum=stratum,
                sep=sep, decimal=decimal, thousands=thousands, quote=quote, encoding=encoding, missing=missing)  # fmt: skip
    masked = sm.mask(data, parse(method, Method), seed=secrets.randbits(256) if seed is None else seed)
    sm.write(masked.only(name for name in masked.names if name not in data.unreleased), out)
    print(f"{out}: {len(masked):,} rows, for study only.")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write.")] = Path("demo"),
    rows: Annotated[int, typer.Option(min=100, help="Persons in the demo population.")] = 1500,
) -> None:
    """The whole line on demo data, in a minute or two: plan, study, map, choice, release, report.

    Example: sdcmap demo -o demo
    """
    from sdcmap.tour import tour

    for line in tour(out, rows):
        print(line)
