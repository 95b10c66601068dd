"""What a recode makes of a column, category by category: for the room only, since it names values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sdcmap.core.named_files import content_of, digest_of
from sdcmap.core.streams import Stream
from sdcmap.core.value import decode
from sdcmap.data.hierarchy import Hierarchy
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError
from sdcmap.explore.bars import Bar, Bars, bars_of, column_counts
from sdcmap.methods import Recode

MOST = 500  # categories that are listed
DRAWS = Stream.of_seed(0, "recoding")  # a recode draws nothing


@dataclass(frozen=True)
class Recoded:
    """One column before and after a recode.

    categories, after : every category that occurs with its records, at most MOST (else none are listed); spread : the bars
    of the column as it is; before_count, after_count : how many categories there are; problem : why there is no after.
    """

    name: str
    kind: str
    categories: tuple[Bar, ...]
    spread: Bars
    before_count: int
    after: tuple[Bar, ...]
    after_count: int
    missing: int
    smallest: int  # records of the rarest category after it
    problem: str = ""


def recoded(data: Microdata, spec: Mapping[str, Any]) -> list[Recoded]:
    """Each column that a recode names, before and after; where the recode is not whole yet, its problem and no after."""
    given = spec.get("on", ())
    names = [given] if isinstance(given, str) else [name for name in given if isinstance(name, str)]
    return [_recoded(data, {**spec, "on": [name]}, name) for name in dict.fromkeys(names) if name in data.names]


def _recoded(data: Microdata, spec: Mapping[str, Any], name: str) -> Recoded:
    column, alone = data.column(name), data.only([name])
    before = column_counts(column)
    after: list[Bar] = []
    problem = ""
    try:
        after = column_counts(decode(spec, Recode).apply(alone, DRAWS).column(name))
    except SdcmapError as error:
        problem = str(error)
    return Recoded(
        name, data.schema[name].kind, _listed(before), bars_of(data, name), len(before), _listed(after), len(after),
        int(data.missing(name).sum()), min((bar.count for bar in after), default=0), problem,
    )  # fmt: skip


def _listed(bars: list[Bar]) -> tuple[Bar, ...]:
    return tuple(bars) if len(bars) <= MOST else ()


def levels_of(path: str) -> int:
    """The coarsest level of a hierarchy file."""
    return Hierarchy.parse(content_of(path, digest_of(path, "Recode.hierarchy")), path).levels
