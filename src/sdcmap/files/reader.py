"""Read files and frames as microdata; kinds are inferred or stated, roles are stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.core import Array, Value
from sdcmap.data.known_by import DATES, parse_known_by, with_known_by
from sdcmap.data.known_by import Stated as KnownBy
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.readable import LabeledFrame, Readable
from sdcmap.data.schema import KINDS, Schema, Variable, check_names, is_in_calendar
from sdcmap.errors import MAX_PROBLEMS_SHOWN, MissingExtra, PlanError, SchemaError, did_you_mean, quote_text
from sdcmap.files.csv_parquet import ReadOptions, check_width
from sdcmap.files.ddi import DDICodebook, read_ddi
from sdcmap.files.dialect import Dialect, detect_dialect, explicit_fields
from sdcmap.files.formats import format_of, is_data_file
from sdcmap.files.missing_codes import Codes, StatedCodes, add_codes, check_columns, codes_for_column, parse_codes
from sdcmap.files.stat import frame_with_codes, split_missing
from sdcmap.files.text_types import infer_types

MAX_ORDINAL_KEY_LEVELS = 50  # a whole-number key with at most so many distinct values is read as ordinal
MAX_EXACT_INTEGER = 2.0**53  # all smaller whole numbers can be stored as float64
Names = str | Sequence[str]
_CATEGORY_TYPES = (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)  # types that are always categories


@dataclass(frozen=True)
class Source(Value):
    """A data file and the roles of its columns: the arguments of `read`, as a plan stores them.

    Parameters
    ----------
    path : the file; a relative path is relative to the plan.
    proposed : columns whose role was proposed by `sdcmap look` and not confirmed yet; they cannot be released.
    nominal : columns that are categories without an order, if the inferred kind is wrong.
    ordinal : columns that are categories with an order, if the inferred kind is wrong.
    within : the study that released this file, if this release is nested in that one.
    """

    path: str
    keys: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    weight: tuple[str, ...] = ()
    household: tuple[str, ...] = ()
    stratum: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    replicate: tuple[str, ...] = ()
    psu: tuple[str, ...] = ()
    wave: tuple[str, ...] = ()
    case: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    nominal: tuple[str, ...] = ()
    ordinal: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    sep: str = ""
    decimal: str = ""
    thousands: str = ""
    quote: str = ""
    encoding: str = ""
    census: bool = False
    known_by: tuple[str, ...] = ()  # "q1,q2=respondent only: why"
    ddi: str = ""  # path of a DDI-Codebook
    within: str = ""

    def problems(self) -> Iterator[str]:
        try:
            _ = self.dialect
        except PlanError as error:
            yield from (f": {problem}" for problem in error.problems)

    def read(self, folder: Path = Path()) -> Microdata:
        """Read the file; a relative path is relative to `folder`."""
        stated = {name: getattr(self, name) for name in (*_ROLE_OF, "numeric", "missing")}
        return read(
            folder / self.path, **stated, **explicit_fields(self.dialect), kinds=self.kinds, census=self.census,
            known_by=self.known_by, ddi=folder / self.ddi if self.ddi else "",
        )  # fmt: skip

    def apply_to(self, data: Microdata) -> Microdata:
        """Return data that were read before with the roles and kinds stated here.

        Columns of an unchanged kind are reused; others are encoded again, once.
        """
        statements = plan_columns(self, data.names, len(data), {v.name: v for v in data.schema.variables})
        encoded = [_encode_as_stated(data, fact, kind) for fact, kind in statements]
        variables = with_known_by([variable for variable, _ in encoded], parse_known_by(self.known_by))
        schema = replace(data.schema, variables=variables, census=self.census or data.schema.census)
        return _check_weight(Microdata(schema, {variable.name: column for variable, column in encoded}))

    @property
    def without_roles(self) -> Source:
        """The same file and dialect, without any statement about columns."""
        return Source(self.path, **explicit_fields(self.dialect))

    def read_coded_column(self, data: Microdata, name: str, folder: Path = Path()) -> tuple[Variable, Column]:
        """Return one column with the codes for missing values stated here.

        `data` were read from this file without statements. At most this one column is read again.
        """
        path, codes = folder / self.path, codes_for_column(parse_codes(self.missing), name)
        raw = frame_with_codes(data.only([name]))[name]
        raw = self._infer_type_again(path, raw, codes) if format_of(path).dialects else raw
        return encode(raw, add_codes(data.schema[name], raw.dtype, codes), None)

    def _infer_type_again(self, path: Path, raw: pl.Series, codes: Codes) -> pl.Series:
        """Return a column of a text file in the type of its texts that are not codes."""
        if raw.dtype == pl.String:
            return infer_types(raw.to_frame(), detect_dialect(path, self.dialect), codes)[raw.name]
        known = raw.drop_nulls().cast(pl.Float64).to_numpy() if raw.dtype.is_numeric() else np.array([])
        rest = known[~np.isin(known, [code.number for code in codes if code.number is not None])]
        if len(rest) and (raw.dtype.is_integer() or (rest != np.rint(rest)).any()):
            return raw  # without the codes the type is the same
        return _frame_of_file(path, ReadOptions(self.dialect, codes, (raw.name,), len(raw)))[0][raw.name]

    @property
    def dialect(self) -> Dialect:
        """The stated part of the dialect of a text file."""
        return Dialect(**{f.name: getattr(self, f.name) for f in fields(Dialect)})

    def with_dialect(self, folder: Path = Path()) -> Source:
        """Return the source with the detected dialect, if it is a text file."""
        path = folder / self.path
        if not (is_data_file(path) and format_of(path).dialects and path.is_file()):
            return self
        return replace(self, **explicit_fields(detect_dialect(path, self.dialect)))

    @property
    def kinds(self) -> dict[str, str]:
        """Stated kinds by column."""
        return {name: kind for kind in ("nominal", "ordinal") for name in getattr(self, kind)}


_ROLE_OF = {
    "keys": "key", "sensitive": "sensitive", "identifiers": "identifier", "weight": "weight", "household": "household",
    "stratum": "stratum", "other": "other", "drop": "drop", "replicate": "replicate", "psu": "psu", "wave": "wave",
    "case": "case",
}  # fmt: skip
MAX_COUNTED_SPAN = 1 << 16  # whole numbers within this span are encoded by counting, which is faster than sorting
NON_NUMERIC_TYPES = ("String", "Boolean", "Enum", "Categorical", *DATES)  # roles do not change their kind
_SINGLE_COLUMN_ROLES = ("weight", "household", "stratum", "psu", "wave", "case")  # roles of a single column


def read(
    source: Readable, *, keys: Names = (), numeric: Names = (), sensitive: Names = (), identifiers: Names = (),
    weight: Names | None = None, household: Names | None = None, stratum: Names | None = None, other: Names = (),
    drop: Names = (), replicate: Names = (), psu: Names = (), wave: Names = (), case: Names = (),
    kinds: Mapping[str, str] | None = None, missing: StatedCodes = (),
    sep: str = "", decimal: str = "", thousands: str = "", quote: str = "", encoding: str = "", census: bool = False,
    known_by: KnownBy = (), ddi: str | Path = "",
) -> Microdata:  # fmt: skip
    """Read microdata from a file (CSV and other text, Parquet, SPSS, Stata, SAS, R) or from an Arrow-capable frame.

    Parameters
    ----------
    source : a path, or a polars, pyarrow or pandas frame.
    keys : variables that an attacker may know. A role is a name, a list of names, or "all" (every column not yet named).
    sensitive : variables that an attacker would like to learn.
    identifiers : names and numbers of persons, removed from every release.
    weight, household, stratum : survey columns.
    other : columns that were reviewed and have no role.
    drop : columns that are removed from every release.
    replicate, psu, wave, case : replicate weights, sampling unit, wave and person of a panel. These roles are not
        supported yet, so such columns cannot be released.
    numeric : columns that are amounts; they count as reviewed.
    kinds : {"column": "numeric" | "ordinal" | "nominal"} if the inferred kind is wrong. Text is nominal, a date ordinal, a
        number numeric; a whole-number key with at most 50 distinct values is ordinal.
    missing : codes for missing values: {"income": [-8], "*": ["N"]} ("*": every column), with optional labels
        {"income": {-8: "not applicable"}}; or texts, "N" and "income=-8 (not applicable)".
    sep, decimal, thousands, quote, encoding : the dialect of a text file, if it is not detected correctly (see `Dialect`).
    census : the file contains the whole population, so membership is not a secret and is not measured.
    known_by : {"q1": "respondent only: why"} for columns that only the respondent could know, or "register" and
        "acquaintance" for who else could. By default others could know every column. "respondent only" is refused for
        keys, amounts, dates and places.
    ddi : a DDI-Codebook (codebook.xml) with metadata that the file lacks: labels, universes, and codes for missing
        values. Variables that are not in the file are ignored.

    Missing values are NaN in a numeric column and a last category in other columns. Codes for missing values, stated or
    from SPSS, Stata and SAS, are missing too, and are written to a release as the same codes. The texts of a CSV column
    become numbers, dates or booleans if all of them are.

    Examples
    --------
    >>> import polars as pl
    >>> read(pl.DataFrame({"age": [31, 44], "sex": ["f", "m"]}), keys=["age", "sex"])
    Microdata(2 rows, 2 columns: age, sex)
    """
    arguments = locals()
    stated = {name: arguments[name] or () for name in _ROLE_OF}
    book = read_ddi(ddi) if ddi else DDICodebook()
    asked = ReadOptions(Dialect(sep, decimal, thousands, quote, encoding), (*parse_codes(missing), *book.codes))
    frame, facts, form = _frame_of(source, asked)
    check_columns(parse_codes(missing), frame.columns)
    if book.variables or asked.missing:
        facts = {
            name: _apply_codebook(book, facts.get(name, Variable(name, "")), dtype)
            for name, dtype in frame.schema.items()
        }
        facts = {n: add_codes(fact, frame[n].dtype, codes_for_column(asked.missing, n)) for n, fact in facts.items()}
    statements = _state_columns(frame.columns, frame.height, stated, numeric, kinds or {}, facts)
    encoded = [encode(frame[fact.name], fact, kind) for fact, kind in statements]
    variables = with_known_by([variable for variable, _ in encoded], parse_known_by(known_by))
    before = source.schema if isinstance(source, Microdata) else Schema(())
    study = (census or before.census, book.title or before.title, book.universe or before.universe)
    return _check_weight(Microdata(Schema(variables, form, *study), {v.name: column for v, column in encoded}))


def _check_weight(data: Microdata) -> Microdata:
    """Return the data; SchemaError if a weight is missing or not positive."""
    if data.weight is not None and (invalid := int((~(data.numbers(data.weight) > 0)).sum())):
        raise SchemaError(f"weight {data.weight!r} must be above zero in every row; it is not in {invalid:,} rows.")
    return data


def _apply_codebook(book: DDICodebook, fact: Variable, dtype: pl.DataType) -> Variable:
    """Return a variable with the metadata of the codebook."""
    return book.variables[fact.name].complete(fact, dtype) if fact.name in book.variables else fact


def _encode_as_stated(data: Microdata, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """Return a column of data that were read before, encoded as stated now."""
    name = fact.name
    if _is_unchanged(data, fact, kind):
        return fact, data.column(name)
    return data.remember(
        (encode, name, fact, kind), lambda: encode(frame_with_codes(data.only([name]))[name], fact, kind)
    )


def _is_unchanged(data: Microdata, fact: Variable, kind: str | None) -> bool:
    """Return whether a statement leaves the encoding of a column as it was read.

    It does if the stated kind is the old one. Without a stated kind it does for types that are not numbers, and for
    numbers whose new role does not make them categories.
    """
    before = data.schema[fact.name]
    if kind is not None:
        return kind == before.kind
    same = before.role is None and fact.role not in ("weight", "key", "identifier", "household", "stratum")
    return same or fact.storage in NON_NUMERIC_TYPES


def plan_columns(
    source: Source, columns: Sequence[str], rows: int, facts: Mapping[str, Variable] | None = None
) -> list[tuple[Variable, str | None]]:
    """Return the statements about each column of a file: its variable with the role, and its kind if stated."""
    stated = {name: getattr(source, name) for name in _ROLE_OF}
    return _state_columns(columns, rows, stated, source.numeric, source.kinds, facts or {})


def _state_columns(
    columns: Sequence[str], rows: int, stated: Mapping[str, Names], numeric: Names, kinds: Mapping[str, str],
    facts: Mapping[str, Variable],
) -> list[tuple[Variable, str | None]]:  # fmt: skip
    check_width("the file", len(columns))
    check_names(columns)
    roles, amounts = _roles(columns, stated, numeric)
    if rows == 0:
        raise SchemaError("the data have no rows: at least one record is needed.")
    stated_kinds = dict(kinds) | dict.fromkeys(amounts, "numeric")
    known = set(columns)
    for name, kind in stated_kinds.items():
        if name not in known:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, columns)}")
        if kind not in KINDS:
            raise SchemaError(f"the kind of column {name!r} must be one of {', '.join(KINDS)}.")
    own = [(facts.get(name, Variable(name, "")), name, "other" if name in amounts else None) for name in columns]
    return [(replace(f, name=n, role=roles.get(n, unstated)), stated_kinds.get(n)) for f, n, unstated in own]


def encode(raw: pl.Series, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """Encode one raw column: separate user-missing codes, determine the kind, store values as codes or float64."""
    clean, reasons, codes = split_missing(raw, fact)
    dtype = clean.dtype
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in _CATEGORY_TYPES):
        raise SchemaError(f"column {raw.name!r} is {dtype.base_type()}: use text, numbers, dates or booleans.")
    if dtype.is_temporal() and not is_in_calendar(clean):
        raise SchemaError(f"column {raw.name!r} has dates or times outside the calendar: make them missing first.")
    kind = kind or _kind_of(clean, fact)
    clean = clean.fill_nan(None) if dtype.is_float() and kind != "numeric" else clean
    storage = f"Decimal({dtype.precision}, {dtype.scale})" if isinstance(dtype, pl.Decimal) else str(dtype.base_type())
    variable = replace(fact, name=raw.name, kind=kind, reasons=codes, storage=storage)
    if kind == "numeric":
        return variable, Column(_float64(clean), None, reasons if codes else None)
    levels, values = _levels_and_codes(clean)
    if clean.null_count():
        levels = levels.extend_constant(None, 1 + len(codes))
        values = values + reasons
    return variable, Column(values.astype(smallest_unsigned(len(levels))), levels)


def _levels_and_codes(clean: pl.Series) -> tuple[pl.Series, Array]:
    """The values of a column in order, and the place of each row's among them; of a missing one, the place after all."""
    if isinstance(clean.dtype, pl.Enum):
        levels = clean.dtype.categories.rename(clean.name)
        return levels, clean.to_physical().cast(pl.UInt32).fill_null(len(levels)).to_numpy()
    if clean.dtype.is_integer() and (span := _span(clean)) is not None:
        return _encode_by_counting(clean, *span)
    clean = clean.cast(pl.String) if clean.dtype == pl.Categorical else clean
    levels = clean.drop_nulls().unique().sort()
    codes = clean.replace_strict(levels, np.arange(len(levels)), return_dtype=pl.UInt32)
    return levels, codes.cast(pl.UInt32).fill_null(len(levels)).to_numpy()


