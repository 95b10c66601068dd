"""Duncan, Keller-McNulty, Stokes (2001), section 4 and the whole experiment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.papers.duncan2001 import run
from sdcmap.papers.duncan2001_incomes import (
    RISK_LIMIT,
    generate_incomes,
    load_incomes,
    noise_variances,
    truncated_efficiency,
)
from sdcmap.papers.reference import Result, errata

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def found(shared: Path) -> Result:
    return run(replicates=200, data=shared, seed=2**200 + 7)


def test_position_and_index_by_hand() -> None:
    """x = 1, 5, 5, 9 masked as 2, 4, 8, 7: the maximum 9 is guessed 8 by position and 7 by index; 5 is held twice."""
    data = sm.read(pl.DataFrame({"x": [1.0, 5.0, 5.0, 9.0]}), numeric="all")
    masked = data.change(None, {"x": np.array([2.0, 4.0, 8.0, 7.0])})
    score = lambda measure: measure.score(data, masked, RNG).value
    assert score(sm.risk.Position(on="x")) == 1
    assert score(sm.risk.Index(on="x")) == 1 / 4
    assert score(sm.risk.Position(on="x", target="minimum")) == 1
    assert score(sm.risk.Index(on="x", target=0.5)) == pytest.approx(1 / 5)  # ties: the mean of 1 and 9
    assert score(sm.risk.Position(on="x", target=0.5)) == 1  # rank 2 of 2, 4, 7, 8 is 4
    assert sm.risk.Index(on="x").baseline(data) == pytest.approx(1 / 16)  # the mean 5 is 4 away
    assert sm.risk.Position(on="x").score(data, data.change(None, {}), RNG).value == np.inf


def test_missing_values_and_targets_that_vanish() -> None:
    data = sm.read(pl.DataFrame({"x": [1.0, None, 9.0]}), numeric="all")
    gone = data.change(None, {"x": np.array([1.0, np.nan, np.nan])})
    with pytest.raises(sm.errors.Undefined, match="not in the masked file"):
        sm.risk.Index(on="x").score(data, gone, RNG)
    assert sm.risk.Position(on="x").score(data, gone, RNG).value == pytest.approx(1 / 64)
    with pytest.raises(sm.errors.PlanError, match=r"Position.target must be in \(0, 1\)"):
        sm.risk.Position(on="x", target=1.5)


def test_rank_of_a_percentile_is_not_shifted_by_rounding() -> None:
    from sdcmap.kernels.quantiles import quantile_index

    assert [quantile_index(p, 100) for p in (0.01, 0.07, 0.29, 0.57, 0.99)] == [0, 6, 28, 56, 98]
    assert quantile_index(0.99, 177) == 175  # ceil(175.23) = 176
    assert quantile_index(0.001, 10) == 0


def test_index_of_an_isolated_maximum_is_one_over_the_noise_variance(shared: Path) -> None:
    """Untruncated, R = 1/(share S^2); 2,000 replicates, within 4 standard errors."""
    data, _ = load_incomes(shared)
    measures = [sm.risk.Index(on="income"), sm.utility.MeanPrecision(on="income")]
    plan = sm.Plan(sm.Noise(on="income", variance=0.2), measures, replicates=2000, seed=3)
    pooled = sm.sweep(data, plan, workers=1).pooled(measures[0].text)
    row = pooled.filter(pl.col("method") != "Identity").row(0, named=True)
    assert abs(row["value"] - 1 / (0.2 * data["income"].var(ddof=1))) < 4 * row["se"]


@pytest.mark.parametrize(("share", "efficiency"), [(0.05, 0.95549), (0.12, 0.90198), (0.5, 0.63835), (1.0, 0.37015)])
def test_exact_truncated_efficiency(shared: Path, share: float, efficiency: float) -> None:
    x = load_incomes(shared)[0]["income"]
    assert truncated_efficiency(x, noise_variances(x, share, "equal")) == pytest.approx(efficiency, abs=5e-6)


def test_mean_precision_with_its_bias_meets_the_exact_value(found: Result, shared: Path) -> None:
    """Eq. 13-14 with truncation, 200 replicates: efficiency within .06 of the exact one at every level, where
    the squared bias is estimated with its own error."""
    x = load_incomes(shared)[0]["income"]
    for row in found.document["figures"]["6"]:
        exact = truncated_efficiency(x, noise_variances(x, row["noise_share"], "equal"))
        assert row["efficiency"] == pytest.approx(exact, abs=0.06)


def test_statements_of_section_4(found: Result) -> None:
    said = found.document["statements"]
    assert said["a"]["holds"]
    assert said["a"]["lowest_R"] == pytest.approx(2.5e-7, rel=0.02)  # 1/2000^2
    assert said["a"]["index_crossing"]["noise_share"] == pytest.approx(0.266, abs=0.05)
    assert said["b"]["exact_share_if_isolated"] == pytest.approx(0.14133, abs=2e-4)
    assert said["b"]["crossing"]["noise_share"] == pytest.approx(0.14133, abs=0.025)
    assert said["b"]["crossing"]["efficiency"] == pytest.approx(0.887, abs=0.02)
    assert said["b"]["efficiency_at_0.12"] == pytest.approx(0.90198, abs=5e-6)
    ratios = said["c"]["smallest_ratio"]
    assert all(ratios[name] > 1.2 for name in ("minimum", "0.01", "0.1", "0.9"))
    assert ratios["maximum"] == pytest.approx(1, abs=0.02)
    equal, unequal = said["d"]["equal"], said["d"]["unequal"]
    assert equal["noise_share"] == pytest.approx(0.175, abs=0.03)
    assert unequal["noise_share"] == pytest.approx(0.0876, abs=0.02)
    assert unequal["efficiency"] - equal["efficiency"] > 0.03  # the notes: at least .0496 with 20,000 replicates


def test_figures_2_to_4_are_the_golden_rows(found: Result, shared: Path) -> None:
    golden = json.loads((shared / "golden" / "duncan_trottini_seri.json").read_text())["duncan_fig234_n200_s2_1"]
    names = {"U": "U", "R2": "R_population", "R2_in_sample": "R_in_sample", "R4": "R_index", "R8_p99": "R_percentile",
             "R8_p99_exact_orderstat": "R_percentile_exact", "R10": "R_extreme",
             "R10_exact_moments": "R_extreme_exact"}  # fmt: skip
    rows = {round(row["lambda2"], 6): row for row in found.document["figures"]["4"]}
    for row in golden:
        for theirs, ours in names.items():
            value = rows[round(row["lam2"], 6)][ours]
            assert value == (np.inf if row[theirs] is None else pytest.approx(row[theirs], rel=1e-6)), (
                row["lam2"],
                ours,
            )


def test_every_figure_is_drawn_and_every_erratum_named(found: Result) -> None:
    assert list(found.figures) == [f"figure{number}" for number in range(2, 8)]
    for chart in found.figures.values():
        assert chart.svg().startswith("<svg")
    assert len(errata("duncan2001")) == 12 and set(errata("duncan2001")) <= set(found.lines)
    assert all(
        set(row) >= {"noise_share", "efficiency", "R_index", "R_position"} for row in found.document["figures"]["5"]
    )
    assert not any("lambda2" in row for name in "567" for row in found.document["figures"][name])


def test_the_generated_stand_in_has_the_published_summaries() -> None:
    x = generate_incomes()
    assert len(x) == 177
    assert np.sort(x)[[0, 1, 17, 159, 175, 176]] == pytest.approx([2000, 2000, 7200, 35_000, 70_000, 95_200])
    assert x.mean() == pytest.approx(20_100, rel=0.02)
    assert x.std(ddof=1) == pytest.approx(13_300, rel=0.02)
    assert pytest.approx(1 / 5000**2) == RISK_LIMIT


def test_on_the_command_line(tmp_path: Path) -> None:
    options = ("--n", 50, "--sigma2", 4, "--p", 0.9, "--replicates", 20, "--data", tmp_path, "-o", tmp_path / "figures")
    found = json.loads(sdcmap("paper", "duncan2001", "--json", *options).stdout)
    assert "generated stand-in" in found["sample"]
    row = next(row for row in found["figures"]["2"] if row["lambda2"] == 4)
    assert row["U"] == pytest.approx(50 / 8)
    assert row["R_population"] == pytest.approx(50 / (51 * 4 + 4))
    assert row["R_index"] == 0.25
    assert found["figures"]["2"][0]["R_index"] is None
    assert len(list((tmp_path / "figures").iterdir())) == 18
    bad = sdcmap("paper", "duncan2001", "--n", 1, code=2)
    assert "n must be a whole number in [2, inf). Got 1." in bad.stderr
