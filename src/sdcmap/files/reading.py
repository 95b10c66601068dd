"""Files and frames in; kinds and roles are inferred here and can be stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.core.value import Value
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.readable import Readable
from sdcmap.data.schema import KINDS, Schema, Variable, in_calendar
from sdcmap.errors import MOST_PROBLEMS, MissingExtra, PlanError, SchemaError, did_you_mean, shortened
from sdcmap.files.formats import format_of
from sdcmap.files.plain import check_width
from sdcmap.files.stat import coded_frame, split_missing
from sdcmap.kernels.arrays import Array

ORDINAL_LEVELS = 50  # a whole-number key with at most so many distinct values is read as ordinal
Names = str | Sequence[str]
_NAMED = (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)  # types whose values are categories by themselves


@dataclass(frozen=True)
class Source(Value):
    """Where microdata lie and what their columns are: the arguments of `read`, as a plan keeps them."""

    path: str
    keys: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()
    household: tuple[str, ...] = ()
    stratum: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def read(self, folder: Path = Path()) -> Microdata:
        """Read the file; a relative path is looked up below `folder`."""
        roles = {name: getattr(self, name) for name in (*_ROLE_OF, "numeric", "missing")}
        return read(folder / self.path, **roles, kinds=self.kinds)

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds as stated, by column."""
        return {name: kind for kind in ("nominal", "ordinal") for name in getattr(self, kind)}


_ROLE_OF = {
    "keys": "key", "sensitive": "sensitive", "identifiers": "identifier", "weight": "weight", "household": "household",
    "stratum": "stratum", "other": "other",
}  # fmt: skip


def read(
    source: Readable, *, keys: Names = (), numeric: Names = (), sensitive: Names = (), identifiers: Names = (),
    weight: Names | None = None, household: Names | None = None, stratum: Names | None = None, other: Names = (),
    kinds: Mapping[str, str] | None = None, missing: Names = (),
) -> Microdata:  # fmt: skip
    """Microdata from a file (CSV, Parquet, SPSS, Stata, SAS) or from any Arrow-capable frame.

    Parameters
    ----------
    source : a path, or a polars, pyarrow or pandas frame.
    keys : variables a snooper may know. sensitive : what he would like to learn. identifiers : names and numbers of
        persons, dropped from every release. weight, household, stratum : the survey's own columns. other : columns
        looked at and found to have no role. Each takes a name, a list of names, or "all" (every column not yet named).
    numeric : columns that are amounts; they count as looked at.
    kinds : {"column": "numeric" | "ordinal" | "nominal"} where the inferred kind is wrong. Text is nominal, a date
        ordinal, a number numeric; a whole-number key with at most 50 distinct values is ordinal.
    missing : texts of a CSV file that mean "missing", besides the empty field.

    Missing values stay missing: NaN in a numeric column, a last category of their own in the others (NaN means missing
    everywhere). User-missing codes of SPSS, Stata and SAS are missing too, and are written back as the codes they were.

    >>> import polars as pl
    >>> read(pl.DataFrame({"age": [31, 44], "sex": ["f", "m"]}), keys=["age", "sex"])
    Microdata(2 rows, 2 columns: age, sex)
    """
    stated = {
        "keys": keys, "sensitive": sensitive, "identifiers": identifiers, "weight": weight or (),
        "household": household or (), "stratum": stratum or (), "other": other,
    }  # fmt: skip
    frame, facts, form = _frame_of(source, _names(missing))
    wanted = _wanted(frame.columns, frame.height, stated, numeric, kinds or {}, facts)
    variables, columns = [], {}
    for fact, kind in wanted:
        variable, columns[fact.name] = encode(frame[fact.name], fact, kind)
        variables.append(variable)
    data = Microdata(Schema(tuple(variables), form), columns)
    if data.weight is not None:
        weights = data.numbers(data.weight)
        bad = int((~(weights > 0)).sum())
        if bad:
            raise SchemaError(f"weight {data.weight!r} must be above zero and not missing; {bad} rows are not.")
    return data


