"""What measures of tables share: the variables, the weights, and the loss over several tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from sdcmap.core.measure import Estimate, Measure
from sdcmap.data.microdata import Microdata
from sdcmap.data.tables import Table


@dataclass(frozen=True)
class TableMeasure(Measure):
    """A loss of utility that is read off tables before and after masking: 0 when they are the same.

    Fields: `on`, the variables (by default the keys of the file), and `weighted`, for sums of survey weights in place of
    counts. A loss over several tables is their mean, or the largest; both are in `parts`.

    Parameters
    ----------
    on : the variables that make the tables; by default the keys of the file.
    weighted : compare weighted counts; needs a weight. Swapping keeps unweighted margins only.
    """

    axis: ClassVar[Literal["risk", "utility"]] = "utility"
    weights: ClassVar[str] = "used when `weighted`, else every record counts once"
    paired: ClassVar[bool] = False
    fewest: ClassVar[int] = 1  # variables it needs

    on: tuple[str, ...] = ()
    weighted: bool = False

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or data.keys

    def misfits(self, data: Microdata) -> Iterator[str]:
        yield from super().misfits(data)
        if self.weighted and data.weight is None:
            yield f"{type(self).__name__}.weighted needs a file with a weight."
        if 0 < len(set(self.variables(data))) < self.fewest:
            yield f"{type(self).__name__} needs at least {self.fewest} variables."


def loss_over(compared: Iterable[Table], loss: Callable[[Table], float], summary: str) -> Estimate:
    """The mean or the worst of the losses of several tables, with both in `parts`; of one table, its loss."""
    return summary_of([0.0 if table.after is table.before else loss(table) for table in compared], summary)


def summary_of(losses: Sequence[float], summary: str) -> Estimate:
    """The same of losses already at hand."""
    mean, worst = math.fsum(losses) / len(losses), max(losses)
    parts = {"mean": mean, "worst": worst} if len(losses) > 1 else {}
    return Estimate(worst if summary == "worst" else mean, None, parts)
