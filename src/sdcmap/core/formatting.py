"""A few words for names, shares and numbers: what a name in words is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_NAMES_IN_PHRASE = 3  # variables in one phrase


def join_names(names: Sequence[str]) -> str:
    """Variables in a few words, the first ones by name.

    >>> join_names(["age", "sex"]), join_names(["age", "sex", "race", "educ", "wage"])
    ('age, sex', 'age, sex and 3 more')
    """
    if len(names) <= MAX_NAMES_IN_PHRASE:
        return ", ".join(names)
    return f"{', '.join(names[: MAX_NAMES_IN_PHRASE - 1])} and {len(names) - MAX_NAMES_IN_PHRASE + 1} more"


def name_axis(measures: Sequence[str]) -> str:
    """Measures on one axis in a few words.

    >>> name_axis(["SmallCells"]), name_axis(["A", "B", "C", "D"])
    ('SmallCells', 'the worst of 4 measures')
    """
    return " and ".join(measures) if len(measures) < MAX_NAMES_IN_PHRASE else f"the worst of {len(measures)} measures"


def format_percent(share: float) -> str:
    """A share as a person says it.

    >>> format_percent(0.1), format_percent(0.005)
    ('10 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def format_number(value: float) -> str:
    """A number without what nobody reads: 1,000, 2.5, 1e-06.

    >>> number(1000.0), format_number(2.5), format_number(0.000001)
    ('1,000', '2.5', '1e-06')
    """
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:g}"


def split_class_name(cls: str) -> str:
    """The name of a class as words; capitals of an abbreviation stay.

    >>> spoken("RankSwap"), split_class_name("PRAM"), split_class_name("MyPRAMNoise")
    ('rank swap', 'PRAM', 'my PRAM noise')
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+", cls)
    return " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in parts)
