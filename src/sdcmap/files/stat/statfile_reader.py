"""Read SPSS, Stata and SAS files with pyreadstat."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap.data.schema import Variable
from sdcmap.errors import SchemaError
from sdcmap.files.stat.user_missing import read_letters, restore_codes

FUNCTIONS = {"sav": "read_sav", "dta": "read_dta", "sas7bdat": "read_sas7bdat", "xpt": "read_xport"}  # of pyreadstat


def stat_cells(path: Path, form: str) -> int:
    """Return rows times columns from the header (0: unknown)."""
    facts = _function(form)(path, metadataonly=True)[1]
    return int(max(facts.number_rows or 0, 0) * max(facts.number_columns or 0, 0))


def _function(form: str) -> Any:
    import pyreadstat

    return getattr(pyreadstat, FUNCTIONS[form])


def read_statfile(path: Path, form: str) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Return the raw frame, including user-missing codes, and the metadata of each variable."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning)
        try:
            frame, facts = _read(path, form)
        except UserWarning:
            raise SchemaError(f"{path.name} has two columns with the same name: rename one of them.") from None
    labels = facts.variable_value_labels | (_catalog(path, facts) if form == "sas7bdat" else {})
    frame = frame.with_columns(pl.col(pl.String).replace("", None))
    variables = {}
    for name in frame.columns:
        ranges = [(limits["lo"], limits["hi"]) for limits in facts.missing_ranges.get(name, ())]
        codes = [low if low == high else (low, high) for low, high in ranges]
        variables[name] = Variable(
            name, kind="", label=facts.column_names_to_labels[name] or "", values=tuple(labels.get(name, {}).items()),
            missing=(*codes, *sorted(facts.missing_user_values.get(name, ()))),
            measure=facts.variable_measure.get(name, "unknown"), format=facts.original_variable_types[name] or "",
        )  # fmt: skip
    return frame, variables


def _read(path: Path, form: str) -> tuple[pl.DataFrame, Any]:
    """Return the frame and metadata of pyreadstat; date columns with user-missing codes are numbers."""
    reader = _function(form)
    options: dict[str, Any] = {"output_format": "polars"} | ({} if form == "xpt" else {"user_missing": True})
    undated = options | {"disable_datetime_conversion": True}
    _check_size(path, reader(path, metadataonly=True, output_format="polars")[1])
    try:
        frame, facts = reader(path, **options)
    except pl.exceptions.PolarsError:  # a date column contains letters
        frame, facts = reader(path, **undated)
        others = [name for name in frame.columns if name not in facts.missing_user_values]
        frame = frame.with_columns(reader(path, usecols=others, **options)[0]) if others else frame
    letters = read_letters(path, frame, facts) if form == "xpt" else {}
    coded = [name for name in (*facts.missing_ranges, *letters) if frame[name].dtype.is_temporal()]
    if coded:
        numbers, plain = reader(path, usecols=coded, **undated)
        frame = frame.with_columns(numbers)
        facts.missing_ranges |= plain.missing_ranges
    frame = frame.with_columns(pl.col(pl.Null).cast(pl.Float64))
    for name in facts.missing_user_values:  # a column that has only letters is read as text
        frame = frame.with_columns(pl.Series(name, frame[name].to_list(), dtype=pl.Object))
    for name, cells in letters.items():
        observed = np.unique(cells[cells > 0])
        facts.missing_user_values[name] = [chr(letter) for letter in observed]
        reasons = np.searchsorted([0, *observed], cells)
        frame = frame.with_columns(restore_codes(frame[name], reasons, facts.missing_user_values[name]))
    return frame, facts


def _check_size(path: Path, facts: Any) -> None:
    """Raise SchemaError if the header states more cells than the file can contain; memory would be allocated for all.

    A cell takes at least one byte; zlib compresses at most 1,032 bytes into one (SAS less).
    """
    max_ratio = 1032 if path.suffix.lower() in (".zsav", ".sas7bdat") else 1
    if (facts.number_rows or 0) * max(1, facts.number_columns) > max_ratio * path.stat().st_size:
        raise SchemaError(f"{path.name} is damaged: its header states more records than the file can contain.")


def _catalog(path: Path, facts: Any) -> dict[str, Any]:
    """Return the value labels of a .sas7bdat file from the catalog with the same name in its folder."""
    import pyreadstat

    beside = path.with_suffix(".sas7bcat")
    if not beside.is_file():
        return {}
    sets = pyreadstat.read_sas7bcat(beside, output_format="polars")[1].value_labels
    return {name: sets[form] for name, form in facts.variable_to_label.items() if form in sets}
