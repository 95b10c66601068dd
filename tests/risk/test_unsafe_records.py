"""UnsafeRecords: the paper's firms, parity with the confidentiality plot, archives, limits and searches. Seri (2005)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap import testing
from sdcmap.papers.reference import reference_file
from sizes import IN_CI

AMOUNTS = ("turnover", "employees")
RNG = np.random.default_rng(0)


def firms(n: int = 150) -> sm.Microdata:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(np.exp(rng.normal((9.8, 3.6), (1.1, 0.8), (n, 2))), schema=list(AMOUNTS))
    return sm.read(frame.with_columns(nace=pl.Series(rng.choice(list("ABC"), n))), keys=[*AMOUNTS, "nace"])


@pytest.mark.skipif(not IN_CI and reference_file("firms157_X.csv") is None, reason="reference files are not here")
@pytest.mark.parametrize(("q", "unsafe"), [(1.0, 83), (0.5, 29)])
def test_share_of_unsafe_firms_in_the_papers_setting(q: float, unsafe: int) -> None:
    """Golden: an independent prototype counts 83 unsafe firms of 157 by the line and 29 by the curve; 39 links in reach
    and 9 nearest links."""
    x, y = (np.loadtxt(str(reference_file(f"firms157_{which}.csv")), delimiter=",") for which in "XY")
    files = [pl.DataFrame(part, schema=["employees", "turnover"]) for part in (x, y)]
    measure = sm.risk.UnsafeRecords(on=["employees", "turnover"], k=15, r=0.15, q=q)
    estimate = sm.score(*files, [measure])[measure.text]
    assert estimate.value == unsafe / 157
    assert estimate.parts == {"judged": 1.0, "in reach": 39 / 157, "nearest": 9 / 157}


def test_value_is_the_share_in_the_unsafe_zone_of_the_plot() -> None:
    data = firms()
    masked = sm.mask(data, sm.Noise(on=AMOUNTS, variance=0.05), seed=1)
    for options in (
        {"on": AMOUNTS, "within": "nace", "k": 4},
        {"on": AMOUNTS, "scale": "log", "k": 6, "leave_out": True},
        {"on": AMOUNTS, "scale": "standardized", "neighborhood": "fellegi-sunter"},
        {"on": ["nace"], "k": 50},
    ):
        measure, table = sm.risk.UnsafeRecords(**options), sm.records(data, masked, **options)
        estimate = measure.score(data, masked, RNG)
        assert estimate.value == len(table.unsafe) / len(table) and estimate.parts["judged"] == len(table) / len(data)
        per_record = measure.records(data, masked)
        assert np.flatnonzero(per_record == 1).tolist() == table.unsafe.tolist()
        assert np.isnan(per_record).sum() == len(table.left_out)


def test_archive_is_named_by_path_and_digest(tmp_path: Path) -> None:
    data = firms()
    masked = sm.mask(data, sm.Noise(on=AMOUNTS, variance=0.05), seed=1)
    register = data.frame().with_row_index("row")[::2]
    register.write_csv(tmp_path / "register.csv")
    options = {"on": AMOUNTS, "within": "nace", "k": 4}
    measure = sm.risk.UnsafeRecords(**options, archive=str(tmp_path / "register.csv"), row="row")
    table = sm.records(data, masked, **options, archive=register, row="row")
    assert measure.score(data, masked, RNG).value == len(table.unsafe) / len(table)
    assert measure.score(data, masked, RNG).value != sm.risk.UnsafeRecords(**options).score(data, masked, RNG).value
    register[:10].write_csv(tmp_path / "register.csv")
    with pytest.raises(sm.errors.SchemaError, match="its SHA-256 differs"):
        measure.score(firms(), masked, RNG)


def test_refusals() -> None:
    data = firms()
    masked = sm.mask(data, sm.Noise(on=AMOUNTS, variance=0.05), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="'nace' has categories. Name it in `within`"):
        sm.risk.UnsafeRecords().score(data, masked, RNG)
    with pytest.raises(sm.errors.PlanError, match=".row needs an archive"):
        sm.risk.UnsafeRecords(row="row")
    banded = sm.mask(data, sm.methods.Recode(on="turnover", bins=3), seed=1)
    with pytest.raises(sm.errors.Undefined, match="'turnover' was released as categories"):
        sm.risk.UnsafeRecords(on=AMOUNTS).score(data, banded, RNG)


def test_laws() -> None:
    testing.check_measure(sm.risk.UnsafeRecords(on=AMOUNTS, within="nace", k=5), firms(60), [sm.Noise(on=AMOUNTS)])


def test_axis_and_limit_of_a_map() -> None:
    """With more noise fewer records are unsafe; the rule keeps the least noise within the limit."""
    data = firms()
    risk = sm.risk.UnsafeRecords(on=AMOUNTS, scale="standardized", k=8, r=0.5)
    plan = sm.Plan(
        sm.grid(sm.Noise, on=[AMOUNTS], variance=[0.01, 0.1, 0.5]), [risk, sm.IL1s()], replicates=3, seed=2**130,
        rule=sm.Threshold(risk=0.2, by="mean"), limits={risk: 0.2},
    )  # fmt: skip
    scores = sm.sweep(data, plan, engine="serial")
    ru = sm.RUMap(scores, plan.risk, plan.utility, plan.limits)
    means = ru.means.filter(~pl.col("anchor")).sort("utility")["risk"].to_list()
    assert means == sorted(means, reverse=True) and means[0] > 0.2 > means[-1]
    assert ru.choose(plan.rule).candidate is not None


def test_search_finds_a_lower_share() -> None:
    """The plan's own noise leaves most records unsafe; stronger noise and wider swaps are among what the search tries."""
    data = firms(60).only(AMOUNTS)
    risk = sm.risk.UnsafeRecords(on=AMOUNTS, scale="standardized", k=8, r=0.5)
    settings = {"methods": ["Noise", "RankSwap"], "budget": 24}
    plan = sm.Plan(
        sm.Noise(on=AMOUNTS, variance=0.01),
        [risk, sm.IL1s()],
        rule=sm.Threshold(risk=0.2),
        search=settings,
        seed=2**130,
    )
    result = sm.search(data, sm.Plan.from_toml(plan.toml(), seed=plan.seed), workers=1)
    points = result.map.points.filter(~pl.col("anchor"))
    own = points.filter(pl.col("method") == sm.Noise(on=AMOUNTS, variance=0.01).text)["risk"][0]
    assert result.evaluations == 24 and own > 0.5
    assert points["risk"].min() < 0.2 < own  # type: ignore[operator]
