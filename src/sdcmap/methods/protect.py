"""Stronger masking for some records alone: unsafe ones, or those that an attack re-identifies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.spatial import KDTree

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, Roles, SchemaError, Stream, Trials
from sdcmap.data.cells import cells
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.errors import Undefined
from sdcmap.kernels.masking.granularity import rounded_as_others
from sdcmap.kernels.masking.noise_covariance import spreads
from sdcmap.methods.chain import Chain
from sdcmap.methods.noise import Noise
from sdcmap.recordwise.neighborhood import Unsafe, assess


def _of_method(name: str) -> Any:
    """A property of `Protect`: what its method has under this name."""
    return property(attrgetter(f"method.{name}"))


@dataclass(frozen=True)
class Protect(Method):
    """Mask once more, with `method`, only the records that `rule` calls unsafe in what earlier steps of a chain have left.

    Parameters
    ----------
    rule : who is unsafe: `Unsafe(k, r, q, on, ...)`. It names the records anew from the data; no plan, spec or note ever
        lists them. The original is the file before the chain began; as a first step nothing is perturbed yet.
    method : how these records are masked.
    among : "file" runs the method on the whole file and keeps what it did to unsafe records, so that its strength refers
        to the whole file's spread; "unsafe" runs it among the unsafe records alone, so that a swap stays an exchange.
    rounds : how often at most unsafe records are named and masked, at least 1; a round without any ends it.

    Formula: y'_i = method(y)_i where record i is unsafe, else y_i. New numbers end in as many zeros as those beside them in
    size do, so that no digit tells who was unsafe.
    Missing values: as the method says; a record the rule cannot judge is left as it is. Weights and households: as the
    method says. What the method keeps for a whole file (such as a distribution) it need not keep for a part.
    Reference: Seri (2005), section 3: "the need for higher protection of the records in the unsafe zone".

    Examples
    --------
    >>> from sdcmap.methods import Noise
    >>> Protect(Unsafe(on="income", k=5), Noise(on="income", variance=0.5)).text
    "Protect(rule=Unsafe(on='income', k=5), method=Noise(on='income', variance=0.5))"
    """

    label: ClassVar[str] = "Extra masking of unsafe records"
    description: ClassVar[str] = "Records that are still unsafe after the earlier steps are masked once more."

    needs_original: ClassVar[bool] = True
    revision: ClassVar[int] = 2  # 2: new numbers are as round as others
    kept: ClassVar[str] = "of records that are protected enough, what earlier steps left"

    rule: Unsafe
    method: Method
    among: Literal["file", "unsafe"] = "file"
    rounds: Annotated[int, Range(1, 100)] = 1

    @property
    def action(self) -> str:
        return f"{self.method.action}, unsafe records only"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """After noise, more of it for the records that are still unsafe."""
        if not roles.numbers:
            return {}
        more = cls(Unsafe(roles.numbers, scale="standardized"), Noise(roles.numbers, 0.5))
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05), more))}

    def problems(self) -> Iterator[str]:
        if self.within:
            yield ".within belongs to the method that protects."

    random, mixes_records, missing, masked_names = map(
        _of_method, ("random", "mixes_records", "missing", "masked_names")
    )

    @property
    def distorted(self) -> str:  # type: ignore[override]
        name = type(self.method).__name__
        return f"the values of records with few neighbors, as {name} does: {self.method.distorted}"

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from self.rule.incompatibilities(data)
        yield from self.method.incompatibilities(data)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.origin is not None:
            raise Infeasible("Protect needs the original beside each record; an earlier step took or moved records.")
        original = data if data.base is None else data.base
        for _ in range(self.rounds):
            stream = Stream(rng.bytes(32))
            try:
                assessed = assess(original, data, self.rule)
            except (SchemaError, Undefined) as reason:
                raise Infeasible(f"who is unsafe cannot be told: {reason}") from None
            if assessed.safe.all():
                break
            data = self._mask_rows(data, assessed.rows[~assessed.safe], stream)
        return data.change(None, {})

    def _mask_rows(self, data: Microdata, unsafe: Array, stream: Stream) -> Microdata:
        """The file with what the method does to these rows."""
        if self.among == "file":
            made, rows = self.method.apply(data, stream), unsafe
        else:
            part = data.take(unsafe)
            made, rows = self.method.apply(Microdata(part.schema, part.columns), stream), np.arange(len(unsafe))
        if made.origin is not None:
            raise Infeasible(f"Protect cannot use {type(self.method).__name__}: it takes or moves records.")
        for name in self.masked_names:
            column, before = made.column(name), data.column(name)
            if column.levels is not None and before.levels is not None and not column.levels.equals(before.levels):
                raise Infeasible(f"Protect cannot recode {name!r} for some records alone: it would have two codings.")
            new = column.values[rows]
            if column.levels is None and before.levels is None:
                new = rounded_as_others(new, before.values, stream.child(f"zeros of {name}").rng())
            data = data.change(unsafe, {name: new})
        return data


# Swapping of the records that linkage still finds.


TIE_FACTOR = 1 + 1e-9  # distances that differ by less than this factor are equal


def own_is_nearest(original: Array, masked: Array) -> Array:
    """True where no original record is nearer to masked record i than original record i.

    Each file's columns are divided by their own standard deviation; a missing value stands at the column's mean; a
    constant or empty column is left out.
    """
    known, released = _scale_columns(original), _scale_columns(masked)
    live = ~(np.isnan(known).any(axis=0) | np.isnan(released).any(axis=0))
    if not live.any():
        return np.zeros(len(masked), dtype=bool)
    known, released = known[:, live], released[:, live]
    nearest, _ = KDTree(known).query(released)
    return np.asarray(np.sqrt(((released - known) ** 2).sum(axis=1)) <= nearest * TIE_FACTOR)


def _scale_columns(x: Array) -> Array:
    """Each column divided by its standard deviation; NaN in all of a column that has none."""
    standardized = np.full_like(x, np.nan)
    enough = (~np.isnan(x)).sum(axis=0) >= 2
    spread = np.zeros(x.shape[1])
    spread[enough] = spreads(x[:, enough])
    for j in np.flatnonzero(np.isfinite(spread) & (spread > 0)):
        standardized[:, j] = np.where(np.isnan(x[:, j]), np.nanmean(x[:, j]), x[:, j]) / spread[j]
    return standardized


def random_exchange(rows: Array, group: Array, rng: Generator) -> tuple[Array, Array]:
    """The rows in random pairs within their group, and the partner of each; one is left over where a group is odd."""
    shuffled = rng.permutation(rows)
    shuffled = shuffled[np.argsort(group[shuffled], kind="stable")]
    places = group[shuffled]
    start = np.searchsorted(places, places)  # where the group of each begins
    even = (np.arange(len(places)) - start) % 2 == 0
    first = np.flatnonzero(even[:-1] & (places[:-1] == places[1:]))
    first_half, second_half = shuffled[first], shuffled[first + 1]
    return np.concatenate([first_half, second_half]), np.concatenate([second_half, first_half])


@dataclass(frozen=True)
class SwapReidentified(Method):
    """Exchange the values of records that linkage still finds, as the last step of a Chain after noise.

    A masked record is still found when no original record is nearer to it than its own. These records, in random pairs,
    exchange the variables `on` as one block, while all other variables stay: who finds the block finds it beside
    another person's other variables.

    Parameters
    ----------
    on : the numeric variables that are compared and exchanged as one block: as a rule those that the step before masked.
        Another variable must be left: whole records that change places protect nobody.
    within : subdomains: a partner is drawn among the found records of the same subdomain, so that sums and means of
        subdomains are kept. The linkage looks at the whole file, as a snooper would.

    Formula: nearest by Euclidean distance, each file's variables divided by their own standard deviations; a tie counts
    as found. A found record without a free partner in its subdomain stays as it is.
    Needs the original file, which a Chain has: on its own it is infeasible.
    A missing value moves with its block; for the distance it stands at the mean. Weights are not used: each record keeps
    its own. Households are not used: persons are swapped one by one.
    Reference: Yancey, Winkler, Creecy (2002), file add01_sw; Kim and Winkler (1995).

    Examples
    --------
    >>> SwapReidentified(on=["income", "tax"], within="region").text
    "SwapReidentified(within='region', on=['income', 'tax'])"
    >>> from sdcmap.methods import Chain, Noise
    >>> chain = Chain([Noise(on=["income", "tax"]), SwapReidentified(on=["income", "tax"])])
    """

    label: ClassVar[str] = "Swapping of re-identified records"
    description: ClassVar[str] = "Records that linkage can still re-identify exchange some of their values."

    mixes_records: ClassVar[bool] = True
    needs_original: ClassVar[bool] = True
    missing: ClassVar[str] = "category"
    weights: ClassVar[str] = "not used to draw pairs; each record keeps its own weight"
    kept: ClassVar[str] = "the joint distribution of the exchanged variables, in the file and in each subdomain"
    distorted: ClassVar[str] = "relations between exchanged and other variables, in the records that linkage found"

    on: tuple[str, ...]

    @property
    def action(self) -> str:
        return "swapped, re-identified records only"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """After noise, as the method needs: the records still found are swapped."""
        if not (swapped := roles.numbers[: len(roles.numbers) // 2]):
            return {}
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05, correlated=True), cls(swapped)))}

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))
        return self.mask(data, stream.rng())

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.base is None or data.origin is not None:
            raise Infeasible("there is no original to link with: SwapReidentified is a step of a Chain, after noise.")
        if {v.name for v in data.schema.variables if v.role not in NEVER_RELEASED} <= set(self.on):
            raise Infeasible("every variable would be exchanged: whole records change places, and nobody is protected.")
        reidentified = np.flatnonzero(own_is_nearest(data.base.matrix(self.on), data.matrix(self.on)))
        group = data.view(cells, self.within).code if self.within else np.zeros(len(data), dtype=np.int64)
        rows, partners = random_exchange(reidentified, group, rng)
        return data.change(rows, {name: data.numbers(name)[partners] for name in self.on})
