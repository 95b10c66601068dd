"""When a candidate need not be measured any more: others have less risk and less loss, whatever is left to measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class EarlyStop:
    """What beats a candidate: `front` holds (risk, loss) of earlier ones, both turned so that less is better.

    risk : the measures on the axis, each divided by its scale (1: as it is); their worst counts, so those that are measured
    bound it from below. signs : +1 where less is better, -1 where more is, of risk and of utility.
    """

    risk: tuple[str, ...]
    scales: tuple[float, ...]
    utility: str
    signs: tuple[float, float]
    front: tuple[tuple[float, float], ...] = field(repr=False)

    def is_dominated(self, values: Mapping[str, float | None]) -> bool:
        """Whether somebody has no more risk and no more loss, and less of one, than these measures already show.

        >>> stop = EarlyStop(("R",), (1.0,), "L", (1.0, 1.0), ((0.1, 0.2),))
        >>> stop.is_dominated({"L": 0.3}), stop.is_dominated({"L": 0.3, "R": 0.2}), stop.is_dominated({"L": 0.1, "R": 0.2})
        (False, True, False)
        """
        loss = values.get(self.utility)
        measured = [(values.get(name), scale) for name, scale in zip(self.risk, self.scales, strict=True)]
        known = [self.signs[0] * value / scale for value, scale in measured if value is not None]
        if loss is None or not known:
            return False
        risk, turned = max(known), self.signs[1] * loss
        return any(r <= risk and x <= turned and (r < risk or x < turned) for r, x in self.front)
