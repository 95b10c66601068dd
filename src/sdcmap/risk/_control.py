"""People inside a release and people outside it: who they are, and how near released records are to them.

What a snooper achieves for people who are not in the release is science, not disclosure. So every measure here looks at two
groups that chance alone told apart, and counts what being in the release adds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from sdcmap.core import Array, Estimate, Generator, Measure, Method, Microdata, Range, RiskMeasure, Undefined
from sdcmap.core.refits import Folds, Refit
from sdcmap.data.cells import common_codes, recode_to_released_categories
from sdcmap.data.label_layers import read_labels, separate_layers, spell_out_labels
from sdcmap.kernels.tables.attribution import share_error
from sdcmap.risk._archive import read_archive
from sdcmap.risk.linkage.field_costs import importance_problems, relative_weights
from sdcmap.risk.linkage.stated_columns import redone

NO_CONTROL = "a synthetic file needs a control file of people who were not in the original, or the method that made it."
PAIR = 2e-9  # seconds: of one variable of a person and a record


class Split(NamedTuple):
    """Who is attacked: people inside the release, people outside it; and the released records that the snooper has."""

    insiders: Microdata
    outsiders: Microdata
    archive: Microdata


class Difference(NamedTuple):
    """A success rate inside less the same outside, and its standard error."""

    value: float
    se: float

    @staticmethod
    def of(inside: Array, outside: Array) -> Difference:
        errors = [share_error(float(group.mean()), len(group)) for group in (inside, outside)]
        return Difference(float(inside.mean() - outside.mean()), math.hypot(*errors))

    @staticmethod
    def of_pairs(inside: Array, outside: Array) -> Difference:
        """Of the same people inside and outside: the mean difference; its error sqrt(sum of squares + 2) / n is never 0."""
        each = inside - outside
        return Difference(float(each.mean()), math.sqrt(float(((each - each.mean()) ** 2).sum()) + 2) / len(each))


def compare_rates(inside: Array, outside: Array, naive: float) -> dict[str, float]:
    """Return the success rates inside and outside, that of guessing, and Anonymeter's residual risk."""
    a, b = float(inside.mean()), float(outside.mean())
    return {"inside": a, "outside": b, "naive": naive, "residual": (a - b) / (1 - b) if b < 1 else 0.0}


