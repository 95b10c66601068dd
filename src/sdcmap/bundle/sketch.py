"""Sketches of people: keyed fingerprints of what is rare about them, to know them again in another file.

Columns are renamed, dropped, rescaled and recoded between two studies of the same people, and rows are left out. So many
sets of columns are looked at, in several forms (`forms`): pairs and triples of the most telling columns by value and in
affine form, and sets of four by rank, all without their names; and by value with their names, in lower case, all columns
but up to two. A record's fingerprint in a set is a keyed hash of its values there. Kept are fingerprints that one record
alone has, the 1,024 smallest of each set; nothing else of the data.

Different people agree in few and coarse values. Chance is what Good and Turing's estimate gives (a new record meets a
combination that was seen once with probability 2 pairs/rows), what the same columns give with each column's values dealt
out anew, and what they give with the next value in place of each of one fine column: two files that are numbered alike
(stratum and number in the stratum; numbers of records in the order of regions) agree in combinations that are all rare,
and as much when moved by one. Overlap is what stands out from all three. A file of coarse records is known as a part of
another, or the other of it, where it brings no new combination and another sample would have. Of coarse columns the
tables of counts are kept as keyed digests: the same records have the same tables, and other samples do not.

Not known again is a part of the people chosen by a value, where every column was rescaled or recoded as well.

Without the key the sketches confirm no guess. Whoever has ledger and key, and knows two or three of a person's values
exactly, can test whether he is in a file, and try values of one that he does not know: the key is as secret as the data.
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

from sdcmap.bundle.sketch_forms import Form, keyed_hash, stirred, tally, text_word
from sdcmap.core import Array, Microdata
from sdcmap.core.release_policy import ReleasePolicy
from sdcmap.data.schema import NEVER_RELEASED

SKETCH_SIZE = 1024
STORED, LOOKED_AT = 7, 9  # most telling columns whose pairs and triples are stored, and compared with what is stored
WIDE = 10  # most telling columns that are taken together, but for up to two
COARSE, TABLED = 32, 12  # categories of a column whose tables are kept, and such columns
LAST = np.uint64(2**64 - 1)
SURELY_NEW = 10.0  # new combinations that chance must promise before having none is taken as a sign
TABLE_BITS = 10.0  # beyond the number of tables, what chance must not reach

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")

SketchForm = Literal["named", "value", "affine", "rank"]
SKETCH_FORMS: tuple[SketchForm, ...] = get_args(SketchForm)
Names = tuple[str, ...]


@dataclass(frozen=True)
class Sketch:
    """What is kept of one set of columns, of all columns with every fingerprint (form "whole"), or of all tables ("table").

    width : how many columns; names : theirs, in the form "named"; rows : records of the file; singles : fingerprints that
    one record has; pairs : that two records share; prints : the smallest of the single ones, sorted, or the digests of
    the tables.
    """

    form: str
    width: int
    names: tuple[str, ...]
    rows: int
    singles: int
    pairs: int
    prints: Array

    @property
    def last(self) -> np.uint64:
        """The fingerprint up to which all are kept."""
        return np.uint64(self.prints[-1]) if len(self.prints) >= SKETCH_SIZE else LAST


def telling_names(data: Microdata) -> tuple[str, ...]:
    """The released columns that records are recognized by: weights, households and strata may be made anew for a second
    release of the same persons, so they are left out where anything else is there."""
    released = [v for v in data.schema.variables if v.role not in NEVER_RELEASED]
    telling = [v for v in released if v.role not in ("weight", "household", "stratum")]
    return tuple(variable.name for variable in telling or released)


class People:
    """The records of a file under one ledger's key, seen through sets of columns."""

    def __init__(self, data: Microdata, key: bytes) -> None:
        self.key = key
        self.rows = len(data)
        self.columns = {name.casefold(): tally(data.column(name)) for name in telling_names(data)}
        telling = {name: t.entropy for name, t in self.columns.items() if not t.is_counter}
        by_entropy = sorted(telling, key=lambda name: -round(telling[name], 9))  # equal but for rounding: in file order
        self.telling = tuple(name for name in by_entropy if telling[name] > 0)
        self._words: dict[tuple[Form, str, bool], Array] = {}

    def sets(self, form: SketchForm, most: int) -> list[Names]:
        """Sets of columns to look at: `most` of the most telling in pairs and triples, or by fours; with their names all
        columns, all but one, and all but two of the most telling."""
        rich, wide, others = self.telling[:most], self.telling[:WIDE], self.telling[WIDE:]
        if form == "rank":
            sets = [*combinations(rich, min(4, len(rich)))]
        elif form == "named":
            sets = [self.telling, *(tuple(n for n in self.telling if n != gone) for gone in self.telling)]
            sets += [(*part, *others) for part in combinations(wide, max(0, len(wide) - 2))]
        else:
            sets = [*([rich] if len(rich) == 1 else []), *combinations(rich, 2), *combinations(rich, 3)]
        return [part for part in dict.fromkeys(sets) if part]

    def prints(self, names: Names, form: SketchForm) -> Array:
        """Each record's fingerprint in these columns."""
        return self._hashed(form, [self._word(form, name) for name in names])

    def strangers(self, names: Names, form: SketchForm) -> Iterator[Array]:
        """Fingerprints of records that are nobody's: values dealt out anew, and fine values moved by one."""
        rng = np.random.default_rng(len(names))
        yield self._hashed(form, [rng.permutation(self._word(form, name)) for name in names])
        for moved in names if form != "rank" else ():
            if self.columns[moved].is_fine:
                yield self._hashed(form, [self._word(form, name, name == moved) for name in names])

    def _hashed(self, form: SketchForm, words: Sequence[Array]) -> Array:
        total = np.full(self.rows, len(words), dtype=np.uint64)
        for word in words:
            total += word
        return keyed_hash(total, hashlib.blake2b(form.encode(), digest_size=16, key=self.key).digest())

    def _word(self, form: SketchForm, name: str, shifted: bool = False) -> Array:
        plain: Form = "value" if form == "named" else form
        if (key := (plain, name, shifted)) not in self._words:
            self._words[key] = self.columns[name].form(plain, shifted)
        return stirred(self._words[key] ^ np.uint64(text_word(name))) if form == "named" else self._words[key]

    def sketches(self) -> Iterator[Sketch]:
        """What the ledger keeps of these records."""
        for form in SKETCH_FORMS:
            yield from (self.sketch(names, form) for names in self.sets(form, STORED))
        yield self.sketch(self.telling, "named", whole=True)
        yield Sketch("table", 0, (), self.rows, 0, 0, self.tables)

    def sketch(self, names: Names, form: SketchForm, whole: bool = False) -> Sketch:
        """What is kept of these columns; `whole`: every fingerprint, and not the single ones alone."""
        distinct, count = np.unique(self.prints(names, form), return_counts=True)
        singles, pairs = (int((count == times).sum()) for times in (1, 2))
        kept = (distinct if whole else distinct[count == 1])[:SKETCH_SIZE].astype("<u8")
        told = names if form == "named" else ()
        return Sketch("whole" if whole else form, len(names), told, self.rows, singles, pairs, kept)

    @cached_property
    def tables(self) -> Array:
        """Keyed digests of the tables of three coarse columns each that are too full of counts to agree by chance."""
        telling = (self.columns[name] for name in self.telling)
        coarse = [t for t in telling if len(t.counts) <= COARSE][:TABLED]
        places = sorted((t.count_ranks[t.place] for t in coarse), key=lambda place: np.bincount(place).tolist())
        sets = list(combinations(places, min(3, len(places)))) if places else []
        digests = [self._table(part, 2 * np.log2(len(sets))) for part in sets]
        return np.unique(np.array([d for d in digests if d is not None], dtype="<u8"))

    def _table(self, places: Sequence[Array], more_bits: float) -> int | None:
        """The digest of one table; None where another sample could well have the same.

        Two independent counts near c are equal with probability (4 pi c)^(-1/2), and the last one follows from the sum.
        """
        sizes = [int(place.max()) + 1 for place in places]
        cell = np.ravel_multi_index([place.astype(np.int64) for place in places], sizes)
        counts = np.bincount(cell, minlength=int(np.prod(sizes)))
        full = counts[counts > 0]
        bits = 0.5 * np.log2(4 * np.pi * full).sum() - 0.5 * np.log2(4 * np.pi * self.rows)
        if bits < TABLE_BITS + more_bits:
            return None
        content = np.concatenate([sizes, counts]).astype("<i8").tobytes()
        return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=self.key).digest(), "little")


