"""Formulas on columns: their values, and texts that are rejected."""

from __future__ import annotations

import numpy as np
import pytest

from sdcmap.errors import PlanError
from sdcmap.methods.derive import MAX_FORMULA_LENGTH, parse_arithmetic

A, B = np.array([4.0, 0.0, np.nan, 9.0]), np.array([2.0, 0.0, 1.0, -1.0])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a + b", [6, 0, np.nan, 8]),
        ("a / b", [2, np.nan, np.nan, -9]),  # 0/0 has no value
        ("1 / b", [0.5, np.nan, 1, -1]),  # 1/0 is undefined
        ("-a**2 / 8", [-2, 0, np.nan, -10.125]),
        ("sqrt(b) + log(exp(a))", [4 + np.sqrt(2), 0, np.nan, np.nan]),
        ("min(a, b, 1) + max(a, `b`)", [5, 0, np.nan, 8]),
        ("round(a / 8, 1) + abs(b)", [2.5, 0, np.nan, 2.1]),
        ("round(a / 8)", [1, 0, np.nan, 1]),  # halves up
        ("10.0**400 * b", [np.nan, np.nan, np.nan, np.nan]),
    ],
)
def test_formula_values(text: str, values: list[float]) -> None:
    assert parse_arithmetic(text).values({"a": A, "b": B}) == pytest.approx(np.array(values), nan_ok=True)


def test_backticks_quote_unusual_column_names() -> None:
    formula = parse_arithmetic("`body weight (kg)` / height**2 + `body weight (kg)`")
    assert formula.names == ("body weight (kg)", "height")
    assert formula.values({"body weight (kg)": A, "height": B})[0] == 5.0


@pytest.mark.parametrize(
    "text",
    ["", "1 + 2", "a +", "a.real", "a[0]", "a if b else a", "f(a)", "a @ b", "a // b", "a and b", "lambda: a", "log(a, b)",
     "min(a)", "sqrt(x=a)", "'a'", "True * a", "__import__('os')", "a; b", "(" * 250 + "a",
     "a" + "+ a" * MAX_FORMULA_LENGTH],
)  # fmt: skip
def test_parse_rejects_invalid_formulas(text: str) -> None:
    with pytest.raises(PlanError, match="a formula may contain columns"):
        parse_arithmetic(text)
