"""The base of all answers of the service, and the R-U map as it is answered, in columns.

A number that is infinite or not a number is null in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, dataclass_transform

Numbers: TypeAlias = list[float | None]
Columns: TypeAlias = dict[str, list[str | int | float | None]]  # a table: the name of a column -> its values


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Answer:
    """An answer of the service, or a part of one: every subclass is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Marks(Answer):
    """What is marked on the map, in columns.

    within : within every limit by measure. levels : of each risk measure, what a limit is held against; null: no value,
    within no limit.
    """

    risk: Numbers
    utility: Numbers
    anchor: list[bool]
    frontier: list[bool]
    within: list[bool]
    levels: dict[str, Numbers]


class Points(Marks):
    """Candidates in columns.

    method : the place in the map's `methods`. replicate : from 0; people count draws from 1.
    """

    id: list[str]
    kind: list[str]
    method: list[int]
    replicate: list[int]
    compared: list[bool]


class Means(Marks):
    """Methods in columns, in the order of the map's `methods`."""

    count: list[int]
    risk_se: Numbers
    risk_low: Numbers
    risk_high: Numbers
    utility_se: Numbers
    utility_low: Numbers
    utility_high: Numbers
    membership: Numbers
    membership_low: Numbers
    membership_high: Numbers


class MapAxes(Answer):
    """The ends of the utility axis (x) and of the risk axis (y)."""

    x: tuple[float, float]
    y: tuple[float, float]


class MapMeasure(Answer):
    name: str
    axis: Literal["risk", "utility"]
    unit: str
    direction: Literal["lower", "higher"]


class Floor(Answer):
    """The level of risk that is there without any release."""

    risk: float
    words: str


class Map(Answer):
    """The R-U map.

    limits : what each risk measure on the axis is divided by; none: its own unit. held : limits by measure, each in its own
    unit. signs : 1 where lower is better, -1 where higher is, for risk and utility. expectation : methods are compared, not
    single releases. short, families : of each method, the few words of a label, and its class, or those of its steps. eras,
    era : of a search, the plan's own methods and spans of generations in order, and of each method its place there (null:
    no search made it). silent : why an axis has no values, where it has none.
    """

    risk: tuple[str, ...]
    utility: str
    limits: tuple[float, ...]
    held: dict[str, float]
    labels: tuple[str, str]
    signs: tuple[float, float]
    expectation: bool
    nothing: tuple[float | None, float | None] | None
    floor: Floor | None
    methods: list[str]
    names: list[str]
    short: list[str]
    families: list[str]
    eras: list[str]
    era: list[int | None]
    axes: dict[str, MapAxes]
    points: Points
    means: Means
    measures: list[MapMeasure]
    rule: dict[str, Any] | None
    total: int
    silent: list[str]
