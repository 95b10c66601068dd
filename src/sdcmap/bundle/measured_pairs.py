"""The pairs that were measured, kept in pair.json of their folder: what was measured once is not measured again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.whole import write_whole
from sdcmap.errors import SdcmapError, StudyDamaged, StudyMismatch
from sdcmap.study.folder import locked
from sdcmap.study.plan import Plan

NAME = "pair.json"


class Measured(TypedDict):
    """What was measured of a pair: what the public file loses against the original, the shares found in the scientific file
    alone and in both side by side, and what failed by who holds the truth."""

    loss: float | None
    alone: float | None
    side_by_side: float | None
    failed: list[str]


@dataclass(frozen=True)
class MeasuredPairs:
    """The measured pairs of a folder, by a key that says what was measured of what."""

    path: Path
    whose: str
    pairs: dict[str, Measured]

    def measured(self, key: str, measure: Callable[[], Measured]) -> Measured:
        """What is kept under this key; else what `measure` finds, kept at once."""
        if key not in self.pairs:
            self.pairs[key] = measure()
            write_whole(self.path, json.dumps({"whose": self.whose, "pairs": self.pairs}, indent=1))
        return self.pairs[key]


@contextmanager
def measured_pairs(folder: Path, data: Microdata, plan: Plan) -> Iterator[MeasuredPairs]:
    """The pairs of a folder, which is made where it is not there, private, and locked meanwhile; StudyMismatch where it
    belongs to other data or another seed than those of the scientific study."""
    path, whose = folder / NAME, Stream.of_seed(plan.seed, "pairs", data.digest).seal
    if folder.exists() and any(folder.iterdir()) and not path.exists() and not (folder / "first").exists():
        raise StudyDamaged(f"{folder} is not empty and holds no pairs: name another folder.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SdcmapError(f"{folder} cannot be written ({error.strerror}).") from None
    with locked(folder):
        yield MeasuredPairs(path, whose, _read(path, whose))


def _read(path: Path, whose: str) -> dict[str, Measured]:
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        pairs: dict[str, Measured] = kept["pairs"]
        [(pair["loss"], pair["alone"], pair["side_by_side"], pair["failed"]) for pair in pairs.values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StudyDamaged(f"{path} cannot be read: remove it, and the pairs are measured again.") from None
    if kept["whose"] != whose:
        raise StudyMismatch(f"{path.parent} belongs to another scientific study: name another folder.")
    return pairs
