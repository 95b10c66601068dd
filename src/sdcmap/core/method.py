"""The base class of methods: a masking method is a frozen value with the method `mask(data, rng)`.

What all methods share is implemented here: columns and kinds are checked, missing values are refused where a method
cannot handle them, and strata are masked separately, each with its own random stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator

from sdcmap.core.added_noise import AddedNoise
from sdcmap.core.formatting import format_number, join_names, split_class_name
from sdcmap.core.likelihood import Fields, fields_by_part
from sdcmap.core.roles import Roles, Strengths, format_strength
from sdcmap.core.streams import Stream
from sdcmap.core.value import Value
from sdcmap.data.cells import common_codes, rows_by_cell, stack_columns
from sdcmap.data.masked_batch import MaskedBatch
from sdcmap.data.microdata import Microdata, with_reasons
from sdcmap.data.schema import UNSUPPORTED_ROLES, Schema
from sdcmap.errors import ContractBroken, Infeasible, SchemaError, Undefined, did_you_mean
from sdcmap.kernels.arrays import Array
from sdcmap.kernels.tables.coding import compress

# How a released value depends on one person's own value, beyond a model of many people:
# "model": it is drawn from such a model; "unmasked": it is the own value; "derived": it is computed from own values;
# "permuted": it is the own value of somebody else, chosen by rank or by a swap; "donor": it is taken from one similar
# record; "noisy": it is the own value with random changes. Every column but a "model" one is linkable.
Origin = Literal["model", "unmasked", "derived", "permuted", "donor", "noisy"]


@dataclass(frozen=True)
class Method(Value):
    """The base of every masking method.

    A subclass states its parameters as dataclass fields and its class data below, and implements `mask`.

    Parameters
    ----------
    within : mask each stratum of these variables separately; by default the file is one stratum
    """

    example: ClassVar[str] = "Noise"  # shown in error messages

    label: ClassVar[str] = ""  # the method's name for people, at most 40 characters
    description: ClassVar[str] = ""  # one sentence for a board: what the method does to the file
    kinds: ClassVar[tuple[str, ...]] = ("numeric",)  # of the variables that it masks
    # "kept": missing values stay; "category": missing is one more category; "added": it makes values missing; "refused"
    missing: ClassVar[str] = "kept"
    weights: ClassVar[str] = "not used; every record counts once"
    households: ClassVar[str] = "not used; persons are masked one by one"
    random: ClassVar[bool] = True  # whether replicates differ
    reweights: ClassVar[bool] = False  # it releases other rows, and adjusts the weight for that
    masks_weight: ClassVar[bool] = False  # it may change the weight for another reason
    at_zero: ClassVar[Mapping[str, Any] | None] = None  # the parameters at which it changes nothing
    kept: ClassVar[str] = ""  # for the method note: what it preserves exactly
    distorted: ClassVar[str] = ""  # for the method note: what it distorts
    in_every_plan: ClassVar[bool] = False  # every plan contains it, stated or not
    # A released record may contain values of other people, drawn from a model, averaged or exchanged. Removing a person's
    # row from such a file does not remove the person's influence on it.
    mixes_records: ClassVar[bool] = False
    value_origin: ClassVar[Origin] = "noisy"  # of the columns that it masks
    # It is random, but keeps the order of values: an attacker repeats it with random numbers of their own.
    is_simulated: ClassVar[bool] = False
    is_value_map: ClassVar[bool] = False  # a released value depends on nothing but the values of its own variable
    needs_original: ClassVar[bool] = False  # as a step of a chain it reads the file before the first step
    searched: ClassVar[Strengths | None] = None  # the strengths that a search tries
    growth: ClassVar[float] = 1.0  # its cost grows as this power of the number of records

    within: tuple[str, ...] = field(default=(), kw_only=True)  # mask each stratum of these variables apart

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        """Return the variants to try on a file of which only the roles are known.

        By default these are the strengths in `searched`, on the numeric variables, or on the keys where it masks
        categories.
        """
        names = roles.numbers if "numeric" in cls.kinds else roles.keys
        if cls.searched is None or not names:
            return {}
        fixed: dict[str, Any] = {"on": names, **cls.searched.fixed}
        trials = {value: fixed | {cls.searched.parameter: value} for value in cls.searched.tried}
        return {f"{cls.__name__} {format_strength(value)}": cls(**given) for value, given in trials.items()}

    def problems(self) -> Iterator[str]:
        # a field with a default is an attribute of the class, and an empty default means "the keys of the file"
        if getattr(self, "on", None) == () and not hasattr(type(self), "on"):
            yield ".on must name at least one variable."

    @classmethod
    def at_strength(cls, strength: float, names: tuple[str, ...], roles: Roles) -> Method | None:
        """Return the variant that a search tries on the columns `names`, or None where it is not tried on them.

        The strength goes from 0 (the weakest worth trying) to 1 (the strongest). It is translated by `searched`, or else
        selects one of the trials for these columns.
        """
        if cls.searched is not None:
            masked: dict[str, Any] = {"on": names}
            return cls(**masked, **cls.searched.at(strength))
        stated = [trial for trial in cls.trials(roles.of(names)).values() if isinstance(trial, Method)]
        return stated[min(int(strength * len(stated)), len(stated) - 1)] if stated else None

    @classmethod
    def search_options(cls) -> Mapping[str, StrengthScale]:
        """Return the ways in which a search tries it, each a scale of strengths, by a name that begins with the class's."""
        return {cls.__name__: cls.at_strength}

    @property
    def title(self) -> str:
        """A short name for people: what is done to which variables.

        It contains nothing that the spec does not contain. The identity of a method is its digest.
        """
        strata = f" within {join_names(self.within)}" if self.within else ""
        return f"{join_names(self.masked_names) or 'keys'} {self.action}{strata}"

    @property
    def action(self) -> str:
        """What is done to each variable, such as "rank swapped 10 %"; by default the class name with its strength."""
        name = strength_parameter(self)
        return f"by {split_class_name(type(self).__name__)}" + (
            f" {format_number(getattr(self, name))}" if name else ""
        )

    def by_column(self) -> tuple[Method, ...]:
        """Return the same method as steps of one variable each, where it masks each value on its own; otherwise itself."""
        names = self.masked_names
        if not self.is_value_map or self.random or self.within or len(names) < 2:
            return (self,)
        masked: list[dict[str, Any]] = [{"on": (name,)} for name in names]
        return tuple(replace(self, **one) for one in masked)

    def preimage(self, name: str, low: Array, high: Array, released: Microdata) -> tuple[Array, Array]:
        """Return the range of a variable before this step, given its range [low, high] after it (NaN: missing).

        Methods that round, cut or group numbers implement it. `released` is the file after the step.
        """
        raise Undefined(f"{type(self).__name__} does not say which original values of {name!r} are possible.")

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        """Return a masked copy of `data`. All random numbers come from `rng`."""
        raise TypeError(f"{type(self).__name__} has no mask.")

    def mask_batch(self, data: Microdata, streams: Sequence[Stream]) -> Mapping[str, Array] | None:
        """Return the masked columns of several draws, name -> one row of values per stream; None: mask one by one.

        A method that masks thousands of small files may implement it. Row i has the bytes that `mask` gives for the
        generator of stream i. Only a class that defines it itself uses it, because a subclass may have changed `mask`.
        """
        return None

    @property
    def can_mask_batch(self) -> bool:
        """Whether this class makes several draws together."""
        return "mask_batch" in vars(type(self))

    def cost_ratio(self, few: int, rows: int) -> float:
        """Return the cost on `rows` records relative to that on `few` records."""
        return float((rows / few) ** self.growth) if few else 1.0

    def log_likelihood(self, known: Microdata, released: Microdata) -> Fields:
        """Return log P(released record j | known record i) as fields to be summed, from what the method note says.

        It covers the masked variables only. `known` is the attacker's file: it may have other rows than `released`, and
        only some of the masked variables. Each stratum of `within` is treated separately, as it was masked.
        """
        if not self.known_names(known):
            return ()
        if not self.within:
            return self.pair_fields(known, released)

        def fields_of(rows: Array, others: Array) -> Fields:
            return self.pair_fields(extract_rows(known, rows), extract_rows(released, others))

        return fields_by_stratum(self.within, known, released, fields_of)

    def known_names(self, known: Microdata) -> tuple[str, ...]:
        """Return the masked variables that the attacker's file has."""
        return tuple(name for name in self.masked_names if name in known.names)

    def pair_fields(self, known: Microdata, released: Microdata) -> Fields:
        """Return `log_likelihood` of one stratum. A method with a known likelihood implements it."""
        raise Undefined(f"{type(self).__name__} states no likelihood of its released values.")

    def added_noise(self) -> AddedNoise:
        """Return the noise that a reader of the method note can remove from means and covariances.

        Raises Undefined, with the reason, where the masked file does not determine it.
        """
        name = type(self).__name__
        raise Undefined(f"the masking ({name}) is not plain additive noise, so it cannot be removed from the file.")

    def stated_noise(self) -> AddedNoise:
        """Return the noise as the method note states it, whether or not bounds or rounding changed it afterwards.

        Raises Undefined, with the reason, where the method adds no noise with a stated variance.
        """
        return self.added_noise()

    @property
    def steps(self) -> tuple[Method, ...]:
        """The methods that are applied one after the other: itself, or the steps of a chain."""
        return (self,)

    def with_steps(self, steps: Sequence[Method]) -> Method:
        """Return the same method with only these of its steps; there is at least one."""
        return steps[0]

    @property
    def kept_models(self) -> tuple[str, ...]:
        """The regressions whose coefficients it was told to keep; they are shown, but do not count as utility."""
        return ()

    @property
    def masked_names(self) -> tuple[str, ...]:
        """Names of the variables that this method may change."""
        return tuple(getattr(self, "on", ()))

    def masks(self, data: Microdata) -> tuple[str, ...]:
        """Return the variables that are masked in these data, where a method masks the keys of the file by default."""
        return self.masked_names

    def keeps_pairs(self, data: Microdata) -> bool:
        """Return whether each released record still corresponds to an original one; False for fully synthetic files."""
        return True

    def origin_of(self, name: str, data: Microdata) -> Origin:
        """Return how a released value of a column depends on one person's own value, beyond a model of many people."""
        return self.origins(data, dict.fromkeys(data.names, "unmasked"))[name]

    def origins(self, data: Microdata, before: Mapping[str, Origin]) -> Mapping[str, Origin]:
        """Return the origin of each column after this method, given those before it.

        By default it is `value_origin` for each masked column. What was drawn from a model stays so, whatever follows.
        """
        after = {name: self.value_origin for name in self.masks(data) if before.get(name) == "unmasked"}
        return {**before, **after}

    def linkable_columns(self, data: Microdata) -> tuple[str, ...]:
        """Return the released columns in which a row still depends on one person's own value, in file order."""
        origins = self.origins(data, dict.fromkeys(data.names, "unmasked"))
        return tuple(name for name in data.names if name not in data.unreleased_columns and origins[name] != "model")

    def incompatibilities(self, data: Microdata) -> Iterator[str]:
        """Yield every reason why this method does not fit these data, one sentence each."""
        yield from data.schema.unsupported_roles("wave")
        for name in self._columns():
            if name not in data.schema:
                yield f"{type(self).__name__}: no column {name!r}.{did_you_mean(name, data.names)}"
        for name in self.masks(data):
            if name not in data.schema:
                continue
            variable = data.schema[name]
            if variable.kind not in self.kinds:
                yield f"{type(self).__name__} masks {' and '.join(self.kinds)} variables; {name!r} is {variable.kind}."
            unmasked = (
                "identifier",
                "household",
                "drop",
                "case",
                *UNSUPPORTED_ROLES,
                *(() if self.masks_weight else ("weight",)),
            )
            if variable.role in unmasked:
                yield f"{type(self).__name__} cannot mask {name!r}: it is the file's {variable.role}."
            if self.missing == "refused" and data.missing(name).any():
                yield f"{type(self).__name__} needs a variable without missing values; {name!r} has some."

    def recoded_rows(self, released: Microdata, name: str) -> Array | None:
        """Return the rows of a released file whose value is recognizably recoded, by the file and the spec only.

        None where the method does not recode.
        """
        return None

    def schema_after(self, schema: Schema) -> Schema:
        """Return the schema of the released file. A method that turns numbers into categories overrides it."""
        return schema

    def _columns(self) -> tuple[str, ...]:
        return (*self.masked_names, *self.within)

    def apply(self, data: Microdata, stream: Stream) -> Microdata:
        """Check the data and mask them, in each stratum of `within` with its own stream."""
        self._check_data(data)
        if not self.within:
            return self._check_masked(self.mask(data, stream.rng()))
        parts = rows_by_cell(data, self.within)
        return _join(data, [(rows, self._mask_stratum(data, rows, stream, len(parts))) for rows in parts])

    def apply_batch(self, data: Microdata, streams: Sequence[Stream]) -> MaskedBatch:
        """Return one masked file per stream, each as `apply` returns it; they are made together where the method can."""
        if self.can_mask_batch and not self.within and data.origin is None and data.paired:
            self._check_data(data)
            if (numbers := self.mask_batch(data, streams)) is not None:
                return MaskedBatch.of_numbers(data, numbers)
        return MaskedBatch.of_files(data, [self.apply(data, stream) for stream in streams])

    def _check_data(self, data: Microdata) -> None:
        if problems := list(self.incompatibilities(data)):
            raise SchemaError(" ".join(problems))

    def _mask_stratum(self, data: Microdata, rows: Array, stream: Stream, count: int) -> Microdata:
        part = extract_rows(data, rows)
        label = "|".join(str(part[name][0]) for name in self.within)  # contains data values: only hashed, never shown
        try:
            return self._check_masked(self.mask(part, stream.child(f"stratum {label}").rng()))
        except Infeasible as reason:
            raise Infeasible(f"in one of {count} strata: {reason}") from None

    def _check_masked(self, masked: object) -> Microdata:
        """Return what `mask` returned, or raise ContractBroken where it is not Microdata."""
        if not isinstance(masked, Microdata):
            raise ContractBroken(f"{type(self).__name__} returned {type(masked).__name__}, not Microdata.")
        return masked


