"""Additional masking of selected records: unsafe ones, or those that an attack re-identifies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from scipy.spatial import KDTree

from sdcmap.core import Array, Generator, Infeasible, Method, Microdata, Range, Roles, SchemaError, Stream, Trials
from sdcmap.core.method import Origin
from sdcmap.data.cells import cells
from sdcmap.data.schema import NEVER_RELEASED
from sdcmap.errors import Undefined
from sdcmap.kernels.masking.granularity import round_like_others
from sdcmap.kernels.masking.noise_covariance import column_spreads
from sdcmap.methods.chain import Chain
from sdcmap.methods.noise import Noise
from sdcmap.recordwise.neighborhood import Unsafe, assess


def _of_method(name: str) -> Any:
    """Return a property of `Protect` that forwards the attribute `name` of its method."""
    return property(attrgetter(f"method.{name}"))


@dataclass(frozen=True)
class Protect(Method):
    """Apply `method` only to the records that are still unsafe, by `rule`, after the earlier steps of a chain.

    Parameters
    ----------
    rule : which records are unsafe: `Unsafe(k, r, q, on, ...)`. They are determined from the data; no plan, spec or note
        lists them. The masked file is compared with the file before the chain.
    method : how these records are masked.
    among : "file": run the method on the whole file and keep its result for unsafe records, so that its strength refers
        to the spread of the whole file; "unsafe": run it on the unsafe records only, so that swaps stay among them.
    rounds : the maximum number of rounds, at least 1; a round without unsafe records is the last.

    Formula: y'_i = method(y)_i if record i is unsafe, else y_i. New numbers are as round as other numbers of similar
    size, so that no digit shows which records were unsafe.
    Missing values, weights and households: see the method. A record that the rule cannot judge is left unchanged.
    Properties that the method preserves in a whole file, such as a distribution, may not hold if it masks only a part.
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
    kept: ClassVar[str] = "the values of safe records, as the earlier steps left them"

    rule: Unsafe
    method: Method
    among: Literal["file", "unsafe"] = "file"
    rounds: Annotated[int, Range(1, 100)] = 1

    @property
    def action(self) -> str:
        return f"{self.method.action}, unsafe records only"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Try it after noise: records that are still unsafe get more noise."""
        if not roles.numbers:
            return {}
        more = cls(Unsafe(roles.numbers, scale="standardized", amounts=roles.numbers), Noise(roles.numbers, 0.5))
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05), more))}

    def problems(self) -> Iterator[str]:
        if self.within:
            yield ".within must be set on .method."

    random, mixes_records, missing, masked_names = map(
        _of_method, ("random", "mixes_records", "missing", "masked_names")
    )

    @property
    def distorted(self) -> str:  # type: ignore[override]
        name = type(self.method).__name__
        return f"the values of unsafe records, as {name} distorts them: {self.method.distorted}"

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        yield from self.rule.incompatibilities(data)
        yield from self.method.incompatibilities(data)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.origin is not None:
            raise Infeasible("Protect compares records with their originals; sample or reorder records only after it.")
        original = data if data.base is None else data.base
        for _ in range(self.rounds):
            stream = Stream(rng.bytes(32))
            try:
                assessed = assess(original, data, self.rule)
            except (SchemaError, Undefined) as reason:
                raise Infeasible(f"unsafe records cannot be determined: {reason}") from None
            if assessed.safe.all():
                break
            data = self._mask_rows(data, assessed.rows[~assessed.safe], stream)
        return data.change(None, {})

    def _mask_rows(self, data: Microdata, unsafe: Array, stream: Stream) -> Microdata:
        """Return the file with only the rows `unsafe` masked by the method."""
        if self.among == "file":
            masked, rows = self.method.apply(data, stream), unsafe
        else:
            part = data.take(unsafe)
            masked, rows = self.method.apply(Microdata(part.schema, part.columns), stream), np.arange(len(unsafe))
        if masked.origin is not None:
            raise Infeasible(f"Protect cannot use {type(self.method).__name__}, which samples or reorders records.")
        for name in self.masked_names:
            column, before = masked.column(name), data.column(name)
            if column.levels is not None and before.levels is not None and not column.levels.equals(before.levels):
                raise Infeasible(
                    f"Protect cannot recode {name!r} for some records only: the column would mix two codings."
                )
            new = column.values[rows]
            if column.levels is None and before.levels is None:
                new = round_like_others(new, before.values, stream.child(f"zeros of {name}").rng())
            data = data.change(unsafe, {name: new})
        return data


TIE_FACTOR = 1 + 1e-9  # distances that differ by less than this factor count as equal, for rounding


def own_is_nearest(original: Array, masked: Array) -> Array:
    """Return True where no original record is nearer to masked record i than original record i.

    The columns of each file are divided by their standard deviations in that file. A missing value is set to the mean
    of its column; constant and empty columns are left out.
    """
    known, released = _scale_columns(original), _scale_columns(masked)
    live = ~(np.isnan(known).any(axis=0) | np.isnan(released).any(axis=0))
    if not live.any():
        return np.zeros(len(masked), dtype=bool)
    known, released = known[:, live], released[:, live]
    nearest, _ = KDTree(known).query(released)
    return np.asarray(np.sqrt(((released - known) ** 2).sum(axis=1)) <= nearest * TIE_FACTOR)


def _scale_columns(x: Array) -> Array:
    """Divide each column by its standard deviation; a column that has none becomes NaN."""
    scaled = np.full_like(x, np.nan)
    enough = (~np.isnan(x)).sum(axis=0) >= 2
    spread = np.zeros(x.shape[1])
    spread[enough] = column_spreads(x[:, enough])
    for j in np.flatnonzero(np.isfinite(spread) & (spread > 0)):
        scaled[:, j] = np.where(np.isnan(x[:, j]), np.nanmean(x[:, j]), x[:, j]) / spread[j]
    return scaled


def random_exchange(rows: Array, group: Array, rng: Generator) -> tuple[Array, Array]:
    """Pair the rows at random within their group. Return the paired rows and the partner of each.

    In a group with an odd number of rows, one stays without a partner.
    """
    shuffled = rng.permutation(rows)
    shuffled = shuffled[np.argsort(group[shuffled], kind="stable")]
    ordered = group[shuffled]
    start = np.searchsorted(ordered, ordered)  # index at which the group of each row begins
    even = (np.arange(len(ordered)) - start) % 2 == 0
    first = np.flatnonzero(even[:-1] & (ordered[:-1] == ordered[1:]))
    first_half, second_half = shuffled[first], shuffled[first + 1]
    return np.concatenate([first_half, second_half]), np.concatenate([second_half, first_half])


@dataclass(frozen=True)
class SwapReidentified(Method):
    """Exchange values between records that linkage still re-identifies, as a step of a Chain after noise.

    A masked record counts as re-identified if no original record is nearer to it than its own. These records, in random
    pairs, exchange the variables `on` as one block. An attacker who links a block then reads another person's values in
    all other variables.

    Parameters
    ----------
    on : the numeric variables that are compared and exchanged as one block, usually those that the step before masked.
        At least one other variable must remain: exchanging whole records protects no one.
    within : subdomains. Partners are drawn within a subdomain, so that its sums and means are preserved. Linkage
        considers the whole file, as an attacker would.

    Formula: nearest by Euclidean distance, with the variables of each file divided by their standard deviations; a tie
    counts as re-identified. A re-identified record without a free partner in its subdomain is left unchanged.
    The method needs the original file, so it is infeasible outside a Chain.
    A missing value moves with its block; for the distance it is set to the mean. Weights are not used: each record
    keeps its own. Households are not used: persons are swapped one by one.
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
    value_origin: ClassVar[Origin] = "permuted"
    kept: ClassVar[str] = "the joint distribution of the exchanged variables, in the file and in each subdomain"
    distorted: ClassVar[str] = "relations between exchanged and other variables, in re-identified records"

    on: tuple[str, ...]

    @property
    def action(self) -> str:
        return "swapped, re-identified records only"

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Try it after noise, as the method requires."""
        if not (swapped := roles.numbers[: len(roles.numbers) // 2]):
            return {}
        return {f"{cls.__name__} after Noise .05": Chain((Noise(roles.numbers, 0.05, correlated=True), cls(swapped)))}

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))
        return self.mask(data, stream.rng())

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if data.base is None or data.origin is not None:
            raise Infeasible(
                "there is no original to link with: use SwapReidentified as a step of a Chain, after noise."
            )
        if {v.name for v in data.schema.variables if v.role not in NEVER_RELEASED} <= set(self.on):
            raise Infeasible("every variable would be exchanged: exchanging whole records protects no one.")
        reidentified = np.flatnonzero(own_is_nearest(data.base.matrix(self.on), data.matrix(self.on)))
        group = data.view(cells, self.within).code if self.within else np.zeros(len(data), dtype=np.int64)
        rows, partners = random_exchange(reidentified, group, rng)
        return data.change(rows, {name: data.numbers(name)[partners] for name in self.on})
