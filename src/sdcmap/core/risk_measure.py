"""The base class of risk measures: their defaults, their columns, and the files they name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from sdcmap.core.measure import Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined, did_you_mean


@dataclass(frozen=True)
class RiskMeasure(Measure):
    """The base of risk measures: by default a share of records, 0 when nothing is released."""

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "share of records"
    bounds: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    baseline_value: ClassVar[float | None] = 0.0
    # the property of the file that lists the columns to measure when `on` names none
    columns_by_default: ClassVar[Literal["keys", "knowable", "numeric"]] = "keys"

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return super().variables(data) or getattr(data, self.columns_by_default)

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        problems = [*super().incompatibilities(data), *self.other_incompatibilities(data)]
        yield from problems
        if not problems:
            try:
                self.check_files(data)
            except (SchemaError, Undefined) as problem:
                yield f"{type(self).__name__}: {problem}"

    def other_incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield what else does not fit these data, one sentence each. A subclass overrides it."""
        return iter(())

    def check_files(self, data: Microdata) -> None:
        """Read the files that the measure names beside the data, or raise SchemaError where one cannot be read."""

    def unknown_columns(self, data: Microdata, names: Iterable[str]) -> Iterator[str]:
        """Describe each of these columns that the file does not have."""
        for name in names:
            if name not in data.schema:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"
