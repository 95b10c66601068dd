"""Rules: what a plan fixes about the choice before the first score is seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sdcmap.value import Value


@dataclass(frozen=True)
class Rule(Value):
    """The base of every rule that picks a release from a map; choose.py holds ours."""

    def choose(self, ru: Any) -> Any:
        """The `Choice` on the map `ru`."""
        raise TypeError(f"{type(self).__name__} cannot choose.")