def _span(clean: pl.Series) -> tuple[int, int] | None:
    """Return the smallest and the largest of whole numbers if they are close together, else None."""
    low, high = clean.min(), clean.max()
    is_narrow = (
        isinstance(low, int)
        and isinstance(high, int)
        and high - low < MAX_COUNTED_SPAN
        and abs(low) < MAX_EXACT_INTEGER
    )
    return (low, high) if is_narrow else None  # type: ignore[return-value]


def _encode_by_counting(clean: pl.Series, low: int, high: int) -> tuple[pl.Series, Array]:
    """Return levels and codes of whole numbers from low to high, by counting."""
    whole = clean.cast(pl.Int64)
    offset = (whole.fill_null(high + 1) if whole.null_count() else whole).to_numpy() - low
    occurs = np.bincount(offset, minlength=high - low + 2)[:-1] > 0
    levels = pl.Series(clean.name, np.flatnonzero(occurs) + low, dtype=pl.Int64).cast(clean.dtype)
    code = np.cumsum(np.append(occurs, True)) - 1  # the last code is that of missing
    return levels, code[offset].astype(np.uint32)


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
    # Numbers with value labels for (nearly) all values are categories.
    labeled = [float(code) for code, _ in fact.values if not isinstance(code, str)]
    if not labeled and fact.role != "key":
        return "numeric"
    clean = clean.fill_nan(None) if dtype.is_float() else clean
    valid = clean.drop_nulls().unique().cast(pl.Float64)
    if len(valid) <= max(len(labeled), 2) and bool(valid.is_in(labeled).any()):
        return "nominal"
    # SPSS and SAS store every number as a float, so whole floats of a statistics file count as whole numbers.
    whole = dtype.is_integer() or (fact.measure != "" and bool((clean == clean.round()).all()))
    return "ordinal" if fact.role == "key" and whole and len(valid) <= MAX_ORDINAL_KEY_LEVELS else "numeric"


