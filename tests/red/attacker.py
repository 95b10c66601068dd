"""The standing attacker: they read a released folder and an archive about people, and use nothing of the package.

Each attack gives a share: of tries, how many succeeded. What the agency stated is the bound that no attack may beat.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import linear_sum_assignment
from scipy.special import bdtrc, ndtr

INTERVAL = re.compile(r"([\[(])(-?[\d.e+]+), (-?[\d.e+]+)([\])])|(<=|>=|<|>) (-?[\d.e+]+)")
FORMULAS = {
    "copy": lambda a, b: a, "sum": np.add, "difference": np.subtract, "product": np.multiply, "ratio": np.divide,
    "largest": np.maximum, "table": lambda a, b: 0.2 * a + 0.2 * np.maximum(a - 6000, 0),
}  # fmt: skip
FAR = 1e6


class Try(NamedTuple):
    """The result of an attack: its name, successes and tries, and the stated bound."""

    attack: str
    successes: float
    tries: float
    bound: float
    spread: float = 0.0  # standard error of a difference of shares, where it is one

    @property
    def chance(self) -> float:
        """The probability of at least this success if the bound is true: binomial, or normal for a difference."""
        if self.spread:
            return float(ndtr((self.bound - self.successes / self.tries) / self.spread))
        whole = math.floor(self.successes + 1e-9)
        return 1.0 if whole <= 0 or self.bound >= 1 else float(bdtrc(whole - 1, int(self.tries), max(self.bound, 0.0)))


# ---- what he reads --------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Bundle:
    """A released folder as a data user reads it."""

    folder: Path

    @cached_property
    def note(self) -> dict[str, Any]:
        return json.loads((self.folder / "note.json").read_text())

    @cached_property
    def codebook(self) -> dict[str, dict[str, Any]]:
        return {entry["name"]: entry for entry in json.loads((self.folder / "codebook.json").read_text())}

    @cached_property
    def data(self) -> pl.DataFrame:
        """Return the file with missing codes as missing values."""
        [path] = self.folder.glob("data.*")
        frame = pl.read_csv(path, infer_schema_length=None) if path.suffix == ".csv" else pl.read_parquet(path)
        for name, entry in self.codebook.items():
            codes = [code["code"] for code in entry.get("missing", []) if code["code"] is not None]
            text = frame[name].cast(pl.String)
            gone = text.is_in(
                [form for code in codes for form in (str(code), f"{code}.0", str(code).removesuffix(".0"))]
            )
            frame = frame.with_columns(pl.when(gone.fill_null(False)).then(None).otherwise(pl.col(name)).alias(name))
        return frame

    @property
    def steps(self) -> list[dict[str, Any]]:
        """Return the methods that the note states, in order."""
        method = self.note["method"]
        return method["methods"] if method["type"] == "Chain" else [method]


@dataclass(frozen=True, eq=False)
class Column:
    """A column as the attacker knows it and as it was released: numbers, or codes (-1: missing) of the same values."""

    name: str
    known: np.ndarray
    released: np.ndarray
    numeric: bool
    plain: np.ndarray  # what he knows, in the categories that it had

    @cached_property
    def differences(self) -> np.ndarray:
        """|x - y| for each released row and known person in standard deviations; of codes, 1 where they differ."""
        if self.numeric:
            gap = np.abs(self.released[:, None] - self.known) / (np.nanstd(self.known) or 1.0)
            return np.where(np.isnan(gap), 0.5, gap)
        both = (self.released[:, None] >= 0) & (self.known >= 0)
        return np.where(both, self.released[:, None] != self.known, 0.5)

    @cached_property
    def ranks(self) -> np.ndarray:
        """Return the column as shares of ranks."""
        if not self.numeric:
            return self.differences
        a, b = (_shares(values) for values in (self.known, self.released))
        gap = np.abs(b[:, None] - a)
        return np.where(np.isnan(gap), 0.25, gap)


def _shares(values: np.ndarray) -> np.ndarray:
    known = np.sort(values[~np.isnan(values)])
    ranks = (np.searchsorted(known, values) + np.searchsorted(known, values, "right")) / 2 / max(1, len(known))
    return np.where(np.isnan(values), np.nan, ranks)


def columns(bundle: Bundle, archive: pl.DataFrame) -> list[Column]:
    """Return every column of both files, without survey columns."""
    names = [name for name, entry in bundle.codebook.items() if name in archive.columns and not entry.get("use")]
    return [_column(name, archive[name], bundle.data[name]) for name in names]


def _column(name: str, known: pl.Series, released: pl.Series) -> Column:
    if known.dtype == pl.Float64 and released.dtype.is_numeric():
        known = known.replace(-9.0, None)
        return Column(name, _numbers(known), _numbers(released), True, _numbers(known))
    texts = [_text(value) for value in released.to_list()]
    alphabet = {text: code for code, text in enumerate(dict.fromkeys(text for text in texts if text is not None))}
    ours = [_category(value, alphabet) for value in known.to_list()]
    coded = [-1 if text is None else alphabet.setdefault(text, len(alphabet)) for text in (*texts, *ours)]
    plain = known.cast(pl.String).rank("dense").fill_null(0).cast(pl.Int64).to_numpy() - 1
    return Column(name, np.array(coded[len(texts) :]), np.array(coded[: len(texts)]), False, plain)


def _numbers(values: pl.Series) -> np.ndarray:
    return values.cast(pl.Float64).fill_null(math.nan).to_numpy()


def _text(value: Any) -> str | None:
    return None if value is None else f"{value:.15g}" if isinstance(value, float) else str(value)


def _category(value: Any, alphabet: Mapping[str, int]) -> str | None:
    """Return the released category of a known value: itself, the interval that contains it, or its prefix."""
    text = None if value == -9.0 else _text(value)
    if text is None or text in alphabet:
        return text
    if not isinstance(value, str):
        return next((label for label in alphabet if _holds(label, float(value))), text)
    same_length = len({len(label) for label in alphabet}) == 1
    return next((label for label in alphabet if same_length and text.startswith(label)), text)


def _holds(label: str, value: float) -> bool:
    part = INTERVAL.fullmatch(label)
    if part is None:
        return False
    if part[5]:
        end = float(part[6])
        return {"<=": value <= end, ">=": value >= end, "<": value < end, ">": value > end}[part[5]]
    low, high = float(part[2]), float(part[3])
    return (low < value or (part[1] == "[" and low == value)) and (value < high or (part[4] == "]" and high == value))


# ---- who is who -----------------------------------------------------------------------------------------------
def right(cost: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return for each released row (rows of `cost`) the chance that the cheapest person is the true one; 1/t for t ties."""
    least = cost <= cost.min(axis=1, keepdims=True) + 1e-9
    return least[np.arange(len(truth)), truth] / least.sum(axis=1)


