"""What measures of edit rules share: the rules, the variables they name, and whether they can read a released file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sdcmap.core.edit_rule import EditRule, edit_problems, parse_edit
from sdcmap.core.measure import Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import Undefined


@dataclass(frozen=True)
class EditMeasure(Measure):
    """The base of measures that ask which records break edit rules.

    Parameters
    ----------
    edits : the rules, such as `age < 15 -> marital = "never"`: columns compared with numbers (< <= > >= = !=) or
        with texts in double quotes (= !=), joined by `and`; other names stand in `backticks`. `sdcmap look --edits`
        proposes some.
    """

    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    missing: ClassVar[str] = "a missing value neither calls for a rule nor breaks it"

    edits: tuple[str, ...]

    def problems(self) -> Iterator[str]:
        yield from (f".edits {problem}" for problem in edit_problems(self.edits))

    @property
    def rules(self) -> tuple[EditRule, ...]:
        return tuple(parse_edit(text) for text in self.edits)

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.names))

    def misfits(self, data: Microdata) -> Iterator[str]:
        for rule in self.rules:
            yield from rule.misfits(data)

    def check_readable(self, original: Microdata, masked: Microdata) -> None:
        """Undefined where a rule's categories were recoded: nobody can tell who breaks it."""
        unreadable = [problem for rule in self.rules for problem in rule.unreadable(masked, original)]
        if unreadable:
            raise Undefined(f"in the released file, {unreadable[0]}")
