"""Early stopping: a candidate that is already dominated need not be measured further."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class EarlyStop:
    """The (risk, loss) pairs of earlier candidates, with signs such that less is better, to compare a candidate with.

    risk : the measures on the risk axis, each divided by its scale. The worst of them counts, so the measured ones are a
    lower bound. signs : +1 where less is better, -1 where more is, for risk and for utility.
    """

    risk: tuple[str, ...]
    scales: tuple[float, ...]
    utility: str
    signs: tuple[float, float]
    front: tuple[tuple[float, float], ...] = field(repr=False)

    def is_dominated(self, values: Mapping[str, float | None]) -> bool:
        """Return whether an earlier candidate has no more risk and no more loss, and less of one, than measured so far.

        >>> stop = EarlyStop(("R",), (1.0,), "L", (1.0, 1.0), ((0.1, 0.2),))
        >>> stop.is_dominated({"L": 0.3}), stop.is_dominated({"L": 0.3, "R": 0.2}), stop.is_dominated({"L": 0.1, "R": 0.2})
        (False, True, False)
        """
        loss = values.get(self.utility)
        measured = [(values.get(name), scale) for name, scale in zip(self.risk, self.scales, strict=True)]
        known = [self.signs[0] * value / scale for value, scale in measured if value is not None]
        if loss is None or not known:
            return False
        risk, signed_loss = max(known), self.signs[1] * loss
        return any(r <= risk and x <= signed_loss and (r < risk or x < signed_loss) for r, x in self.front)
