"""How much a plan may hold: a text is looked over before it is read, so that what would cost too much is refused first."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from sdcmap.errors import PlanError

LONGEST = 500_000  # characters of a plan
DEEPEST = 32  # tables and lists in each other
BITS = 64  # of a whole number, as TOML has it
TOO_DEEP = f"a plan nests tables and lists at most {DEEPEST} levels deep."
TOO_MANY_DIGITS = f"a whole number of a plan has at most {BITS} bits."
_PART = r"""(?:[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![A-Za-z0-9_-])(?:{_PART}[ \t]*+\.[ \t]*+){{{DEEPEST}}}")  # reading these is quadratic


def read_table(text: str) -> dict[str, Any]:
    """The table that a TOML text stands for, where it is not too long, too deep or full of endless numbers."""
    if len(text) > LONGEST:
        raise PlanError(f"a plan has at most {LONGEST:,} characters.")
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
    """PlanError where a table, as TOML or JSON gives it, is too deep or holds a number of more than 64 bits."""
    level: list[object] = [table]
    for _ in range(DEEPEST):
        if any(isinstance(part, int) and part.bit_length() > BITS for part in level):
            raise PlanError(TOO_MANY_DIGITS)
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [inner for part in inside for inner in part]
        if not level:
            return
    raise PlanError(TOO_DEEP)