def _float64(clean: pl.Series) -> Array:
    if clean.null_count() == len(clean):
        return np.full(len(clean), np.nan)
    if not clean.dtype.is_numeric():
        kind = clean.dtype.base_type()
        raise SchemaError(f"column {clean.name!r} is {kind}, not numeric: state another kind for it.")
    values = np.ascontiguousarray(clean.cast(pl.Float64).to_numpy())
    if infinite := int(np.isinf(values).sum()):
        raise SchemaError(f"column {clean.name!r} has {infinite:,} infinite values: make them missing first.")
    if clean.dtype.is_float() or (clean.dtype.is_integer() and np.nanmax(np.abs(values)) < MAX_EXACT_INTEGER):
        return values
    # Decimals and large integers are accepted if float64 represents them exactly.
    with suppress(pl.exceptions.PolarsError):  # casting back a decimal of 38 digits may overflow
        if clean.cast(pl.Float64).cast(clean.dtype, strict=False).eq_missing(clean).all():
            return values
    raise SchemaError(f"column {clean.name!r} has numbers with more digits than 2^53: state it as nominal.")


def _roles(columns: Sequence[str], stated: Mapping[str, Names], numeric: Names) -> tuple[dict[str, str], set[str]]:
    roles: dict[str, str] = {}
    problems = []
    # "all" is resolved last: it means the columns that no other argument names.
    every = [argument for argument, names in stated.items() if names == "all"]
    amounts = set() if numeric == "all" else set(_names(numeric))
    for argument, names in stated.items():
        listed = () if argument in every else _names(names)
        if argument in _SINGLE_COLUMN_ROLES and (len(listed) > 1 or argument in every):
            problems.append(f"{argument} takes one column.")
        for name in listed:
            if name in roles and roles[name] != _ROLE_OF[argument]:
                problems.append(f"column {name!r} has two roles, {roles[name]} and {_ROLE_OF[argument]}.")
            roles[name] = _ROLE_OF[argument]
    known = set(columns)
    unknown = dict.fromkeys(name for name in (*roles, *sorted(amounts)) if name not in known)
    first = islice(unknown, MAX_PROBLEMS_SHOWN)
    problems += [f"no column {quote_text(name)}.{did_you_mean(name, columns)}" for name in first]
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