def recognized(earlier: Sequence[Sequence[Sketch]], people: People, policy: ReleasePolicy) -> list[bool]:
    """Of each earlier release, whether these records include at least 1 % (and a few) of its own, or are 1 % its own, more
    than chance can explain; how many that is, the policy says."""
    found = np.array([any(_same_table(s, people) or _is_part(s, people) for s in own) for own in earlier], dtype=bool)
    shelves: dict[tuple[SketchForm, int, Names], list[tuple[int, Sketch]]] = defaultdict(list)
    for number in np.flatnonzero(~found).tolist():
        for sketch in earlier[number]:
            if sketch.form in SKETCH_FORMS:
                shelves[sketch.form, sketch.width, sketch.names].append((number, sketch))
    for (form, width, names), stored in shelves.items():
        shelf = _Shelf(form, stored, policy)
        for columns in _comparable(people, form, width, names):
            if not found[shelf.number].all():
                found[shelf.met(people, columns, found)] = True
    return [bool(one) for one in found]


def _same_table(sketch: Sketch, people: People) -> bool:
    return sketch.form == "table" and bool(np.isin(sketch.prints, people.tables).any())


def _is_part(sketch: Sketch, people: People) -> bool:
    """Whether all records of one file are in the other, where another sample would have brought new combinations."""
    if sketch.form != "whole" or len(sketch.prints) == 0 or not set(sketch.names) <= people.columns.keys():
        return False
    now = people.sketch(sketch.names, "named", whole=True)
    last = min(now.last, sketch.last)
    then, here = (set(one.prints[one.prints <= last].tolist()) for one in (sketch, now))
    return any(
        small <= large and len(small) * of.singles / of.rows >= SURELY_NEW
        for small, large, of in ((here, then, sketch), (then, here, now))
    )


