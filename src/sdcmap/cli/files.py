"""Commands for single files: score one made elsewhere, mask one for study, correct one for noise, or see a demo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from sdcmap.cli import options
from sdcmap.cli.app import ROLES, app, note, print_json, reads_a_file

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata


@app.command()
@reads_a_file(*ROLES[:5])
def score(
    original: options.File,
    masked: Annotated[Path, Argument(help="The masked file; rows in the same order, or matched with --by.")],
    given: dict[str, Any],
    measure: Annotated[
        list[str], Option(help="Such as SmallCells or 'SmallCells(n=5)'; may be repeated. Default: the study's.")
    ] = [],  # noqa: B006
    by: Annotated[str, Option(help="An id column in both files that says which record is which.")] = "",
    unpaired: Annotated[bool, Option("--unpaired", help="The rows are nobody's: a synthetic file.")] = False,
    control: Annotated[Path | None, Option(help="A file of people who are not in the original.")] = None,
    study: Annotated[Path | None, Option(help="Put the file beside the candidates of this study.")] = None,
    name: Annotated[str, Option(help="Its name there.")] = "",
    device: options.Device = "cpu", as_json: options.Json = False,
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

    import sdcmap as sm
    from sdcmap.core.measure import Measure
    from sdcmap.core.value import parse
    from sdcmap.study.jobs import score_file

    measures = {text: parse(text, Measure) for text in measure}
    if not measures and study is not None:
        measures = {m.text: m for m in sm.Study.open(study).plan.measures}
    if not measures:
        raise sm.errors.PlanError("name at least one --measure, or a --study whose measures are meant.")
    if control is not None:
        measures = {
            text: replace(m, control_file=str(control)) if hasattr(m, "control_file") else m  # type: ignore[call-arg]
            for text, m in measures.items()
        }
    data = sm.read(original, **given) if study is None or given else _of_study(study, original)
    file = score_file(
        data, masked, list(measures.values()), by=by or None, paired=not unpaired, name=name or masked.name, device=device
    )  # fmt: skip
    rows = dict(zip(measures, file.scores, strict=True))
    if study is not None:
        with sm.Study.open(study) as opened, opened.writing():
            opened.add_file(file)
        note(f"{study}: the file is on its maps as {file.name!r}.")
    if as_json:
        facts = ("value", "se", "status", "reason")
        print_json({text: {fact: getattr(row, fact) for fact in facts} for text, row in rows.items()})
        return
    for text, row in rows.items():
        error = f" (se {row.se:.2g})" if row.se else ""
        shown = row.reason or row.status if row.value is None else f"{row.value:.6g}{error}"
        print(f"{measures[text].brief:<30} {shown}")


def _of_study(folder: Path, original: Path) -> Microdata:
    """The original of a study, with the study's roles and codes; StudyMismatch where the file is another."""
    from dataclasses import replace

    import sdcmap as sm

    with sm.Study.open(folder) as opened:
        source = opened.plan.data
        if source is None:
            return opened.data
        data = replace(source, path=str(original)).read()
        if data.digest != opened.manifest["data"]:
            words = f"{original} is not the file of {folder}: score against the original of that study."
            raise sm.errors.StudyMismatch(words)
    return data


@app.command()
@reads_a_file(*ROLES)
def mask(
    file: options.File,
    method: Annotated[str, Option(help="Such as \"Swap(on=['Age', 'Sex'], rate=0.01)\".")],
    out: Annotated[Path, Option("-o", "--out", help="Named *.study.*, such as masked.study.csv.")],
    given: dict[str, Any],
    seed: Annotated[int | None, Option(min=0, help="For study only; by default 256 random bits.")] = None,
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
    data = sm.read(file, **given)
    masked = sm.mask(data, parse(method, Method), seed=secrets.randbits(256) if seed is None else seed)
    sm.write(masked.only(name for name in masked.names if name not in data.unreleased_columns), out)
    print(f"{out}: {len(masked):,} rows, for study only.")


@app.command()
def demo(
    out: Annotated[Path, Option("-o", "--out", help="Folder to write.")] = Path("demo"),
    rows: Annotated[int, Option(min=100, help="Persons in the demo population.")] = 1500,
) -> None:
    """The whole line on demo data, in a minute or two: plan, study, map, choice, release, report.

    Example: sdcmap demo -o demo
    """
    from sdcmap.demo_run import tour

    for line in tour(out, rows):
        print(line)


@app.command()
def correct(
    released: options.File,
    method_note: Annotated[Path, Option("--note", help="The release's note.json.")],
    regress: Annotated[list[str], Option(help="Such as 'y ~ x1 + x2 + x1:x2'; may be repeated.")] = [],  # noqa: B006
    on: options.Names = "", by: options.Names = "",
    weight: Annotated[str, Option(help="The survey weight; without it every record counts once.")] = "",
    least: Annotated[int, Option(min=2, help="Domains with fewer records are left out.")] = 30,
    as_json: options.Json = False,
) -> None:  # fmt: skip
    """Means, covariances, correlations and regressions of a noise-masked file, corrected, with standard errors.

    Example: sdcmap correct data.csv --note note.json --regress "wage ~ age + sex" --by region --json
    """
    import sdcmap as sm
    from sdcmap.corrections.correcting import missing_codes

    named = {option: names.split(",") for option, names in (("on", on), ("by", by)) if names}
    data = sm.read(released, weight=weight or None, missing=missing_codes(method_note))
    corrected = sm.correct(data, method_note, regress=regress, **named, least=least, weighted=bool(weight))
    if as_json:
        facts = {"notes": corrected.notes, "semidefinite": corrected.semidefinite}
        print_json({"table": corrected.table.to_dicts(), **facts})
    else:
        print(corrected)