@dataclass(frozen=True)
class Controlled(RiskMeasure):
    """The base of measures that compare people in the release with people outside it; its fields say who is outside.

    Parameters
    ----------
    held_out : the share of the people, in (0, 1), who are outside the file where no control file names others.
    targets : the most people attacked in each group, at least 1.
    control_file : a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS): the people
        outside of files whose records hold what others had.
    sha256 : the first 16 digits of the control file's SHA-256, filled in when left out; another content is refused.
    control : who is outside. "rows": people whose released rows are taken out of the attacker's copy, honest where
        a row tells of its own person alone. "refits": the method is run again without them, `folds` times, each
        time without others. "best": rows, but where values are drawn from a model or dealt out among records
        (Synthesize, Shuffle, for some measures RankSwap) the control file, and makings where there is none.
    folds : how many makings, at least 1, each without another `held_out` / `folds` of the people.
    method : how the file was made; a sweep and a release fill it in.
    """

    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False
    households: ClassVar[str] = "persons are looked at one by one; makings leave whole households out"

    held_out: Annotated[float, Range(0, 1, "()")] = field(default=0.2, kw_only=True)
    targets: Annotated[int, Range(1)] = field(default=1000, kw_only=True)
    control_file: str = field(default="", kw_only=True)
    sha256: str = field(default="", kw_only=True)
    control: Literal["best", "rows", "refits"] = field(default="best", kw_only=True)
    folds: Annotated[int, Range(1)] = field(default=2, kw_only=True)
    method: Method | None = field(default=None, kw_only=True)

    def problems(self) -> Iterator[str]:
        return importance_problems(getattr(self, "importance", ()), getattr(self, "on", ()))

    def for_informed_attacker(self, method: Method) -> Measure:
        return replace(self, method=method)

    def pair_seconds(self, data: Microdata) -> float:
        """About how long it takes to compare each person with each record."""
        people = 2.0 * min(self.targets, len(data) * self.held_out)
        return (self.folds if self.control == "refits" else 1) * people * len(data) * len(self.variables(data)) * PAIR

    def attack(self, drawn: Split, names: tuple[str, ...], ranges: dict[str, float], rng: Generator) -> object:
        """Attack the people of one file by the variables `names`, whose ranges are given; a subclass says how."""
        raise TypeError(f"{type(self).__name__} has no attack.")

    def estimate(self, outcomes: Sequence[Any]) -> Estimate:
        """Return the value from what the attack on each file achieved; a subclass says how."""
        raise TypeError(f"{type(self).__name__} has no estimate.")

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, others = self.check_variables(original), self.people_outside(original)
        original, masked = self.as_seen(original, masked)
        drawn = self.split(original, masked, others, rng)
        return self.estimate([self.attack(drawn, names, ranges_of(original, names), rng)])

    def score_refits(self, original: Microdata, refits: Sequence[Refit], rng: Generator) -> Estimate:
        names, seen = self.check_variables(original), self.as_recoded(original)
        drawn = [self.split_making(seen, making, rng) for making in refits]
        return self.estimate([self.attack(split, names, ranges_of(seen, names), rng) for split in drawn])

    def compared_columns(self, data: Microdata) -> tuple[str, ...]:
        """The columns that people inside and outside must have."""
        return self.variables(data)

    def can_be_attacked(self, data: Microdata) -> Array:
        """Who may be drawn as a target."""
        return np.ones(len(data), dtype=bool)

    def most_drawn(self) -> int:
        """The most people drawn in each group."""
        return self.targets

    def refits(self, masked: Microdata) -> Folds | None:
        wanted = self.control == "refits" or (self._values_move(masked) and not self.control_file)
        return Folds(self.folds, self.held_out / self.folds) if wanted and self.method is not None else None

    def _values_move(self, masked: Microdata) -> bool:
        """Whether a released record may hold what other people had, so that taking rows out takes nobody out."""
        mixes_records = self.method is not None and self.method.mixes_records
        return self.control != "rows" and (mixes_records or not masked.paired)

    def check_files(self, data: Microdata) -> None:
        self.people_outside(data)

    def people_outside(self, data: Microdata) -> Microdata | None:
        """The people of the control file, read once."""
        if not self.control_file:
            return None
        names = self.compared_columns(data)
        read = lambda: read_archive(self.control_file, self.sha256, data, names)
        return data.remember(("control", self.control_file, self.sha256, names), read)

    def split(self, original: Microdata, masked: Microdata, others: Microdata | None, rng: Generator) -> Split:
        """Draw people inside and outside a release of which no makings are at hand.

        Outside are `others`, of the control file, where values move between records; else a share `held_out` of the people
        is taken out of the release, with what was released of them.
        """
        if self.control == "refits" or (not masked.paired and not others):
            raise Undefined(NO_CONTROL)
        came = np.arange(len(masked)) if masked.origin is None else masked.origin
        known = self.can_be_attacked(original)
        if others and self._values_move(masked):
            inside = known if not masked.paired else known & _marked(came, len(original))
            rows, theirs = self._drawn(np.flatnonzero(inside), rng), self._drawn(np.arange(len(others)), rng)
            return Split(original.take(rows), others.take(theirs), masked)
        order = rng.permutation(np.flatnonzero(_marked(came, len(original)) & known))
        if len(order) < 2:
            raise Undefined("fewer than two people are left to attack.")
        cut = min(max(1, round(self.held_out * len(order))), len(order) - 1)
        archive = masked.take(np.flatnonzero(~_marked(order[:cut], len(original))[came]))
        outsiders, insiders = (original.take(rows[: self.most_drawn()]) for rows in np.split(order, [cut]))
        return Split(insiders, outsiders, archive)

    def as_seen(self, original: Microdata, masked: Microdata) -> tuple[Microdata, Microdata]:
        """Both files as a reader sees them: the original in the categories of the release, where each value became one, and
        labels of the release that only the note explains spelled out."""
        names = self.compared_columns(original)
        recoded = recode_to_released_categories(original, masked, names)
        return recoded, spell_out_labels(recoded, masked, names)

    def as_recoded(self, original: Microdata) -> Microdata:
        """The original in the categories that the deterministic steps of the method make: of makings, where nobody outside
        has a released row to read them from."""
        again = redone(original, self.method)
        return (
            original
            if again is None
            else recode_to_released_categories(original, again, self.compared_columns(original))
        )

    def split_making(self, original: Microdata, making: Refit, rng: Generator) -> Split:
        """Draw people who were in the making and people who were not."""
        known = self.can_be_attacked(original)
        groups = [self._drawn(np.flatnonzero(rows & known), rng) for rows in (_in_file(making), making.outside)]
        if min(map(len, groups)) == 0:
            raise Undefined("nobody is left to attack, inside or outside a making.")
        most = math.ceil(self.most_drawn() / self.folds)
        insiders, outsiders = (original.take(rows[:most]) for rows in groups)
        return Split(insiders, outsiders, making.released)

    def left_out_once(self, refits: Sequence[Refit], known: Array, rng: Generator) -> tuple[Array, Array, Array]:
        """Draw people who were outside one of the makings and in the file of another; for each making, which of them are in
        its file, and which outside."""
        inside, outside = (np.array([of(m) for m in refits]) for of in (_in_file, lambda m: m.outside))
        rows = self._drawn(np.flatnonzero(inside.any(axis=0) & outside.any(axis=0) & known), rng)
        if len(rows) == 0:
            raise Undefined("nobody is left to attack, inside a making and outside another.")
        return rows, inside[:, rows], outside[:, rows]

    def _drawn(self, rows: Array, rng: Generator) -> Array:
        return rng.permutation(rows)[: self.most_drawn()]


