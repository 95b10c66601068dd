"""The settings of a search (the `[search]` table of a plan), and the row of a proposal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from sdcmap.core import Measure, Method, PlanError, did_you_mean
from sdcmap.core.value import Range, Share, Value, decode

START_COUNT = 24  # random starts, spread over the search space, before the first generation of children
WATCHED = "watched"


@dataclass(frozen=True)
class Search(Value):
    """How a search is run. Whatever is fixed here stays fixed.

    Parameters
    ----------
    budget : full evaluations of new methods, one draw each, at least 24; the plan's own methods are not counted.
    minutes : the search ends after the generation in which this time has passed; 0: no limit.
    methods : the classes of methods that it may try; by default every one that fits, including plug-ins.
    fixed : steps that every candidate begins with; the columns that they mask are not searched.
    leave : columns that stay unchanged.
    bounds : bounds on other losses: "IL1s=0.5" is the largest tolerable value (the smallest, where higher is better),
        "IL1s=watched" is no bound. By default no loss may be worse than the worst on the plan's own frontier.
    tolerance : the search ends when five generations together gain less of the area, in [0, 1).
    sure : share of fresh draws within the limit that a release must have to be chosen, in (0, 1].

    Examples
    --------
    >>> Search(budget=100, methods=["PRAM", "RankSwap"]).text
    "Search(budget=100, methods=['PRAM', 'RankSwap'])"
    """

    budget: int = 200
    minutes: Annotated[float, Range(0)] = 0.0
    methods: tuple[str, ...] = ()
    fixed: tuple[Method, ...] = ()
    leave: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    tolerance: Annotated[float, Range(0, 1, "[)")] = 0.001
    sure: Annotated[Share, Range(0, 1, "(]")] = 0.8

    def problems(self) -> Iterator[str]:
        if self.budget < START_COUNT:
            yield f".budget must be at least {START_COUNT}, the number of starts. Got {self.budget}."
        for text in self.bounds:
            _, _, bound = text.rpartition("=")
            if bound.strip() != WATCHED and not _is_number(bound):
                yield f'.bounds contains {text[:40]!r}: write "Measure=number" or "Measure={WATCHED}".'

    @property
    def what(self) -> dict[str, Any]:
        """Everything that determines which candidates are proposed. Budget and minutes determine only how many."""
        identity = self.identity()
        return {name: identity[name] for name in ("methods", "fixed", "leave", "bounds")}

    def bounds_of(self, measures: Sequence[Measure]) -> dict[str, float | None]:
        """Return measure -> its stated bound (None: watched); raise PlanError where a name is none of these losses."""
        names = {m.text: type(m).__name__ for m in measures if m.axis == "utility"}
        stated: dict[str, float | None] = {}
        for text in self.bounds:
            name, _, bound = text.rpartition("=")
            matches = [full for full, cls in names.items() if name.strip() in (full, cls)]
            if not matches:
                hint = did_you_mean(name.strip(), names.values())
                raise PlanError(f"Search.bounds names {name[:40]!r}, which is no utility measure of the plan.{hint}")
            stated |= dict.fromkeys(matches, None if bound.strip() == WATCHED else float(bound))
        return stated


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


class Proposal(NamedTuple):
    """One row of the table `proposal`: a method that a search proposed, and where it came from. It is not on a map.

    search : digest of everything that determines what the search proposes. candidate : its id. generation : 1 for the
    starts. rank : its position within the generation; -1: it was only screened. method : the spec, as JSON. parents : ids
    of its parent candidates, as a JSON list. point : its coordinates in the search space, as a JSON list; empty where a
    method of the plan was changed.
    """

    search: str
    candidate: str
    generation: int
    rank: int
    method: str
    parents: str
    point: str

    @property
    def method_value(self) -> Method:
        """The proposed method."""
        return _decode_method(self.method)


@lru_cache(maxsize=4096)
def _decode_method(spec: str) -> Method:
    """Decode the spec of a method. A search asks for the same ones in every generation, so they are cached."""
    return decode(json.loads(spec), Method)
