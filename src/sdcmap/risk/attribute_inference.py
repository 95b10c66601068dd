"""Sensitive values that a snooper infers from the nearest records."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.named_files import digest_of, is_digest
from sdcmap.core.value import Range
from sdcmap.data.cells import common_codes, in_released_categories
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SchemaError, Undefined
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.attribution import nearest, share_error
from sdcmap.risk._archive import read_archive
from sdcmap.risk.l_diversity import secret_misfits, secret_of

FEWEST = 20  # people of a category, below which a difference of shares says little


@dataclass(frozen=True)
class Split:
    """Who is attacked: people inside the release, people outside it; and the released records that the snooper has."""

    insiders: Microdata
    outsiders: Microdata
    archive: Microdata


def split(
    original: Microdata,
    masked: Microdata,
    known: Array,
    held_out: float,
    most: int,
    control: Microdata | None,
    rng: Generator,
) -> Split:
    """Draw targets inside and outside the release, at most `most` of each, among the records of the original in `known`.

    Where records are paired, a share `held_out` of the released ones is taken out of the release, with what was released
    of them; a synthetic file needs people who were never in the original, in `control`.
    """
    if not masked.paired:
        if control is None or len(control) == 0:
            raise Undefined("a synthetic file needs a control file of people who were not in the original.")
        insiders, outsiders = (rng.permutation(rows)[:most] for rows in (np.flatnonzero(known), len(control)))
        return Split(original.take(insiders), control.take(outsiders), masked)
    came = np.arange(len(masked)) if masked.origin is None else masked.origin
    released = np.zeros(len(original), dtype=bool)
    released[came] = True
    order = rng.permutation(np.flatnonzero(released & known))
    if len(order) < 2:
        raise Undefined("fewer than two people are left to attack.")
    cut = min(max(1, round(held_out * len(order))), len(order) - 1)
    held = np.zeros(len(original), dtype=bool)
    held[order[:cut]] = True
    archive = masked.take(np.flatnonzero(~held[came]))
    return Split(original.take(order[cut:][:most]), original.take(order[:cut][:most]), archive)


def positions(
    targets: Microdata, archive: Microdata, names: tuple[str, ...], ranges: dict[str, float]
) -> tuple[Array, Array, Array, Array]:
    """Numbers and codes of the targets and of the archive, as `nearest` wants them."""
    amounts = [n for n in names if n in ranges and archive.column(n).levels is None]
    numbers = [np.concatenate([part.numbers(n) for part in (targets, archive)]) / ranges[n] for n in amounts]
    codes = [common_codes(targets, archive, n).astype(np.int64) for n in names if n not in amounts]
    x, c = (np.column_stack(kind) if kind else np.empty((len(targets) + len(archive), 0)) for kind in (numbers, codes))
    x = np.where(np.isfinite(x), x, np.nan)
    cut = len(targets)
    return x[:cut], c[:cut].astype(np.int64), x[cut:], c[cut:].astype(np.int64)


def ranges_of(data: Microdata, names: tuple[str, ...]) -> dict[str, float]:
    """The range of each numeric variable of the original; 1 where it has none."""
    ranges = {}
    for name in names:
        if data.schema[name].kind == "numeric":
            x = data.numbers(name)
            x = x[np.isfinite(x)]
            ranges[name] = float(np.ptp(x)) or 1.0 if len(x) else 1.0
    return ranges


def control_misfits(measure: Measure, path: str, sha256: str, data: Microdata, names: tuple[str, ...]) -> Iterator[str]:
    """The sentence for a control file that cannot be read."""
    if path:
        try:
            control_of(path, sha256, data, names)
        except SchemaError as problem:
            yield f"{type(measure).__name__}: {problem}"


def control_of(path: str, sha256: str, data: Microdata, names: tuple[str, ...]) -> Microdata | None:
    """These columns of the control file, read once."""
    if not path:
        return None
    return data.remember(("control", path, sha256, names), lambda: read_archive(path, sha256, data, names))


@dataclass(frozen=True)
class AttributeInference(Measure):
    """How much better a snooper infers a sensitive value of people in the release than of people outside it.

    The snooper knows some variables of a person, takes the released record that is nearest on these, and takes its
    sensitive value for the person's. He succeeds when it is the same, or near for a number. What he also achieves for
    people who are not in the release is science, not disclosure; counted is what being in it adds.

    Parameters
    ----------
    secret : the sensitive variable, of any kind; by default the first sensitive variable of the file.
    on : the variables he knows, of any kind; by default the keys of the file.
    tolerance : a number is inferred when it is within this share of the true one's size, at least 0.
    held_out : the share of the original, in (0, 1), that is held out of his copy of the release as the control group.
    targets : the most people attacked in each group, at least 1.
    control_file : for synthetic files: a file of people who were not in the original (CSV, Parquet, SPSS, Stata, SAS).
    sha256 : the first 16 digits of its SHA-256, filled in when left out; another content is refused.

    Formula: success rate inside minus success rate outside, each over at most `targets` people drawn at random; distance
        as Gower's: |x - y| / range for numbers, 0 or 1 for categories; among equally near records the mean success.
    `parts`: "inside", "outside", and "naive", the success of always guessing the most frequent released value (of a
    number: the median). An attack that is not better than "naive" says nothing about the release. "sure inside" and "sure
    outside": the shares where all nearest records agree on the true value, so that the snooper is right and knows it;
    "worst category": the largest difference inside - outside over the categories of the secret with 20 people on each side.
    Missing is a category of its own, and people whose sensitive value is missing are not attacked. A recoded
    variable is compared in the categories of the release, where each value became one of them. Weights and households are
    not used.
    Reference: Giomi, Boenisch, Wehmeyer, Tasnadi (2023).

    Examples
    --------
    >>> AttributeInference("Income", targets=500).text
    "AttributeInference(secret='Income', targets=500)"
    """

    axis: ClassVar[Literal["risk", "utility"]] = "risk"
    unit: ClassVar[str] = "difference of shares"
    bounds: ClassVar[tuple[float | None, float | None]] = (-1.0, 1.0)
    at_nothing: ClassVar[float | None] = 0.0
    sampled: ClassVar[bool] = True
    paired: ClassVar[bool] = False

    secret: str = ""
    on: tuple[str, ...] = ()
    tolerance: Annotated[float, Range(0)] = 0.05
    held_out: Annotated[float, Range(0, 1, "()")] = 0.2
    targets: Annotated[int, Range(1)] = 1000
    control_file: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.control_file and not self.sha256:
            object.__setattr__(self, "sha256", digest_of(self.control_file, f"{type(self).__name__}.control_file"))

    def problems(self) -> Iterator[str]:
        if self.sha256 and not is_digest(self.sha256):
            yield ".sha256 must be the first 16 hexadecimal digits of the control file's SHA-256, in small letters."

    def variables(self, data: Microdata) -> tuple[str, ...]:
        return self.on or tuple(name for name in data.keys if name != secret_of(data, self.secret))

    def misfits(self, data: Microdata) -> Iterator[str]:
        secret = secret_of(data, self.secret)
        problems = [*super().misfits(data), *secret_misfits(self, data, self.variables(data), secret)]
        yield from problems
        if not problems:
            yield from control_misfits(self, self.control_file, self.sha256, data, (*self.variables(data), secret))

    def score(self, original: Microdata, masked: Microdata, rng: Generator) -> Estimate:
        names, secret = self.checked(original), secret_of(original, self.secret)
        control = control_of(self.control_file, self.sha256, original, (*names, secret))
        original = in_released_categories(original, masked, (*names, secret))
        if control is not None:
            control = control.take(np.flatnonzero(~control.missing(secret)))
        drawn = split(original, masked, ~original.missing(secret), self.held_out, self.targets, control, rng)
        ranges = ranges_of(original, names)
        inside, naive = self._success(drawn.insiders, drawn.archive, names, secret, ranges)
        outside, _ = self._success(drawn.outsiders, drawn.archive, names, secret, ranges)
        errors = [share_error(float(right.mean()), len(right)) for right in (inside, outside)]
        parts = {"inside": float(inside.mean()), "outside": float(outside.mean()), "naive": naive}
        parts |= {"sure inside": float((inside == 1).mean()), "sure outside": float((outside == 1).mean())}
        of_category = self._by_category(drawn, secret, inside, outside)
        if of_category:
            parts["worst category"] = max(of_category)
        return Estimate(parts["inside"] - parts["outside"], math.hypot(*errors), parts)

    def _success(
        self, people: Microdata, archive: Microdata, names: tuple[str, ...], secret: str, ranges: dict[str, float]
    ) -> tuple[Array, float]:
        """The success with each of these people, and the naive rate."""
        truth, guess, tolerance = self._secrets(people, archive, secret)
        right = nearest(*positions(people, archive, names, ranges), truth, guess, tolerance)[1]
        seen = guess[~np.isnan(guess)]
        constant = _constant_guess(seen, numeric=tolerance > 0) if len(seen) else np.nan
        naive = np.abs(constant - truth) <= tolerance * np.abs(truth)
        return right, float(naive.mean())

    def _by_category(self, drawn: Split, secret: str, inside: Array, outside: Array) -> list[float]:
        """Success inside less success outside, for each sensitive category with enough people on both sides."""
        if drawn.insiders.column(secret).levels is None or drawn.outsiders.column(secret).levels is None:
            return []
        code = common_codes(drawn.insiders, drawn.outsiders, secret)
        mine, others = np.split(code, [len(drawn.insiders)])
        both = [(inside[mine == c], outside[others == c]) for c in np.unique(code)]
        return [float(a.mean() - b.mean()) for a, b in both if min(len(a), len(b)) >= FEWEST]

    def _secrets(self, people: Microdata, archive: Microdata, secret: str) -> tuple[Array, Array, float]:
        """The true values, the released ones (NaN: missing) and the tolerance; of categories the codes, with none."""
        if people.column(secret).levels is None and archive.column(secret).levels is None:
            return people.numbers(secret), archive.numbers(secret), self.tolerance
        truth, guess = np.split(common_codes(people, archive, secret).astype(np.float64), [len(people)])
        return truth, np.where(archive.missing(secret), np.nan, guess), 0.0


def _constant_guess(seen: Array, *, numeric: bool) -> float:
    if numeric:
        return float(np.median(seen))
    values, count = np.unique(seen, return_counts=True)
    return float(values[count.argmax()])
