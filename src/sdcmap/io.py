"""Files and frames in, files out; kinds and roles are inferred here and can be stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.errors import MissingExtra, PlanError, SchemaError, did_you_mean
from sdcmap.microdata import Array, Column, Microdata, smallest_unsigned
from sdcmap.schema import KINDS, Schema, Variable
from sdcmap.value import Value

STAT_FORMATS = ("sav", "dta", "sas7bdat", "xpt")
FORMATS = ("csv", "parquet", *STAT_FORMATS)
ORDINAL_LEVELS = 50  # a whole-number key with at most so many distinct values is read as ordinal
Names = str | Sequence[str]


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
        kinds = {name: kind for kind in ("nominal", "ordinal") for name in getattr(self, kind)}
        return read(folder / self.path, **roles, kinds=kinds)


_ROLE_OF = {
    "keys": "key",
    "sensitive": "sensitive",
    "identifiers": "identifier",
    "weight": "weight",
    "household": "household",
    "stratum": "stratum",
    "other": "other",
}


def read(
    source: Any,
    *,
    keys: Names = (),
    numeric: Names = (),
    sensitive: Names = (),
    identifiers: Names = (),
    weight: Names | None = None,
    household: Names | None = None,
    stratum: Names | None = None,
    other: Names = (),
    kinds: Mapping[str, str] | None = None,
    missing: Names = (),
) -> Microdata:
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

    Missing values stay missing: NaN in a numeric column, a last category of their own in the others. User-missing codes
    of SPSS, Stata and SAS are missing too, and are written back as the codes they were.

    >>> import polars as pl
    >>> read(pl.DataFrame({"age": [31, 44], "sex": ["f", "m"]}), keys=["age", "sex"])
    Microdata(2 rows, 2 columns: age, sex)
    """
    stated = {
        "keys": keys, "sensitive": sensitive, "identifiers": identifiers, "weight": weight or (),
        "household": household or (), "stratum": stratum or (), "other": other,
    }  # fmt: skip
    frame, facts, form = _frame_of(source, _names(missing))
    roles, amounts = _roles(frame.columns, stated, numeric)
    if frame.height == 0:
        raise SchemaError("the data have no rows.")
    stated_kinds = dict(kinds or {}) | dict.fromkeys(amounts, "numeric")
    for name, kind in stated_kinds.items():
        if name not in frame.columns:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, frame.columns)}")
        if kind not in KINDS:
            raise SchemaError(f"the kind of column {name!r} must be one of {', '.join(KINDS)}.")
    variables, columns = [], {}
    for column in frame.columns:
        role = roles.get(column, "other" if column in amounts else None)
        fact = facts.get(column, Variable(column, ""))
        variable, columns[column] = encode(frame[column], replace(fact, role=role), stated_kinds.get(column))
        variables.append(variable)
    data = Microdata(Schema(tuple(variables), form), columns)
    if data.weight is not None:
        weights = data.numbers(data.weight)
        bad = int((~(weights > 0)).sum())
        if bad:
            raise SchemaError(f"weight {data.weight!r} must be above zero and not missing; {bad} rows are not.")
    return data


def write(data: Microdata, path: str | Path) -> Path:
    """Write microdata as they stand, in the format that the file name's ending names."""
    path = Path(path)
    form = _format_of(path)
    if form in STAT_FORMATS:
        from sdcmap.statfiles import write_statfile

        return write_statfile(data, path)
    frame = data.frame()
    if form == "csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)
    return path


def encode(raw: pl.Series, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """One raw column as (variable, column): user-missing codes set apart, kind settled, values as codes or float64."""
    clean, reasons, codes = _split_missing(raw, fact)
    kind = kind or _kind_of(clean, fact)
    variable = replace(fact, name=raw.name, kind=kind, reasons=codes, storage=clean.dtype.base_type().__name__)
    if kind == "numeric":
        return variable, Column(_float64(clean), None, reasons if codes else None)
    if isinstance(clean.dtype, pl.Enum):
        levels = clean.dtype.categories.rename(raw.name)
        found = clean.to_physical()
    else:
        clean = clean.cast(pl.String) if clean.dtype == pl.Categorical else clean
        levels = clean.drop_nulls().unique().sort()
        found = clean.rank("dense") - 1 if clean.dtype != pl.Null else clean.cast(pl.UInt32)
    gone = clean.is_null().to_numpy()
    if gone.any():
        levels = levels.extend(pl.Series([None] * (1 + len(codes)), dtype=levels.dtype))
    values = found.fill_null(len(levels) - (1 + len(codes) if gone.any() else 0)).to_numpy().astype(np.int64)
    values = np.where(gone, values + reasons, values) if codes else values
    return variable, Column(values.astype(smallest_unsigned(len(levels))), levels)


def _split_missing(raw: pl.Series, fact: Variable) -> tuple[pl.Series, Array, tuple[float | str, ...]]:
    """User-missing values become null; `reasons` says which code each was, counting from 1 into the codes met."""
    reasons = np.zeros(len(raw), dtype=np.uint8)
    if raw.dtype == pl.Object:  # Stata and SAS: numbers mixed with the letters of special missings
        cells = raw.to_list()
        letters = sorted({cell for cell in cells if isinstance(cell, str)})
        rank = {letter: place for place, letter in enumerate(letters, 1)}
        reasons = np.array([rank.get(cell, 0) if isinstance(cell, str) else 0 for cell in cells], dtype=np.uint8)
        numbers = [None if isinstance(cell, str) else cell for cell in cells]
        return pl.Series(raw.name, numbers, dtype=pl.Float64, strict=False), reasons, tuple(letters)
    if not raw.dtype.is_numeric() or not fact.missing:
        return raw, reasons, ()
    hit = pl.Series([False] * len(raw))
    for code in fact.missing:
        low, high = code if isinstance(code, tuple) else (code, code)
        if not isinstance(low, str) and not isinstance(high, str):
            hit |= raw.is_between(low, high).fill_null(False)
    met = raw.filter(hit).unique().sort().to_list()
    for place, code in enumerate(met, 1):
        reasons[(raw == code).fill_null(False).to_numpy()] = place
    return raw.set(hit, None), reasons, tuple(met)


def _kind_of(clean: pl.Series, fact: Variable) -> str:
    dtype = clean.dtype
    if fact.measure in ("nominal", "ordinal"):
        return fact.measure
    if dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null):
        return "nominal"
    if dtype.is_temporal():
        return "ordinal"
    if not dtype.is_numeric():
        raise SchemaError(f"column {clean.name!r} has type {dtype}; text, numbers, dates and booleans are read.")
    if fact.role in ("identifier", "household", "stratum"):
        return "nominal"
    labelled = {code for code, _ in fact.values}
    if labelled and clean.drop_nulls().n_unique() <= max(len(labelled), 2):
        return "nominal"
    if fact.role == "key" and dtype.is_integer() and clean.n_unique() <= ORDINAL_LEVELS:
        return "ordinal"
    return "numeric"


