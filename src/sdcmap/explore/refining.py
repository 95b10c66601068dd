"""What to try next after a comparison: the methods worth a closer look, at strengths around those that were tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core.method import Method, strength_of
from sdcmap.core.rule import Rule, named_limits
from sdcmap.errors import PlanError
from sdcmap.kernels.arrays import Array
from sdcmap.map import RUMap
from sdcmap.methods import Chain
from sdcmap.study.plan import Plan

SEVERAL = 3  # methods to go on with
FACTORS = (0.5, 0.75, 1.0, 1.5, 2.0)  # of a strength


def worth_refining(ru: RUMap, rule: Rule | None = None, count: int = SEVERAL) -> list[str]:
    """The texts of the methods to go on with: those within every limit of the map and of a rule on risk first, or else
    those nearest to them; of these the most often undominated, then the most useful. Without limits, the most useful
    would be the most risky: then those nearest to the least risk and the least loss on the map, each axis by its range."""
    rows = ru.means.filter(~pl.col("anchor"), pl.col("method").is_in(list(ru.scores.methods)))
    risk, loss = ru.losses(rows)
    over = np.maximum(np.nan_to_num(ru.limit_shares(rows), nan=np.inf), 1.0)
    line = getattr(rule, "risk", None)
    if line is not None:
        over = np.where(risk <= ru.signs[0] * line, over, over + np.abs(risk - ru.signs[0] * line))
    seldom = -rows["membership"].fill_null(0.0).to_numpy()
    cost = loss if line is not None or named_limits(ru.limits) or ru.scales else np.hypot(_ranged(risk), _ranged(loss))
    order = np.lexsort((rows["method"].to_numpy(), cost, seldom, over))
    return [str(rows["method"][int(place)]) for place in order[:count]]


def _ranged(x: Array) -> Array:
    """Numbers between the least (0) and the largest (1) of those that are finite; others stay what they are."""
    known = x[np.isfinite(x)]
    low, high = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    scaled: Array = (x - low) / (high - low if high > low else 1.0)
    return scaled


def nearby(method: Method) -> list[Method]:
    """A method at strengths around its own; itself alone where it has none.

    >>> from sdcmap import Swap
    >>> [m.rate for m in nearby(Swap("age", rate=0.2))]
    [0.1, 0.15, 0.2, 0.3, 0.4]
    """
    scaled = [made for factor in FACTORS if (made := _scaled(method, factor)) is not None]
    return list(dict.fromkeys(scaled)) or [method]


def _scaled(method: Method, factor: float) -> Method | None:
    """A method with its strength so many times; of a chain, each step; None where that is no strength it can have."""
    if isinstance(method, Chain):
        steps = [_scaled(step, factor) for step in method.methods]
        return Chain(tuple(step or own for step, own in zip(steps, method.methods, strict=True)))
    name = strength_of(method)
    if not name:
        return method
    before = getattr(method, name)
    after: Any = round(before * factor) if isinstance(before, int) else float(f"{before * factor:.3g}")
    try:
        return replace(method, **{name: after})
    except PlanError:
        return None


def refined(plan: Plan, methods: list[str]) -> Plan:
    """The same plan with some of its methods alone, each at strengths around its own."""
    by_text = {method.text: method for method in plan.expanded}
    return replace(plan, methods=tuple(near for text in methods for near in nearby(by_text[text])))
