"""Sketches of people: keyed fingerprints of rare combinations of values, to recognize the same people in another file.

Between two studies of the same people, columns are renamed, dropped, rescaled and recoded, and rows are left out. So many
sets of columns are used, in several forms (`sketch_forms`): pairs and triples of the most informative columns by value and
in affine form, and sets of four by rank, all without column names; and by value with names (in lower case) all columns but
up to two. The fingerprint of a record in a set is a keyed hash of its values. Only fingerprints that a single record has
are stored, the 1,024 smallest of each set; nothing else of the data is.

Different people agree in few, coarse values. An overlap counts only if it exceeds what chance explains, by three estimates:
the Good-Turing estimate (a new record has a combination that was observed once with probability 2 pairs/rows); the overlap
after the values of each column are permuted; and the overlap after the values of one fine column are shifted by one. The
last one detects files that are numbered alike (stratum and number in the stratum), which agree in rare combinations.

A file of coarse records is recognized as a part of another if it brings no new combination where another sample would have.
For coarse columns, keyed digests of tables of counts are stored: the same records have the same tables, other samples do
not. A part of the people selected by a value is not recognized if every column was rescaled or recoded as well.

Without the key, sketches confirm no guess. With ledger and key, somebody who knows two or three values of a person exactly
can test whether the person is in a file, and guess an unknown value: the key is as confidential as the data.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from sdcmap.bundle.sketch_forms import Form, keyed_hash, mix_words, tally, text_word
from sdcmap.core import Array, Microdata
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.schema import NEVER_RELEASED

SKETCH_SIZE = 1024  # fingerprints stored for each set of columns; enough to see an overlap of 1 %
MAX_STORED_COLUMNS = 7  # the most informative columns; sketches of their pairs and triples are stored ...
MAX_COMPARED_COLUMNS = 9  # ... and compared with those of a few more, since the ranking differs between files
MAX_WIDE_COLUMNS = 10  # informative columns of which all sets without up to two are used, with names
MAX_TABLE_CATEGORIES, MAX_TABLE_COLUMNS = 32, 12  # of the coarse columns whose tables of counts are stored
MAX_FINGERPRINT = np.uint64(2**64 - 1)
MIN_EXPECTED_NEW = 10.0  # new combinations expected of another sample; having none is then a sign
MIN_TABLE_BITS = 10.0  # of evidence, beyond the number of tables, before equal tables count as the same records

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")

SketchForm = Literal["named", "value", "affine", "rank"]
SKETCH_FORMS: tuple[SketchForm, ...] = get_args(SketchForm)
Names = tuple[str, ...]


@dataclass(frozen=True)
class Sketch:
    """The stored fingerprints of one set of columns, of all columns (form "whole"), or of all tables (form "table")."""

    form: str
    width: int  # number of columns
    names: tuple[str, ...]  # of the columns, in the form "named"
    rows: int  # records of the file
    singles: int  # fingerprints that one record has
    pairs: int  # fingerprints that two records share
    prints: Array  # the smallest single fingerprints, sorted; or the digests of the tables

    @property
    def last(self) -> np.uint64:
        """The fingerprint up to which all are stored."""
        return np.uint64(self.prints[-1]) if len(self.prints) >= SKETCH_SIZE else MAX_FINGERPRINT


def recognition_columns(data: Microdata) -> tuple[str, ...]:
    """Return the released columns by which records are recognized.

    Weights, households and strata are left out if there are other columns: a second release may have new ones.
    """
    released = [v for v in data.schema.variables if v.role not in NEVER_RELEASED]
    stable = [v for v in released if v.role not in ("weight", "household", "stratum")]
    return tuple(variable.name for variable in stable or released)


class People:
    """The records of a file, with their fingerprints under the key of one ledger."""

    def __init__(self, data: Microdata, key: bytes) -> None:
        self.key = key
        self.rows = len(data)
        self.columns = {name.casefold(): tally(data.column(name)) for name in recognition_columns(data)}
        entropy = {name: t.entropy for name, t in self.columns.items() if not t.is_counter}
        by_entropy = sorted(entropy, key=lambda name: -round(entropy[name], 9))  # ties, up to rounding: in file order
        self.informative = tuple(name for name in by_entropy if entropy[name] > 0)
        self._words: dict[tuple[Form, str, bool], Array] = {}

    def sets(self, form: SketchForm, most: int) -> list[Names]:
        """Return the sets of columns to use in a form.

        By value or affine: pairs and triples of the `most` most informative columns. By rank: sets of four of them. With
        names: all columns, all but one, and all but two of the most informative.
        """
        top, wide, others = (
            self.informative[:most],
            self.informative[:MAX_WIDE_COLUMNS],
            self.informative[MAX_WIDE_COLUMNS:],
        )
        if form == "rank":
            sets = [*combinations(top, min(4, len(top)))]
        elif form == "named":
            sets = [
                self.informative,
                *(tuple(n for n in self.informative if n != left_out) for left_out in self.informative),
            ]
            sets += [(*part, *others) for part in combinations(wide, max(0, len(wide) - 2))]
        else:
            sets = [*([top] if len(top) == 1 else []), *combinations(top, 2), *combinations(top, 3)]
        return [part for part in dict.fromkeys(sets) if part]

    def prints(self, names: Names, form: SketchForm) -> Array:
        """Return the fingerprint of each record in these columns."""
        return self._hash_words(form, [self._word(form, name) for name in names])

    def chance_prints(self, names: Names, form: SketchForm) -> Iterator[Array]:
        """Yield fingerprints of artificial records: values permuted in each column, and values of a fine column shifted."""
        rng = np.random.default_rng(len(names))
        yield self._hash_words(form, [rng.permutation(self._word(form, name)) for name in names])
        for shifted in names if form != "rank" else ():
            if self.columns[shifted].is_fine:
                yield self._hash_words(form, [self._word(form, name, name == shifted) for name in names])

    def _hash_words(self, form: SketchForm, words: Sequence[Array]) -> Array:
        total = np.full(self.rows, len(words), dtype=np.uint64)
        for word in words:
            total += word
        return keyed_hash(total, hashlib.blake2b(form.encode(), digest_size=16, key=self.key).digest())

    def _word(self, form: SketchForm, name: str, shifted: bool = False) -> Array:
        plain: Form = "value" if form == "named" else form
        if (key := (plain, name, shifted)) not in self._words:
            self._words[key] = self.columns[name].form(plain, shifted)
        return mix_words(self._words[key] ^ np.uint64(text_word(name))) if form == "named" else self._words[key]

    def sketches(self) -> Iterator[Sketch]:
        """Yield what the ledger stores about these records."""
        for form in SKETCH_FORMS:
            yield from (self.sketch(names, form) for names in self.sets(form, MAX_STORED_COLUMNS))
        yield self.sketch(self.informative, "named", whole=True)
        yield Sketch("table", 0, (), self.rows, 0, 0, self.tables)

    def sketch(self, names: Names, form: SketchForm, whole: bool = False) -> Sketch:
        """Return the sketch of these columns; `whole`: of every fingerprint, not only of those that one record has."""
        distinct, count = np.unique(self.prints(names, form), return_counts=True)
        singles, pairs = (int((count == times).sum()) for times in (1, 2))
        stored = (distinct if whole else distinct[count == 1])[:SKETCH_SIZE].astype("<u8")
        public_names = names if form == "named" else ()
        return Sketch("whole" if whole else form, len(names), public_names, self.rows, singles, pairs, stored)

    @cached_property
    def tables(self) -> Array:
        """Keyed digests of tables of three coarse columns each, if the table is too large to agree by chance."""
        informative = (self.columns[name] for name in self.informative)
        coarse = [t for t in informative if len(t.counts) <= MAX_TABLE_CATEGORIES][:MAX_TABLE_COLUMNS]
        position_lists = sorted(
            (t.count_ranks[t.positions] for t in coarse), key=lambda positions: np.bincount(positions).tolist()
        )
        sets = list(combinations(position_lists, min(3, len(position_lists)))) if position_lists else []
        digests = [self._table(part, 2 * np.log2(len(sets))) for part in sets]
        return np.unique(np.array([d for d in digests if d is not None], dtype="<u8"))

    def _table(self, position_lists: Sequence[Array], more_bits: float) -> int | None:
        """Return the digest of one table; None where another sample could well have the same table.

        Two independent counts near c are equal with probability (4 pi c)^(-1/2), and the last count follows from the sum.
        """
        sizes = [int(positions.max()) + 1 for positions in position_lists]
        cell = np.ravel_multi_index([positions.astype(np.int64) for positions in position_lists], sizes)
        counts = np.bincount(cell, minlength=int(np.prod(sizes)))
        full = counts[counts > 0]
        bits = 0.5 * np.log2(4 * np.pi * full).sum() - 0.5 * np.log2(4 * np.pi * self.rows)
        if bits < MIN_TABLE_BITS + more_bits:
            return None
        content = np.concatenate([sizes, counts]).astype("<i8").tobytes()
        return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=self.key).digest(), "little")


def recognize(earlier: Sequence[Sequence[Sketch]], people: People, policy: ReleasePolicy) -> list[bool]:
    """Return for each earlier release whether it has people in common with these records, more than chance explains.

    The policy states the smallest overlap that counts, as a share of either file and as a number of people.
    """
    is_match = np.array(
        [any(_same_table(s, people) or _is_part(s, people) for s in own) for own in earlier], dtype=bool
    )
    groups: dict[tuple[SketchForm, int, Names], list[tuple[int, Sketch]]] = defaultdict(list)
    for number in np.flatnonzero(~is_match).tolist():
        for sketch in earlier[number]:
            if sketch.form in SKETCH_FORMS:
                groups[sketch.form, sketch.width, sketch.names].append((number, sketch))
    for (form, width, names), sketches in groups.items():
        stored = _StoredSketches(form, sketches, policy)
        for columns in _comparable(people, form, width, names):
            if not is_match[stored.number].all():
                is_match[stored.find_overlaps(people, columns, is_match)] = True
    return [bool(one) for one in is_match]


def _same_table(sketch: Sketch, people: People) -> bool:
    return sketch.form == "table" and bool(np.isin(sketch.prints, people.tables).any())


def _is_part(sketch: Sketch, people: People) -> bool:
    """Return whether all records of one file are in the other, where another sample would have new combinations."""
    if sketch.form != "whole" or len(sketch.prints) == 0 or not set(sketch.names) <= people.columns.keys():
        return False
    now = people.sketch(sketch.names, "named", whole=True)
    # Both sketches store all fingerprints up to the smaller of their last ones, so these can be compared.
    last = min(now.last, sketch.last)
    then, here = (set(one.prints[one.prints <= last].tolist()) for one in (sketch, now))
    return any(
        small <= large and len(small) * of.singles / of.rows >= MIN_EXPECTED_NEW
        for small, large, of in ((here, then, sketch), (then, here, now))
    )


def _comparable(people: People, form: SketchForm, width: int, names: Names) -> list[Names]:
    """Return the sets of columns of these records that can be compared with a stored set."""
    if form == "named":
        return [names] if set(names) <= people.columns.keys() else []
    return [part for part in people.sets(form, MAX_COMPARED_COLUMNS) if len(part) == width]


class _StoredSketches:
    """Earlier sketches of sets of one width in one form, with all their fingerprints in one sorted array."""

    def __init__(self, form: SketchForm, own: Sequence[tuple[int, Sketch]], policy: ReleasePolicy) -> None:
        self.policy = policy
        self.form = form
        self.number = np.array([number for number, _ in own], dtype=np.int64)
        self.sketches = [sketch for _, sketch in own]
        prints = np.concatenate([sketch.prints for sketch in self.sketches])
        order = np.argsort(prints, kind="stable")
        self.prints = prints[order]
        self.sketch = np.repeat(np.arange(len(own)), [len(sketch.prints) for sketch in self.sketches])[order]
        self.last = max(sketch.last for sketch in self.sketches)

    def find_overlaps(self, people: People, columns: Names, is_match: Array) -> list[int]:
        """Return the releases, of those not matched yet, that have people in common in these columns."""
        if len(self.prints) == 0:
            return []
        prints = people.prints(columns, self.form)
        prints = np.unique(prints[prints <= self.last])
        hits = self._hits(prints)
        likely = np.flatnonzero((hits >= self.policy.overlap_people) & ~is_match[self.number]).tolist()
        # Each estimate of chance removes releases whose overlap it explains.
        likely = [at for at in likely if self._is_large_enough(at, hits[at], prints)]
        likely = [at for at in likely if self._exceeds_chance(hits[at], _good_turing(self.sketches[at], people.rows))]
        for artificial in people.chance_prints(columns, self.form) if likely else ():
            by_chance = self._hits(np.unique(artificial))
            likely = [at for at in likely if self._exceeds_chance(hits[at], by_chance[at])]
        return [int(self.number[at]) for at in likely]

    def _hits(self, prints: Array) -> Array:
        """Return how many fingerprints of each sketch are among these."""
        # A fingerprint may be in several sketches: find its whole run in the sorted array.
        first, after = (np.searchsorted(self.prints, prints, side=side) for side in SIDES)
        many = after - first
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.bincount(self.sketch[np.repeat(first, many) + within], minlength=len(self.sketches))

    def _is_large_enough(self, at: int, hits: int, prints: Array) -> bool:
        """Return whether the hits are a large enough share of the smaller file."""
        sketch = self.sketches[at]
        here = int(np.searchsorted(prints, sketch.last, side="right"))
        return hits >= self.policy.overlap_share * min(len(sketch.prints), here)

    def _exceeds_chance(self, hits: int, by_chance: float) -> bool:
        return bool(hits >= self.policy.overlap_people + 1.25 * by_chance + 6 * math.sqrt(by_chance))


def _good_turing(sketch: Sketch, rows: int) -> float:
    """Return how many fingerprints of the sketch other people share by chance (Good-Turing), plus a standard error."""
    pairs = sketch.pairs + math.sqrt(sketch.pairs) + 1
    return rows * (2 * pairs / sketch.rows) * (len(sketch.prints) / sketch.singles)
