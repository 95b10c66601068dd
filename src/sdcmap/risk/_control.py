"""Members and non-members of a release, and how close released records are to them.

What an attacker also learns about people who are not in the release is science, not disclosure. Every measure here
therefore compares two groups that differ by chance alone, and counts what membership adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.core.refits import Folds, Refit
from sdcmap.core.value import Spec
from sdcmap.data.cells import common_codes, recode_to_released_categories
from sdcmap.data.label_layers import read_labels, separate_layers, spell_out_labels
from sdcmap.kernels.statistics.unit_errors import mean_influences, unit_error
from sdcmap.risk._archive import read_archive
from sdcmap.risk.linkage.field_costs import importance_problems, relative_weights
from sdcmap.risk.linkage.stated_columns import replay_deterministic_steps

NO_CONTROL = "a synthetic file needs a control file of people who were not in the original, or the method that made it."
MIN_RELEASE_REFITS = 20  # of a method, when its release is measured
SECONDS_PER_COMPARISON = 1e-9  # of one variable of one person with one record, on one core


Units: TypeAlias = tuple[Array, Array]  # the units (households) of members and of non-members, as common codes


class Split(NamedTuple):
    """The people to attack, members and non-members of the release, and the released records that the attacker has."""

    members: Microdata
    non_members: Microdata
    released: Microdata
    units: Units


class Difference(NamedTuple):
    """Success rate for members minus the rate for non-members, with its standard error."""

    value: float
    se: float

    @staticmethod
    def between_groups(members: Array, non_members: Array, units: Units) -> Difference:
        """Compare two groups of people, who may be in the same households."""
        members, non_members = members.astype(np.float64), non_members.astype(np.float64)
        influences = mean_influences(members), -mean_influences(non_members)
        error = unit_error(np.concatenate(units), np.concatenate(influences))
        # a group in which all succeed alike still has an error
        least = [1 / len(group) for group in (members, non_members) if np.ptp(group) == 0]
        return Difference(float(members.mean() - non_members.mean()), math.hypot(error, *least))

    @staticmethod
    def within_people(members: Array, non_members: Array, units: Array) -> Difference:
        """Compare the same people as members of one refit and as non-members of another."""
        each = members.astype(np.float64) - non_members
        error = unit_error(units, mean_influences(each))
        return Difference(float(each.mean()), error if np.ptp(each) else 1 / len(each))


def compare_rates(members: Array, non_members: Array, naive: float) -> dict[str, float]:
    """Return the success rates of both groups, the rate of guessing, and Anonymeter's residual risk."""
    a, b = float(members.mean()), float(non_members.mean())
    return {"members": a, "non-members": b, "naive": naive, "residual": (a - b) / (1 - b) if b < 1 else 0.0}


