"""What all commands share: the app, the options for reading a file, and printing."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Annotated, Any

from typer import Context, Exit, Option, Typer
from typer.core import TyperCommand, TyperOption

from sdcmap import __version__
from sdcmap.cli.options import Names

KEYWORD = inspect.Parameter.KEYWORD_ONLY
app = Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Create many candidate releases of a microdata file, measure their disclosure risk and utility, draw the R-U map, "
    "and choose one by a stated rule.\n\nExample: sdcmap demo",
    epilog="Exit codes: 0 success; 2 invalid input; 3 nothing can be released; 130 stopped by Ctrl-C.",
)


class StrictCommand(TyperCommand):
    """A command that refuses an option that is stated twice, where only the last value would count."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        options = (p for p in self.get_params(ctx) if isinstance(p, TyperOption) and not (p.multiple or p.is_flag))
        single = {name: option.opts[-1] for option in options for name in option.opts}
        stated = Counter(single[name] for arg in args if (name := arg.split("=")[0]) in single)
        if repeated := [name for name, count in stated.items() if count > 1]:
            from sdcmap.errors import PlanError

            raise PlanError(
                f"{repeated[0]} is stated {stated[repeated[0]]} times. State it once; commas separate names."
            )
        return super().parse_args(ctx, args)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sdcmap {__version__}")
        raise Exit


@app.callback()
def _options(
    version: Annotated[
        bool, Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Define the options that belong to no command."""


ROLES = ("keys", "numeric", "sensitive", "identifiers", "weight", "household", "stratum")
DIALECT_OPTIONS = {  # of a text file
    "sep": "Separator of a text file: , ; | or tab. Default: detected.",
    "decimal": "Decimal mark: . or , (default: detected).",
    "thousands": "Thousands separator: . , ' a blank, or none. Default: detected.",
    "quote": "Quotation mark, or none. Default: detected.",
    "encoding": "utf-8, latin-1, cp1252 or utf-16. Default: detected.",
}
MISSING_HELP = "Codes for missing values, comma-separated: N applies to every column, income=-8 to one."


def add_file_options(*roles: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds options for these roles and for the dialect of a text file to a command.

    The command receives the options that were stated as one dictionary, `given`: names as lists ("all" stays a string),
    dialect options as strings.
    """
    texts = DIALECT_OPTIONS | {"missing": MISSING_HELP}
    options: dict[str, Any] = dict.fromkeys(roles, Names)
    options |= {name: Annotated[str, Option(help=text)] for name, text in texts.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        added = [inspect.Parameter(name, KEYWORD, default="", annotation=kind) for name, kind in options.items()]
        others = [part.replace(kind=KEYWORD) for name, part in own.items() if name != "given"]
        # Python requires parameters without a default to come first.
        parameters = sorted([*others[:1], *added, *others[1:]], key=lambda part: part.default is not part.empty)

        def run(**stated: Any) -> None:
            texts = {name: text for name in options if (text := stated.pop(name))}
            unsplit = {name for name, text in texts.items() if text == "all" or name in DIALECT_OPTIONS}
            command(**stated, given={n: text if n in unsplit else text.split(",") for n, text in texts.items()})

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {part.name: part.annotation for part in parameters}
        return run

    return decorate


def print_json(document: object) -> None:
    print(json.dumps(_plain(document), indent=1, allow_nan=False))


def _plain(value: object) -> object:
    """Return a value that JSON supports: NaN and infinity become null, a dataclass a table of its fields."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        return _plain({part.name: getattr(value, part.name) for part in fields(value)})
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def note(text: str) -> None:
    print(text, file=sys.stderr)


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
