"""Limits on the size of a plan. They are checked before parsing, so that a huge plan costs no time."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from sdcmap.errors import PlanError

MAX_PLAN_CHARACTERS = 500_000
MAX_PLAN_DEPTH = 32  # nested tables and lists
MAX_INTEGER_BITS = 64  # as in TOML
TOO_DEEP = f"a plan nests tables and lists at most {MAX_PLAN_DEPTH} levels deep."
TOO_MANY_DIGITS = f"a whole number of a plan has at most {MAX_INTEGER_BITS} bits."
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(
    rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MAX_PLAN_DEPTH}}}"
)  # reading these is quadratic


def read_table(text: str) -> dict[str, Any]:
    """Return the table of a TOML text, or raise PlanError where it is invalid, too long, too deep or has huge numbers."""
    if len(text) > MAX_PLAN_CHARACTERS:
        raise PlanError(f"a plan has at most {MAX_PLAN_CHARACTERS:,} characters.")
    # tomllib needs quadratic time for long dotted keys, so they are refused before it sees them
    if _DOTTED.search(text):
        raise PlanError(TOO_DEEP)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise PlanError(TOO_DEEP) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"the plan is not TOML: {error}.") from None
    except ValueError:  # of thousands of digits
        raise PlanError(TOO_MANY_DIGITS) from None
    check_table(table)
    return table


def check_table(table: object) -> None:
    """Raise PlanError where a table from TOML or JSON is too deep or contains a number of more than 64 bits."""
    # level by level instead of recursively, so that a deep table cannot exhaust the stack
    level: list[object] = [table]
    for _ in range(MAX_PLAN_DEPTH):
        if any(isinstance(part, int) and part.bit_length() > MAX_INTEGER_BITS for part in level):
            raise PlanError(TOO_MANY_DIGITS)
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [inner for part in inside for inner in part]
        if not level:
            return
    raise PlanError(TOO_DEEP)
