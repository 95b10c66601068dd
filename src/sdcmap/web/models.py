"""The R-U map as the service answers it, in columns.

A number that is infinite or not a number is null in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Numbers: TypeAlias = list[float | None]
Columns: TypeAlias = dict[str, list[str | int | float | None]]  # a table: the name of a column -> its values


@dataclass(frozen=True, kw_only=True)
class Points:
    """Candidates in columns.

    method : the place in the map's `methods`. replicate : from 0; people count draws from 1. within : within every limit by
    measure. levels : of each risk measure, what a limit is held against; null: no value, within no limit.
    """

    id: list[str]
    kind: list[str]
    method: list[int]
    replicate: list[int]
    risk: Numbers
    utility: Numbers
    anchor: list[bool]
    frontier: list[bool]
    compared: list[bool]
    within: list[bool]
    levels: dict[str, Numbers]


@dataclass(frozen=True, kw_only=True)
class Means:
    """Methods in columns, in the order of the map's `methods`."""

    count: list[int]
    risk: Numbers
    utility: Numbers
    risk_se: Numbers
    risk_low: Numbers
    risk_high: Numbers
    utility_se: Numbers
    utility_low: Numbers
    utility_high: Numbers
    anchor: list[bool]
    frontier: list[bool]
    membership: Numbers
    membership_low: Numbers
    membership_high: Numbers
    within: list[bool]
    levels: dict[str, Numbers]


@dataclass(frozen=True)
class MapAxes:
    """The ends of the utility axis (x) and of the risk axis (y)."""

    x: tuple[float, float]
    y: tuple[float, float]


@dataclass(frozen=True)
class MapMeasure:
    name: str
    axis: Literal["risk", "utility"]
    unit: str
    direction: Literal["lower", "higher"]


@dataclass(frozen=True)
class Floor:
    """The level of risk that is there without any release."""

    risk: float
    words: str


@dataclass(frozen=True, kw_only=True)
class Map:
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
