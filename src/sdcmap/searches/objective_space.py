"""The two objectives of a search: log risk, clipped, and loss. Both are 0 at their best and 1 at the reference.

On a linear axis nine tenths of the area would be above a risk of 0.1, where nothing is released, so risk counts by its
logarithm. With a limit, a risk below a quarter of it gains nothing, and the range above it counts little: the effort goes
to where the rule decides. The reference is the risk of releasing everything and the loss of releasing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core import Array, Measure, PlanError
from sdcmap.core.limit import axis_scales
from sdcmap.kernels.decision.pareto import is_undominated, pick_by_hypervolume
from sdcmap.map import RUMap
from sdcmap.study.early_stop import EarlyStop
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

RISK_CLIP = 0.25  # share of the limit; less risk than that gains nothing
SHARE_ABOVE_LIMIT = 0.15  # of the scaled risk axis
RISK_FLOOR = 0.01  # share of the risk of releasing everything; without a limit, below it a few records would decide


@dataclass(frozen=True)
class ObjectiveTable:
    """Candidates by id: raw risk and loss with signs such that less is better, both objectives, and feasibility.

    An objective is 1 where a constraint is violated. sound : whether each meets every constraint. NaN: no value.
    """

    ids: tuple[str, ...]
    risk: Array
    loss: Array
    x: Array
    y: Array
    sound: Array

    def __len__(self) -> int:
        return len(self.ids)

    def select(self, ids: tuple[str, ...]) -> ObjectiveTable:
        """Return these candidates in this order, with NaN for unknown ones."""
        index = {name: row for row, name in enumerate(self.ids)}
        rows = np.array([index.get(name, len(self)) for name in ids], dtype=np.int64)  # the row after the last is NaN
        risk, loss, x, y = (np.append(column, np.nan)[rows] for column in (self.risk, self.loss, self.x, self.y))
        return ObjectiveTable(ids, risk, loss, x, y, np.append(self.sound, False)[rows])

    def pick_by_area(self, rows: Array, count: int) -> list[int]:
        """Return those of some rows that contribute most to the area, at most `count`."""
        return [
            int(rows[index])
            for index in pick_by_hypervolume(self.x[rows], self.y[rows], count, (np.empty(0), np.empty(0)))
        ]

    @property
    def front(self) -> Array:
        """Rows of the undominated candidates, including ties, least risk first."""
        return self.front_among(self.sound)

    def front_among(self, some: Array) -> Array:
        """Return the rows of the undominated among some candidates (true), without those that violate a constraint."""
        eligible = self.sound & some
        risk, loss = np.where(eligible, self.risk, np.nan), np.where(eligible, self.loss, np.nan)
        best = np.flatnonzero(is_undominated(risk, loss))
        return best[np.lexsort((loss[best], risk[best]))]


@dataclass(frozen=True)
class ObjectiveSpace:
    """The scales of the two objectives.

    limit : the largest tolerable risk; None without one. bounds : the largest tolerable values of other losses, with signs
    such that less is better.
    """

    plan: Plan
    least: float  # signed risk that is scaled to 0
    most: float  # signed risk that is scaled to 1: releasing everything
    best: float  # signed loss that is scaled to 0
    worst: float  # signed loss that is scaled to 1: releasing nothing
    limit: float | None
    signs: tuple[float, float]
    bounds: Mapping[str, float]

    # ---- from a plan that was swept -----------------------------------------------------------------------------
    @staticmethod
    def of(scores: Scores, plan: Plan) -> ObjectiveSpace:
        """Return the objective space of a plan whose own candidates are scored."""
        if not plan.risk or not plan.utility:
            raise PlanError("a search needs a risk measure and a utility measure: they are the axes of its map.")
        ru = RUMap.of_plan(scores, plan)
        whole = ru.points.filter("anchor")
        if not len(whole) or not np.isfinite([whole["risk"][0], whole["utility"][0]]).all():
            raise PlanError("a search needs risk and loss of the unmasked file, and a measure has no value for it.")
        sign_r, sign_u = ru.signs
        most, best = sign_r * whole["risk"][0], sign_u * whole["utility"][0]
        if most == 0:
            raise PlanError("by this risk measure the unmasked file has no risk: there is nothing to search for.")
        limit = limit_of(plan)
        least = _least_risk(ru, abs(most)) if limit is None else limit * (RISK_CLIP if sign_r > 0 else 1 / RISK_CLIP)
        return ObjectiveSpace(
            plan, sign_r * least, most, best, _worst_loss(ru, best), None if limit is None else sign_r * limit, ru.signs,
            _loss_bounds(ru, scores, plan),
        )  # fmt: skip

    @property
    def reference(self) -> tuple[float, float]:
        """Risk and loss of the reference corner, in the units of the measures."""
        return self.signs[0] * self.most, self.signs[1] * self.worst

    # ---- candidates --------------------------------------------------------------------------------------------
    def table(self, scores: Scores, plan: Plan) -> ObjectiveTable:
        """Return the objectives of a table of scores. `plan` names its axes, because redraws have their own measures."""
        ru = RUMap.of_plan(scores, plan)
        points = ru.points.filter(~pl.col("anchor"))
        risk, loss = ru.losses(points)
        # Constraints: limits of risks that are not on the axis, and bounds of other losses. A violation multiplies the
        # risk by its size and sets the loss to 1, so that such a candidate adds no area.
        over = np.maximum(self._excess(ru, points), self._over_bounds(scores, points))
        sound = np.isfinite(risk) & np.isfinite(loss) & (over <= 1) & ~points["worse"].to_numpy()
        x, y = self.scale_risk(risk * np.where(risk > 0, np.maximum(over, 1.0), 1.0)), self.scale_loss(loss)
        return ObjectiveTable(tuple(points["id"].to_list()), risk, loss, x, np.where(over <= 1, y, 1.0), sound)

    def scale_risk(self, risk: Array) -> Array:
        """Return a (signed) risk on the scale [0, 1]: by its logarithm, with the range above the limit compressed."""
        low, high = self._log(np.array([self.least, self.most]))
        log_risk = self._log(risk)
        if self.limit is None:
            scaled: Array = (log_risk - low) / max(high - low, 1e-12)
        else:
            # two linear pieces in log risk: below the limit most of the axis, above it a small share
            limit = float(self._log(np.array([self.limit]))[0])
            below = (log_risk - low) / (limit - low) * (1 - SHARE_ABOVE_LIMIT)
            above = 1 - SHARE_ABOVE_LIMIT * (high - log_risk) / max(high - limit, 1e-12)
            scaled = np.where(log_risk <= limit, below, above)
        return np.clip(scaled, 0, 1)

    def _log(self, risk: Array) -> Array:
        """Return the logarithm of a signed risk, increasing with it."""
        sign = self.signs[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs: Array = sign * np.log(sign * risk)
        return np.where(np.isnan(logs) & ~np.isnan(risk), -np.inf, logs)

    def scale_loss(self, loss: Array) -> Array:
        """Return a (signed) loss on the scale [0, 1]."""
        return np.clip((loss - self.best) / (self.worst - self.best), 0, 1)

    def _excess(self, ru: RUMap, points: pl.DataFrame) -> Array:
        """Return the largest used-up share of a limit, of risk measures that are not on the axis: constraints."""
        others = [limit for limit in ru.limits if limit.measure.text not in ru.risk]
        if not others:
            return np.zeros(len(points))
        shares: Array = RUMap(ru.scores, ru.risk, ru.utility, others, ru.policy).worst_shares(points)
        return np.where(np.isnan(shares), np.inf, shares)

    def _over_bounds(self, scores: Scores, points: pl.DataFrame) -> Array:
        """Return 2 where another loss exceeds its bound, else 0. A loss without a value violates no bound."""
        over = np.zeros(len(points))
        for name, bound in self.bounds.items():
            if name in scores.values:  # screenings and redraws measure the axes only
                values = dict(scores.column(name).select("id", "value").iter_rows())
                signed = sign_of(scores.values[name]) * np.array([values.get(row) for row in points["id"]], dtype=float)
                over[signed > bound + 1e-9 * abs(bound) + 1e-12] = 2.0  # with slack for rounding
        return over

    def early_stop(self, table: ObjectiveTable) -> EarlyStop | None:
        """Return the frontier of these candidates for stopping dominated ones early; None: there is no frontier yet."""
        scales = axis_scales(self.plan.risk, self.plan.limits) or (1.0,) * len(self.plan.risk)
        if not len(table.front) or min(scales) < 0:  # a partial value says nothing about a share of a negative limit
            return None
        front = tuple((float(table.risk[row]), float(table.loss[row])) for row in table.front)
        return EarlyStop(self.plan.risk, scales, self.plan.utility, self.signs, front)


def sign_of(measure: Measure) -> float:
    """Return the factor that makes less better: 1 or -1."""
    return 1.0 if measure.direction == "lower" else -1.0


def limit_of(plan: Plan) -> float | None:
    """Return the largest tolerable value of the risk axis.

    It is that of the rule, 1 where the axis is a share of several limits, or the limit of its only measure.
    """
    stated = getattr(plan.rule, "risk", None)
    if isinstance(stated, float):
        return stated if stated > 0 else None
    if axis_scales(plan.risk, plan.limits):
        return 1.0
    return plan.limits.get(plan.risk[0]) if len(plan.risk) == 1 else None


def _least_risk(ru: RUMap, most: float) -> float:
    """Return the risk at 0: a small share of that of releasing everything, or the baseline where it is larger."""
    baseline = 0.0 if ru.nothing is None else ru.nothing[0]
    if ru.signs[0] < 0:
        return most / RISK_FLOOR
    return max(baseline, most * RISK_FLOOR) if baseline < most else most * RISK_FLOOR


def _worst_loss(ru: RUMap, best: float) -> float:
    """Return the loss of releasing nothing, or the largest of the plan's own candidates where the measure has none."""
    baseline_value = ru.end(ru.utility, "baseline_value")
    if baseline_value is not None and ru.signs[1] * baseline_value > best:
        return ru.signs[1] * baseline_value
    losses = ru.losses(ru.points)[1]
    largest = float(np.max(losses[np.isfinite(losses)], initial=best))
    return largest if largest > best else best + 1.0


def _loss_bounds(ru: RUMap, scores: Scores, plan: Plan) -> dict[str, float]:
    """Return the signed bound of each other loss: the stated one, or the worst on the plan's own frontier.

    Watched losses have no bound.
    """
    stated = {} if plan.search is None else plan.search.bounds_of(plan.measures)
    bounds: dict[str, float] = {}
    own = ru.points.filter("frontier")["id"]
    for measure in plan.measures:
        if measure.axis == "utility" and measure.text != plan.utility:
            values = scores.column(measure.text).filter(pl.col("id").is_in(own.implode()))["value"].to_numpy()
            worst = float(np.max(sign_of(measure) * values)) if len(values) else math.inf
            bound = stated.get(measure.text, sign_of(measure) * worst)
            if bound is not None and math.isfinite(bound):
                bounds[measure.text] = sign_of(measure) * bound
    return bounds
