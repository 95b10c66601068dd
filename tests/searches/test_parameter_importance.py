"""Which parameters of a study's methods matter, and how they are drawn side by side."""

from __future__ import annotations

import numpy as np
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError
from sdcmap.searches.parameter_importance import MAX_LINES, Parameters, settings_of

RATES = tuple(n / 100 for n in range(1, 31))


def made(seed: int, *, rates: tuple[float, ...] = RATES) -> Parameters:
    """Methods whose risk depends only on the rate and whose loss only on the column."""
    rng = np.random.default_rng(seed)
    methods = [sm.Swap(on=on, rate=rate) for on in ("Age", "Sex", "Race") for rate in rates]
    risk = np.array([1 - method.rate + 0.01 * rng.random() for method in methods])
    loss = np.array([1 + len(method.on[0]) + 0.01 * rng.random() for method in methods])
    names = tuple(method.text for method in methods)
    front = np.arange(len(methods)) < 3
    return Parameters(names, tuple(map(settings_of, methods)), risk, loss, front)


@pytest.mark.parametrize("seed", range(3))
def test_most_important_parameter_is_identified(seed: int) -> None:
    table = {stage: (risk, loss) for stage, risk, loss in made(seed).importance().iter_rows()}
    assert set(table) == {"Swap rate", "Swap on"}
    assert table["Swap rate"][0] > 0.5 > 10 * table["Swap on"][0]  # of the variance of risk
    assert table["Swap on"][1] > 0.5 > 10 * table["Swap rate"][1]  # of that of loss


def test_settings_of_a_chain_are_those_of_its_steps() -> None:
    chain = sm.Chain([sm.Recode(on="Age", width=5), sm.Suppress(k=3)])
    settings = settings_of(chain)
    assert settings["method"] == "Recode, then Suppress"
    assert (settings["Recode width"], settings["Suppress k"]) == (5.0, 3.0)
    assert settings["Recode on"] == "Age"


def test_axes_of_numbers_and_of_options() -> None:
    spec = made(0).draw_choices().spec
    rows = spec["layer"][0]["data"]["values"]
    ends = {(row["axis"], row["text"]) for row in spec["layer"][1]["data"]["values"]}
    assert {("Swap rate", "0.01"), ("Swap rate", "0.3"), ("Swap on", "Age")} <= ends
    assert all(0 <= row["value"] <= 1 for row in rows)
    rate = next(row for row in rows if row["axis"] == "Swap rate" and row["choice"] == "0.3")
    assert rate["value"] == 1
    few = made(0, rates=(0.1, 0.2, 0.3)).draw_choices().spec["layer"][1]["data"]["values"]
    assert [row["text"] for row in few if row["axis"] == "Swap rate"] == ["0.1", "0.2", "0.3"]


def test_many_methods_are_thinned_but_the_frontier_is_kept() -> None:
    parameters = made(0, rates=tuple(n / 1000 for n in range(1, 301)))
    lines = parameters._lines()
    assert MAX_LINES <= len(lines) <= MAX_LINES + 3 and set(range(3)) <= set(lines.tolist())


def test_importance_of_too_few_methods_is_refused() -> None:
    with pytest.raises(PlanError, match="at least 8 methods"):
        made(0, rates=(0.1, 0.2)).importance()