def read_frame(source: Readable) -> pl.DataFrame:
    """Return the columns of a file or frame without any statement about their roles."""
    return _frame_of(source, ReadOptions())[0]


def _frame_of(source: Readable, asked: ReadOptions) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    """Return the raw frame, the metadata of its variables, and the format of a release."""
    if isinstance(source, Microdata):
        return frame_with_codes(source), {v.name: v for v in source.schema.variables}, source.schema.format
    if isinstance(source, LabeledFrame):
        return source.frame, source.facts, "parquet"
    if isinstance(source, str | Path):
        return _frame_of_file(Path(source), asked)
    try:
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
    except ImportError as error:
        raise MissingExtra("reading a pandas frame needs pyarrow: pip install pyarrow") from error
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        kind = type(source).__name__
        raise SchemaError(f"a {kind} cannot be read: give a path or a frame with unique column names.") from None
    return frame, {}, "parquet"


def _frame_of_file(path: Path, asked: ReadOptions) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    if path.is_dir():
        raise SchemaError(f"{path} is a folder: name a data file.")
    form = format_of(path)
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if path.stat().st_size == 0:
        raise SchemaError(f"{path.name} is empty (0 bytes).")
    try:
        return *form.read(path, asked), form.released
    except (SchemaError, MissingExtra):
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # its message may quote the file
        hint = f" {form.hint}" if form.hint else ""
        problem = f"{path.name} cannot be read as {form.name} ({type(error).__name__}).{hint}"
    raise SchemaError(
        problem
    ) from None  # raised outside the handler, so that it does not keep the data of the first error alive


def _names(names: Names) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("column names must be texts.")
    return tuple(names)
