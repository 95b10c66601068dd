"""Which orders of a release were written: a second press of the same button writes nothing again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Orders:
    """The orders of one study, kept by their digest in a note of the server."""

    path: Path

    @staticmethod
    def key(*facts: str) -> str:
        """What tells two orders apart: the candidate, the data, and everything that was asked."""
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()

    def get(self, key: str) -> str:
        """The folder that was written for this order; empty: none."""
        return self._all().get(key, "")

    def put(self, key: str, folder: str) -> None:
        from sdcmap.data.whole import write_whole

        write_whole(self.path, json.dumps(self._all() | {key: folder}))

    def _all(self) -> dict[str, str]:
        try:
            return dict(json.loads(self.path.read_text()))
        except (OSError, ValueError):
            return {}
