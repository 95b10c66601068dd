"""Restored moments: plain formulas of numpy, means of groups that a synthesis loses, and what the largest person adds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core import Stream
from sdcmap.methods import Chain, ProtectTails, RestoreMoments, Synthesize
from sdcmap.methods.restore_moments import restore_column, restore_covariances
from sdcmap.testing import check_method

ROWS, DRAWS = 1_500, 40


def workers(seed: int = 3, rows: int = ROWS) -> sm.Microdata:
    """Workers of whom a tenth is a minority with lower wages; a third has no benefits."""
    rng = np.random.default_rng(seed)
    educ, minority = rng.integers(8, 19, rows), rng.random(rows) < 0.1
    wage = np.exp(2 + 0.08 * educ - 0.3 * minority + 0.4 * rng.normal(size=rows))
    benefits = np.where(rng.random(rows) < 0.33, 0.0, np.exp(3 + 0.3 * rng.normal(size=rows)))
    frame = pl.DataFrame({
        "minority": np.where(minority, "yes", "no"), "educ": educ, "wage": wage.round(2), "benefits": benefits.round(2),
        "rent": (0.3 * wage * np.exp(0.3 * rng.normal(size=rows))).round(2), "household": np.arange(rows) // 2,
    })  # fmt: skip
    return sm.read(frame, keys=["minority", "educ"], numeric=["wage", "benefits", "rent"], household="household")


def draws_of(method: sm.Method, data: sm.Microdata, draws: int = DRAWS) -> list[pl.DataFrame]:
    return [method.apply(data, Stream.of_seed(seed, "moments")).frame() for seed in range(draws)]


def test_moments_are_restored_exactly_without_errors() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.lognormal(2, 0.5, (400, 3)), rng.lognormal(3, 0.3, (300, 3))
    signed = x - 20.0  # of both signs, so that no value is cut
    signed[0] = 30.0
    for j in range(3):
        new = restore_column(signed[:, j], y[:, j], 400, np.zeros(2), True)
        assert np.isclose(new.mean(), signed[:, j].mean()) and np.isclose(new.std(), signed[:, j].std())
    zeros = np.where(rng.random(300) < 0.4, 0.0, y[:, 0])
    new = restore_column(signed[:, 0], zeros, 400, np.zeros(2), True)
    assert (new[zeros == 0] == 0).all() and np.isclose(new.mean(), signed[:, 0].mean())
    new = restore_covariances(signed, y, 400, 0.0, rng)
    np.testing.assert_allclose(new.mean(axis=0), signed.mean(axis=0))
    np.testing.assert_allclose(np.cov(new.T), np.cov(signed.T))


@pytest.mark.parametrize("of", ["mean", "variance", "covariance"])
def test_errors_of_restored_moments_are_as_stated(of: str) -> None:
    """The mean over draws is the original's, and the spread is one standard error of so many households."""
    data = workers()
    names = ("wage", "rent")
    chain = Chain((ProtectTails(names), sm.Noise(names, variance=0.5), RestoreMoments(names, of)))
    x = data["wage"]
    means = np.array([file["wage"].mean() for file in draws_of(chain, data)], dtype=float)
    error = x.std() / np.sqrt(ROWS / 2)
    assert abs(means.mean() - x.mean()) < 4 * error / np.sqrt(DRAWS) + 0.1 * error, "protected tails move it a little"
    assert 0.6 < means.std() / error < 1.5
    if of != "mean":
        spreads = np.array([file["wage"].std() for file in draws_of(chain, data)], dtype=float)
        assert abs(spreads.mean() / x.std() - 1) < 0.1
        assert spreads.std() > 0
    if of == "covariance":
        pairs = [np.corrcoef(file["wage"], file["rent"])[0, 1] for file in draws_of(chain, data)]
        assert abs(np.mean(pairs) - np.corrcoef(x, data["rent"])[0, 1]) < 0.05


def test_groups_whose_difference_a_synthesis_loses() -> None:
    data = workers()
    names = ("minority", "educ", "wage", "benefits", "rent")
    plain = Synthesize(names, leaf=150)
    restored = Chain((plain, RestoreMoments(("wage", "benefits"), by="minority")))

    def gap(frame: pl.DataFrame) -> float:
        means = frame.group_by("minority").agg(pl.col("wage").mean())
        return float(np.subtract(*(means.filter(pl.col("minority") == own)["wage"].item() for own in ("no", "yes"))))

    true = gap(data.frame())
    before, after = (np.mean([gap(file) for file in draws_of(method, data, 10)]) for method in (plain, restored))
    assert before < 0.6 * true, "leaves of 150 records keep little of the difference"
    assert 0.8 * true < after < 1.2 * true
    zeros = [(file["benefits"] == 0).mean() for file in draws_of(restored, data, 5)]
    assert np.mean(zeros) == pytest.approx((data["benefits"] == 0).mean(), abs=0.05), "zeros stay zero"
    assert all(file["wage"].min() >= 0 for file in draws_of(restored, data, 5))


def test_the_person_with_the_largest_value_does_not_move_the_moments() -> None:
    """The attack: somebody who knows all others reads from the released mean whether the richest is in the file."""
    data = workers()
    frame = data.frame().with_columns(wage=pl.when(pl.int_range(pl.len()) == 5).then(pl.lit(900.0)).otherwise("wage"))
    reading = {"keys": ["minority", "educ"], "numeric": ["wage", "benefits", "rent"], "household": "household"}
    inside, outside = sm.read(frame, **reading), sm.read(frame.filter(pl.int_range(pl.len()) != 5), **reading)
    chain = Chain((ProtectTails("wage"), RestoreMoments(("wage",), "variance")))
    means = [
        [chain.apply(own, Stream.of_seed(seed, label))["wage"].mean() for seed in range(150)]
        for label, own in (("inside", inside), ("outside", outside))
    ]
    area = np.mean(np.subtract.outer(*means) > 0)
    assert 0.35 < area < 0.65, "exact moments of the original would give 1"


def test_what_is_refused() -> None:
    data = workers()
    assert not list(RestoreMoments(("wage", "rent"), "covariance").incompatibilities(data))
    assert any("many zeros" in line for line in RestoreMoments(("benefits",), "covariance").incompatibilities(data))
    assert any("numeric" in line for line in RestoreMoments(("wage",), by="rent").incompatibilities(data))
    with pytest.raises(sm.errors.PlanError):
        RestoreMoments(("wage",), noise=0.1)
    small = workers(rows=40)  # 20 households
    assert (RestoreMoments(("wage",)).apply(small, Stream.of_seed(1, "x"))["wage"] == small["wage"]).all()


def test_laws() -> None:
    check_method(
        Chain((sm.Noise(["wage", "rent"]), RestoreMoments(["wage", "rent"], "variance", by="minority"))),
        workers(rows=200),
    )
