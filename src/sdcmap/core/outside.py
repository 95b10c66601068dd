"""Methods and measures as people outside read them: files of the agency go by their role, and without their digest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sdcmap.core.named_files import SHOWN
from sdcmap.core.value import Spec, Value, text_of

FILES = (
    "archive",
    "control_file",
    "hierarchy",
    "matrix",
    "population",
    "tables",
)  # fields that hold paths; `sha256` theirs
NO_DIGEST = "0" * SHOWN  # so that a specification can be read where the file is not
NO_DIGESTS = re.compile(rf", sha256=(?:'{NO_DIGEST}'|\[(?:'{NO_DIGEST}'(?:, )?)*\])")


@dataclass(frozen=True)
class Outside:
    """Specifications and texts without paths and digests; a file has one number wherever it is named.

    >>> Outside().text({"type": "ExternalLink", "archive": "/x/register.csv", "sha256": "9f86d081884c7d65"})
    "ExternalLink(archive='archive 1')"
    """

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
        if name in FILES and isinstance(value, str) and value:
            return f"{name} {self.numbers.setdefault(value, len(self.numbers) + 1)}"
        return value
