"""The command for data users: statistics of a noise-masked file with the noise taken off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sdcmap.cli.app import File, Json, Names, app, print_json


@app.command()
def correct(
    released: File,
    method_note: Annotated[Path, typer.Option("--note", help="The release's note.json.")],
    regress: Annotated[list[str], typer.Option(help="Such as 'y ~ x1 + x2 + x1:x2'; may be repeated.")] = [],  # noqa: B006
    on: Names = "", by: Names = "",
    weight: Annotated[str, typer.Option(help="The survey weight; without it every record counts once.")] = "",
    least: Annotated[int, typer.Option(min=2, help="Domains with fewer records are left out.")] = 30,
    as_json: Json = False,
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
        print_json(
            {"table": corrected.table.to_dicts(), "notes": corrected.notes, "semidefinite": corrected.semidefinite}
        )
        return
    print(corrected)
