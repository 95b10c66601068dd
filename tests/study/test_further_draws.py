"""Further draws at the end of a sweep: of which methods, by which measures, and what they do to the choice."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t

import sdcmap as sm
from sdcmap.core.estimate import DrawSpread, Estimate
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.study.further_draws import FIRST_FURTHER_DRAW

KEYS = ["sex", "region"]
LINKAGE, LOSS = sm.risk.NearestRecord("gower", on=[*KEYS, "age", "income"]), sm.Hellinger(on=KEYS)
MEMBERSHIP = sm.risk.ClosestRecord(on=KEYS, control="rows")
LIMIT = 0.2


@pytest.fixture(scope="module")
def data() -> sm.Microdata:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "sex": rng.choice(["f", "m"], 120), "region": rng.choice(list("ABCDE"), 120),
            "age": rng.integers(18, 90, 120), "income": rng.lognormal(8, 0.6, 120).round(),
        }
    )  # fmt: skip
    return sm.read(frame, keys=[*KEYS, "age"], numeric="income")


def mask_by(stay: float, variance: float) -> sm.Method:
    return sm.Chain([sm.PRAM(KEYS, stay), sm.Noise(on=["age", "income"], variance=variance)])


WEAK, STRONG = mask_by(0.9, 0.01), mask_by(0.2, 3.0)
GROUPS = sm.Microaggregate(on=["age", "income"], size=10)


def plan_of(*methods: sm.Method, limit: float = LIMIT, replicates: int = 1) -> sm.Plan:
    measures = [LINKAGE, MEMBERSHIP, LOSS]
    options = {"risk": [LINKAGE.text], "utility": LOSS.text, "limits": {MEMBERSHIP.text: 0.99}}
    rule = sm.Threshold(risk=limit)
    return sm.Plan(methods, measures, rule=rule, seed=7, replicates=replicates, **options)  # type: ignore[arg-type]


def test_methods_within_their_limits_are_drawn_again(data: sm.Microdata) -> None:
    """Only random ones, only up to five draws in all, and only by measures that are exact for one file."""
    scores = sm.sweep(data, plan_of(WEAK, STRONG, GROUPS), workers=1)
    assert list(scores.further) == [(LINKAGE.text, STRONG.text)]
    further = scores.further[LINKAGE.text, STRONG.text]
    assert len(further) == 4 and len(set(further)) > 1 and max(further) < LIMIT
    assert len(scores.candidate) == 4, "further draws are no candidates"
    three = sm.sweep(data, plan_of(STRONG, replicates=3), workers=1)
    assert [len(values) for values in three.further.values()] == [2]
    assert not sm.sweep(data, plan_of(STRONG, replicates=5), workers=1).further
    assert not sm.sweep(data, plan_of(WEAK, GROUPS), workers=1).further


def test_engines_and_an_interrupted_sweep_make_the_same_draws(data: sm.Microdata, tmp_path: Path) -> None:
    plan = plan_of(WEAK, STRONG)
    expected = sm.sweep(data, plan, workers=1).further
    stops: list[int] = []

    def stop(done: int, total: int) -> None:
        stops.append(total)
        if done > plan.count:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sm.sweep(data, plan, tmp_path / "study", workers=1, progress=stop)
    assert stops[-1] == plan.count + 4, "further draws belong to the progress"
    for engine in ("processes", "serial"):
        assert sm.sweep(data, plan, tmp_path / "study", workers=2, engine=engine).further == expected
    with sm.Study.open(tmp_path / "study") as study:
        rows = study.connection.execute("select replicate from candidate where kind = 'fresh' order by 1").fetchall()
        assert rows == [(FIRST_FURTHER_DRAW + k,) for k in range(4)]
        assert study.scores().further == expected


def test_limit_is_compared_with_the_next_draw(data: sm.Microdata) -> None:
    """The mean of five draws and 1.5 errors of predicting a sixth, by Student's t; by hand with scipy."""
    scores = sm.sweep(data, plan_of(STRONG), workers=1)
    ru = sm.RUMap(scores, LINKAGE, LOSS)
    (row,) = ru.points.filter(method=STRONG.text).to_dicts()
    values = [row["risk"], *scores.further[LINKAGE.text, STRONG.text]]
    multiple = t.ppf(norm.cdf(1.5), 4)
    predicted = max(values[0], np.mean(values)) + multiple * np.std(values, ddof=1) * math.sqrt(6 / 5)
    assert row["risk_end"] == pytest.approx(predicted) and predicted > values[0]
    limits = sm.Threshold(risk=predicted - 1e-9), sm.Threshold(risk=predicted + 1e-9)
    assert [ru.choose(rule).candidate for rule in limits] == [None, row["id"]]
    assert "with the margin of a release" in ru.choose(limits[0]).reason


def test_spread_of_an_estimate_with_an_error_is_not_used() -> None:
    spread = DrawSpread.of_values([0.1, 0.2, 0.3])
    assert spread == DrawSpread(mean=pytest.approx(0.2), sd=pytest.approx(0.1), draws=3)  # type: ignore[arg-type]
    assert DrawSpread.of_values([0.1]) is None and DrawSpread.of_values([0.1, math.inf]) is None
    lower = Estimate(value=0.4, spread=spread).eligibility_limit(0.0, DEFAULT_POLICY, is_upper=False)
    assert lower == pytest.approx(0.2 - t.ppf(norm.cdf(1.5), 2) * 0.1 * math.sqrt(4 / 3))
    assert Limit(LINKAGE, 0.5).eligibility_limit(Estimate(value=0.1, se=0.0, spread=spread), DEFAULT_POLICY) > 0.2


def test_values_that_differ_between_draws_cause_few_refusals() -> None:
    """Without further draws, three candidates at their limit were all refused in one study of eight.

    Sixty methods of which the mean rises with the utility: the rule prefers those nearest to the limit.
    """
    rng, limit, studies, refused = np.random.default_rng(5), Limit(LINKAGE, 0.05), 400, [0, 0]
    means = np.linspace(0.08, 0.02, 60)  # least loss first
    for _ in range(studies):
        draws = rng.binomial(1000, means, (5, len(means))) / 1000
        spreads = [DrawSpread.of_values(own) for own in draws.T]
        for place, use in enumerate((False, True)):
            estimates = (
                Estimate(value=value, spread=one if use else None) for value, one in zip(draws[0], spreads, strict=True)
            )
            met = [limit.judge_candidate(estimate, DEFAULT_POLICY).status == "met" for estimate in estimates]
            tried = np.flatnonzero(met)[:3]
            released = rng.binomial(1000, means[tried]) / 1000
            refused[place] += not (released <= limit.value).any()
    assert refused[0] > 0.1 * studies and refused[1] < 0.02 * studies, refused