Trials = Mapping[str, Method | str]  # name of each trial -> the method, or why it is left out
# a strength from 0 to 1, the columns to mask, and the roles -> the method, or None where it is not tried
StrengthScale = Callable[[float, tuple[str, ...], Roles], Method | None]


def strength_parameter(method: Method) -> str:
    """Return the name of the parameter that controls how strongly a method masks: its first number, or "" without one."""
    return next((f.name for f in fields(method) if type(getattr(method, f.name)) in (int, float)), "")


def fields_by_stratum(
    within: tuple[str, ...], known: Microdata, released: Microdata, fields_of: Callable[[Array, Array], Fields]
) -> Fields:
    """Return the likelihood fields of the whole file from those of each stratum of `within`.

    fields_of : computes the fields of one stratum from its rows in both files.
    """
    if not within:
        return fields_of(np.arange(len(known)), np.arange(len(released)))
    codes, _ = compress([common_codes(known, released, name) for name in within])
    return fields_by_part(codes, len(known), fields_of)


def extract_rows(data: Microdata, rows: Array) -> Microdata:
    """Return these rows as an independent file that does not record where they came from."""
    part = data.take(rows)
    return Microdata(part.schema, part.columns)


def _join(data: Microdata, parts: list[tuple[Array, Microdata]]) -> Microdata:
    """Return the strata joined again, in the order of the file."""
    # a part with an origin has reordered, dropped or repeated its rows; rows are counted in the whole file from here on
    rows = np.concatenate([own if part.origin is None else own[part.origin] for own, part in parts])
    order = np.argsort(rows, kind="stable")
    same_rows = all(part.origin is None for _, part in parts)
    names = dict.fromkeys(name for _, part in parts for name in part.changes)
    joined = {name: stack_columns([part.column(name) for _, part in parts]) for name in names}
    whole = data if same_rows else data.take(rows[order])
    levels = {n: c.levels for n, c in joined.items() if c.levels is not None and c.levels is not data.column(n).levels}
    reasons = {
        name: None if column.reasons is None else column.reasons[order]
        for name, column in joined.items()
        if column.levels is None and data.column(name).reasons is not None
    }
    values = {name: column.values[order] for name, column in joined.items()}
    masked = with_reasons(whole, reasons).change(None, values, levels)
    return replace(masked, paired=all(part.paired for _, part in parts))
