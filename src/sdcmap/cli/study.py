"""Commands on a study folder as such."""

from __future__ import annotations

import typer

from sdcmap.cli.app import StudyFolder, app

group = typer.Typer(no_args_is_help=True, help="Look after a study folder.\n\nExample: sdcmap study repair cps-study")
app.add_typer(group, name="study")


@group.callback()
def _group() -> None:
    """Keeps `repair` a word of its own."""


@group.command()
def repair(study: StudyFolder) -> None:
    """Keep every whole row of a study whose database is damaged; the next sweep makes the rest again.

    The damaged file is put aside, not deleted. An undamaged study is left as it is.

    Example: sdcmap study repair cps-study
    """
    from sdcmap.study.repairing import repair as repaired

    print(f"{study}: {repaired(study)}")
