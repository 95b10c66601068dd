"""Sampling: the records, their weights, and that measures and releases handle samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.risk import RISKS
from sdcmap.testing import check_method
from sdcmap.utility import UTILITIES


@pytest.fixture(scope="module")
def persons() -> sm.Microdata:
    return sm.demo.population(600, seed=6)


def test_simple_random_sample(persons: sm.Microdata) -> None:
    """Rows keep their order and origin; weights are multiplied by 600/150."""
    masked = sm.mask(persons, sm.methods.Sample(rate=0.25), seed=1)
    assert len(masked) == 150 and masked.origin is not None
    assert (np.diff(masked.origin) > 0).all()
    assert (masked["wage"] == persons["wage"][masked.origin]).all()
    np.testing.assert_allclose(masked.weights, persons.weights[masked.origin] * 4)
    assert len(sm.mask(persons, sm.methods.Sample(size=7), seed=1)) == 7


def test_records_are_equally_likely(persons: sm.Microdata) -> None:
    """Each record is in 100 of 400 samples at rate 0.25 on average: chi-square over 600 records, within 5 sd."""
    counts = np.zeros(600)
    for seed in range(400):
        counts[sm.mask(persons, sm.methods.Sample(rate=0.25), seed=seed).origin] += 1
    chi = ((counts - 100) ** 2 / (400 * 0.25 * 0.75)).sum()
    assert abs(chi - 600) < 5 * np.sqrt(2 * 600)


def test_weighted_totals_are_unbiased(persons: sm.Microdata) -> None:
    """300 stratified samples, within 5 standard errors."""
    truth = float((persons.weights * persons["wage"]).sum())
    result = []
    for seed in range(300):
        masked = sm.mask(persons, sm.methods.Sample(rate=0.2, within="Sex"), seed=seed)
        result.append(float((masked.weights * masked["wage"]).sum()))
    assert abs(np.mean(result) - truth) < 5 * np.std(result, ddof=1) / np.sqrt(300)


def test_strata_are_sampled_separately(persons: sm.Microdata) -> None:
    masked = sm.mask(persons, sm.methods.Sample(size=20, within=["Sex"]), seed=1)
    for sex in ("Male", "Female"):
        rows = masked["Sex"] == sex
        assert rows.sum() == 20
        factor = (persons["Sex"] == sex).sum() / 20
        assert masked.origin is not None
        np.testing.assert_allclose(masked.weights[rows], persons.weights[masked.origin[rows]] * factor)
    assert (np.diff(masked.origin) > 0).all()  # type: ignore[arg-type]


def test_households_are_drawn_whole(persons: sm.Microdata) -> None:
    household = persons.household
    assert household is not None
    masked = sm.mask(persons, sm.methods.Sample(rate=0.3, whole_households=True), seed=1)
    before, after = (
        dict(zip(*np.unique(file[household], return_counts=True), strict=True)) for file in (persons, masked)
    )
    assert all(before[number] == count for number, count in after.items())
    assert len(after) == round(0.3 * len(before))
    np.testing.assert_allclose(masked.weights, persons.weights[masked.origin] * len(before) / len(after))


def test_file_without_weight() -> None:
    data = sm.read(pl.DataFrame({"a": ["x", "y"] * 20}), keys="all")
    assert sm.mask(data, sm.methods.Sample(rate=0.5), seed=1).names == ("a",)


@pytest.mark.parametrize(
    "method",
    [
        sm.methods.Sample(rate=0.3),
        sm.methods.Sample(size=5, within="Sex"),
        sm.methods.Sample(rate=0.5, whole_households=True),
        sm.Chain(
            [
                sm.methods.Sample(rate=0.5),
                sm.Noise(on="wage"),
                sm.methods.Sample(rate=0.5, within="Sex"),
                sm.Suppress(k=2),
            ]
        ),
    ],
    ids=lambda method: method.text,
)
def test_samples_obey_the_laws(method: sm.Method, persons: sm.Microdata) -> None:
    check_method(method, persons)


def test_chain_keeps_origin_of_rows(persons: sm.Microdata) -> None:
    chain = sm.Chain([sm.methods.Sample(rate=0.5), sm.RankSwap(on="interest"), sm.methods.Sample(rate=0.5)])
    masked = sm.mask(persons, chain, seed=1)
    assert masked.origin is not None and len(masked) == 150
    assert (masked["wage"] == persons["wage"][masked.origin]).all()
    np.testing.assert_allclose(masked.weights, persons.weights[masked.origin] * 4)


def test_every_measure_scores_a_sample_or_gives_a_reason(persons: sm.Microdata) -> None:
    """A sweep of samples under each measure that needs no other file or parameter never crashes."""
    measures = []
    for cls in (*RISKS, *UTILITIES):
        for fields in ({}, {"on": "wage"}):
            try:
                measures.append(cls(**fields))
                break
            except (TypeError, sm.errors.PlanError):
                continue
    # a measure that needs a larger file says so before the sweep
    measures = [measure for measure in measures if not list(measure.incompatibilities(persons))]
    methods = [
        sm.methods.Sample(rate=0.5),
        sm.methods.Sample(size=10, within="Sex"),
        sm.methods.Sample(rate=0.5, whole_households=True),
    ]
    scores = sm.sweep(persons, sm.Plan(methods, measures, seed=1), workers=1)
    assert set(scores.candidate["status"]) == {"ok"}
    failed = scores.score.filter(pl.col("status") == "failed")
    assert failed.is_empty(), failed
    undefined = scores.score.filter(pl.col("status") == "undefined")
    assert (undefined["reason"].str.len_chars() > 10).all()


def test_release_of_a_sample(persons: sm.Microdata, tmp_path: Path) -> None:
    """Weights are released without rounding to whole numbers, and are not listed as masked."""
    risk = sm.SmallCells(counting="all")
    plan = sm.Plan(sm.methods.Sample(size=400), [risk, sm.Hellinger()])
    sm.sweep(persons, plan, workers=1)
    chosen = next(one for one in plan.candidates if isinstance(one.method, sm.methods.Sample))
    release = sm.release(
        persons,
        plan,
        chosen,
        max_risk=1.0,
        ledger=tmp_path / "ledger",
        override={"weight": "a test", **PROFILE_OVERRIDES},
    )
    release.write(tmp_path / "public")
    released = pl.read_parquet(next((tmp_path / "public").glob("*.parquet")))
    assert len(released) == 400
    ratio = released["weight"].to_numpy() / 1.5
    assert np.isin(np.round(ratio, 6), np.round(persons.weights, 6)).all()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, r"needs either a rate in \(0, 1\] or a size of at least 1"),
        ({"rate": 0.5, "size": 3}, r"needs either a rate in \(0, 1\] or a size of at least 1"),
        ({"rate": 0}, r"Sample.rate must be in \(0, 1\]. Got 0."),
        ({"rate": 5}, r"Sample.rate must be in \(0, 1\]. Got 5."),
        ({"size": 0}, r"Sample.size must be in \[1, inf\). Got 0."),
    ],
)
def test_invalid_parameters_are_rejected(fields: dict[str, float], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.methods.Sample(**fields)  # type: ignore[arg-type]


def test_incompatible_data_are_rejected(persons: sm.Microdata) -> None:
    for method, error, words in [
        (sm.methods.Sample(size=601), sm.errors.Infeasible, "a sample of 601 records cannot be drawn from 600"),
        (sm.methods.Sample(rate=0.0001), sm.errors.Infeasible, "a rate of 0.0001 is less than one of the 600 records"),
        (
            sm.methods.Sample(rate=0.5, whole_households=True, within="Sex"),
            sm.errors.SchemaError,
            "'Sex' is not constant within",
        ),
    ]:
        with pytest.raises(error, match=words):
            sm.mask(persons, method, seed=1)
    alone = sm.read(pl.DataFrame({"a": ["x", "y"], "w": [1.0, -1.0]}), keys="a")
    with pytest.raises(sm.errors.SchemaError, match="needs a file with a household"):
        sm.mask(alone, sm.methods.Sample(rate=1, whole_households=True), seed=1)
    with pytest.raises(sm.errors.Infeasible, match="in one of 2 strata: a sample of 2 records cannot be drawn from 1"):
        sm.mask(alone, sm.methods.Sample(size=2, within="a"), seed=1)
    with pytest.raises(sm.errors.SchemaError, match="'w', which is missing or negative in 1 records"):
        sm.mask(alone.with_roles(w="weight"), sm.methods.Sample(rate=1), seed=1)
