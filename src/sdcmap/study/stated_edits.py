"""Measures of edit rules in a plan's file: those that state no rules count by the plan's own `edits`.

edits = ["age < 15 -> wage is missing"]
measures = ["EditViolations"]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sdcmap.core import Measure
from sdcmap.core.edit_rule import EditMeasure

MEASURES = "EditViolations", "MarkedRecords"  # types of the measures of edit rules

Table = Mapping[str, Any]


def fill_edits(measures: Iterable[Any], edits: object) -> list[Any]:
    """Return the tables of measures; those of edit rules that state none get the plan's."""
    return [{**one, "edits": edits} if edits and _is_of_edits(one) and "edits" not in one else one for one in measures]


def leave_out_edits(measures: Iterable[Table], edits: list[str]) -> list[Table]:
    """Return the tables of measures; those of the plan's edit rules do not state them again."""
    return [
        {name: part for name, part in one.items() if name != "edits"}
        if _is_of_edits(one) and one.get("edits") == edits
        else one
        for one in measures
    ]


def name_without_edits(text: str, measures: Sequence[Measure], edits: tuple[str, ...]) -> str:
    """Return the type of a measure of the plan's rules if no other has it, so that these can be edited; else its text."""
    own = next((measure for measure in measures if measure.text == text), None)
    if not isinstance(own, EditMeasure) or own.edits != edits:
        return text
    return type(own).__name__ if sum(type(measure) is type(own) for measure in measures) == 1 else text


def _is_of_edits(table: object) -> bool:
    return isinstance(table, Mapping) and table.get("type") in MEASURES