def plan_columns(source: Source, columns: Sequence[str], rows: int) -> list[tuple[Variable, str | None]]:
    """What is stated of each column of a file: its variable with the role, and its kind where one is stated."""
    stated = {name: getattr(source, name) for name in _ROLE_OF}
    return _wanted(columns, rows, stated, source.numeric, source.kinds, {})


def _wanted(
    columns: Sequence[str], rows: int, stated: Mapping[str, Names], numeric: Names, kinds: Mapping[str, str],
    facts: Mapping[str, Variable],
) -> list[tuple[Variable, str | None]]:  # fmt: skip
    check_width("the file", len(columns))
    roles, amounts = _roles(columns, stated, numeric)
    if rows == 0:
        raise SchemaError("the data have no rows.")
    stated_kinds = dict(kinds) | dict.fromkeys(amounts, "numeric")
    for name, kind in stated_kinds.items():
        if name not in columns:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, columns)}")
        if kind not in KINDS:
            raise SchemaError(f"the kind of column {name!r} must be one of {', '.join(KINDS)}.")
    role_of = {name: roles.get(name, "other" if name in amounts else None) for name in columns}
    return [
        (replace(facts.get(name, Variable(name, "")), name=name, role=role_of[name]), stated_kinds.get(name))
        for name in columns
    ]


def encode(raw: pl.Series, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """One raw column as (variable, column): user-missing codes set apart, kind settled, values as codes or float64."""
    clean, reasons, codes = split_missing(raw, fact)
    dtype = clean.dtype
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in _NAMED):
        raise SchemaError(f"column {raw.name!r} is {dtype.base_type()}; text, numbers, dates and booleans are read.")
    if dtype.is_temporal() and not in_calendar(clean):
        raise SchemaError(f"column {raw.name!r} holds dates or times that no calendar has; make them missing first.")
    clean = clean.fill_nan(None) if dtype.is_float() else clean
    kind = kind or _kind_of(clean, fact)
    storage = f"Decimal({dtype.precision}, {dtype.scale})" if isinstance(dtype, pl.Decimal) else str(dtype.base_type())
    variable = replace(fact, name=raw.name, kind=kind, reasons=codes, storage=storage)
    if kind == "numeric":
        return variable, Column(_float64(clean), None, reasons if codes else None)
    if isinstance(dtype, pl.Enum):
        levels, codes_of_rows = dtype.categories.rename(raw.name), clean.to_physical()
    else:
        clean = clean.cast(pl.String) if dtype == pl.Categorical else clean
        levels = clean.drop_nulls().unique().sort()
        codes_of_rows = clean.replace_strict(levels, np.arange(len(levels)), return_dtype=pl.UInt32)
    values = codes_of_rows.cast(pl.UInt32).fill_null(len(levels)).to_numpy()
    if codes_of_rows.null_count():
        levels = levels.extend_constant(None, 1 + len(codes))
        values = values + reasons
    return variable, Column(values.astype(smallest_unsigned(len(levels))), levels)


def _kind_of(clean: pl.Series, fact: Variable) -> str:
    dtype = clean.dtype
    if fact.role == "weight" and dtype.is_numeric():
        return "numeric"
    if fact.measure in ("nominal", "ordinal"):
        return fact.measure
    if dtype.is_temporal():
        return "ordinal"
    if not dtype.is_numeric() or fact.role in ("identifier", "household", "stratum"):
        return "nominal"
    labelled = [float(code) for code, _ in fact.values if not isinstance(code, str)]
    valid = clean.drop_nulls().unique().cast(pl.Float64)
    if len(valid) <= max(len(labelled), 2) and bool(valid.is_in(labelled).any()):
        return "nominal"
    # SPSS and SAS hold every number as a float, so whole floats of a statistics file count as whole numbers
    whole = dtype.is_integer() or (fact.measure != "" and bool((clean == clean.round()).all()))
    return "ordinal" if fact.role == "key" and whole and len(valid) <= ORDINAL_LEVELS else "numeric"