def _comparable(people: People, form: SketchForm, width: int, names: Names) -> list[Names]:
    """The sets of columns of these records that a stored set may stand for."""
    if form == "named":
        return [names] if set(names) <= people.columns.keys() else []
    return [part for part in people.sets(form, LOOKED_AT) if len(part) == width]


class _Shelf:
    """The earlier sketches of sets of one width in one form, with all their fingerprints in one sorted row."""

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

    def met(self, people: People, columns: Names, found: Array) -> list[int]:
        """The releases, of those not found yet, whose people are met in these columns."""
        if len(self.prints) == 0:
            return []
        prints = people.prints(columns, self.form)
        prints = np.unique(prints[prints <= self.last])
        hits = self._hits(prints)
        likely = np.flatnonzero((hits >= self.policy.overlap_people) & ~found[self.number]).tolist()
        likely = [at for at in likely if self._enough(at, hits[at], prints)]
        likely = [at for at in likely if self._stands_out(hits[at], _good_turing(self.sketches[at], people.rows))]
        for strangers in people.strangers(columns, self.form) if likely else ():
            by_chance = self._hits(np.unique(strangers))
            likely = [at for at in likely if self._stands_out(hits[at], by_chance[at])]
        return [int(self.number[at]) for at in likely]

    def _hits(self, prints: Array) -> Array:
        """How many fingerprints of each sketch are among these."""
        first, after = (np.searchsorted(self.prints, prints, side=side) for side in SIDES)
        many = after - first
        within = np.arange(int(many.sum())) - np.repeat(np.cumsum(many) - many, many)
        return np.bincount(self.sketch[np.repeat(first, many) + within], minlength=len(self.sketches))

    def _enough(self, at: int, hits: int, prints: Array) -> bool:
        """Whether the hits are at least 1 % of the smaller file."""
        sketch = self.sketches[at]
        here = int(np.searchsorted(prints, sketch.last, side="right"))
        return hits >= self.policy.overlap_share * min(len(sketch.prints), here)

    def _stands_out(self, hits: int, by_chance: float) -> bool:
        return bool(hits >= self.policy.overlap_people + 1.25 * by_chance + 6 * math.sqrt(by_chance))


def _good_turing(sketch: Sketch, rows: int) -> float:
    """Fingerprints of the sketch that as many records of other people are expected to meet, rounded up by an error."""
    pairs = sketch.pairs + math.sqrt(sketch.pairs) + 1
    return rows * (2 * pairs / sketch.rows) * (len(sketch.prints) / sketch.singles)