def _in_file(making: Refit) -> Array:
    """Who of the original is in the file of a making: all whom it was made with, but for those whose rows it left out."""
    came = making.released.origin
    return ~making.outside if not making.released.paired or came is None else _marked(came, len(making.outside))


def _marked(rows: Array, size: int) -> Array:
    return np.bincount(rows, minlength=size) > 0


# Targets and records as the kernels of Gower's distance want them: numbers and codes of the targets, of the records, and
# what numbers and codes weigh.
Places: TypeAlias = tuple[Array, Array, Array, Array, Array]


def positions(
    targets: Microdata, archive: Microdata, names: tuple[str, ...], ranges: dict[str, float],
    importance: tuple[float, ...] = (),
) -> Places:  # fmt: skip
    """Numbers and codes of the targets and of the archive. Labels of several depths ("37" and "(35, 40]") are read: each
    is compared with the label that the target's value has at its depth."""
    weigh = dict(zip(names, relative_weights(importance, len(names)), strict=True))
    amounts = [n for n in names if n in ranges and archive.column(n).levels is None]
    numbers = [np.concatenate([part.numbers(n) for part in (targets, archive)]) / ranges[n] for n in amounts]
    codes = {n: _codes(targets, archive, n) for n in names if n not in amounts}
    weight = [*(weigh[n] for n in amounts), *(weigh[n] for n, columns in codes.items() for _ in columns)]
    each = [column for columns in codes.values() for column in columns]
    x, c = (np.column_stack(kind) if kind else np.empty((len(targets) + len(archive), 0)) for kind in (numbers, each))
    x, c = np.where(np.isfinite(x), x, np.nan), c.astype(np.int64)
    cut = len(targets)
    return x[:cut], c[:cut], x[cut:], c[cut:], np.array(weight, dtype=np.float64)


def _codes(targets: Microdata, archive: Microdata, name: str) -> list[Array]:
    """One column of both files in codes; of labels of several depths a column for each layer of them."""
    read = read_labels(targets, archive, name)
    layers = None if read is None else separate_layers(read)
    return [common_codes(targets, archive, name)] if layers is None else list(np.vstack(layers).T)


def ranges_of(data: Microdata, names: tuple[str, ...]) -> dict[str, float]:
    """The range of each numeric variable of the original; 1 where it has none."""
    numbers = {name: data.numbers(name) for name in names if data.schema[name].kind == "numeric"}
    known = {name: x[np.isfinite(x)] for name, x in numbers.items()}
    return {name: float(np.ptp(x)) or 1.0 if len(x) else 1.0 for name, x in known.items()}
