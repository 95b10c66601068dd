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
from sdcmap.core.formula import Formula, parse_nested_formula
from sdcmap.core.value import decode, parse
from sdcmap.corrections.estimates import Corrected, Group, Records, estimate_moments, estimate_regression
from sdcmap.corrections.formula_columns import Predictors, build_predictors, check_linear
from sdcmap.data.cells import rows_by_cell
from sdcmap.data.readable import Readable
from sdcmap.files.reader import read
from sdcmap.kernels.masking.granularity import granularity
from sdcmap.kernels.statistics.moments import moments
from sdcmap.kernels.statistics.precision import NORMAL_95

MAX_ROUNDING_SHARE = 0.01  # of the noise variance; rounding that adds more would bias the correction, which ignores it
EIGENVALUE_TOLERANCE = -1e-9  # share of the largest eigenvalue; values below it are negative beyond rounding error
NOT_SEMIDEFINITE = "the corrected covariance matrix is not positive semidefinite"
Note = Method | Mapping[str, Any] | str | Path
Row = dict[str, Any]


def correct(
    released: Readable,
    note: Note,
    *,
    regress: str | Sequence[str] = (),
    on: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    least: int = 30,
    weighted: bool = False,
) -> Corrected:
    """Estimate means, covariances, correlations and regressions of the original from a file masked with noise.

    Parameters
    ----------
    released : Microdata, or the path or frame of the released file.
    note : the method note: the path of note.json, its content, or the method itself, such as "Noise(on='wage')".
    regress : formulas such as "y ~ x1 + x2 + x1:x2"; x1*x2 is short for x1 + x2 + x1:x2, x:x is a square, and a
        categorical variable stands for its indicators.
    on : variables for means, covariances and correlations; by default the masked ones.
    by : variables that divide the records into domains; they must not be masked.
    least : domains with fewer records are left out, and a note says how many.
    weighted : use the survey weight of `released` (read it with weight=...). The noise was drawn without weights.

    Only the method and its share d of noise are needed. With Z = X + e and Cov e = d Cov X, the whole file gives
    Cov e = d/(1 + d) Cov Z (for independent noise, its diagonal). It is subtracted from covariances in every domain
    (Kim 1986, 1990) and from products of noisy variables (Fuller 1993), after rescaling is undone.
    Missing values: an estimate uses the records that have every variable of `on`, or of the formula.
    Standard errors assume independent draws from a population and include sampling, noise, and the estimation of Cov e.
    For mixture noise they treat the squared noise as constant, which is nearly true for two narrow components. With very
    long tails they need many records to be accurate.
    Undefined for noise with bounds, kept zeros, whole numbers or unequal variances; if rounding is coarse compared with
    the noise; for any other method; and for products of noisy variables under mixture noise.

    >>> from sdcmap import Noise, demo, mask
    >>> persons = mask(demo.population(500, seed=1), Noise(on="wage", variance=0.5), seed=1)
    >>> correct(persons, Noise(on="wage", variance=0.5)).table.columns[:3]
    ['statistic', 'of', 'with']
    """
    noise = method_from_note(note).added_noise()
    data = released if isinstance(released, Microdata) else read(released, missing=missing_codes_from_note(note))
    formulas = [parse_nested_formula(text) for text in ([regress] if isinstance(regress, str) else regress)]
    names = _names(on) or tuple(name for name in noise.on if name in data.names)
    work = _Correction(data, noise, _names(by), least, weighted)
    work.check(names, formulas)
    rows, notes = list[Row](), list[str]()
    for domain, members in work.domains(notes):
        rows += work.moments(domain, members, names, notes) if names else []
        for formula in formulas:
            rows += work.regression(domain, members, formula, notes)
    numbers = dict.fromkeys(("released", "corrected", "se", "low", "high"), pl.Float64)
    table = pl.DataFrame(rows, schema_overrides={**numbers, "records": pl.Int64}, infer_schema_length=None)
    return Corrected(table, tuple(notes), not any(NOT_SEMIDEFINITE in sentence for sentence in notes))


def method_from_note(note: Note) -> Method:
    """Return the method of a note, a specification, or a text such as "Noise(on='wage')"."""
    content = _content(note)
    method = content.get("method", content) if isinstance(content, Mapping) else content
    if not isinstance(method, Method | Mapping):
        raise SchemaError("the method note contains no method. Give the note.json of a release.")
    return method if isinstance(method, Method) else decode(method, Method)


def missing_codes_from_note(note: Note) -> list[str]:
    """Return the codes for missing values in a note, in the form that `read` takes; empty if it is only a method."""
    content = _content(note)
    codes = content.get("missing_codes") if isinstance(content, Mapping) else None
    return [str(code) for code in codes] if isinstance(codes, list) else []