@dataclass(frozen=True)
class Controlled(RiskMeasure):
    """Base of the measures that compare members of the release with non-members.

    Parameters
    ----------
    held_out : the share of the people, in (0, 1), who serve as non-members when no control file names others.
    targets : the largest number of people attacked in each group, at least 1.
    control_file : a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS). They are the
        non-members when released records contain values of other people.
    sha256 : the first 16 digits of the control file's SHA-256, filled in when left out; a file with another digest is
        rejected.
    control : who the non-members are. "rows": people whose released rows are removed from the attacker's copy, which is
        valid if a row depends on its own person alone. "refits": people without whom the method is run again, `folds`
        times with different people left out. "best": rows, except where values are drawn from a model or exchanged
        between records (Synthesize, Shuffle, RankSwap, Microaggregate); then the control file, or refits without one.
    folds : the number of refits, at least 1; each leaves out another `held_out` / `folds` of the people.
    rounds : how often the people are dealt to `folds` refits, at least 1; the release checks use at least 20 refits.
    method : how the file was made; a sweep or release fills it in.
    """

    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False
    households: ClassVar[str] = "persons are attacked one by one; refits leave out whole households"

    held_out: Annotated[float, Range(0, 1, "()")] = field(default=0.2, kw_only=True)
    targets: Annotated[int, Range(1)] = field(default=1000, kw_only=True)
    control_file: str = field(default="", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    control: Literal["best", "rows", "refits"] = field(default="best", kw_only=True)
    folds: Annotated[int, Range(1)] = field(default=2, kw_only=True)
    rounds: Annotated[int, Range(1)] = field(default=1, kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def identity(self) -> Spec:
        """Return what determines the numbers. One round is left out, so that measures keep their earlier digests."""
        return {name: part for name, part in super().identity().items() if name != "rounds" or self.rounds > 1}

    def problems(self) -> Iterator[str]:
        return importance_problems(getattr(self, "importance", ()), getattr(self, "on", ()))

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def release_variant(self) -> Measure:
        """Return the measure with at least `MIN_RELEASE_REFITS` refits, each of which leaves out as many people."""
        return replace(self.resample(), rounds=max(self.rounds, self._release_rounds))  # type: ignore[call-arg]

    def release_error(self, estimate: Estimate) -> float:
        """Return the error of the estimate, reduced by the further refits where it comes from independent refits."""
        refits = estimate.parts.get("refits")
        ratio = 1.0 if refits is None else min(1.0, refits / (self.folds * self._release_rounds))
        return (estimate.se or 0.0) * math.sqrt(ratio)

    @property
    def _release_rounds(self) -> int:
        return math.ceil(MIN_RELEASE_REFITS / self.folds)

    def pair_seconds(self, data: Microdata) -> float:
        """Estimate the seconds needed to compare each person with each record."""
        people = 2.0 * min(self.targets, len(data) * self.held_out)
        return (
            (self.folds * self.rounds if self.control == "refits" else 1)
            * people
            * len(data)
            * len(self.variables(data))
            * SECONDS_PER_COMPARISON
        )

    def attack(self, split: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> object:
        """Attack the people of one file by the variables `names`; `ranges` are their ranges. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no attack.")

    def estimate(self, outcomes: Sequence[Any]) -> Estimate:
        """Return the value from the outcomes of the attack on each file. Subclasses implement it."""
        raise TypeError(f"{type(self).__name__} has no estimate.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, others = self.check_variables(original), self.read_control_people(original)
        original, masked = self.align_categories(original, masked)
        split = self.split(original, masked, others, rng)
        return self.estimate([self.attack(split, names, numeric_ranges(original, names), rng)])

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names = self.check_variables(original)
        recoded = recode_by_method(original, self.method, self.columns_to_compare(original))
        splits = [self.split_refit(recoded, refit, rng) for refit in refits]
        outcomes = [self.attack(split, names, numeric_ranges(recoded, names), rng) for split in splits]
        estimate = self.estimate(outcomes)
        return replace(estimate, parts={**estimate.parts, "refits": float(len(refits))})

    def columns_to_compare(self, data: Microdata) -> tuple[str, ...]:
        """Return the columns that members and non-members must have."""
        return self.variables(data)

    def can_be_attacked(self, data: Microdata) -> Array:
        """Return which people may be drawn as targets."""
        return np.ones(len(data), dtype=bool)

    def refit_groups(self, people: float) -> tuple[float, float]:
        """Return how many members and how many non-members of so many people are attacked in each refit."""
        most = math.ceil(self.max_people_drawn() / self.folds)
        held_out = self.held_out / self.folds
        return min((1 - held_out) * people, most), min(held_out * people, most)

    def count_people(self, data: Microdata, rows: int | None) -> float:
        """Return of how many people so many records like these are; None: these records.

        Records of one person nearly repeat each other. The members of a household differ: they count one by one.
        """
        return data.people * (1.0 if rows is None else rows / max(1, len(data)))

    def max_people_drawn(self) -> int:
        """Return the largest number of people drawn in each group."""
        return self.targets

    def refits(self, masked: Microdata) -> Folds | None:
        needs_refits = self.control == "refits" or (self._mixes_records(masked) and not self.control_file)
        if not needs_refits or self.method is None:
            return None
        return Folds(self.folds * self.rounds, self.held_out / self.folds)

    def _mixes_records(self, masked: Microdata) -> bool:
        """Return whether released records may contain values of other people.

        Removing a person's row from such a file does not remove the person's influence on it.
        """
        mixes_records = self.method is not None and self.method.mixes_records
        return self.control != "rows" and (mixes_records or not masked.paired)

    def check_files(self, data: Microdata) -> None:
        self.read_control_people(data)

    def read_control_people(self, data: Microdata) -> Microdata | None:
        """Return the people of the control file, read once, or None without one."""
        if not self.control_file:
            return None
        names = self.columns_to_compare(data)
        read = lambda: read_archive(self.control_file, self.sha256, data, names)
        return data.remember(("control", self.control_file, self.sha256, names), read)

    def split(self, original: Microdata, masked: Microdata, others: Microdata | None, rng: Generator) -> Split:
        """Draw members and non-members of a release for which there are no refits.

        Where records are mixed, the non-members are `others`, the people of the control file. Otherwise a share
        `held_out` of the people is removed from the release together with their released rows.
        """
        if self.control == "refits" or (not masked.paired and not others):
            raise Undefined(NO_CONTROL)
        origin = np.arange(len(masked)) if masked.origin is None else masked.origin
        eligible = self.can_be_attacked(original)
        if others and self._mixes_records(masked):
            # a fully synthetic file has no rows of single people: everyone in the original is a member
            is_member = eligible if not masked.paired else eligible & _to_mask(origin, len(original))
            rows = self._draw(original, is_member, rng)
            other_rows = self._draw(others, np.ones(len(others), dtype=np.bool_), rng)
            units = original.units[rows], len(original) + other_rows  # nobody in the control file is in the original
            return Split(original.take(rows), others.take(other_rows), masked, units)
        rows = _draw_units(np.flatnonzero(_to_mask(origin, len(original)) & eligible), original.units, rng)
        if len(rows) < 2:
            raise Undefined("fewer than two people are left to attack.")
        is_held_out = _hold_out_units(rows, original.units[rows], self.held_out)
        members, non_members = rows[~is_held_out], rows[is_held_out]
        if len(members) == 0:
            raise Undefined("all people are in one household, so nobody can be held out.")
        # the attacker's copy of the release has no row of a non-member, nor of their household
        is_outside = np.isin(original.units, original.units[non_members])
        released = masked.take(np.flatnonzero(~is_outside[origin]))
        groups = members[: self.max_people_drawn()], non_members[: self.max_people_drawn()]
        return _split_rows(original, groups, released)

    def align_categories(self, original: Microdata, masked: Microdata) -> tuple[Microdata, Microdata]:
        """Return both files in comparable categories.

        The original is recoded to the released categories where each value has one. Released labels that only the
        method note explains are spelled out.
        """
        names = self.columns_to_compare(original)
        recoded = recode_to_released_categories(original, masked, names)
        return recoded, spell_out_labels(recoded, masked, names)

    def split_refit(self, original: Microdata, refit: Refit, rng: Generator) -> Split:
        """Draw people who were in the refit and people who were left out of it."""
        eligible = self.can_be_attacked(original)
        groups = [self._draw(original, rows & eligible, rng) for rows in (_is_in_release(refit), refit.outside)]
        if min(map(len, groups)) == 0:
            raise Undefined("a refit leaves no members or no non-members to attack.")
        size = math.ceil(self.max_people_drawn() / self.folds)
        members, non_members = (rows[:size] for rows in groups)
        return _split_rows(original, (members, non_members), refit.released)

    def draw_exchangeable_people(
        self, refits: Sequence[Refit], eligible: Array, rng: Generator
    ) -> tuple[Array, Array, Array]:
        """Draw people who are in one refit and left out of another.

        Returns their rows and, for each refit, which of them are in its file and which were left out.
        """
        inside = np.array([_is_in_release(refit) for refit in refits])
        outside = np.array([refit.outside for refit in refits])
        rows = rng.permutation(np.flatnonzero(inside.any(axis=0) & outside.any(axis=0) & eligible))[
            : self.max_people_drawn()
        ]
        if len(rows) == 0:
            raise Undefined("nobody is a member of one refit and a non-member of another, so nobody can be attacked.")
        return rows, inside[:, rows], outside[:, rows]

    def _draw(self, data: Microdata, is_drawn: Array, rng: Generator) -> Array:
        """Draw at most `max_people_drawn` of the people for whom `is_drawn` is True, one household after the other."""
        return _draw_units(np.flatnonzero(is_drawn), data.units, rng)[: self.max_people_drawn()]


def _draw_units(rows: Array, units: Array, rng: Generator) -> Array:
    """Return these rows in random order, those of one household next to each other.

    Refits leave out whole households. If the other people were drawn one by one, a value that a household shares would
    look rarer among them, and an attack would tell who was left out from this alone.
    """
    drawn = rng.permutation(rows)
    _, index = np.unique(units[drawn], return_inverse=True)
    place = np.empty(index.max(initial=-1) + 1, dtype=np.int64)
    by_row = np.argsort(drawn)[::-1]  # a household has the place of its first row, so its size plays no role
    place[index[by_row]] = by_row
    return np.asarray(drawn[np.argsort(place[index], kind="stable")])


def _split_rows(original: Microdata, groups: tuple[Array, Array], released: Microdata) -> Split:
    """Return the split of these rows, members first."""
    members, non_members = (original.take(rows) for rows in groups)
    return Split(members, non_members, released, (original.units[groups[0]], original.units[groups[1]]))


def _hold_out_units(rows: Array, units: Array, share: float) -> Array:
    """Return which of these rows, in random order, are held out: about this share of them, and units as a whole."""
    cut = min(max(1, round(share * len(rows))), len(rows) - 1)
    _, first, index, size = np.unique(units, return_index=True, return_inverse=True, return_counts=True)
    # units are taken in the order in which they appear, until enough rows are held out
    by_appearance = np.argsort(first)
    is_held_out = np.empty(len(first), dtype=np.bool_)
    is_held_out[by_appearance] = np.cumsum(size[by_appearance]) - size[by_appearance] < cut
    return np.asarray(is_held_out[index])


def recode_by_method(original: Microdata, method: Method | None, names: tuple[str, ...]) -> Microdata:
    """Return the original in the categories that the deterministic steps of the method produce.

    It is used with refits, because non-members have no released row from which to read their category.
    """
    recoded = replay_deterministic_steps(original, method)
    return original if recoded is None else recode_to_released_categories(original, recoded, names)


def _is_in_release(refit: Refit) -> Array:
    """Return who is in the file of a refit: everyone it was fitted with, except people whose rows it did not release."""
    origin = refit.released.origin
    return ~refit.outside if not refit.released.paired or origin is None else _to_mask(origin, len(refit.outside))


def _to_mask(rows: Array, size: int) -> Array:
    """Return a Boolean array of length `size` that is true at these rows."""
    return np.bincount(rows, minlength=size) > 0


# Arguments of the Gower distance kernels: numbers and codes of the targets, numbers and codes of the released records,
# and the weight of each number and code.
DistanceInputs: TypeAlias = tuple[Array, Array, Array, Array, Array]


def distance_inputs(
    targets: Microdata,
    released: Microdata,
    names: tuple[str, ...],
    ranges: dict[str, float],
    importance: tuple[float, ...] = (),
) -> DistanceInputs:
    """Return numbers and codes of the targets and the released records, with the weight of each variable.

    Labels of several depths ("37" and "(35, 40]") are compared at the depth of the released label. The values of a column
    lie together in memory, as the kernels need them.
    """
    weigh = dict(zip(names, relative_weights(importance, len(names)), strict=True))
    amounts = [n for n in names if n in ranges and released.column(n).levels is None]
    numbers = [np.concatenate([part.numbers(n) for part in (targets, released)]) / ranges[n] for n in amounts]
    codes = {n: _codes(targets, released, n) for n in names if n not in amounts}
    weight = [*(weigh[n] for n in amounts), *(weigh[n] for n, columns in codes.items() for _ in columns)]
    each = [column for columns in codes.values() for column in columns]
    x, c = (np.column_stack(kind) if kind else np.empty((len(targets) + len(released), 0)) for kind in (numbers, each))
    x, c = np.where(np.isfinite(x), x, np.nan), c.astype(np.int64)
    cut = len(targets)
    y, d = np.asfortranarray(x[cut:]), np.asfortranarray(c[cut:])
    return x[:cut], c[:cut], y, d, np.array(weight, dtype=np.float64)


def _codes(targets: Microdata, released: Microdata, name: str) -> list[Array]:
    """Return one column of both files as codes; labels of several depths give one column for each layer."""
    read = read_labels(targets, released, name)
    layers = None if read is None else separate_layers(read)
    return [common_codes(targets, released, name)] if layers is None else list(np.vstack(layers).T)


def numeric_ranges(data: Microdata, names: tuple[str, ...]) -> dict[str, float]:
    """Return the range of each numeric variable, or 1 where it is constant or missing."""
    numbers = {name: data.numbers(name) for name in names if data.schema[name].kind == "numeric"}
    known = {name: x[np.isfinite(x)] for name, x in numbers.items()}
    return {name: float(np.ptp(x)) or 1.0 if len(x) else 1.0 for name, x in known.items()}
