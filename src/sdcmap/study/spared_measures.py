"""Spared measures: what a sweep need not compute, because another risk of the candidate exceeds its limit by more.

The risk axis is the largest share of a limit. If one measure exceeds its limit, and its value is a share at least as large
as the most that another measure can reach, the other measure changes neither the position of the candidate nor whether it
is eligible. A sweep then leaves it out if it is expensive, and stores the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sdcmap.core import Measure
from sdcmap.core.limit import axis_scales
from sdcmap.study.plan import Plan


@dataclass(frozen=True)
class Sparing:
    """Which measures of a candidate can be spared, given its other values.

    limits : the limits of all measures on the risk axis, by their texts. needed : measures that are always computed.
    """

    limits: Mapping[str, float] = field(hash=False)
    needed: tuple[str, ...] = ()

    @staticmethod
    def of_plan(plan: Plan) -> Sparing | None:
        """Return what a sweep of this plan can spare; None: nothing.

        Several draws of a method are pooled, and the pooled value may be within a limit that a single draw exceeds.
        """
        scales = axis_scales(plan.risk, plan.limits)
        on_axis = [measure for measure in plan.measures if measure.text in plan.risk]
        comparable = scales and min(scales) > 0 and all(measure.direction == "lower" for measure in on_axis)
        if not comparable or plan.replicates > 1 or not any(measure.can_be_spared for measure in on_axis):
            return None
        return Sparing(dict(zip(plan.risk, scales, strict=True)), plan.rule.measures if plan.rule else ())

    def reason(self, measure: Measure, values: Mapping[str, float | None]) -> str:
        """Return why a measure need not be computed, given values of the same candidate; "" where it is needed."""
        limit, highest = self.limits.get(measure.text), measure.bounds[1]
        if not measure.can_be_spared or limit is None or highest is None or measure.text in self.needed:
            return ""
        # a value at its limit does not exceed it, so the candidate may still be eligible
        for name, value in values.items():
            other = self.limits.get(name)
            if other is not None and value is not None and value > other and value / other >= highest / limit:
                return (
                    f"it was spared: {name} is {value / other:.3g} times its limit, and this measure cannot be more than "
                    f"{highest / limit:.3g} times its own."
                )
        return ""
