"""Commands for single files: score, mask, correct, and the demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, add_file_options, app, note, print_json

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata


@app.command()
@add_file_options(*ROLES[:5])
def score(
    original: options.File,
    masked: Annotated[
        Path, Argument(help="The masked file; its rows are in the order of the original, or matched with --by.")
    ],
    given: dict[str, Any],
    measure: Annotated[
        list[str], Option(help="Measure, such as SmallCells or 'SmallCells(n=5)'; repeatable. Default: the study's.")
    ] = [],  # noqa: B006
    by: Annotated[str, Option(help="Id column in both files that matches the records.")] = "",
    unpaired: Annotated[
        bool, Option("--unpaired", help="The file is fully synthetic: rows do not correspond to people.")
    ] = False,
    control: Annotated[Path | None, Option(help="File of people who are not in the original.")] = None,
    study: Annotated[Path | None, Option(help="Add the file to the maps of this study.")] = None,
    name: Annotated[str, Option(help="Name of the file on the maps.")] = "",
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Score a masked file that was made with other software.

    Rows must be in the order of the original, unless you state an id column or --unpaired. Columns that the masked file
    lacks count as not released. With --study, the original must be the study's file; it is read with the study's roles
    and codes for missing values unless you state others.

    Example: sdcmap score cps.csv masked.csv --keys all --measure SmallCells --measure Hellinger --json

    Example: sdcmap score survey.csv synthetic.csv --unpaired --control others.csv --measure ClosestRecord

    Example: sdcmap score cps.csv masked.csv --study cps-study --name "swapped by hand"
    """
    from dataclasses import replace

    import sdcmap as sm
    from sdcmap.core.measure import Measure
    from sdcmap.core.value import parse
    from sdcmap.study.jobs import score_file

    measures = {text: parse(text, Measure) for text in measure}
    if not measures and study is not None:
        measures = {m.text: m for m in sm.Study.open(study).plan.measures}
    if not measures:
        raise sm.errors.PlanError("Name at least one --measure, or a --study whose measures to use.")
    if control is not None:
        measures = {
            text: replace(m, control_file=str(control)) if hasattr(m, "control_file") else m  # type: ignore[call-arg]
            for text, m in measures.items()
        }
    data = sm.read(original, **given) if study is None or given else _read_as_in_study(study, original)
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
        with sm.Study.open(study) as opened, opened.writing():
            opened.add_file(file)
        note(f"{study}: the file was added to the maps as {file.name!r}.")
    if as_json:
        facts = ("value", "se", "status", "reason")
        print_json({text: {fact: getattr(row, fact) for fact in facts} for text, row in rows.items()})
        return
    for text, row in rows.items():
        error = f" (standard error {row.se:.2g})" if row.se else ""
        value = row.reason or row.status if row.value is None else f"{row.value:.6g}{error}"
        print(f"{measures[text].title} [{measures[text].brief}]: {value}")


def _read_as_in_study(folder: Path, original: Path) -> Microdata:
    """Return the original with the study's roles and codes; raise StudyMismatch if it is not the study's file."""
    from dataclasses import replace

    import sdcmap as sm

    with sm.Study.open(folder) as opened:
        source = opened.plan.data
        if source is None:
            return opened.data
        data = replace(source, path=str(original)).read()
        if data.digest != opened.manifest["data"]:
            raise sm.errors.StudyMismatch(f"{original} is not the file of {folder}. Use the original of that study.")
    return data


@app.command()
@add_file_options(*ROLES)
def mask(
    file: options.File,
    method: Annotated[str, Option(help="Masking method, such as \"Swap(on=['Age', 'Sex'], rate=0.01)\".")],
    out: Annotated[Path, Option("-o", "--out", help="File to write, named *.study.*, such as masked.study.csv.")],
    given: dict[str, Any],
    seed: Annotated[int | None, Option(min=0, help="Seed. Default: 256 random bits.")] = None,
    excel_safe: options.ExcelSafe = False,
) -> None:
    """Mask one file without a plan, for study only.

    The result must not be released.

    Example: sdcmap mask income.csv --numeric all --method "Noise(on='wage', variance=0.1)" -o wage.study.csv
    """
    import secrets

    import sdcmap as sm
    from sdcmap.core.method import Method
    from sdcmap.core.value import parse

    if ".study." not in out.name:
        raise sm.errors.PlanError(f"{out.name} must be named *.study.*, so that it is not mistaken for a release.")
    data = sm.read(file, **given)
    masked = sm.mask(data, parse(method, Method), seed=secrets.randbits(256) if seed is None else seed)
    kept = masked.only(name for name in masked.names if name not in data.unreleased_columns)
    sm.write(kept, out, excel_safe=excel_safe)
    print(f"{out}: {len(masked):,} rows, for study only.")


@app.command()
def demo(
    out: Annotated[Path, Option("-o", "--out", help="Folder to create.")] = Path("demo"),
    rows: Annotated[int, Option(min=100, help="Persons in the demo population.")] = 1500,
) -> None:
    """Run the whole workflow on demo data.

    It writes a plan, a study, a map, a release and a report, and takes a minute or two.

    Example: sdcmap demo -o demo
    """
    from sdcmap.demo_run import run_demo

    for line in run_demo(out, rows):
        print(line)


@app.command()
def correct(
    released: options.File,
    method_note: Annotated[Path, Option("--note", help="The note.json file of the release.")],
    regress: Annotated[list[str], Option(help="Regression, such as 'y ~ x1 + x2 + x1:x2'; repeatable.")] = [],  # noqa: B006
    on: options.Names = "",
    by: options.Names = "",
    weight: Annotated[str, Option(help="Survey weight. Default: every record counts once.")] = "",
    least: Annotated[int, Option(min=2, help="Smallest domain, in records; smaller ones are left out.")] = 30,
    as_json: options.Json = False,
) -> None:
    """Correct estimates from a noise-masked file for the noise.

    The output contains means, covariances, correlations and regressions with standard errors.

    Example: sdcmap correct data.csv --note note.json --regress "wage ~ age + sex" --by region --json
    """
    import sdcmap as sm
    from sdcmap.corrections.correction import missing_codes_from_note

    named = {option: names.split(",") for option, names in (("on", on), ("by", by)) if names}
    data = sm.read(released, weight=weight or None, missing=missing_codes_from_note(method_note))
    corrected = sm.correct(data, method_note, regress=regress, **named, least=least, weighted=bool(weight))
    if as_json:
        facts = {"notes": corrected.notes, "semidefinite": corrected.semidefinite}
        print_json({"table": corrected.table.to_dicts(), **facts})
    else:
        print(corrected)
