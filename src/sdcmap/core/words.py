"""A few words for names, shares and numbers: what a name in words is made of."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_NAMED = 3  # variables in one phrase


def listed(names: Sequence[str]) -> str:
    """Variables in a few words, the first ones by name.

    >>> listed(["age", "sex"]), listed(["age", "sex", "race", "educ", "wage"])
    ('age, sex', 'age, sex and 3 more')
    """
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"


def axis(measures: Sequence[str]) -> str:
    """Measures on one axis in a few words.

    >>> axis(["SmallCells"]), axis(["A", "B", "C", "D"])
    ('SmallCells', 'the worst of 4 measures')
    """
    return " and ".join(measures) if len(measures) < MOST_NAMED else f"the worst of {len(measures)} measures"


def percent(share: float) -> str:
    """A share as a person says it.

    >>> percent(0.1), percent(0.005)
    ('10 %', '0.5 %')
    """
    return f"{100 * share:.3g} %"


def number(value: float) -> str:
    """A number without what nobody reads: 1,000, 2.5, 1e-06.

    >>> number(1000.0), number(2.5), number(0.000001)
    ('1,000', '2.5', '1e-06')
    """
    return f"{value:,.0f}" if float(value).is_integer() and abs(value) < 1e9 else f"{value:g}"


def spoken(cls: str) -> str:
    """The name of a class as words; capitals of an abbreviation stay.

    >>> spoken("RankSwap"), spoken("PRAM"), spoken("MyPRAMNoise")
    ('rank swap', 'PRAM', 'my PRAM noise')
    """
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+", cls)
    return " ".join(part if len(part) > 1 and part.isupper() else part.lower() for part in parts)
