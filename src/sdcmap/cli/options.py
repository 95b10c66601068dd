"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sdcmap.files.formats import endings, words

File = Annotated[Path, Argument(help=f"{words()}: {', '.join(endings())}.")]
StudyFolder = Annotated[Path, Argument(help="The study folder that `sdcmap sweep` made.")]
Json = Annotated[bool, Option("--json", help="Print one JSON document; notes go to stderr.")]
Names = Annotated[str, Option(help="Comma-separated column names, or `all`.")]
PlanFile = Annotated[Path, Argument(help="A plan in TOML, with a [data] part.")]
NewStudy = Annotated[Path, Option("-o", "--out", help="Study folder; an existing one is gone on with.")]
Workers = Annotated[int, Option(min=0, help="Number of workers; 0: one per core.")]
Engine = Annotated[str, Option(help="serial, threads, processes, dask, or dask://HOST:PORT.")]
Device = Annotated[str, Option(help="cpu, gpu, or auto: a GPU where one can be used.")]
Quiet = Annotated[bool, Option(help="No progress bar.")]
Risks = Annotated[list[str], Option(help="Risk measure; repeated: taken at their worst.")]
Utility = Annotated[str, Option(help="Utility measure.")]
Seed = Annotated[int | None, Option(min=0, help="Of the whole run; by default a fresh one.")]
Title = Annotated[str, Option("--title", help="What the data are called.")]
Owner = Annotated[str, Option("--owner", help="Whose the data are.")]
Ledger = Annotated[Path | None, Option(help="Ledger of earlier releases.")]