def _float64(clean: pl.Series) -> Array:
    if clean.null_count() == len(clean):
        return np.full(len(clean), np.nan)
    if not clean.dtype.is_numeric():
        raise SchemaError(
            f"column {clean.name!r} is {clean.dtype.base_type()}, not numbers; state another kind for it."
        )
    values = clean.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    endless = int(np.isinf(values).sum())
    if endless:
        raise SchemaError(f"column {clean.name!r} holds {endless} infinite values; make them missing first.")
    with suppress(pl.exceptions.PolarsError):  # a decimal of 38 digits may round up to 39
        if clean.cast(pl.Float64).cast(clean.dtype, strict=False).eq_missing(clean).all():
            return np.ascontiguousarray(values)
    raise SchemaError(f"column {clean.name!r} holds numbers with more digits than 2^53; state it as nominal.")


def _roles(columns: Sequence[str], stated: Mapping[str, Names], numeric: Names) -> tuple[dict[str, str], set[str]]:
    roles: dict[str, str] = {}
    problems = []
    every = [argument for argument, names in stated.items() if names == "all"]
    amounts = set() if numeric == "all" else set(_names(numeric))
    for argument, names in stated.items():
        listed = () if argument in every else _names(names)
        if argument in ("weight", "household", "stratum") and (len(listed) > 1 or argument in every):
            problems.append(f"{argument} takes one column.")
        for name in listed:
            if name in roles and roles[name] != _ROLE_OF[argument]:
                problems.append(f"column {name!r} has two roles, {roles[name]} and {_ROLE_OF[argument]}.")
            roles[name] = _ROLE_OF[argument]
    there = set(columns)
    unknown = dict.fromkeys(name for name in (*roles, *sorted(amounts)) if name not in there)
    problems += [
        f"no column {shortened(name)}.{did_you_mean(name, columns)}" for name in islice(unknown, MOST_PROBLEMS)
    ]
    if len(every) > 1:
        problems.append(f"only one of {' and '.join(every)} can be 'all'.")
    if problems:
        raise SchemaError(" ".join(problems))
    if every:
        rest = [name for name in columns if name not in roles and name not in amounts]
        roles |= dict.fromkeys(rest, _ROLE_OF[every[0]])
    if numeric == "all":
        amounts = {name for name in columns if roles.get(name) in (None, "key", "sensitive", "other")}
    return roles, amounts


def _frame_of(source: Readable, missing: tuple[str, ...]) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    """The raw frame, what the file says of its variables, and the format a release is written in."""
    if isinstance(source, Microdata):
        return coded_frame(source), {v.name: v for v in source.schema.variables}, source.schema.format
    if isinstance(source, str | Path):
        return _frame_of_file(Path(source), missing)
    try:
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
    except ImportError as error:
        raise MissingExtra("a pandas frame needs pyarrow: pip install pyarrow") from error
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        kind = type(source).__name__
        raise SchemaError(f"a {kind} cannot be read: give a path or a frame with unique column names.") from None
    return frame, {}, "parquet"


def _frame_of_file(path: Path, missing: tuple[str, ...]) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    if path.is_dir():
        raise SchemaError(f"{path} is a folder, and a file is needed.")
    form = format_of(path)
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if path.stat().st_size == 0:
        raise SchemaError(f"{path.name} is empty (0 bytes).")
    try:
        return *form.read(path, missing), form.released
    except SchemaError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # its message may quote the file: only its type is told
        hint = f" {form.hint}" if form.hint else ""
        problem = f"{path.name} cannot be read as {form.name} ({type(error).__name__}).{hint}"
    raise SchemaError(problem) from None  # out here it does not hold the other error, and with it what was read


def _names(names: Names) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("column names must be texts.")
    return tuple(names)