def _float64(clean: pl.Series) -> Array:
    if clean.dtype == pl.Null or clean.null_count() == len(clean):
        return np.full(len(clean), np.nan)
    if not clean.dtype.is_numeric():
        raise SchemaError(f"column {clean.name!r} is {clean.dtype}, not numbers; state another kind for it.")
    values = clean.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    endless = int(np.isinf(values).sum())
    if endless:
        raise SchemaError(f"column {clean.name!r} holds {endless} infinite values; make them missing first.")
    if clean.dtype.is_integer() and np.nanmax(np.abs(values)) > 2**53:
        raise SchemaError(f"column {clean.name!r} holds whole numbers beyond 2^53; state it as nominal or identifier.")
    return np.ascontiguousarray(values)


def _roles(columns: Sequence[str], stated: Mapping[str, Names], numeric: Names) -> tuple[dict[str, str], set[str]]:
    roles: dict[str, str] = {}
    problems = []
    amounts = set() if isinstance(numeric, str) and numeric == "all" else set(_names(numeric))
    every = [argument for argument, names in stated.items() if isinstance(names, str) and names == "all"]
    for argument, names in stated.items():
        listed = () if argument in every else _names(names)
        if argument in ("weight", "household", "stratum") and len(listed) > 1:
            problems.append(f"{argument} takes one column; {len(listed)} came.")
        for name in listed:
            if name in roles and roles[name] != _ROLE_OF[argument]:
                problems.append(f"column {name!r} has two roles, {roles[name]} and {_ROLE_OF[argument]}.")
            roles[name] = _ROLE_OF[argument]
    unknown = [name for name in (*roles, *amounts) if name not in columns]
    problems += [f"no column {name!r}.{did_you_mean(name, columns)}" for name in dict.fromkeys(unknown)]
    if len(every) > 1:
        problems.append(f"only one of {' and '.join(every)} can be 'all'.")
    if problems:
        raise SchemaError(" ".join(problems))
    rest = [name for name in columns if name not in roles and name not in amounts]
    if isinstance(numeric, str) and numeric == "all":
        amounts = {name for name in columns if roles.get(name) in (None, "key", "sensitive", "other")}
    elif every:
        roles |= dict.fromkeys(rest, _ROLE_OF[every[0]])
    return roles, amounts


def _frame_of(source: Any, missing: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, Variable], str]:
    """The raw frame, what the file says of its variables, and the format a release is written in."""
    if isinstance(source, Microdata):
        return source.frame(), {v.name: replace(v, kind="") for v in source.schema.variables}, source.schema.format
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


def _frame_of_file(path: Path, missing: tuple[str, ...]) -> tuple[pl.DataFrame, dict[str, Variable], str]:
    form = _format_of(path)
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if path.stat().st_size == 0:
        raise SchemaError(f"{path.name} is empty (0 bytes).")
    try:
        if form in STAT_FORMATS:
            from sdcmap.statfiles import read_statfile

            frame, facts = read_statfile(path)
            return frame, facts, "xpt" if form == "sas7bdat" else form
        if form == "parquet":
            return pl.read_parquet(path), {}, form
        header = pl.read_csv(path, has_header=False, n_rows=1, infer_schema=False).row(0)
        twice = sorted({str(name) for name in header if header.count(name) > 1})
        if twice:
            raise SchemaError(f"{path.name} has two columns of one name: {', '.join(twice)}.")
        nulls = list(missing) if missing else None
        return pl.read_csv(path, infer_schema_length=None, null_values=nulls), {}, form
    except SchemaError:
        raise
    except Exception as error:  # a reader's own message may quote the file, so only its type is passed on
        raise SchemaError(f"{path.name} cannot be read as {form} ({type(error).__name__}).") from None


def _format_of(path: Path) -> str:
    form = path.suffix.lower().lstrip(".")
    form = {"pq": "parquet", "zsav": "sav", "xport": "xpt"}.get(form, form)
    if form not in FORMATS:
        raise SchemaError(f"{path.name}: the file's ending must be one of {', '.join('.' + name for name in FORMATS)}.")
    return form


def _names(names: Names) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("column names must be texts.")
    return tuple(names)
