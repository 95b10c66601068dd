"""Rules: what a plan fixes about the choice before the first score is seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sdcmap.value import Value


@dataclass(frozen=True)
class Rule(Value):
    """The base of every rule that picks a release from a map; choose/ holds ours."""

    @property
    def limits(self) -> Mapping[str, float]:
        """Measure -> its largest tolerable value, for measures that the rule names itself."""
        return {}

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that the rule reads beside the axes of the map."""
        return ()

    def choose(self, ru: Any) -> Any:
        """The `Choice` on the map `ru`."""
        raise TypeError(f"{type(self).__name__} cannot choose.")
