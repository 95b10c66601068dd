"""Methods and measures as people outside read them: files of the agency go by their role, and without their digest;
categories that few people have, and that a method merges, without their names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from sdcmap.core.audience import SMALL
from sdcmap.core.named_files import SHOWN
from sdcmap.core.value import Spec, Value, text_of
from sdcmap.data.microdata import Microdata

FILES = ("archive", "control_file", "hierarchy", "matrix", "population", "tables")  # hold paths; `sha256` their digests
MERGED = "merge"  # the field that lists categories
NO_DIGEST = "0" * SHOWN  # so that a specification can be read where the file is not
NO_DIGESTS = re.compile(rf", sha256=(?:'{NO_DIGEST}'|\[(?:'{NO_DIGEST}'(?:, )?)*\])")


@dataclass(frozen=True)
class Outside:
    """Specifications and texts without paths and digests; a file has one number wherever it is named.

    data : the original; of the categories that a method merges those are named that ten of its records have, or more: the
        labels of a released file name no value that is gone, and so do its note and report not. None: none is named.

    >>> Outside().text({"type": "ExternalLink", "archive": "/x/register.csv", "sha256": "9f86d081884c7d65"})
    "ExternalLink(archive='archive 1')"
    """

    data: Microdata | None = None
    numbers: dict[str, int] = field(default_factory=dict)

    def spec(self, spec: Spec) -> Spec:
        """A specification, or one folded into a grid, that can be read back but tells of no file."""
        return {name: self._told(name, value) for name, value in spec.items()}

    def text(self, value: Value | Spec) -> str:
        """A value as a person writes it."""
        spec = value.spec() if isinstance(value, Value) else value
        return NO_DIGESTS.sub("", text_of(self.spec(spec)))

    def _told(self, name: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self.spec(value)
        if isinstance(value, list):
            return [self._told(name, part) for part in value]
        if name == "sha256":
            return NO_DIGEST
        if name == MERGED:
            return (
                value if value in self._named else f"category {self.numbers.setdefault(value, len(self.numbers) + 1)}"
            )
        if name in FILES and isinstance(value, str) and value:
            return f"{name} {self.numbers.setdefault(value, len(self.numbers) + 1)}"
        return value

    @cached_property
    def _named(self) -> frozenset[str]:
        """The categories that ten records or more have, in one column or another."""
        data = self.data
        return frozenset(text for name in (data.names if data else ()) for text in _common(data, name))


def _common(data: Microdata | None, name: str) -> list[str]:
    levels = None if data is None else data.column(name).levels
    if data is None or levels is None:
        return []
    count = np.bincount(data.codes(name), minlength=len(levels))
    return [str(level) for level, records in zip(levels.to_list(), count.tolist(), strict=False) if records >= SMALL]
