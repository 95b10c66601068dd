"""Options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sdcmap.files.formats import endings, words

File = Annotated[Path, Argument(help=f"{words()}: {', '.join(endings())}.")]
StudyFolder = Annotated[Path, Argument(help="The study folder that `sdcmap sweep` made.")]
StudyOrTable = Annotated[
    Path, Argument(help="The study folder that `sdcmap sweep` made, or a table with columns name, risk and utility.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document; messages go to stderr.")]
Names = Annotated[str, Option(help="Comma-separated column names, or `all`.")]
PlanFile = Annotated[Path, Argument(help="A plan in TOML, with a [data] part.")]
NewStudy = Annotated[Path, Option("-o", "--out", help="Study folder; an existing study is continued.")]
Workers = Annotated[int, Option(min=0, help="Number of parallel workers; 0: one per core.")]
Engine = Annotated[str, Option(help="How to run in parallel: serial, threads, processes, dask, or dask://HOST:PORT.")]
Device = Annotated[str, Option(help="Where attacks run: cpu, gpu, or auto (a GPU if one is usable).")]
Quiet = Annotated[bool, Option(help="Show no progress bar.")]
Risks = Annotated[list[str], Option(help="Risk measure of the map; if repeated, the worst of them counts.")]
Utility = Annotated[str, Option(help="Utility measure of the map.")]
Limits = Annotated[
    list[str],
    Option(
        help="MEASURE=NUMBER: a limit of any risk or utility measure, beside the plan's; repeatable. "
        "Of a precision 1/MSE also MEASURE=error:NUMBER or MEASURE=efficiency:SHARE."
    ),
]
Seed = Annotated[int | None, Option(min=0, help="Seed of the whole run. Default: a new random seed.")]
ExcelSafe = Annotated[
    bool,
    Option(
        "--excel-safe", help="CSV: write ' before texts that a spreadsheet program would run as formulas (=, +, -, @)."
    ),
]
Title = Annotated[str, Option("--title", help="Title of the data.")]
Owner = Annotated[str, Option("--owner", help="Owner of the data.")]
Ledger = Annotated[
    Path | None,
    Option(help="Folder that records every release. Default: $SDCMAP_LEDGER, or in the user's state folder."),
]
