"""Files and frames in; kinds and roles are inferred here and can be stated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap.core import Array, Value
from sdcmap.data.known_by import DATES, known_by_of, with_known_by
from sdcmap.data.known_by import Stated as KnownBy
from sdcmap.data.microdata import Column, Microdata, smallest_unsigned
from sdcmap.data.readable import Labeled, Readable
from sdcmap.data.schema import KINDS, Schema, Variable, in_calendar
from sdcmap.errors import MAX_PROBLEMS_SHOWN, MissingExtra, PlanError, SchemaError, did_you_mean, quote_text
from sdcmap.files.ddi import DDICodebook, read_ddi
from sdcmap.files.dialect import Dialect, sensed, stated_fields
from sdcmap.files.formats import format_of, is_data_file
from sdcmap.files.missing_codes import Codes, Stated, check_columns, codes_of, of_column, with_codes
from sdcmap.files.plain import Asked, check_width
from sdcmap.files.stat import coded_frame, split_missing
from sdcmap.files.text_types import typed

ORDINAL_LEVELS = 50  # a whole-number key with at most so many distinct values is read as ordinal
EXACT = 2.0**53  # whole numbers below it are floats
Names = str | Sequence[str]
_NAMED = (pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)  # types whose values are categories by themselves


@dataclass(frozen=True)
class Source(Value):
    """Where microdata lie and what their columns are: the arguments of `read`, as a plan keeps them.

    Parameters
    ----------
    path : the file; a relative path is looked up beside the plan.
    proposed : columns whose role nobody has confirmed yet: `sdcmap look` wrote it, and a release refuses it.
    nominal : columns that are categories without an order, where the inferred kind is wrong.
    ordinal : columns that are categories with an order, where the inferred kind is wrong.
    within : the study that released this file: a release of it is nested in that one.
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
        """Read the file; a relative path is looked up below `folder`."""
        stated = {name: getattr(self, name) for name in (*_ROLE_OF, "numeric", "missing")}
        return read(
            folder / self.path, **stated, **stated_fields(self.dialect), kinds=self.kinds, census=self.census,
            known_by=self.known_by, ddi=folder / self.ddi if self.ddi else "",
        )  # fmt: skip

    def applied(self, data: Microdata) -> Microdata:
        """Data that were read before, with the roles and kinds that are stated here; of a kind as it was, a column is not
        read again, and of another kind once."""
        wanted = plan_columns(self, data.names, len(data), {v.name: v for v in data.schema.variables})
        encoded = [_encoded_again(data, fact, kind) for fact, kind in wanted]
        variables = with_known_by([variable for variable, _ in encoded], known_by_of(self.known_by))
        schema = replace(data.schema, variables=variables, census=self.census or data.schema.census)
        return _weighed(Microdata(schema, {variable.name: column for variable, column in encoded}))

    @property
    def unstated(self) -> Source:
        """The same file, with nothing said of its columns."""
        return Source(self.path, **stated_fields(self.dialect))

    def coded(self, data: Microdata, name: str, folder: Path = Path()) -> tuple[Variable, Column]:
        """One column of `data`, which were read of this file with nothing stated, with the codes for missing values that
        are stated here: at most it alone is read again."""
        path, codes = folder / self.path, of_column(codes_of(self.missing), name)
        raw = coded_frame(data.only([name]))[name]
        raw = self._retyped(path, raw, codes) if format_of(path).dialects else raw
        return encode(raw, with_codes(data.schema[name], raw.dtype, codes), None)

    def _retyped(self, path: Path, raw: pl.Series, codes: Codes) -> pl.Series:
        """A column of a text file in the type of the texts that are no codes."""
        if raw.dtype == pl.String:
            return typed(raw.to_frame(), sensed(path, self.dialect), codes)[raw.name]
        known = raw.drop_nulls().cast(pl.Float64).to_numpy() if raw.dtype.is_numeric() else np.array([])
        rest = known[~np.isin(known, [code.number for code in codes if code.number is not None])]
        if len(rest) and (raw.dtype.is_integer() or (rest != np.rint(rest)).any()):
            return raw  # whole numbers stay whole, and fractions numbers with fractions
        return _frame_of_file(path, Asked(self.dialect, codes, (raw.name,), len(raw)))[0][raw.name]

    @property
    def dialect(self) -> Dialect:
        """How the text file is written, as far as it is stated."""
        return Dialect(**{f.name: getattr(self, f.name) for f in fields(Dialect)})

    def sensed(self, folder: Path = Path()) -> Source:
        """The same with the dialect of the file stated, where it is a text file."""
        path = folder / self.path
        if not (is_data_file(path) and format_of(path).dialects and path.is_file()):
            return self
        return replace(self, **stated_fields(sensed(path, self.dialect)))

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds as stated, by column."""
        return {name: kind for kind in ("nominal", "ordinal") for name in getattr(self, kind)}


_ROLE_OF = {
    "keys": "key", "sensitive": "sensitive", "identifiers": "identifier", "weight": "weight", "household": "household",
    "stratum": "stratum", "other": "other", "drop": "drop", "replicate": "replicate", "psu": "psu", "wave": "wave",
    "case": "case",
}  # fmt: skip
COUNTED = 1 << 16  # whole numbers so near to one another are coded by counting
NO_NUMBERS = ("String", "Boolean", "Enum", "Categorical", *DATES)  # types whose kind no role changes
_ONE = ("weight", "household", "stratum", "psu", "wave", "case")  # roles of a single column


def read(
    source: Readable, *, keys: Names = (), numeric: Names = (), sensitive: Names = (), identifiers: Names = (),
    weight: Names | None = None, household: Names | None = None, stratum: Names | None = None, other: Names = (),
    drop: Names = (), replicate: Names = (), psu: Names = (), wave: Names = (), case: Names = (),
    kinds: Mapping[str, str] | None = None, missing: Stated = (),
    sep: str = "", decimal: str = "", thousands: str = "", quote: str = "", encoding: str = "", census: bool = False,
    known_by: KnownBy = (), ddi: str | Path = "",
) -> Microdata:  # fmt: skip
    """Microdata from a file (CSV and other text, Parquet, SPSS, Stata, SAS, R) or from any Arrow-capable frame.

    Parameters
    ----------
    source : a path, or a polars, pyarrow or pandas frame.
    keys : variables a snooper may know; as every role, a name, a list of names, or "all" (every column not yet named).
    sensitive : what he would like to learn.
    identifiers : names and numbers of persons, dropped from every release.
    weight, household, stratum : the survey's own columns.
    other : columns looked at and found to have no role.
    drop : columns that no release carries.
    replicate, psu, wave, case : replicate weights, sampling unit, wave and person of a panel; nothing serves them yet, so a
        release refuses them.
    numeric : columns that are amounts; they count as looked at.
    kinds : {"column": "numeric" | "ordinal" | "nominal"} where the inferred kind is wrong. Text is nominal, a date
        ordinal, a number numeric; a whole-number key with at most 50 distinct values is ordinal.
    missing : codes that mean "missing": {"income": [-8], "*": ["N"]} ("*": every column), with words where they have some,
        {"income": {-8: "not applicable"}}; or texts, "N" and "income=-8 (not applicable)".
    sep, decimal, thousands, quote, encoding : how a text file is written, where it is not as sensed (see `Dialect`).
    census : everybody of the population is in the file, so that being in it is no secret: membership is not measured.
    known_by : {"q1": "respondent only: why"} where nobody but the respondent could know a column ("register" and
        "acquaintance" say who could); all others count as knowable. Refused for keys, amounts, dates and places.
    ddi : a DDI-Codebook (codebook.xml) that says what the file does not: labels, universes, and codes for missing values.
        Variables that the file has not are passed over.

    Missing values stay missing: NaN in a numeric column, a last category of their own in the others (NaN means missing
    everywhere). Codes for missing values, stated or of SPSS, Stata and SAS, are missing too, and are written back as the
    codes they were. The texts of a CSV file are numbers, dates or truth values where all of a column are.

    Examples
    --------
    >>> import polars as pl
    >>> read(pl.DataFrame({"age": [31, 44], "sex": ["f", "m"]}), keys=["age", "sex"])
    Microdata(2 rows, 2 columns: age, sex)
    """
    given = locals()  # the arguments, by name
    stated = {name: given[name] or () for name in _ROLE_OF}
    book = read_ddi(ddi) if ddi else DDICodebook()
    asked = Asked(Dialect(sep, decimal, thousands, quote, encoding), (*codes_of(missing), *book.codes))
    frame, facts, form = _frame_of(source, asked)
    check_columns(codes_of(missing), frame.columns)
    if book.variables or asked.missing:
        facts = {name: _told(book, facts.get(name, Variable(name, "")), dtype) for name, dtype in frame.schema.items()}
        facts = {n: with_codes(fact, frame[n].dtype, of_column(asked.missing, n)) for n, fact in facts.items()}
    wanted = _wanted(frame.columns, frame.height, stated, numeric, kinds or {}, facts)
    encoded = [encode(frame[fact.name], fact, kind) for fact, kind in wanted]
    variables = with_known_by([variable for variable, _ in encoded], known_by_of(known_by))
    before = source.schema if isinstance(source, Microdata) else Schema(())
    study = (census or before.census, book.title or before.title, book.universe or before.universe)
    return _weighed(Microdata(Schema(variables, form, *study), {v.name: column for v, column in encoded}))


def _weighed(data: Microdata) -> Microdata:
    """The same data; SchemaError where a weight cannot weigh."""
    if data.weight is not None and (bad := int((~(data.numbers(data.weight) > 0)).sum())):
        raise SchemaError(f"weight {data.weight!r} must be above zero and not missing; {bad} rows are not.")
    return data


def _told(book: DDICodebook, fact: Variable, dtype: pl.DataType) -> Variable:
    """A variable with what the codebook says of it."""
    return book.variables[fact.name].told(fact, dtype) if fact.name in book.variables else fact


def _encoded_again(data: Microdata, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """A column of data that were read, encoded as it is stated now."""
    name = fact.name
    if _as_read(data, fact, kind):
        return fact, data.column(name)
    return data.remember((encode, name, fact, kind), lambda: encode(coded_frame(data.only([name]))[name], fact, kind))


def _as_read(data: Microdata, fact: Variable, kind: str | None) -> bool:
    """Whether a column that is stated so is the one that was read: of the kind stated; or of none, but no number, or a
    number of which nothing was stated and whose new role makes it no category."""
    before = data.schema[fact.name]
    if kind is not None:
        return kind == before.kind
    same = before.role is None and fact.role not in ("weight", "key", "identifier", "household", "stratum")
    return same or fact.storage in NO_NUMBERS


def plan_columns(
    source: Source, columns: Sequence[str], rows: int, facts: Mapping[str, Variable] | None = None
) -> list[tuple[Variable, str | None]]:
    """What is stated of each column of a file: its variable with the role, and its kind where one is stated."""
    stated = {name: getattr(source, name) for name in _ROLE_OF}
    return _wanted(columns, rows, stated, source.numeric, source.kinds, facts or {})


def _wanted(
    columns: Sequence[str], rows: int, stated: Mapping[str, Names], numeric: Names, kinds: Mapping[str, str],
    facts: Mapping[str, Variable],
) -> list[tuple[Variable, str | None]]:  # fmt: skip
    check_width("the file", len(columns))
    roles, amounts = _roles(columns, stated, numeric)
    if rows == 0:
        raise SchemaError("the data have no rows.")
    stated_kinds = dict(kinds) | dict.fromkeys(amounts, "numeric")
    there = set(columns)
    for name, kind in stated_kinds.items():
        if name not in there:
            raise SchemaError(f"no column {name!r}.{did_you_mean(name, columns)}")
        if kind not in KINDS:
            raise SchemaError(f"the kind of column {name!r} must be one of {', '.join(KINDS)}.")
    own = [(facts.get(name, Variable(name, "")), name, "other" if name in amounts else None) for name in columns]
    return [(replace(f, name=n, role=roles.get(n, unstated)), stated_kinds.get(n)) for f, n, unstated in own]


def encode(raw: pl.Series, fact: Variable, kind: str | None) -> tuple[Variable, Column]:
    """One raw column as (variable, column): user-missing codes set apart, kind settled, values as codes or float64."""
    clean, reasons, codes = split_missing(raw, fact)
    dtype = clean.dtype
    if not (dtype.is_numeric() or dtype.is_temporal() or dtype in _NAMED):
        raise SchemaError(f"column {raw.name!r} is {dtype.base_type()}; text, numbers, dates and booleans are read.")
    if dtype.is_temporal() and not in_calendar(clean):
        raise SchemaError(f"column {raw.name!r} holds dates or times that no calendar has; make them missing first.")
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
        return _counted(clean, *span)
    clean = clean.cast(pl.String) if clean.dtype == pl.Categorical else clean
    levels = clean.drop_nulls().unique().sort()
    codes = clean.replace_strict(levels, np.arange(len(levels)), return_dtype=pl.UInt32)
    return levels, codes.cast(pl.UInt32).fill_null(len(levels)).to_numpy()


def _span(clean: pl.Series) -> tuple[int, int] | None:
    """The least and the largest of whole numbers, where few numbers lie between them."""
    low, high = clean.min(), clean.max()
    near = isinstance(low, int) and isinstance(high, int) and high - low < COUNTED and abs(low) < EXACT
    return (low, high) if near else None  # type: ignore[return-value]


def _counted(clean: pl.Series, low: int, high: int) -> tuple[pl.Series, Array]:
    """The same of whole numbers from low to high, by counting each."""
    whole = clean.cast(pl.Int64)
    place = (whole.fill_null(high + 1) if whole.null_count() else whole).to_numpy() - low
    met = np.bincount(place, minlength=high - low + 2)[:-1] > 0
    levels = pl.Series(clean.name, np.flatnonzero(met) + low, dtype=pl.Int64).cast(clean.dtype)
    code = np.cumsum(np.append(met, True)) - 1
    return levels, code[place].astype(np.uint32)


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
    labeled = [float(code) for code, _ in fact.values if not isinstance(code, str)]
    if not labeled and fact.role != "key":
        return "numeric"
    clean = clean.fill_nan(None) if dtype.is_float() else clean
    valid = clean.drop_nulls().unique().cast(pl.Float64)
    if len(valid) <= max(len(labeled), 2) and bool(valid.is_in(labeled).any()):
        return "nominal"
    # SPSS and SAS hold every number as a float, so whole floats of a statistics file count as whole numbers
    whole = dtype.is_integer() or (fact.measure != "" and bool((clean == clean.round()).all()))
    return "ordinal" if fact.role == "key" and whole and len(valid) <= ORDINAL_LEVELS else "numeric"


def _float64(clean: pl.Series) -> Array:
    if clean.null_count() == len(clean):
        return np.full(len(clean), np.nan)
    if not clean.dtype.is_numeric():
        kind = clean.dtype.base_type()
        raise SchemaError(f"column {clean.name!r} is {kind}, not numbers; state another kind for it.")
    values = np.ascontiguousarray(clean.cast(pl.Float64).to_numpy())
    if endless := int(np.isinf(values).sum()):
        raise SchemaError(f"column {clean.name!r} holds {endless} infinite values; make them missing first.")
    if clean.dtype.is_float() or (clean.dtype.is_integer() and np.nanmax(np.abs(values)) < EXACT):
        return values
    with suppress(pl.exceptions.PolarsError):  # a decimal of 38 digits may round up to 39
        if clean.cast(pl.Float64).cast(clean.dtype, strict=False).eq_missing(clean).all():
            return values
    raise SchemaError(f"column {clean.name!r} holds numbers with more digits than 2^53; state it as nominal.")


def _roles(columns: Sequence[str], stated: Mapping[str, Names], numeric: Names) -> tuple[dict[str, str], set[str]]:
    roles: dict[str, str] = {}
    problems = []
    every = [argument for argument, names in stated.items() if names == "all"]
    amounts = set() if numeric == "all" else set(_names(numeric))
    for argument, names in stated.items():
        listed = () if argument in every else _names(names)
        if argument in _ONE and (len(listed) > 1 or argument in every):
            problems.append(f"{argument} takes one column.")
        for name in listed:
            if name in roles and roles[name] != _ROLE_OF[argument]:
                problems.append(f"column {name!r} has two roles, {roles[name]} and {_ROLE_OF[argument]}.")
            roles[name] = _ROLE_OF[argument]
    there = set(columns)
    unknown = dict.fromkeys(name for name in (*roles, *sorted(amounts)) if name not in there)
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


def _frame_of(source: Readable, asked: Asked) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    """The raw frame, what the file says of its variables, and the format a release is written in."""
    if isinstance(source, Microdata):
        return coded_frame(source), {v.name: v for v in source.schema.variables}, source.schema.format
    if isinstance(source, Labeled):
        return source.frame, source.facts, "parquet"
    if isinstance(source, str | Path):
        return _frame_of_file(Path(source), asked)
    try:
        frame = source if isinstance(source, pl.DataFrame) else pl.DataFrame(source)
    except ImportError as error:
        raise MissingExtra("a pandas frame needs pyarrow: pip install pyarrow") from error
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        kind = type(source).__name__
        raise SchemaError(f"a {kind} cannot be read: give a path or a frame with unique column names.") from None
    return frame, {}, "parquet"


def _frame_of_file(path: Path, asked: Asked) -> tuple[pl.DataFrame, Mapping[str, Variable], str]:
    if path.is_dir():
        raise SchemaError(f"{path} is a folder, and a file is needed.")
    form = format_of(path)
    if not path.is_file():
        raise SchemaError(f"there is no file {path}.")
    if path.stat().st_size == 0:
        raise SchemaError(f"{path.name} is empty (0 bytes).")
    try:
        return *form.read(path, asked), form.released
    except (SchemaError, MissingExtra):
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