def _content(note: Note) -> Any:
    """Return the content of a note, or the method given instead of one."""
    if isinstance(note, str) and "(" in note:
        return parse(note, Method)
    if isinstance(note, Method | Mapping):
        return note
    try:
        return json.loads(Path(note).read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        raise SchemaError(f"{note} cannot be read as a method note. Give the note.json of a release.") from None


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True)
class _Correction:
    """Computes the corrected statistics of a released file, one domain at a time."""

    data: Microdata
    noise: AddedNoise
    by: tuple[str, ...]
    least: int
    weighted: bool

    # ---- checks -----------------------------------------------------------------------------------------------
    def check(self, names: tuple[str, ...], formulas: list[Formula]) -> None:
        """Raise an error if these statistics cannot be corrected."""
        data = self.data
        for name in (*names, *self.by, *self.noise.within):
            if name not in data.names:
                raise SchemaError(f"no column {name!r}.{did_you_mean(name, data.names)}")
        if not names and not formulas:
            raise SchemaError(f"the released file contains none of the masked variables {', '.join(self.noise.on)}.")
        for name in (name for name in self.by if name in self.noise.on):
            raise Undefined(
                f"{name!r} was masked, so the true domain of a record is unknown. Choose an unmasked variable for `by`."
            )
        if self.weighted and data.weight is None:
            raise SchemaError("weighted needs a weight. Read the file with weight=...")
        used = {*names, *(name for formula in formulas for name in formula.names)}
        for name in sorted(used & set(self.noise.on) & set(data.names)):
            self._check_rounding(name)

    def _check_rounding(self, name: str) -> None:
        # Rounding to multiples of 10^step adds a variance of 10^(2 step)/12, which is not corrected.
        step = granularity(self.data.numbers(name))
        added = [float(stratum.covariance[0, 0]) for stratum in self.strata((name,))]
        if step is not None and any(added) and 10.0 ** (2 * step) / 12 > MAX_ROUNDING_SHARE * min(added):
            raise Undefined(
                f"{name!r} was rounded too coarsely compared with its noise, so the noise cannot be removed."
            )

    # ---- records ----------------------------------------------------------------------------------------------
    def domains(self, notes: list[str]) -> Iterator[tuple[Row, Array]]:
        """Yield the categories and the rows of each domain."""
        parts = rows_by_cell(self.data, self.by)
        large = [rows for rows in parts if len(rows) >= self.least or not self.by]
        if len(large) < len(parts):
            notes.append(f"{len(parts) - len(large)} domains with fewer than {self.least} records were left out.")
        if not large:
            raise Undefined(f"no domain has {self.least} records. Use fewer variables in `by`, or a smaller `least`.")
        for rows in large:
            yield {name: self.data[name][rows[0]] for name in self.by}, rows

    def strata(self, names: tuple[str, ...]) -> list[Stratum]:
        """Return the noise covariance of these variables in each stratum that was masked separately."""
        return self.data.remember(("noise", names, self.noise), lambda: noise_strata(self.data, names, self.noise))

    def records(self, rows: Array, columns: Array, names: tuple[str, ...], strata: list[Stratum]) -> Records:
        """Return the complete records of a domain.

        columns : of all records of the file. names : the variable of each column.
        """
        complete = _complete(columns)
        if len(usable := rows[complete[rows]]) < 2:
            raise Undefined("a domain has fewer than 2 complete records.")
        weights = self.data.weights[usable] if self.weighted else np.ones(len(usable))
        index = np.full(len(self.data), -1)  # of each record of the file among those of the domain
        index[usable] = np.arange(len(usable))
        kappa = self.noise.share / (1 + self.noise.share)
        noisy = np.array([name in self.noise.on for name in names])
        estimated = np.outer(noisy, noisy) if self.noise.correlated else np.diag(noisy)
        fourth, groups = 1.0 if self.noise.normal else 0.0, []
        for rows, count, added in ((stratum.rows, stratum.count, stratum.covariance) for stratum in strata):
            inside = index[rows][index[rows] >= 0]
            if len(inside):
                # The noise was scaled by its whole stratum, so its moments come from there and not from the domain.
                observed = moments(columns[rows[complete[rows]]])
                if np.isnan(observed.covariance).any():
                    raise Undefined("a stratum has fewer than 2 complete records, so its noise cannot be removed.")
                groups.append(
                    Group(inside, added, observed.covariance - added, observed.mean, kappa, count, estimated, fourth)
                )
        return Records(columns[usable], weights / weights.sum(), tuple(groups))

    # ---- statistics -------------------------------------------------------------------------------------------
    def moments(self, domain: Row, rows: Array, names: tuple[str, ...], notes: list[str]) -> Iterator[Row]:
        """Yield the rows of the means, covariances and correlations of one domain."""
        y = undo_rescaling(self.data, names, self.noise)
        records = self.records(rows, y, names, self.strata(names))
        corrected = estimate_moments(records)
        naive = moments(self.data.matrix(names)[rows][_complete(y[rows])], records.share)
        if corrected.smallest < EIGENVALUE_TOLERANCE:
            smallest = f"its smallest eigenvalue is {corrected.smallest:.2g} of the largest"
            why = "there is too much noise for so few records."
            notes.append(f"{_domain_prefix(domain)}{NOT_SEMIDEFINITE} ({smallest}): {why}")
        count = len(records.z)
        for j, name in enumerate(names):
            yield _row(domain, "mean", name, "", naive.mean[j], corrected.mean[j], corrected.mean_se[j], count)
        for statistic, diagonal in (("covariance", 1), ("correlation", 0)):
            fields = ((naive, statistic), (corrected, statistic), (corrected, f"{statistic}_se"))
            matrices = [getattr(source, field) for source, field in fields]
            for j, name in enumerate(names):
                for k in range(j + diagonal):
                    yield _row(domain, statistic, name, names[k], *(matrix[j, k] for matrix in matrices), count)

    def regression(self, domain: Row, rows: Array, formula: Formula, notes: list[str]) -> Iterator[Row]:
        """Yield the rows of the regression coefficients of one domain."""
        predictors, response = self._columns(formula, corrected=True)
        self._check_products(predictors)
        names = (formula.response, *predictors.names)
        records = self.records(rows, predictors.with_response(response), names, self.strata(names))
        estimate = estimate_regression(records, predictors.terms_with_response)
        if estimate is None:
            matrix = f"the corrected normal matrix of {formula.response!r} is not positive definite"
            why = "predictors are collinear, or there is too much noise for so few records"
            notes.append(f"{_domain_prefix(domain)}{matrix}: {why}. No coefficients are given.")
        none = np.full(len(predictors.labels), np.nan)
        naive, (values, errors) = self._naive_coefficients(formula, rows), estimate or (none, none)
        for label, before, value, se in zip(
            predictors.labels, none if naive is None else naive, values, errors, strict=True
        ):
            yield _row(domain, "coefficient", formula.response, label, before, value, se, len(records.z))

    def _columns(self, formula: Formula, *, corrected: bool) -> tuple[Predictors, Array]:
        """Return the predictors and the response. corrected : undo the rescaling of the noise."""
        check_linear(self.data, formula)
        numeric = tuple(name for name in formula.names if self.data.column(name).levels is None)
        matrix = undo_rescaling(self.data, numeric, self.noise) if corrected else self.data.matrix(numeric)
        numbers = dict(zip(numeric, matrix.T, strict=True))
        return build_predictors(self.data, formula, numbers=numbers), numbers[formula.response]

    def _naive_coefficients(self, formula: Formula, rows: Array) -> Array | None:
        """Return the coefficients of the released file without a correction."""
        plain, response = self._columns(formula, corrected=False)
        names = (formula.response, *plain.names)
        no_noise = [Stratum(np.arange(len(self.data)), len(self.data), np.zeros((len(names), len(names))))]
        estimate = estimate_regression(
            self.records(rows, plain.with_response(response), names, no_noise), plain.terms_with_response
        )
        return None if estimate is None else estimate[0]

    def _check_products(self, predictors: Predictors) -> None:
        noisy = [name in self.noise.on for name in predictors.names]
        largest = max(sum(noisy[column] for column in term) for term in predictors.design.terms)
        if not self.noise.normal and largest > 1:
            raise Undefined(
                "products of noisy variables can only be corrected for normal noise, not for mixture noise."
            )


def _complete(columns: Array) -> Array:
    return np.asarray(~np.isnan(columns).any(axis=1))


def _row(domain: Row, statistic: str, of: str, other: str, *values: float) -> Row:
    before, value, se = (float(number) if np.isfinite(number) else None for number in values[:3])
    low, high = (None, None) if value is None or se is None else (value - NORMAL_95 * se, value + NORMAL_95 * se)
    named = {"statistic": statistic, "of": of, "with": other, "released": before, "corrected": value, "se": se}
    return {**domain, **named, "low": low, "high": high, "records": int(values[3])}


def _domain_prefix(domain: Row) -> str:
    return f"in {', '.join(f'{name} = {value}' for name, value in domain.items())} " if domain else ""
