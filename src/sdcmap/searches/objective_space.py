"""The plane of a search: log risk, clipped, across; loss up. Both are 0 at their best and 1 at the reference.

On a linear axis nine tenths of the area lie above a risk of .1, where nothing is released: so risk counts by its logarithm.
With a limit, less than a quarter of it is no better than a quarter, and what lies above it counts little: effort goes to
where the rule decides. The reference is to release everything (risk) and to release nothing (loss).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from sdcmap.core import Array, Measure, PlanError
from sdcmap.core.limit import axis_scales
from sdcmap.kernels.decision.pareto import picked, undominated
from sdcmap.map import RUMap
from sdcmap.study.early_stop import EarlyStop
from sdcmap.study.plan import Plan
from sdcmap.study.scores import Scores

RISK_CLIP = 0.25  # of the limit: less risk than that is pointless
SHARE_ABOVE_LIMIT = 0.15  # share of the axis that lies above the limit
RISK_FLOOR = 0.01  # of the risk of releasing everything: without a limit, less is no better; few records would decide


@dataclass(frozen=True)
class ObjectiveTable:
    """Candidates by id: risk and loss as they are, turned so that less is better.

    Both in the plane, 1 where a constraint is broken; and whether each is within every constraint. NaN: not made, or
    without a value.
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
        """Return these candidates in this order; NaN for those that are not here."""
        place = {name: at for at, name in enumerate(self.ids)}
        rows = np.array([place.get(name, len(self)) for name in ids], dtype=np.int64)  # the row after the last is NaN
        risk, loss, x, y = (np.append(column, np.nan)[rows] for column in (self.risk, self.loss, self.x, self.y))
        return ObjectiveTable(ids, risk, loss, x, y, np.append(self.sound, False)[rows])

    def pick_by_area(self, rows: Array, count: int) -> list[int]:
        """Return those of some rows that make up most of the area, at most so many."""
        return [int(rows[at]) for at in picked(self.x[rows], self.y[rows], count, (np.empty(0), np.empty(0)))]

    @property
    def front(self) -> Array:
        """Places of the undominated, ties included, least risk first."""
        return self.front_among(self.sound)

    def front_among(self, some: Array) -> Array:
        """Return places of the undominated of some candidates (true), those out that break a constraint."""
        kept = self.sound & some
        risk, loss = np.where(kept, self.risk, np.nan), np.where(kept, self.loss, np.nan)
        best = np.flatnonzero(undominated(risk, loss))
        return best[np.lexsort((loss[best], risk[best]))]


