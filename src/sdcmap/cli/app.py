"""What all commands share: the app, common options, and how results are printed."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from typer import Option, Typer

from sdcmap.cli.options import Names

KEYWORD = inspect.Parameter.KEYWORD_ONLY
app = Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
    help="Choose what to release: many candidate releases, their disclosure risk and utility, one map, one justified "
    "choice.\n\nExample: sdcmap demo",
    epilog="Exit codes: 0 done; 2 bad input; 3 nothing may be released; 130 stopped by Ctrl-C.",
)  # fmt: skip

ROLES = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum")
WRITTEN = {  # how a text file is written
    "sep": "Separator of a text file: , ; | or tab; else sensed.",
    "decimal": "Decimal mark: . or , else sensed.",
    "thousands": "Thousands mark: . , ' a blank, or none; else sensed.",
    "quote": "Quotation mark, or none; else sensed.",
    "encoding": "utf-8, latin-1, cp1252 or utf-16; else sensed.",
}
MISSING = "Codes for missing values: N for every column, income=-8 for one; with commas."


def reads_a_file(*roles: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options for these roles and for how a text file is written; it takes them as one table, `given`,
    of those that were stated: names as lists (`all` stays a word), a mark as a mark."""
    texts = WRITTEN | {"missing": MISSING}
    options: dict[str, Any] = dict.fromkeys(roles, Names)
    options |= {name: Annotated[str, Option(help=words)] for name, words in texts.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        added = [inspect.Parameter(name, KEYWORD, default="", annotation=kind) for name, kind in options.items()]
        kept = [part.replace(kind=KEYWORD) for name, part in own.items() if name != "given"]
        parameters = sorted([*kept[:1], *added, *kept[1:]], key=lambda part: part.default is not part.empty)

        def run(**stated: Any) -> None:
            texts = {name: text for name in options if (text := stated.pop(name))}
            whole = {name for name, text in texts.items() if text == "all" or name in WRITTEN}
            command(**stated, given={n: text if n in whole else text.split(",") for n, text in texts.items()})

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {part.name: part.annotation for part in parameters}
        return run

    return decorate


def print_json(document: object) -> None:
    print(json.dumps(_plain(document), indent=1, allow_nan=False))


def _plain(value: object) -> object:
    """Return a value as JSON holds it: NaN and infinity are null, a dataclass is a table of its fields."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return _plain({part.name: getattr(value, part.name) for part in fields(value)})
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def note(text: str) -> None:
    print(text, file=sys.stderr)


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
