"""Models trained on the release and tested on people who were left out of it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.testing import check_measure
from sdcmap.utility import ImportanceAgreement, TrainOnRelease

pytest.importorskip("sklearn", reason="models that learn need scikit-learn: pip install 'sdcmap[learn]'")

N = 6000


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def linear_file(n: int = N) -> sm.Microdata:
    """Return y = 3 a + b with independent a and b; the class is whether a is above 0."""
    a, b = np.random.default_rng(2).standard_normal((2, n))
    frame = pl.DataFrame({"a": a, "b": b, "y": 3 * a + b, "side": np.where(a > 0, "right", "left")})
    return sm.read(frame, keys=["side"], numeric=["a", "b", "y"])


def test_noise_on_a_feature_attenuates_its_slope() -> None:
    """y = a, and a is released with noise of half its variance: the slope is 1/1.5, and 1 - (1 - 2/3)^2 = 8/9 of the
    variance is explained where the exact a is known (Fuller 1987, eq. 1.1.7). Standard error of 6,000 records: .005."""
    data = linear_file()
    masked = data.change(None, {"a": data["a"] + np.sqrt(0.5) * np.random.default_rng(3).standard_normal(N)})
    result = TrainOnRelease("y", on="a", model="linear")
    same = data.change(None, {"y": data["a"]}), masked.change(None, {"y": data["a"]})
    got = result.score(*same, rng())
    assert got.value == pytest.approx(1 / 9, abs=0.02)
    assert got.parts["y: original"] == pytest.approx(1, abs=1e-3) and got.parts["y: naive"] == pytest.approx(
        0, abs=0.01
    )
    assert got.parts["regression"] == got.value and got.se is not None and 0 < got.se < 0.02


def test_importance_agreement_of_attenuated_slopes() -> None:
    """Shuffling a feature with slope a in truth and b in the model costs 2 a b var: 18 and 2 of the original; noise as
    large as the feature halves its slope, 9 and 2. The overlap is 9/11 + 2/20."""
    data = linear_file()
    masked = data.change(None, {"a": data["a"] + np.random.default_rng(3).standard_normal(N)})
    measure = ImportanceAgreement("y", on=["a", "b"], model="linear", folds=2)
    assert measure.score(data, masked, rng()).value == pytest.approx(9 / 11 + 0.1, abs=0.02)
    assert measure.score(data, data.change(None, {}), rng()).value == pytest.approx(1, abs=1e-12)


def test_swapped_class_cannot_be_learned() -> None:
    data = linear_file()
    order = np.random.default_rng(4).permutation(N)
    masked = data.change(None, {"side": data.column("side").values[order]})
    result = TrainOnRelease("side", on="a").score(data, masked, rng())
    assert result.parts["side: original"] > 0.99 and result.value > 0.4
    assert result.parts["classification"] == result.value


def test_held_out_people_are_not_in_training_release() -> None:
    """Each value of `name` belongs to one person, so a model would memorize anyone in the training data."""
    rows = np.arange(400)
    frame = pl.DataFrame({"name": rows.astype(float), "coin": np.where(rng().random(400) < 0.5, "h", "t")})
    data = sm.read(frame, keys=["coin"], numeric=["name"])
    plan = sm.Plan(
        [sm.Noise(on="name", variance=1e-9), sm.methods.Synthesize(on=["name", "coin"])],
        [TrainOnRelease("coin", on="name", folds=2)],
        seed=1,
    )
    scores = sm.sweep(data, plan, workers=1)
    assert set(scores.score["status"]) == {"ok"}
    assert scores.column(plan.measures[0].text)["value"].abs().max() < 0.2  # a coin is 50 %, whoever trains on it


def test_recoded_features_use_released_categories() -> None:
    data = linear_file()
    measure = TrainOnRelease("y", on=["a", "b"], model="linear")
    banded = sm.mask(data, sm.Recode(on="a", breaks=[-1, 0, 1]), seed=1)
    assert 0.05 < measure.score(data, banded, rng()).value < 0.4
    with pytest.raises(Undefined, match="'a' was recoded"):
        TrainOnRelease("a", on="b").score(data, banded, rng())


def test_invalid_input_is_reported() -> None:
    data = linear_file()
    with pytest.raises(PlanError, match="predicts must name at least one column"):
        TrainOnRelease(())
    with pytest.raises(PlanError, match="folds must be at most 4"):
        TrainOnRelease("y", folds=5)
    with pytest.raises(SchemaError, match="no column 'yy'"):
        TrainOnRelease("yy").score(data, data, rng())
    with pytest.raises(SchemaError, match="needs a column to predict 'y' from"):
        TrainOnRelease("y", on="y").score(data, data, rng())
    with pytest.raises(Undefined, match="fewer than 20 people"):
        few = data.take(np.arange(30))
        few = sm.Microdata(few.schema, few.columns)
        TrainOnRelease("y").score(few, few, rng())
    with pytest.raises(Undefined, match="a synthetic file needs its method"):
        TrainOnRelease("y").score(data, sm.Microdata(data.schema, data.columns, paired=False), rng())


@pytest.mark.parametrize("cls", [TrainOnRelease, ImportanceAgreement])
def test_learned_measures_pass_contract_checks(cls: type[TrainOnRelease]) -> None:
    """The small files of tests/testing/test_laws.py have too few people to train on."""
    check_measure(cls(["y", "a"], on=["a", "b", "y"], model="linear"), linear_file(100), [sm.Noise(on="a")])