def costs(bundle: Bundle, parts: list[Column]) -> Iterator[tuple[str, np.ndarray]]:
    """Return several cost matrices of released rows and known people."""
    plain = {
        "nearest": sum(part.differences**2 for part in parts),
        "city block": sum(part.differences for part in parts),
        "ranks": sum(part.ranks for part in parts),
    }
    yield from plain.items()
    shut = _shut(bundle, parts)
    yield from ((f"{name}, open columns first", cost + shut) for name, cost in plain.items())
    for name in ("city block", "ranks"):
        learned = plain[name] + shut
        for _ in range(4):
            learned = evidence(parts, learned) + shut
        yield f"learned from {name}", learned


def _shut(bundle: Bundle, parts: list[Column]) -> np.ndarray:
    """Return a prohibitive cost where an unmasked column differs, or a value is outside its rank window."""
    shape = (len(parts[0].released), len(parts[0].known))
    cost = np.zeros(shape)
    for part in parts:
        if part.name in bundle.note["not_masked"]:
            cost += FAR * (part.differences > (1e-12 if part.numeric else 0.6))
    steps = bundle.steps
    for step in steps:
        on = step.get("on", []) if step["type"] == "RankSwap" else []
        for part in parts:
            alone = sum(part.name in np.atleast_1d(other.get("on", [])) for other in steps) == 1
            if part.numeric and part.name in np.atleast_1d(on) and alone:
                cost += FAR * (part.ranks > float(np.max(step.get("p", 0.05))) + 2 / shape[1])
    return cost


