"""Format names, shares and numbers for labels and sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

HTML_OR_LINK = re.compile(r"<(?=[A-Za-z/!?])|\]\(")  # a tag begins with one of these characters
MAX_NAMES_IN_PHRASE = 3  # more names make a label too long for a table or chart


def join_names(names: Sequence[str]) -> str:
    """Return names as a phrase: all of them, or the first ones and how many more.

    >>> join_names(["age", "sex"]), join_names(["age", "sex", "race", "educ", "wage"])
    ('age, sex', 'age, sex and 3 more')
    """
    if len(names) <= MAX_NAMES_IN_PHRASE:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES_IN_PHRASE - 1])} and {len(names) - MAX_NAMES_IN_PHRASE + 1} more"


def list_names(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    >>> list_names(["age"]), list_names(["age", "sex", "race"])
    ('age', 'age, sex and race')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def count_of(number: int, noun: str) -> str:
    """Return a number of things.

    >>> count_of(1, "candidate"), count_of(2000, "record")
    ('1 candidate', '2,000 records')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def escape_markdown(page: str) -> str:
    """Return a Markdown page in which names and labels of a file can be neither HTML nor links.

    >>> escape_markdown("<script> [a](b) 1 < 2")
    '&lt;script> [a]\\\\(b) 1 < 2'
    """
    return HTML_OR_LINK.sub(lambda found: "&lt;" if found[0] == "<" else "]\\(", page)


def name_axis(measures: Sequence[str]) -> str:
    """Return a phrase for the measures on one axis.

    >>> name_axis(["SmallCells"]), name_axis(["A", "B", "C", "D"])
    ('SmallCells', 'the worst of 4 measures')
    """
    return " and ".join(measures) if len(measures) < MAX_NAMES_IN_PHRASE else f"the worst of {len(measures)} measures"


def format_percent(share: float) -> str:
    """Return a share as a percentage.

    >>> format_percent(0.1), format_percent(0.005)
    ('10 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def format_number(value: float) -> str:
    """Return a number without superfluous digits: 1,000, 2.5, 1e-06.

    >>> format_number(1000.0), format_number(2.5), format_number(0.000001)
    ('1,000', '2.5', '1e-06')
    """
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:g}"


def split_class_name(cls: str) -> str:
    """Return the name of a class as words. Abbreviations keep their capitals.

    >>> split_class_name("RankSwap"), split_class_name("PRAM"), split_class_name("MyPRAMNoise")
    ('rank swap', 'PRAM', 'my PRAM noise')
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+", cls)
    return " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in parts)
