"""Reference files and printed values of the papers, and the result of an experiment."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sdcmap.core.chart import Chart

Document: TypeAlias = dict[str, Any]  # the results of a run, or a part of them, as JSON
PRINTED: Document = tomllib.loads(Path(__file__).with_name("printed.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Result:
    """The result of an experiment: a JSON document, lines of text, and figures by name."""

    document: Document
    lines: tuple[str, ...] = ()
    figures: dict[str, Chart] = field(default_factory=dict)


def reference_file(name: str, data: Path | None = None) -> Path | None:
    """Return the reference file `name` in the folder `data` or $SDCMAP_DATA, or in their data/ and golden/; else None."""
    folder = data or (Path(os.environ["SDCMAP_DATA"]) if "SDCMAP_DATA" in os.environ else None)
    if folder is None:
        return None
    paths = (folder / "data" / name, folder / "golden" / name, folder / name)
    return next((path for path in paths if path.is_file()), None)


def errata(paper: str) -> list[str]:
    """Return the errata of a paper as numbered lines."""
    return [f"  {number}. {text}" for number, text in enumerate(PRINTED[paper]["errata"], 1)]