def evidence(parts: list[Column], cost: np.ndarray) -> np.ndarray:
    """-log P(released | the same person) / P(released | another), learned from the cheapest pairs (Fellegi, Sunter)."""
    rows = np.arange(len(cost))
    mates = cost.argmin(axis=1)
    total = np.zeros_like(cost)
    for part in parts:
        gaps = part.differences
        edges = np.unique(np.quantile(gaps[:, :: max(1, gaps.shape[1] // 50)], np.linspace(0, 1, 12)))
        edges = np.unique(np.concatenate([[0.0, 1e-9], edges]))
        bins = np.searchsorted(edges, gaps, side="right")
        same = np.bincount(bins[rows, mates], minlength=len(edges) + 1) + 0.5
        other = np.bincount(bins.ravel(), minlength=len(edges) + 1) + 0.5
        total -= np.log(same / same.sum() / (other / other.sum()))[bins]
        if not part.numeric:  # a rare value that agrees tells more
            share = np.bincount(part.released + 1, minlength=int(part.released.max()) + 2) / len(part.released)
            total += np.where(gaps == 0, 0.5 * np.log(np.maximum(share[part.released + 1], 1e-3))[:, None], 0.0)
    return total


def one_to_one(cost: np.ndarray, truth: np.ndarray) -> np.ndarray:
    rows, people = linear_sum_assignment(cost)
    return np.isin(np.arange(len(truth)), rows[people == truth[rows]]).astype(float)


def households(cost: np.ndarray, truth: np.ndarray, theirs: np.ndarray, ours: np.ndarray) -> np.ndarray:
    """Link whole households: each released one to the known one of its size with the least cost in the best order."""
    found = np.zeros(len(truth))
    known = {home: np.flatnonzero(ours == home) for home in np.unique(ours)}
    for home in np.unique(theirs):
        rows = np.flatnonzero(theirs == home)
        if len(rows) > 4:
            continue
        orders = [list(order) for order in permutations(range(len(rows)))]
        alike = [people for people in known.values() if len(people) == len(rows)]
        best = (math.inf, None)
        for people in alike:
            table = cost[np.ix_(rows, people)]
            each = [float(table[np.arange(len(rows)), order].sum()) for order in orders]
            place = int(np.argmin(each))
            best = min(best, (each[place], people[orders[place]]), key=lambda pair: pair[0])
        if best[1] is not None:
            found[rows] = truth[rows] == best[1]
    return found


def linkage(bundle: Bundle, archive: pl.DataFrame, origin: np.ndarray, bound: float) -> Iterator[Try]:
    """Run all linkage attacks; the archive contains the people in the file."""
    for name, cost in costs(bundle, columns(bundle, archive)):
        yield Try(f"linkage: {name}", right(cost, origin).sum(), len(origin), bound)
        if not name.startswith("learned"):
            continue
        yield Try(f"linkage: {name}, one to one", one_to_one(cost, origin).sum(), len(origin), bound)
        home = next((name for name, entry in bundle.codebook.items() if entry.get("use") == "household number"), None)
        if home is not None:
            found = households(cost, origin, bundle.data[home].to_numpy(), archive[home].to_numpy())
            yield Try(f"linkage: {name}, households as wholes", found.sum(), len(origin), bound)


# ---- who is in it, and what is learned of him ------------------------------------------------------------------
def membership(bundle: Bundle, everybody: pl.DataFrame, inside: int, bound: float) -> Iterator[Try]:
    """Run membership attacks, member against non-member: by the closest record, by density, and by unique values."""
    parts = columns(bundle, everybody)
    gap = sum(part.differences for part in parts) / len(parts)
    scores = {
        "closest record": -gap.min(axis=0),
        "density": np.exp(-0.5 * (gap / np.median(gap.min(axis=0)).clip(1e-9)) ** 2).sum(axis=0),
        "own values": sum(_own(part) for part in parts),
    }
    for name, score in scores.items():
        tries = min(inside, len(score) - inside)
        yield Try(f"membership: {name}", _auc(score[:inside], score[inside:]) * tries, tries, bound)


def _own(part: Column) -> np.ndarray:
    """Return the evidence of a person's value in the file: more if fewer people have it."""
    values, place, count = np.unique(part.known, return_inverse=True, return_counts=True)
    return np.isin(values, part.released)[place] * -np.log(count[place] / len(place))


def _auc(inside: np.ndarray, outside: np.ndarray) -> float:
    both = np.sort(outside)
    return float((np.searchsorted(both, inside) + np.searchsorted(both, inside, "right")).mean() / 2 / len(both))


def inference(bundle: Bundle, everybody: pl.DataFrame, inside: int, secret: str, bound: float) -> Iterator[Try]:
    """Run attribute inference by the nearest records, compared with non-members."""
    parts = {part.name: part for part in columns(bundle, everybody)}
    target = parts.pop(secret)
    gap = sum(part.differences for part in parts.values()) / len(parts)
    for few in (1, 5):
        nearest = np.argpartition(gap, few - 1, axis=0)[:few]
        guesses = target.released[nearest]
        if target.numeric:
            with warnings.catch_warnings(action="ignore"):  # of nobody near is the value known
                guess = np.nanmedian(guesses, axis=0)
            hit = np.abs(guess - target.known) <= 0.05 * np.abs(target.known)
        else:
            hit = guesses[0] == target.known
        known = ~np.isnan(target.known) if target.numeric else target.known >= 0
        within, without = hit[:inside][known[:inside]], hit[inside:][known[inside:]]
        spread = math.hypot(*(0.5 / math.sqrt(len(group)) for group in (within, without)))
        share = float(within.mean() - without.mean())
        yield Try(f"inference: {secret} of the nearest {few}", share * len(within), len(within), bound, spread)


# ---- looking up -----------------------------------------------------------------------------------------------
def looked_up(parts: list[Column], origin: np.ndarray, most: int) -> np.ndarray:
    """Return whether each released row is found by its person's values in these columns, in a small enough group."""
    both = np.column_stack([np.concatenate([_codes(part, place) for place in ("known", "released")]) for part in parts])
    cell = np.unique(both, axis=0, return_inverse=True)[1].ravel()
    ours, theirs = cell[: len(parts[0].known)], cell[len(parts[0].known) :]
    count = np.bincount(theirs, minlength=cell.max() + 1)[theirs]
    return (ours[origin] == theirs) & (count < most)


def _codes(part: Column, which: str) -> np.ndarray:
    """Return values as codes, equal where values are equal; missing is one more value."""
    both = np.concatenate([part.known, part.released]).astype(float)
    code = np.unique(np.where(np.isnan(both), -1e300, both), return_inverse=True)[1].ravel()
    return code[: len(part.known)] if which == "known" else code[len(part.known) :]


def special(parts: list[Column], origin: np.ndarray) -> tuple[int, int]:
    """Of those alone on up to three keys among the known, and on no fewer of these, how many one of these sets finds in the
    release; and of how many."""
    special, found = np.zeros((2, len(origin)), dtype=bool)
    unique: dict[tuple[Column, ...], np.ndarray] = {}
    for some in (some for size in (1, 2, 3) for some in combinations(parts, size)):
        cell = np.unique(np.column_stack([part.plain for part in some]), axis=0, return_inverse=True)[1].ravel()
        unique[some] = (np.bincount(cell)[cell] == 1) & np.all([part.plain >= 0 for part in some], axis=0)
        fewer = [unique[less] for size in range(1, len(some)) for less in combinations(some, size)]
        minimal = (unique[some] & ~np.any(fewer, axis=0) if fewer else unique[some])[origin]
        special |= minimal
        found |= minimal & looked_up(list(some), origin, 2)
    return int(found.sum()), int(special.sum())


def alone(bundle: Bundle, names: list[str]) -> int:
    """Return the released rows that are unique on these columns."""
    if not names:
        return 0
    return int((bundle.data.select(pl.len().over(names).alias("count"))["count"] == 1).sum())


def largest(part: Column, origin: np.ndarray, count: int = 10) -> int:
    """Return how many of the largest units keep their rank in the release."""
    known, released = (
        np.argsort(-np.nan_to_num(values, nan=-np.inf), kind="stable") for values in (part.known, part.released)
    )
    return int(sum(origin[row] == person for row, person in zip(released[:count], known[:count], strict=True)))


# ---- traces ---------------------------------------------------------------------------------------------------
PARTLY = ("Protect", "TopCode")  # methods that change some cells of a column and leave others as they are


def partly(bundle: Bundle, name: str) -> bool:
    """Whether the note says that some cells of a column were masked and others not: of a column that was masked in every
    cell no digit tells who was. There a common value is often changed into itself (one of many whole thousands is swapped
    for another, the mean of people who all have nothing is nothing); that it may be as it was the value itself tells."""
    inner = [(step["type"], step["method"] if step["type"] == "Protect" else step) for step in bundle.steps]
    kinds = {kind for kind, step in inner if name in np.atleast_1d(step.get("on", []))}
    return bool(kinds) and kinds <= set(PARTLY)


def digits(part: Column, origin: np.ndarray) -> Iterator[tuple[str, float, int, float]]:
    """Which cells were masked, by their last digits: of the values off a grid on which most cells are, the masked ones; of
    how many; and the share of masked cells among all. Each value counts once, for cells of one value have one fate."""
    truth = part.known[origin]
    known = ~(np.isnan(truth) | np.isnan(part.released))
    changed, values = (part.released != truth)[known], part.released[known]
    for power in range(-2, 4):
        step = 10.0**power
        off = np.abs(values / step - np.rint(values / step)) > 1e-6
        if 0 < off.sum() <= len(off) / 2:
            observed, place, count = np.unique(values[off], return_inverse=True, return_counts=True)
            masked = np.bincount(place, changed[off]) / count
            yield f"{part.name} by {step:g}", float(masked.sum()), len(observed), float(changed.mean())


def given_back(parts: list[Column], masked: list[str], origin: np.ndarray) -> Iterator[tuple[str, int, int]]:
    """Return how many changed cells of masked amounts a formula of unmasked ones recovers, and of how many."""
    numbers = [part for part in parts if part.numeric]
    shown = [part for part in numbers if part.name not in masked]
    for target in (part for part in numbers if part.name in masked):
        truth = target.known[origin]
        changed = (target.released != truth) & ~np.isnan(truth) & ~np.isnan(target.released)
        for (name, formula), a, b in ((item, a, b) for item in FORMULAS.items() for a in shown for b in shown):
            with np.errstate(all="ignore"):
                fits = np.abs(formula(a.known, b.known) - target.known) <= 1.0
                if fits.mean() > 0.5:
                    hit = np.abs(formula(a.released, b.released) - truth) <= 1.0
                    yield f"{target.name} by {name}", int((hit & changed).sum()), int(changed.sum())
