"""The base of all responses of the service, and the R-U map as a response, in columns.

Infinite numbers and NaN become null in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, dataclass_transform

Numbers: TypeAlias = list[float | None]
Columns: TypeAlias = dict[str, list[str | int | float | None]]  # a table: column name -> values


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class ResponseModel:
    """A response of the service, or a part of one. Every subclass is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class Marks(ResponseModel):
    """The marks on a map, in columns.

    risk_end : the risk that a threshold is compared with. worse : more risk and less utility than the unmasked file.
    within : whether it is within every limit. levels : for each measure, the value that a limit is compared with; null: it
    has no value and is within no limit.
    """

    risk: Numbers
    risk_end: Numbers
    utility: Numbers
    anchor: list[bool]
    worse: list[bool]
    frontier: list[bool]
    within: list[bool]
    levels: dict[str, Numbers]


class Points(Marks):
    """Candidates in columns.

    method : the index in the map's `methods`. replicate : from 0; pages show draws from 1.
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


class MapAxes(ResponseModel):
    """The ends of the utility axis (x) and of the risk axis (y), whether the latter is logarithmic, and its title."""

    x: tuple[float, float]
    y: tuple[float, float]
    is_log: bool
    title: str


class MapCurve(ResponseModel):
    """One line of a map of curves: the methods that differ in one parameter, as one attacker sees them, in its order.

    measure : of the attacker; empty: the worst on the axis. color, shape : numbers, equal where lines share them. dash :
    lengths in pixels. method : the index in the map's `methods`. value : of the parameter, as a text.
    """

    name: str
    parameter: str
    measure: str
    color: int
    shape: int
    dash: tuple[int, ...]
    method: list[int]
    value: list[str]
    risk: Numbers
    utility: Numbers
    risk_se: Numbers
    utility_se: Numbers


class MapMeasure(ResponseModel):
    """A measure; `title` is its name for people, `description` one sentence on what it means."""

    name: str
    title: str
    description: str
    axis: Literal["risk", "utility"]
    unit: str
    direction: Literal["lower", "higher"]


class Floor(ResponseModel):
    """The level of risk that exists without any release."""

    risk: float
    words: str


class Map(ResponseModel):
    """The R-U map.

    limits : what each risk measure on the axis is divided by; none: its own unit. measure_limits : limits by measure,
    each in its own unit. signs : 1 if lower is better, -1 if higher is better, for risk and utility. expectation :
    methods are compared, not single releases. short, families : for each method, a short label, and the classes of its
    steps. eras, era : of a search, the plan's own methods and spans of generations in order, and the index of each
    method's span (null: not from a search). layer : what is shown unless the user selects another: "release", "mean" or
    "curve". curves : the lines; none where no methods differ in one parameter only. empty_axes : why an axis has no values,
    if so.
    """

    risk: tuple[str, ...]
    utility: str
    limits: tuple[float, ...]
    measure_limits: dict[str, float]
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
    layer: Literal["release", "mean", "curve"]
    axes: dict[str, MapAxes]
    curves: list[MapCurve]
    points: Points
    means: Means
    measures: list[MapMeasure]
    rule: dict[str, Any] | None
    total: int
    empty_axes: list[str]
