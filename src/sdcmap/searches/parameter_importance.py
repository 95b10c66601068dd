"""How the parameters of a study's methods relate to risk and loss: a table of them, and which matter.

It works for any study, searched or not: the steps of its methods are split, and each field of a step is a parameter.
`search_review.py` does the same for the choices of a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl

from sdcmap.core import Array, Method, PlanError, Value
from sdcmap.core.catalog import draw_chart
from sdcmap.core.chart import Chart
from sdcmap.map import RUMap
from sdcmap.searches.forest import Predictors, importance_table

MIN_METHODS = 8  # with fewer, a forest cannot separate parameters
MAX_AXES = 7  # parameters shown side by side
MAX_LISTED_NUMBERS = 7  # an axis with at most this many different numbers labels each of them
MAX_LINES = 600  # more lines make the chart unreadable and slow

Setting = float | str


@dataclass(frozen=True)
class Parameters:
    """The methods of a map with a risk and a loss, each with its settings. frontier : whether it is on the frontier."""

    names: tuple[str, ...]
    settings: tuple[dict[str, Setting], ...]
    risk: Array
    utility: Array
    frontier: Array

    @staticmethod
    def of(ru: RUMap, methods: Sequence[Method]) -> Parameters:
        """Return the parameters of a map and the methods of its plan. Each method counts once, by its mean over draws."""
        known = {method.text: method for method in methods}
        axes = pl.col("risk", "utility").is_finite()
        rows = ru.means.filter(~pl.col("anchor"), pl.all_horizontal(axes), pl.col("method").is_in(list(known)))
        texts = rows["method"].to_list()
        return Parameters(
            tuple(ru.scores.name_of(text) for text in texts), tuple(settings_of(known[text]) for text in texts),
            rows["risk"].to_numpy(), rows["utility"].to_numpy(), np.isin(texts, ru.frontier["method"].to_list()),
        )  # fmt: skip

    @property
    def varying(self) -> list[str]:
        """Parameters that differ between methods. A method that lacks the parameter counts as different."""
        named = dict.fromkeys(name for settings in self.settings for name in settings)
        return [name for name in named if len({settings.get(name) for settings in self.settings}) > 1]

    def importance(self) -> pl.DataFrame:
        """Return stage (the parameter), risk, loss: the share of variance that is lost when it is shuffled."""
        if len(self.names) < MIN_METHODS or not self.varying:
            raise PlanError(f"the importance of parameters needs at least {MIN_METHODS} methods that differ in one.")
        ordered = np.array([self._is_number(name) for name in self.varying])
        x = Predictors.of(np.column_stack([self._column(name) for name in self.varying]), ordered)
        groups = {name: [index] for index, name in enumerate(self.varying)}
        return importance_table(x, _take_logs(self.risk), _take_logs(self.utility), groups)

    def draw_importance(self) -> Chart:
        """Draw which parameters matter for risk and for loss."""
        return draw_chart("draw_importance", self.importance(), title="Which parameters matter")

    def draw_choices(self) -> Chart:
        """Draw parallel coordinates: a line per method, from risk and loss to the parameters that matter most."""
        shown = self.importance()["stage"].to_list()[:MAX_AXES]
        lines = self._lines()
        axes = {"risk": self.risk, "loss": self.utility}
        ends = {name: _span(values) for name, values in axes.items()}
        columns: dict[str, list[Setting | None]] = {name: values[lines].tolist() for name, values in axes.items()}
        options: dict[str, tuple[str, ...]] = {}
        for name in shown:
            values = [settings.get(name) for settings in self.settings]
            known = {value for value in values if value is not None}
            if self._is_number(name) and len(known) > MAX_LISTED_NUMBERS:
                ends[name] = _span(np.array(list(known), dtype=float))
            else:
                options[name] = _list_options(values)
                values = [None if value is None else _format_setting(value) for value in values]
            columns[name] = [values[row] for row in lines]
        facts = {"name": [self.names[row] for row in lines], "front": self.frontier[lines].tolist()}
        title = f"{len(lines):,} of {len(self.names):,} methods" if len(lines) < len(self.names) else "Every method"
        table = pl.DataFrame({**facts, **columns}, strict=False)
        return draw_chart("draw_choices", table, options, ends=ends, title=f"{title}: risk, loss and parameters")

    def _lines(self) -> Array:
        """Return the methods to draw: the frontier, and others evenly spaced in risk."""
        others = np.flatnonzero(~self.frontier)
        others = others[np.argsort(self.risk[others], kind="stable")]
        spaced = np.linspace(0, max(0, len(others) - 1), min(len(others), MAX_LINES)).astype(np.int64)
        return np.sort(np.concatenate([np.flatnonzero(self.frontier), others[spaced]]))

    def _is_number(self, name: str) -> bool:
        return all(isinstance(settings[name], float) for settings in self.settings if name in settings)

    def _column(self, name: str) -> Array:
        """Return a number for every method: the setting, or its index among the options; NaN where it has none."""
        values = [settings.get(name) for settings in self.settings]
        if not self._is_number(name):
            words = _list_options(values)
            values = [None if value is None else words.index(_format_setting(value)) for value in values]
        return np.array(values, dtype=float)  # None is NaN


def settings_of(method: Method) -> dict[str, Setting]:
    """Return the settings of a method, step by step: numbers as numbers, everything else as text.

    >>> import sdcmap as sm
    >>> settings_of(sm.Swap(on=["Age", "Sex"], rate=0.1))["Swap rate"], settings_of(sm.Swap(on="Age"))["Swap on"]
    (0.1, 'Age')
    """
    settings: dict[str, Setting] = {"method": ", then ".join(type(step).__name__ for step in method.steps)}
    for step in method.steps:
        for field in fields(step):
            settings[f"{type(step).__name__} {field.name}"] = _to_setting(getattr(step, field.name))
    return settings


def _to_setting(value: object) -> Setting:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, tuple):
        return ", ".join(str(_to_setting(part)) for part in value) or "none"
    return value.text if isinstance(value, Value) else str(value)


def _format_setting(value: Setting) -> str:
    return f"{value:g}" if isinstance(value, float) else value


def _list_options(values: Sequence[Setting | None]) -> tuple[str, ...]:
    """Return every setting once, as text: numbers by size, then texts."""
    known = {value for value in values if value is not None}
    numbers = sorted(value for value in known if isinstance(value, float))
    return (*map(_format_setting, numbers), *sorted(value for value in known if isinstance(value, str)))


def _take_logs(values: Array) -> Array:
    """Return logarithms where all values are positive, so that the largest do not dominate the variance."""
    return np.log(values) if (values > 0).all() else values


def _span(values: Array) -> tuple[float, float]:
    return float(values.min()), float(values.max())
