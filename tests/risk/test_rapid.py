"""Values predicted by a model trained on the release: shares that can be counted by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import SchemaError, Undefined

pytest.importorskip("sklearn", reason="models that learn need scikit-learn: pip install 'sdcmap[learn]'")

RNG = np.random.default_rng(0)


def groups() -> sm.Microdata:
    """Return a secret that 0.9 of group a and 0.5 of group b have, each of 500 people."""
    secret = ["yes"] * 450 + ["no"] * 50 + ["yes"] * 250 + ["no"] * 250
    return sm.read(pl.DataFrame({"group": ["a"] * 500 + ["b"] * 500, "ill": secret}), keys=["group"], sensitive=["ill"])


@pytest.mark.parametrize("model", ["linear", "boosting"])
@pytest.mark.parametrize(("tau", "share"), [(0.3, 0.45), (0.25, 0.7), (0.7, 0.0)])
def test_rapid_counts_gains_above_baseline(model: str, tau: float, share: float) -> None:
    """Baselines .7 and .3: the gain is (.9 - .7)/.3 = .67 for "yes" in a, (.5 - .3)/.7 = .29 for "no" in b, else less."""
    data = groups()
    result = sm.risk.RAPID(tau=tau, model=model).apply(data, data.change(None, {}), RNG)
    assert result.value == share and result.parts == {"naive": 0.0, "right": 0.7}


@pytest.mark.parametrize(
    ("error", "epsilon", "share"), [("relative", 0.1, 0.5), ("relative", 0.25, 0.75), ("symmetric", 0.25, 1.0)]
)
def test_rapid_counts_errors_below_epsilon(error: str, epsilon: float, share: float) -> None:
    """The release says y = 100 a, the truth is 1, 1.05, .82 and .78 of it: relative errors 0, .048, .22, .28 and symmetric
    ones up to .247."""
    a = np.tile(np.arange(10.0, 20), 100)
    factor = np.repeat([1.0, 1.05, 0.82, 0.78], 250)
    truth = sm.read(pl.DataFrame({"a": a, "y": 100 * a * factor}), keys=["a"], numeric=["a", "y"], sensitive=["y"])
    released = truth.change(None, {"y": 100 * a})
    measure = sm.risk.RAPID(on="a", secret="y", error=error, epsilon=epsilon, model="linear")
    result = measure.apply(truth, released, RNG)
    assert result.value == share and result.parts["naive"] < share and result.parts["explained"] > 0.5
    assert 0 < measure.baseline(truth) < 1


def test_rapid_ignores_record_order() -> None:
    data = sm.demo.population(400, seed=1)
    measure = sm.risk.RAPID("Income", on=["Age", "Educ", "Sex"])
    masked = sm.mask(data, sm.Swap(on=["Income"], rate=0.1), seed=1)
    order = np.random.default_rng(3).permutation(len(data))
    shuffled = masked.take(order)
    nobody = sm.Microdata(shuffled.schema, shuffled.columns, paired=False)
    values = [measure.apply(data, file, RNG).value for file in (data.change(None, {}), masked, nobody)]
    assert values[0] > values[1] == values[2]


def test_rapid_reports_invalid_input() -> None:
    data = groups()
    with pytest.raises(Undefined, match="fewer than 2000 people"):
        sm.risk.RAPID(fewest=2000).apply(data, data.change(None, {}), RNG)
    with pytest.raises(SchemaError, match="must not be one of the variables"):
        sm.risk.RAPID("ill", on=["ill"]).apply(data, data.change(None, {}), RNG)