@dataclass(frozen=True)
class ObjectiveSpace:
    """Where the axes begin and end. limit : the largest tolerable risk, None without one. bounds .

    Other losses, turned so that less is better, that no candidate may exceed.
    """

    plan: Plan
    least: float  # risk (turned) at 0
    most: float  # risk at 1: releasing everything
    best: float  # loss at 0
    worst: float  # loss at 1: releasing nothing
    limit: float | None
    signs: tuple[float, float]
    bounds: Mapping[str, float]

    # ---- from a plan that was swept -----------------------------------------------------------------------------
    @staticmethod
    def of(scores: Scores, plan: Plan) -> ObjectiveSpace:
        """Return the plane of a plan whose own candidates are scored."""
        if not plan.risk or not plan.utility:
            raise PlanError("a search needs a risk measure and a utility measure: they are the axes of its map.")
        ru = RUMap.of_plan(scores, plan)
        whole = ru.points.filter("anchor")
        if not len(whole) or not np.isfinite([whole["risk"][0], whole["utility"][0]]).all():
            raise PlanError("a search needs the risk and the loss of the file as it is; a measure has no value there.")
        sign_r, sign_u = ru.signs
        most, best = sign_r * whole["risk"][0], sign_u * whole["utility"][0]
        if most == 0:
            raise PlanError("by this risk measure the file as it is has no risk: there is nothing to search for.")
        limit = limit_of(plan)
        least = _least_risk(ru, abs(most)) if limit is None else limit * (RISK_CLIP if sign_r > 0 else 1 / RISK_CLIP)
        return ObjectiveSpace(
            plan, sign_r * least, most, best, _worst_loss(ru, best), None if limit is None else sign_r * limit, ru.signs,
            _loss_bounds(ru, scores, plan),
        )  # fmt: skip

    @property
    def reference(self) -> tuple[float, float]:
        """Risk and loss of the corner that areas are measured against, as the measures have them."""
        return self.signs[0] * self.most, self.signs[1] * self.worst

    # ---- candidates in the plane --------------------------------------------------------------------------------
    def table(self, scores: Scores, plan: Plan) -> ObjectiveTable:
        """Return the candidates of a table of scores.

        `plan` names the axes there (redraws have measures of their own).
        """
        ru = RUMap.of_plan(scores, plan)
        points = ru.points.filter(~pl.col("anchor"))
        risk, loss = ru.losses(points)
        over = np.maximum(self._excess(ru, points), self._over_bounds(scores, points))
        sound = np.isfinite(risk) & np.isfinite(loss) & (over <= 1)
        x, y = self.scale_risk(risk * np.where(risk > 0, np.maximum(over, 1.0), 1.0)), self.scale_loss(loss)
        return ObjectiveTable(tuple(points["id"].to_list()), risk, loss, x, np.where(over <= 1, y, 1.0), sound)

    def scale_risk(self, risk: Array) -> Array:
        """Return the place of a (turned) risk, in [0, 1]: by its logarithm, that above the limit in the last part."""
        low, high = self._log(np.array([self.least, self.most]))
        at = self._log(risk)
        if self.limit is None:
            place: Array = (at - low) / max(high - low, 1e-12)
        else:
            line = float(self._log(np.array([self.limit]))[0])
            below = (at - low) / (line - low) * (1 - SHARE_ABOVE_LIMIT)
            place = np.where(at <= line, below, 1 - SHARE_ABOVE_LIMIT * (high - at) / max(high - line, 1e-12))
        return np.clip(place, 0, 1)

    def _log(self, risk: Array) -> Array:
        """Return the logarithm of a turned risk, rising with it."""
        sign = self.signs[0]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs: Array = sign * np.log(sign * risk)
        return np.where(np.isnan(logs) & ~np.isnan(risk), -np.inf, logs)

    def scale_loss(self, loss: Array) -> Array:
        """Return the place of a (turned) loss, in [0, 1]."""
        return np.clip((loss - self.best) / (self.worst - self.best), 0, 1)

    def _excess(self, ru: RUMap, points: pl.DataFrame) -> Array:
        """Return how many times a limit is used up at most, of risk measures that are not on the axis.

        They are constraints.
        """
        others = [limit for limit in ru.limits if limit.measure.text not in ru.risk]
        if not others:
            return np.zeros(len(points))
        shares: Array = RUMap(ru.scores, ru.risk, ru.utility, others, ru.level).worst_shares(points)
        return np.where(np.isnan(shares), np.inf, shares)

    def _over_bounds(self, scores: Scores, points: pl.DataFrame) -> Array:
        """2 where another loss is above its bound, else 0; a loss without a value breaks none."""
        over = np.zeros(len(points))
        for name, bound in self.bounds.items():
            if name in scores.values:  # screenings and redraws measure the axes alone
                values = dict(scores.column(name).select("id", "value").iter_rows())
                turned = sign_of(scores.values[name]) * np.array([values.get(row) for row in points["id"]], dtype=float)
                over[turned > bound * (1 + 1e-9) + 1e-12] = 2.0
        return over

    def early_stop(self, table: ObjectiveTable) -> EarlyStop | None:
        """Return what beats a candidate already, by these; None: nothing does."""
        if not len(table.front):
            return None
        front = tuple((float(table.risk[place]), float(table.loss[place])) for place in table.front)
        scales = axis_scales(self.plan.risk, self.plan.limits) or (1.0,) * len(self.plan.risk)
        return EarlyStop(self.plan.risk, scales, self.plan.utility, self.signs, front)


def sign_of(measure: Measure) -> float:
    """Return what a measure is multiplied by so that less is better."""
    return 1.0 if measure.direction == "lower" else -1.0


def limit_of(plan: Plan) -> float | None:
    """Return the largest tolerable value of the risk axis.

    The rule's, the share 1 of its limits, or the limit of its measure.
    """
    stated = getattr(plan.rule, "risk", None)
    if isinstance(stated, float):
        return stated if stated > 0 else None
    if axis_scales(plan.risk, plan.limits):
        return 1.0
    return plan.limits.get(plan.risk[0]) if len(plan.risk) == 1 else None


def _least_risk(ru: RUMap, most: float) -> float:
    """Return a small part of the risk of releasing everything, or that of releasing nothing where it is larger."""
    nothing = 0.0 if ru.nothing is None else ru.nothing[0]
    if ru.signs[0] < 0:
        return most / RISK_FLOOR
    return max(nothing, most * RISK_FLOOR) if nothing < most else most * RISK_FLOOR


def _worst_loss(ru: RUMap, best: float) -> float:
    """Return the loss of releasing nothing; where the measure has none, the largest of the plan's own candidates."""
    baseline_value = ru.end(ru.utility, "baseline_value")
    if baseline_value is not None and ru.signs[1] * baseline_value > best:
        return ru.signs[1] * baseline_value
    losses = ru.losses(ru.points)[1]
    largest = float(np.max(losses[np.isfinite(losses)], initial=best))
    return largest if largest > best else best + 1.0


def _loss_bounds(ru: RUMap, scores: Scores, plan: Plan) -> dict[str, float]:
    """Return the bound of each other loss, turned: the stated one, else the worst on the plan's own frontier.

    Watched ones have none.
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
