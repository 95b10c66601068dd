"""Where a paper's reference files lie, what it prints, and what a paper's run gives back."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sdcmap.core.chart import Chart

Document: TypeAlias = dict[str, Any]  # what a run found, or a part of it: JSON
PRINTED: Document = tomllib.loads(Path(__file__).with_name("printed.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Result:
    """What an experiment found: a JSON document, lines of text for a reader, and figures by name."""

    document: Document
    lines: tuple[str, ...] = ()
    figures: dict[str, Chart] = field(default_factory=dict)


def reference_file(name: str, data: Path | None = None) -> Path | None:
    """The reference file `name` in the folder `data` or $SDCMAP_DATA, in its subfolders data/ and golden/; else None."""
    folder = data or (Path(os.environ["SDCMAP_DATA"]) if "SDCMAP_DATA" in os.environ else None)
    if folder is None:
        return None
    places = (folder / "data" / name, folder / "golden" / name, folder / name)
    return next((place for place in places if place.is_file()), None)


def errata(paper: str) -> list[str]:
    """The errata of a paper, a numbered line each."""
    return [f"  {number}. {text}" for number, text in enumerate(PRINTED[paper]["errata"], 1)]
