"""Grids: many values of one class from lists of parameters. A plan keeps them folded."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias

from sdcmap.core.renamed_names import suggest_name
from sdcmap.core.value import Spec, V, decode, field_types, find_type, to_plain, type_name
from sdcmap.errors import PlanError

MAX_GRID_MEMBERS = 1_000_000  # a larger grid is a mistake: no sweep scores it


def count_combinations(n: int, size: int) -> int:
    """Return the number of subsets of this size of n names, or some number above MAX_GRID_MEMBERS where there are more."""
    count = 1
    for step in range(min(size, n - size)):
        count = count * (n - step) // (step + 1)
        if count > MAX_GRID_MEMBERS:
            break
    return count if size <= n else 0


@dataclass(frozen=True)
class Subsets:
    """All subsets of `names` with the given sizes, as one axis of a grid."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        return sum(count_combinations(len(self.names), size) for size in self.sizes)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (subset for size in self.sizes for subset in itertools.combinations(self.names, size))


def subsets(names: Sequence[str], *sizes: int) -> Subsets:
    """Return all subsets of `names` of the given sizes: `subsets(keys, 1, 2)` are the singles and the pairs.

    >>> list(subsets(["a", "b"], 1, 2))
    [('a',), ('b',), ('a', 'b')]
    """
    if not sizes or min(sizes) < 1 or max(sizes) > len(names) or len(set(sizes)) < len(sizes):
        given = ", ".join(map(str, sizes[:10])) or "none"
        raise PlanError(f"subsets: sizes must be in [1, {len(names)}], each once. Got {given}.")
    return Subsets(tuple(names), tuple(sizes))


Axis: TypeAlias = tuple[object, ...] | Subsets  # the values that one parameter takes in turn


@dataclass(frozen=True)
class Grid(Generic[V]):
    """Every combination of some parameters of one class. A plan keeps it folded."""

    of: type[V]
    fixed: tuple[tuple[str, object], ...]
    axes: tuple[tuple[str, Axis], ...] = ()

    def __iter__(self) -> Iterator[V]:
        return (self.of(**parameters) for parameters in self.members())

    def members(self) -> Iterator[dict[str, Any]]:
        """Yield the parameters of each member."""
        names = [name for name, _ in self.axes]
        for combination in itertools.product(*(axis for _, axis in self.axes)):
            yield {**dict(self.fixed), **dict(zip(names, combination, strict=True))}

    def spec(self) -> Spec:
        spec: Spec = {"type": type_name(self.of)} | {name: to_plain(value) for name, value in self.fixed}
        spec["grid"] = {
            name: {"subsets": list(axis.names), "sizes": list(axis.sizes)}
            if isinstance(axis, Subsets)
            else to_plain(axis)
            for name, axis in self.axes
        }
        return spec


def grid(of: type[V], **parameters: object) -> Grid[V]:
    """Return every combination of the parameters given as lists (or `subsets`). All other parameters are fixed.

    >>> from sdcmap import RankSwap
    >>> [method.text for method in grid(RankSwap, on="income", p=[0.1, 0.2])]
    ["RankSwap(on='income', p=0.1)", "RankSwap(on='income', p=0.2)"]
    """
    known = field_types(of)
    if unknown := [name for name in parameters if name not in known]:
        raise PlanError([f"{of.__name__} has no parameter {name!r}.{suggest_name(name, known)}" for name in unknown])
    several = [(name, given) for name in known if isinstance(given := parameters.get(name), list | Subsets)]
    axes: dict[str, Axis] = {n: given if isinstance(given, Subsets) else tuple(given) for n, given in several}
    members = math.prod(axis.count if isinstance(axis, Subsets) else len(axis) for axis in axes.values())
    if members > MAX_GRID_MEMBERS:
        raise PlanError(f"a grid has at most {MAX_GRID_MEMBERS:,} members, and this one of {of.__name__} has more.")
    fixed = {name: parameters[name] for name in known if name in parameters and name not in axes}
    return Grid(of, tuple(fixed.items()), tuple(axes.items()))


def count_members(spec: Mapping[str, Any]) -> int:
    """Return how many values a table with a `grid` part describes, without creating them.

    >>> count_members({"grid": {"on": {"subsets": ["a", "b", "c"], "sizes": [1, 2]}, "rate": [0.1, 0.2]}})
    12
    """
    axes = spec["grid"].values() if isinstance(spec.get("grid"), Mapping) else ()
    count = 1
    for axis in axes:
        if isinstance(axis, Mapping):
            names, sizes = axis.get("subsets", ()), axis.get("sizes", ())
            count *= sum(count_combinations(len(names), size) for size in sizes if isinstance(size, int) and size >= 0)
        else:
            count *= len(axis) if isinstance(axis, Sequence) else 1
        count = min(count, MAX_GRID_MEMBERS + 1)
    return count


def _freeze_lists(given: object) -> object:
    """Return lists as tuples: parameters beside `grid` are fixed, even when they are lists."""
    return tuple(_freeze_lists(part) for part in given) if isinstance(given, list) else given


def decode_grid(spec: Mapping[str, Any], base: type[V]) -> Grid[V]:
    """Return the grid that a table with a `grid` part describes, or raise PlanError with every problem of its members."""
    cls = find_type(spec.get("type"), base)
    axes = {
        name: subsets(axis["subsets"], *axis["sizes"]) if isinstance(axis, Mapping) else list(axis)
        for name, axis in spec["grid"].items()
    }
    fixed = {name: _freeze_lists(given) for name, given in spec.items() if name not in ("type", "grid")}
    members = grid(cls, **fixed, **axes)
    problems: dict[str, None] = {}
    for parameters in members.members():
        try:
            decode({"type": spec["type"], **parameters}, base)
        except PlanError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise PlanError(list(problems))
    return members
