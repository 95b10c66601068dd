"""Corrected statistics from a released file and its method note."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.core import Array, Method, Microdata, SchemaError, Undefined, did_you_mean
from sdcmap.core.added_noise import AddedNoise, Stratum, noise_strata, undo_rescaling
from sdcmap.core.value import decode, parse
from sdcmap.corrections.estimates import Corrected, Group, Records, estimate_moments, estimate_regression
from sdcmap.corrections.formula import Formula, Predictors, check_linear, parse_nested_formula, predictors
from sdcmap.data.cells import rows_by_cell
from sdcmap.data.readable import Readable
from sdcmap.files.reader import read
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.kernels.statistics.moments import moments
from sdcmap.kernels.statistics.precision import NORMAL_95

ROUNDING = 0.01  # rounding may add this share of the noise variance; the correction leaves it in
BELOW_ZERO = -1e-9  # an eigenvalue below this share of the largest is no rounding
NO_COVARIANCE = "the corrected covariance matrix is not positive semidefinite"
Note = Method | Mapping[str, Any] | str | Path
Row = dict[str, Any]


def correct(
    released: Readable, note: Note, *, regress: str | Sequence[str] = (), on: str | Sequence[str] = (),
    by: str | Sequence[str] = (), least: int = 30, weighted: bool = False,
) -> Corrected:  # fmt: skip
    """Means, covariances, correlations and regression coefficients of a noise-masked file with the noise taken off.

    Parameters
    ----------
    released : Microdata, or the path or frame of the released file.
    note : the method note: the path of note.json, its content, or the method itself, such as "Noise(on='wage')".
    regress : formulas such as "y ~ x1 + x2 + x1:x2"; x1*x2 is short for x1 + x2 + x1:x2, x:x is a square, a categorical
        variable stands for its indicators.
    on : variables for means, covariances and correlations; by default those that were masked.
    by : variables that divide the records into domains; they must not be masked.
    least : domains with fewer records are left out, and said.
    weighted : use the survey weight of `released` (read it with weight=...). The noise was drawn without weights.

    It needs the method and the share d alone. With Z = X + e, Cov e = d Cov X, the whole file tells Cov e = d/(1 + d) Cov Z
    (its diagonal, for independent noise), which is taken off covariances, in every domain (Kim 1986, 1990), and off
    products of noisy variables (Fuller 1993). Rescaling is undone first.
    Missing values: a record enters a statistic's estimate when it has every variable of `on`, or of the formula.
    Standard errors are those of independent draws from a population and hold sampling, noise, and the estimate of Cov e;
    for mixture noise they count squared errors as constant, as two narrow components nearly make them. Very long tails need
    many records before the errors are right.
    Undefined, with the reason: noise cut by bounds, kept zeros, whole numbers or unequal variances; rounding that is coarse
    against the noise; any other method; products of noisy variables under mixture noise.

    >>> from sdcmap import Noise, demo, mask
    >>> persons = mask(demo.population(500, seed=1), Noise(on="wage", variance=0.5), seed=1)
    >>> correct(persons, Noise(on="wage", variance=0.5)).table.columns[:3]
    ['statistic', 'of', 'with']
    """
    noise = method_of(note).added_noise()
    data = released if isinstance(released, Microdata) else read(released, missing=missing_codes(note))
    formulas = [parse_nested_formula(text) for text in ([regress] if isinstance(regress, str) else regress)]
    names = _names(on) or tuple(name for name in noise.on if name in data.names)
    work = _Work(data, noise, _names(by), least, weighted)
    work.check(names, formulas)
    rows, notes = list[Row](), list[str]()
    for domain, members in work.domains(notes):
        rows += work.moments(domain, members, names, notes) if names else []
        for formula in formulas:
            rows += work.regression(domain, members, formula, notes)
    numbers = dict.fromkeys(("released", "corrected", "se", "low", "high"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides={**numbers, "records": pl.Int64}, infer_schema_length=None)
    return Corrected(table, tuple(notes), not any(NO_COVARIANCE in sentence for sentence in notes))


def method_of(note: Note) -> Method:
    """The method that a note, a specification or a text such as "Noise(on='wage')" names."""
    content = _content(note)
    method = content.get("method", content) if isinstance(content, Mapping) else content
    if not isinstance(method, Method | Mapping):
        raise SchemaError("the method note names no method: give the note.json of a release.")
    return method if isinstance(method, Method) else decode(method, Method)


def missing_codes(note: Note) -> list[str]:
    """The codes for missing values that a note names, as `read` takes them; none where it is only a method."""
    content = _content(note)
    codes = content.get("missing_codes") if isinstance(content, Mapping) else None
    return [str(code) for code in codes] if isinstance(codes, list) else []


def _content(note: Note) -> Any:
    """What a note says, or the method that was given in its place."""
    if isinstance(note, str) and "(" in note:
        return parse(note, Method)
    if isinstance(note, Method | Mapping):
        return note
    try:
        return json.loads(Path(note).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        raise SchemaError(f"{note} cannot be read as a method note: give the note.json of a release.") from None


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True)
class _Work:
    """The released file and what its note says, and the statistics of one domain at a time."""

    data: Microdata
    noise: AddedNoise
    by: tuple[str, ...]
    least: int
    weighted: bool

    # ---- checks -----------------------------------------------------------------------------------------------
    def check(self, names: tuple[str, ...], formulas: list[Formula]) -> None:
        data = self.data
        for name in (*names, *self.by, *self.noise.within):
            if name not in data.names:
                raise SchemaError(f"no column {name!r}.{did_you_mean(name, data.names)}")
        if not names and not formulas:
            raise SchemaError(f"none of the masked variables {', '.join(self.noise.on)} is in the released file.")
        for name in (name for name in self.by if name in self.noise.on):
            raise Undefined(f"{name!r} was masked, so the domain that a record truly belongs to is not known.")
        if self.weighted and data.weight is None:
            raise SchemaError("weighted needs a weight: read the file with weight=...")
        used = {*names, *(name for formula in formulas for name in formula.names)}
        for name in sorted(used & set(self.noise.on) & set(data.names)):
            self._check_rounding(name)

    def _check_rounding(self, name: str) -> None:
        step = granularity(self.data.numbers(name))
        added = [float(stratum.covariance[0, 0]) for stratum in self.strata((name,))]
        if step is not None and any(added) and 10.0 ** (2 * step) / 12 > ROUNDING * min(added):
            raise Undefined(f"{name!r} was rounded too coarsely against its noise, so the noise cannot be taken off.")

    # ---- records ----------------------------------------------------------------------------------------------
    def domains(self, notes: list[str]) -> Iterator[tuple[Row, Array]]:
        """The categories and rows of each domain."""
        parts = rows_by_cell(self.data, self.by)
        large = [rows for rows in parts if len(rows) >= self.least or not self.by]
        if len(large) < len(parts):
            notes.append(f"{len(parts) - len(large)} domains with fewer than {self.least} records are left out.")
        if not large:
            raise Undefined(f"no domain has {self.least} records.")
        for rows in large:
            yield {name: self.data[name][rows[0]] for name in self.by}, rows

    def strata(self, names: tuple[str, ...]) -> list[Stratum]:
        """The noise covariance of these variables, in each stratum that was masked apart."""
        return self.data.remember(("noise", names, self.noise), lambda: noise_strata(self.data, names, self.noise))

    def records(self, rows: Array, columns: Array, names: tuple[str, ...], strata: list[Stratum]) -> Records:
        """The complete records of a domain; `columns` (of all records) are named by the variable they come from."""
        complete = _complete(columns)
        if len(here := rows[complete[rows]]) < 2:
            raise Undefined("a domain has fewer than 2 complete records.")
        weights = self.data.weights[here] if self.weighted else np.ones(len(here))
        place = np.full(len(self.data), -1)
        place[here] = np.arange(len(here))
        kappa = self.noise.share / (1 + self.noise.share)
        noisy = np.array([name in self.noise.on for name in names])
        told = np.outer(noisy, noisy) if self.noise.correlated else np.diag(noisy)
        fourth, groups = 1.0 if self.noise.normal else 0.0, []
        for rows, count, added in ((stratum.rows, stratum.count, stratum.covariance) for stratum in strata):
            inside = place[rows][place[rows] >= 0]
            if len(inside):
                seen = moments(columns[rows[complete[rows]]])
                if np.isnan(seen.covariance).any():
                    raise Undefined("a stratum has fewer than 2 complete records, so its noise cannot be taken off.")
                groups.append(Group(inside, added, seen.covariance - added, seen.mean, kappa, count, told, fourth))
        return Records(columns[here], weights / weights.sum(), tuple(groups))

    # ---- statistics -------------------------------------------------------------------------------------------
    def moments(self, domain: Row, rows: Array, names: tuple[str, ...], notes: list[str]) -> Iterator[Row]:
        y = undo_rescaling(self.data, names, self.noise)
        records = self.records(rows, y, names, self.strata(names))
        corrected = estimate_moments(records)
        as_is = moments(self.data.matrix(names)[rows][_complete(y[rows])], records.share)
        if corrected.smallest < BELOW_ZERO:
            smallest = f"smallest eigenvalue {corrected.smallest:.2g} of the largest"
            more = "there is more noise than these records can bear."
            notes.append(f"{_shown(domain)}{NO_COVARIANCE} ({smallest}): {more}")
        count = len(records.z)
        for j, name in enumerate(names):
            yield _row(domain, "mean", name, "", as_is.mean[j], corrected.mean[j], corrected.mean_se[j], count)
        for statistic, diagonal in (("covariance", 1), ("correlation", 0)):
            fields = ((as_is, statistic), (corrected, statistic), (corrected, f"{statistic}_se"))
            matrices = [getattr(source, field) for source, field in fields]
            for j, name in enumerate(names):
                for k in range(j + diagonal):
                    yield _row(domain, statistic, name, names[k], *(matrix[j, k] for matrix in matrices), count)

    def regression(self, domain: Row, rows: Array, formula: Formula, notes: list[str]) -> Iterator[Row]:
        made, response = self._columns(formula, corrected=True)
        self._check_products(made)
        names = (formula.response, *made.names)
        records = self.records(rows, made.beside(response), names, self.strata(names))
        estimate = estimate_regression(records, made.terms_beside)
        if estimate is None:
            matrix = f"the corrected normal matrix of {formula.response!r} is not positive definite"
            why = "predictors say the same, or there is more noise than these records can bear"
            notes.append(f"{_shown(domain)}{matrix}: {why}; no coefficients.")
        none = np.full(len(made.labels), np.nan)
        naive, (values, errors) = self._as_is(formula, rows), estimate or (none, none)
        for label, before, value, se in zip(made.labels, none if naive is None else naive, values, errors, strict=True):
            yield _row(domain, "coefficient", formula.response, label, before, value, se, len(records.z))

    def _columns(self, formula: Formula, *, corrected: bool) -> tuple[Predictors, Array]:
        """The predictors and the response; `corrected`: with their scale restored."""
        check_linear(self.data, formula)
        numeric = tuple(name for name in formula.names if self.data.column(name).levels is None)
        matrix = undo_rescaling(self.data, numeric, self.noise) if corrected else self.data.matrix(numeric)
        numbers = dict(zip(numeric, matrix.T, strict=True))
        return predictors(self.data, formula, numbers=numbers), numbers[formula.response]

    def _as_is(self, formula: Formula, rows: Array) -> Array | None:
        """The coefficients of the file as it is."""
        plain, response = self._columns(formula, corrected=False)
        names = (formula.response, *plain.names)
        no_noise = [Stratum(np.arange(len(self.data)), len(self.data), np.zeros((len(names), len(names))))]
        estimate = estimate_regression(self.records(rows, plain.beside(response), names, no_noise), plain.terms_beside)
        return None if estimate is None else estimate[0]

    def _check_products(self, made: Predictors) -> None:
        noisy = [name in self.noise.on for name in made.names]
        most = max(sum(noisy[column] for column in term) for term in made.design.terms)
        if not self.noise.normal and most > 1:
            raise Undefined("products of noisy variables need normal noise: a mixture's fourth moments stay in.")


def _complete(columns: Array) -> Array:
    return np.asarray(~np.isnan(columns).any(axis=1))


def _row(domain: Row, statistic: str, of: str, other: str, *values: float) -> Row:
    before, value, se = (float(number) if np.isfinite(number) else None for number in values[:3])
    low, high = (None, None) if value is None or se is None else (value - NORMAL_95 * se, value + NORMAL_95 * se)
    named = {"statistic": statistic, "of": of, "with": other, "released": before, "corrected": value, "se": se}
    return {**domain, **named, "low": low, "high": high, "records": int(values[3])}


def _shown(domain: Row) -> str:
    return f"in {', '.join(f'{name} = {value}' for name, value in domain.items())} " if domain else ""
