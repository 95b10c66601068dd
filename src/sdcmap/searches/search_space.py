"""The search space: what may be done to a file, from the roles of its columns. A point describes a whole method.

A point is a number in [0, 1) for each dimension. The columns that an attacker could know are divided into categories
and numbers, and each kind into a few groups. One dimension decides whether the columns of a kind are masked jointly
(one method and one strength) or separately by group; without it no search beats a small grid. Others decide whether the
file is masked as a whole (groups of equal records, synthetic files), how far categories are recoded first, and which
rare categories are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from sdcmap.core import Method, Microdata, PlanError, Roles
from sdcmap.core.catalog import plug_in_classes
from sdcmap.core.formatting import join_names
from sdcmap.core.method import StrengthScale
from sdcmap.core.renamed_names import suggest_name
from sdcmap.explore.starting_plan import Columns
from sdcmap.methods import METHODS, Chain, Derive, Recode
from sdcmap.study.search_settings import Search

MAX_GROUPS = 8  # of one kind of columns; more would make the space too large for the budget
TRIAL_STRENGTH = 0.5  # strength at which it is checked whether a method fits
AS_IT_IS = "as it is"
BY_KIND, JOINED, APART = "by kind", "joined", "apart"
FIRST, LAST = "recoded first", "recoded last"
RARE_SHARES = (0.01, 0.2)  # range of the share of records below which categories are merged


@dataclass(frozen=True)
class Dimension:
    """One choice: among `options`, or a strength in [0, 1]. stage : the part of the method that it belongs to."""

    name: str
    stage: str
    options: tuple[str, ...] = ()

    def value(self, coordinate: float) -> str | float:
        """Return what a coordinate means: an option, or the strength itself."""
        index = min(int(coordinate * len(self.options)), len(self.options) - 1)
        return self.options[index] if self.options else coordinate

    def coordinate(self, option: str) -> float:
        """Return the middle of the coordinates of an option."""
        return (self.options.index(option) + 0.5) / len(self.options)


@dataclass(frozen=True)
class Group:
    """Columns that are masked together, and the methods that may mask them, each as a scale of strengths, by name."""

    name: str
    columns: tuple[str, ...]
    methods: Mapping[str, StrengthScale]
    may_stay: bool  # whether they may stay unmasked

    @property
    def dimensions(self) -> tuple[Dimension, Dimension]:
        options = (*self.methods, *([AS_IT_IS] if self.may_stay else []))
        method, strength = f"{self.name}: method", f"{self.name}: strength"
        return Dimension(method, self.name, options), Dimension(strength, self.name)

    def method(self, option: str, strength: float, roles: Roles) -> Method | None:
        """Return what is done to the columns; None: nothing."""
        return None if option == AS_IT_IS else self.methods[option](strength, self.columns, roles)


@dataclass(frozen=True)
class ColumnKind:
    """The columns of one kind, masked jointly or group by group."""

    name: str
    whole: Group
    groups: tuple[Group, ...]

    @property
    def joins(self) -> Dimension:
        ways = [JOINED] if self.whole.methods else []
        ways += [APART] if len(self.groups) > 1 and all(group.methods for group in self.groups) else []
        return Dimension(f"{self.name}: joined", self.name, tuple(ways))

    def groups_of(self, settings: Settings) -> tuple[Group, ...]:
        """Return the groups that are masked under these settings."""
        return (self.whole,) if settings[self.joins.name] == JOINED else self.groups


Point = tuple[float, ...]
Settings = Mapping[str, Any]  # dimension name -> an option, or a strength


@dataclass(frozen=True)
class Space:
    """Every method that a search may propose for a file."""

    data: Microdata
    settings: Search
    last_steps: tuple[Method, ...] = ()  # every candidate ends with these
    paired: bool = False  # whether every risk on the axis compares records, so that synthetic files have no value

    # ---- columns ------------------------------------------------------------------------------------------------
    @cached_property
    def roles(self) -> Roles:
        return Roles(self.data)

    @cached_property
    def excluded_columns(self) -> frozenset[str]:
        """Columns that are not searched: left unchanged, derived, or masked by a fixed step."""
        steps = (*self.settings.fixed, *(step for step in self.last_steps if isinstance(step, Derive)))
        return frozenset((*self.settings.leave, *(name for step in steps for name in step.masks(self.data))))

    @cached_property
    def classes(self) -> tuple[type[Method], ...]:
        """The classes that may be tried, ours and those of plug-ins."""
        known = {cls.__name__: cls for cls in (*METHODS, *plug_in_classes(Method))}
        for name in self.settings.methods:
            if name not in known:
                raise PlanError(f"Search.methods names {name[:40]!r}, which is no method.{suggest_name(name, known)}")
        return tuple(cls for name, cls in known.items() if not self.settings.methods or name in self.settings.methods)

    @cached_property
    def kinds(self) -> tuple[ColumnKind, ...]:
        """The searched columns: categories and numbers, where there are any."""
        columns = Columns(self.data)
        kinds = (("categories", columns.categories), ("numbers", columns.numbers))
        return tuple(self._kind(name, left) for name, all_ in kinds if (left := self._drop_excluded(all_)))

    def _drop_excluded(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if name not in self.excluded_columns)

    def _kind(self, name: str, columns: tuple[str, ...]) -> ColumnKind:
        parts = [tuple(part) for part in np.array_split(np.array(columns, dtype=object), MAX_GROUPS) if len(part)]
        groups = [self._group(join_names(part), part, may_stay=name == "categories") for part in parts]
        return ColumnKind(name, self._group(name, columns, may_stay=False), tuple(groups) if len(columns) > 1 else ())

    def _group(self, name: str, columns: tuple[str, ...], *, may_stay: bool) -> Group:
        options = (option for cls in self.classes for option in cls.search_options().items())
        fitting = {option: at_strength for option, at_strength in options if self._fits(at_strength, columns)}
        return Group(name, columns, fitting, may_stay and bool(fitting))

    def _fits(self, at_strength: StrengthScale, columns: tuple[str, ...]) -> bool:
        """Return whether a method masks exactly these columns and fits them."""
        method = at_strength(TRIAL_STRENGTH, columns, self.roles)
        if method is None or set(method.masks(self.data)) != set(columns):
            return False
        return (not self.paired or method.keeps_pairs(self.data)) and not any(method.incompatibilities(self.data))

    @cached_property
    def whole_file(self) -> Group:
        """The columns of the whole file, where a method may mask all of them at once."""
        numbers, levels = self.roles.numbers, self.data.level_count
        columns = self._drop_excluded(
            sorted(self.roles.descriptive_columns, key=lambda name: (name in numbers, levels(name)))
        )
        free = len(columns) > 1 and len(self.kinds) > 1 and not self.settings.fixed
        return self._group("whole file", columns, may_stay=False) if free else Group("whole file", (), {}, False)

    # ---- dimensions ---------------------------------------------------------------------------------------------
    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """Every dimension, in the order of a point's coordinates."""
        return tuple(self._dimensions())

    def _dimensions(self) -> Iterator[Dimension]:
        yield self.shape
        yield from self.whole_file.dimensions[1:] if self.whole_file.methods else ()
        for kind in self.kinds:
            yield kind.joins
            for group in (kind.whole, *kind.groups):
                yield from group.dimensions if group.methods else ()
        if self.coarse_columns:
            yield from (Dimension("recoding", "recoding", ("no", "yes")), Dimension("recoding: depth", "recoding"))
        if self.rare_columns:
            yield from (Dimension("rare merged", "rare", ("no", "yes")), Dimension("rare: share", "rare"))
        if self.coarse_columns or self.rare_columns:
            yield Dimension("order", "order", (FIRST, LAST))

    @cached_property
    def shape(self) -> Dimension:
        """Whether the file is masked by kind of column, or as a whole and by which method."""
        ways = [BY_KIND] if all(kind.joins.options for kind in self.kinds) and self.kinds else []
        return Dimension("shape", "shape", (*ways, *self.whole_file.methods))

    @cached_property
    def coarse_columns(self) -> tuple[str, ...]:
        """Categorical columns that can be made coarser."""
        return tuple(n for n in self._categories if Recode.coarsen(n, 1.0, self.roles) is not None)

    @cached_property
    def rare_columns(self) -> tuple[str, ...]:
        """Categorical columns with rare categories."""
        return tuple(n for n in self._categories if Recode.merge_rare(n, RARE_SHARES[1], self.roles) is not None)

    @property
    def _categories(self) -> tuple[str, ...]:
        allowed = Recode in self.classes
        return next((kind.whole.columns for kind in self.kinds if kind.name == "categories" and allowed), ())

    @cached_property
    def index_of(self) -> dict[str, int]:
        """Dimension name -> its coordinate in a point."""
        return {dimension.name: index for index, dimension in enumerate(self.dimensions)}

    # ---- points -------------------------------------------------------------------------------------------------
    def check(self) -> Space:
        """Return the space itself, or raise PlanError where there is nothing to search."""
        if not self.kinds:
            raise PlanError("there is nothing to search: no column that an attacker could know is left to be masked.")
        if not self.shape.options:
            allowed = f" of {', '.join(self.settings.methods)}" if self.settings.methods else ""
            unserved = [k.name for k in self.kinds if not k.joins.options]
            raise PlanError(f"no method{allowed} fits the {' and '.join(unserved)} of this file: allow others.")
        return self

    @cached_property
    def settings_of(self) -> Callable[[Point], Settings]:
        """A cached function from a point to its settings, without dimensions that have no effect on its method.

        Every generation reads all points of earlier ones, so they are cached.
        """
        return cache(self._read)

    def _read(self, point: Point) -> Settings:
        settings = {d.name: d.value(coordinate) for d, coordinate in zip(self.dimensions, point, strict=True)}
        return {name: settings[name] for name in self._active(settings)}

    def _active(self, settings: Settings) -> Iterator[str]:
        """Yield the dimensions that have an effect with these settings."""
        yield "shape"
        if settings["shape"] != BY_KIND:
            yield "whole file: strength"
            return
        for kind in self.kinds:
            yield kind.joins.name
            for group in kind.groups_of(settings):
                method, strength = group.dimensions
                yield from [method.name] if settings[method.name] == AS_IT_IS else [method.name, strength.name]
        recoded = False
        for switch, amount in (("recoding", "recoding: depth"), ("rare merged", "rare: share")):
            if switch in settings:
                yield from [switch, amount] if settings[switch] == "yes" else [switch]
                recoded |= settings[switch] == "yes"
        yield from ["order"] if recoded else []

    def method(self, point: Point) -> Method | None:
        """Return the method that a point describes; None: it would leave the file unchanged."""
        steps = [*self.settings.fixed, *self._steps(self.settings_of(point))]
        flat = tuple(leaf for step in steps if step is not None for leaf in step.steps)
        if not flat:
            return None
        return flat[0] if len(flat) == 1 and not self.last_steps else Chain((*flat, *self.last_steps))

    def _steps(self, settings: Settings) -> Iterator[Method | None]:
        """Yield the steps of a method. Groups with equal methods and strengths are not merged: each has its own stream."""
        if settings["shape"] != BY_KIND:
            yield self.whole_file.method(settings["shape"], settings["whole file: strength"], self.roles)
            return
        # Recoding first masks coarser categories, recoding last coarsens masked ones; which is better depends on the
        # measures, so the order is a dimension.
        coarse = list(self._coarser(settings))
        last = settings.get("order") == LAST
        yield from () if last else coarse
        for group in (group for kind in self.kinds for group in kind.groups_of(settings)):
            method, strength = group.dimensions
            yield group.method(settings[method.name], settings.get(strength.name, 0.0), self.roles)
        yield from coarse if last else ()

    def _coarser(self, settings: Settings) -> Iterator[Method | None]:
        """Yield steps that merge rare categories, then steps that make other columns coarser; a column gets at most one."""
        rare: dict[str, Method | None] = {}
        if settings.get("rare merged") == "yes":
            low, high = RARE_SHARES
            share = float(f"{low * (high / low) ** settings['rare: share']:.2g}")  # equal factors between steps
            rare = {name: Recode.merge_rare(name, share, self.roles) for name in self.rare_columns}
        yield from rare.values()
        if settings.get("recoding") == "yes":
            left = (name for name in self.coarse_columns if rare.get(name) is None)
            yield from (Recode.coarsen(name, settings["recoding: depth"], self.roles) for name in left)
