"""What all commands share: the app, common options, and how results are printed."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sdcmap.files.formats import endings, words

if TYPE_CHECKING:
    from sdcmap.data.microdata import Microdata

app = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Choose what to release: many candidate releases, their disclosure risk and utility, one map, one justified "
    "choice.\n\nExample: sdcmap demo",
    epilog="Exit codes: 0 done; 2 bad input; 3 nothing may be released; 130 stopped by Ctrl-C.",
)  # fmt: skip

File = Annotated[Path, typer.Argument(help=f"{words()}: {', '.join(endings())}.")]
StudyFolder = Annotated[Path, typer.Argument(help="The study folder that `sdcmap sweep` made.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document; notes go to stderr.")]
Names = Annotated[str, typer.Option(help="Comma-separated column names, or `all`.")]
Sep = Annotated[str, typer.Option(help="Separator of a text file: , ; | or tab; else sensed.")]
Decimal = Annotated[str, typer.Option(help="Decimal mark: . or , else sensed.")]
Thousands = Annotated[str, typer.Option(help="Thousands mark: . , ' a blank, or none; else sensed.")]
Quote = Annotated[str, typer.Option(help="Quotation mark, or none; else sensed.")]
Encoding = Annotated[str, typer.Option(help="utf-8, latin-1, cp1252 or utf-16; else sensed.")]
Missing = Annotated[
    str, typer.Option(help="Codes for missing values: N for every column, income=-8 for one; with commas.")
]


def roles(**given: str) -> dict[str, Any]:
    """Comma-separated names as lists; `all` stays a word, a mark a mark; what was not given is left out."""
    whole = ("sep", "decimal", "thousands", "quote", "encoding")
    return {
        role: names if names == "all" or role in whole else names.split(",") for role, names in given.items() if names
    }


def read(path: Path, *, census: bool = False, **given: str) -> Microdata:
    import sdcmap as sm

    return sm.read(path, **roles(**given), census=census)


def print_json(document: object) -> None:
    print(json.dumps(_plain(document), indent=1, allow_nan=False))


def _plain(value: object) -> object:
    """Return a value as JSON holds it: NaN and infinity are null, a dataclass is a table of its fields."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({part.name: getattr(value, part.name) for part in fields(value)})
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def note(text: str) -> None:
    print(text, file=sys.stderr)


def duration(seconds: float) -> str:
    return (
        f"{seconds:.2g} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
