"""Linkage attacks on files small enough to check by hand, with archives, ties, missing values and bad input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from plain_gower import gower
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.risk.linkage import cost_models
from sdcmap.risk.linkage import file_pair as pairing
from sdcmap.risk.linkage.agreement_patterns import Patterns
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.cost_models import BestSoFar, attack_targets
from sdcmap.risk.linkage.file_pair import LinkTable, calibrate, running_precision
from sdcmap.risk.linkage.link_search import agreement_scores
from sdcmap.risk.linkage.nearest_record import whitening_matrix
from sdcmap.risk.linkage.record_linkage import agreement_matrix, coincidence_probability, fit_em, frequency_weights
from sdcmap.testing.laws import permute_rows

RNG = np.random.default_rng(0)
BLIND = [
    sm.risk.Linkage("d"), sm.risk.Linkage("l"), sm.risk.Linkage("unit-free d"), sm.risk.Linkage("unit-free l"),
    sm.risk.Linkage("d", weights="equal"), sm.risk.Linkage("d", weights="known"),
    sm.risk.NearestRecord(), sm.risk.NearestRecord(one_to_one=True), sm.risk.NearestRecord("mahalanobis"),
    sm.risk.NearestRecord("mahalanobis", one_to_one=True), sm.risk.NearestRecord("gower"),
    sm.risk.NearestRecord("gower", one_to_one=True), sm.risk.NearestRecord("mixed"), sm.WorstLinkage(),
]  # fmt: skip


def numeric(*columns: Sequence[float]) -> Microdata:
    return sm.read(pl.DataFrame({f"x{i}": list(map(float, c)) for i, c in enumerate(columns)}), numeric="all")


def rate(attack: sm.Measure, original: Microdata, masked: Microdata) -> float:
    return attack.score(original, masked, RNG).value


@pytest.fixture(scope="module")
def people() -> Microdata:
    """300 persons like the adult file: numbers with zeros and missing values, categories with missing values."""
    rng = np.random.default_rng(11)
    n = 300
    frame = pl.DataFrame(
        {
            "age": rng.integers(17, 90, n).astype(float),
            "hours": rng.integers(1, 99, n).astype(float),
            "gain": np.where(rng.random(n) < 0.8, 0.0, np.round(rng.lognormal(8, 1, n))),
            "work": rng.choice(["private", "state", "self"], n),
            "race": rng.choice(["a", "b", "c", "d"], n, p=[0.7, 0.1, 0.1, 0.1]),
        }
    )
    for name in ("hours", "work"):
        frame = frame.with_columns(pl.when(pl.Series(rng.random(n) > 0.1)).then(pl.col(name)).alias(name))
    return sm.read(frame, keys=["work", "race"], numeric=["age", "hours", "gain"])


# ---- scores by hand -------------------------------------------------------------------------------------------
def test_pair_weight_matches_paper() -> None:
    """One pair, weights 4 and 1: r = |10 - 11|/10 = 0.1, half of t = 0.2; the second field is beyond t: -2 + 2 - 0.5."""
    original = numeric([10, 1000], [5, 5])
    masked = original.change(None, {"x0": np.array([11.0, 1000]), "x1": np.array([8.0, 5])})
    links = sm.risk.Linkage("d", weights=(4, 1)).links(original, masked)
    assert links.weight == pytest.approx([-0.5, 2.5])
    assert links.margin == pytest.approx([-0.5 - (-2 + 0.5), 2.5 - (-2 - 0.5)])  # over the other released record
    assert links.partner.tolist() == [0, 1]
    assert links.correct.tolist() == [1, 1]


def test_relative_difference_near_zero_divides_by_a_tenth() -> None:
    original = numeric([0, 50])
    masked = original.change(None, {"x0": np.array([0.01, 50])})  # |0 - 0.01| / 0.1 = 0.1, half of t
    assert sm.risk.Linkage("d", weights=(2,)).links(original, masked).weight == pytest.approx([0, 1])


@pytest.mark.parametrize("metric", ["l", "unit-free d", "unit-free l"])
def test_zero_and_negative_values_are_linked(metric: Any) -> None:
    original = numeric([0, -100, 100, 7])
    assert rate(sm.risk.Linkage(metric), original, original.change(None, {})) == 1


def test_frequency_weights_use_coincidence_probability() -> None:
    """Values 1 1 2 3: u = (4 + 1 + 1)/16; wA - wD = log(0.9/u) - log(0.1/(1 - u)). A constant column does not count."""
    x = np.array([1.0, 1, 2, 3])
    assert coincidence_probability(x) == 6 / 16
    low, gain = frequency_weights(np.column_stack([x, np.ones(4), np.full(4, np.nan)]))
    u = 6 / 16
    assert low == pytest.approx([np.log(0.1 / (1 - u)), 0, 0])
    assert gain == pytest.approx([np.log(0.9 / u) - np.log(0.1 / (1 - u)), 0, 0])


def test_missing_field_weighs_zero_and_categories_agree_or_not() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, None], "c": ["a", "b", "a"]})
    original = sm.read(frame, keys=["c"], numeric=["x"])
    links = sm.risk.Linkage("d", weights="equal", open_columns="as any").links(original, original.change(None, {}))
    assert links.weight.tolist() == [1, 1, 0.5]
    assert sm.risk.Linkage("d", weights="equal").links(original, original.change(None, {})).weight.tolist() == [1, 1, 1]
    assert links.correct.tolist() == [1, 1, 1]


def test_compiled_scores_match_formula() -> None:
    rng = np.random.default_rng(1)
    known, released = rng.normal(size=(40, 3)), rng.normal(size=(30, 3))
    known[3, 1] = released[5, 2] = released[6, 1] = np.nan
    arguments = known, released, 0.2 + rng.random((40, 3)), -rng.random(3), rng.random(3)
    np.testing.assert_array_equal(agreement_matrix(*arguments), agreement_scores(*arguments))


def test_gower_leaves_missing_fields_out() -> None:
    first = np.array([[0.0, 1.0], [np.nan, 1.0]])
    second = np.array([[5.0, 2.0], [0.0, 1.0], [np.nan, np.nan]])
    result = gower(first, second, np.array([False, True]), np.array([10.0, 1.0]))
    np.testing.assert_allclose(result, [[-0.75, 0, -1], [-1, 0, -1]])


def test_whitening_drops_null_directions() -> None:
    x = np.random.default_rng(2).normal(size=(50, 3))
    x = np.column_stack([x, x[:, 0] + x[:, 1]])
    turned = x @ whitening_matrix(x)
    assert turned.shape == (50, 3)
    np.testing.assert_allclose(np.cov(turned, rowvar=False), np.eye(3), atol=1e-9)


# ---- expected hits --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("attack", BLIND, ids=str)
def test_equal_records_are_exchanged_at_random(attack: Attack) -> None:
    """Two records are equal, so one of the two is expected to be linked correctly: 4 of 5."""
    original = numeric([1, 1, 5, 9, 14], [2, 2, 9, 1, 1])
    same = original.change(None, {})
    assert rate(attack, original, same) == pytest.approx(4 / 5)
    assert attack.links(original, same).correct == pytest.approx([0.5, 0.5, 1, 1, 1])


@pytest.mark.parametrize("attack", BLIND, ids=str)
def test_constant_file_leaves_a_guess(attack: Attack) -> None:
    original = numeric([3, 3, 3, 3], [7, 7, 7, 7])
    masked = original.change(None, {})
    assert rate(attack, original, masked) == pytest.approx(1 / 4)
    assert attack.baseline(original) == 1 / 4


@pytest.mark.parametrize("attack", BLIND, ids=str)
def test_constant_and_empty_columns_do_not_count(attack: Attack) -> None:
    rng = np.random.default_rng(3)
    x = rng.lognormal(3, 1, (40, 2))
    plain, more = numeric(*x.T), numeric(*x.T, [5.0] * 40, [np.nan] * 40)
    noise = x + rng.normal(0, 2, x.shape)
    change = {"x0": noise[:, 0], "x1": noise[:, 1]}
    assert rate(attack, more, more.change(None, change)) == rate(attack, plain, plain.change(None, change))


def test_tied_records_share_the_hit() -> None:
    """The released 2 lies between the known 1 and 3, so its own record is one of two nearest."""
    original = numeric([1, 3, 9])
    masked = original.change(None, {"x0": np.array([2.0, 9, 3])})
    links = sm.risk.NearestRecord("gower").links(original, masked)
    assert links.correct.tolist() == [0.5, 0, 0]
    assert links.margin[0] == 0


@pytest.mark.parametrize("attack", [*BLIND, sm.risk.Informed(sm.Noise(on=["age", "hours", "gain"]))], ids=str)
def test_attack_does_not_depend_on_row_order(people: Microdata, attack: Attack) -> None:
    masked = sm.mask(people, sm.Noise(on=["age", "hours", "gain"]), seed=1)
    there, here = np.random.default_rng(4).permutation(300), np.random.default_rng(5).permutation(300)
    shuffled = masked.take(there)
    assert rate(attack, people, shuffled) == rate(attack, people, masked)
    np.testing.assert_allclose(attack.records(people, shuffled), attack.records(people, masked)[there])
    both = permute_rows(people, here), permute_rows(masked, here)
    assert rate(attack, *both) == pytest.approx(rate(attack, people, masked), abs=1e-12)


@pytest.mark.parametrize("attack", [*BLIND, sm.risk.Informed(sm.Noise(on=["age", "hours", "gain"]))], ids=str)
def test_attack_accepts_mixed_files_with_missing_values(people: Microdata, attack: Attack) -> None:
    same = people.change(None, {})
    assert rate(attack, people, same) > 0.9  # a few persons are equal to others, or to them but for missing values
    masked = sm.mask(people, sm.Noise(on=["age", "hours", "gain"], variance=0.01), seed=1)
    assert 1 / 300 < rate(attack, people, masked) < 1


@pytest.mark.parametrize("attack", [sm.risk.Linkage("l"), sm.risk.NearestRecord(one_to_one=True)], ids=str)
@pytest.mark.parametrize("keep", [300, 4])
def test_candidates_give_same_links_as_all_pairs(
    people: Microdata, attack: Attack, keep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every released record a candidate, or with 4 and more where the optimum needs them."""
    masked = sm.mask(people, sm.Noise(on=["age", "hours", "gain"], variance=0.001), seed=1)
    whole = attack.links(people, masked)
    monkeypatch.setattr(pairing, "MAX_DENSE_PAIRS", 0)
    monkeypatch.setattr(pairing, "CANDIDATES_PER_RECORD", keep)
    best = attack.links(people, masked)
    assert best.facts["linked"] > 0.98
    same = best.partner == whole.partner
    np.testing.assert_allclose(best.weight[same], whole.weight[same])
    assert np.nansum(best.weight) == pytest.approx(np.nansum(whole.weight), rel=1e-9 if keep == 300 else 0.05)
    assert best.correct.mean() == pytest.approx(whole.correct.mean(), abs=0.02)  # ties may be broken differently


# ---- calibration ----------------------------------------------------------------------------------------------
def test_calibration_pools_adjacent_violators() -> None:
    """Scores 1 2 3 4 with successes 0 1 0 1: the middle two are pooled; equal scores share a value."""
    assert calibrate(np.array([1.0, 2, 3, 4]), np.array([0.0, 1, 0, 1])).tolist() == [0, 0.5, 0.5, 1]
    assert calibrate(np.array([4.0, 1, 1]), np.array([1.0, 0, 1])).tolist() == [1, 0.5, 0.5]


def test_zone_ends_where_precision_falls_below_level() -> None:
    score = np.array([9.0, 8, 7, 6, 5, 4])
    success = np.array([0.0, 1, 1, 0, 0, 0])
    order, precision = running_precision(score, success)
    assert order.tolist() == [0, 1, 2, 3, 4, 5]
    assert precision == pytest.approx([0, 1 / 2, 2 / 3, 2 / 4, 2 / 5, 2 / 6])
    links = LinkTable(np.arange(6), score, score, success, success)
    assert links.zone(0.5).tolist() == [0, 1, 2, 3]
    assert links.zone(0.9).tolist() == []
    some = links._replace(partner=np.array([-1, 1, 2, 3, 4, 5]), weight=np.array([np.nan, 8, 7, 6, 5, 4]))
    assert some.rank_links()[0].tolist() == [1, 2, 3, 4, 5]  # unlinked records are not in the link file
    assert (
        running_precision(np.ones(4), np.array([1.0, 0, 0, 0]))[1].tolist() == [0.25] * 4
    )  # equal scores share a value


def test_link_probabilities_sum_to_expected_hits(people: Microdata) -> None:
    masked = sm.mask(people, sm.Noise(on=["age", "hours", "gain"]), seed=1)
    attack = sm.risk.NearestRecord("gower", one_to_one=True)
    links = attack.links(people, masked)
    assert links.probability.sum() == pytest.approx(links.correct.sum())
    best = links.margin >= np.quantile(links.margin, 0.9)
    assert links.probability[best].mean() > links.probability.mean()


# ---- Fellegi and Sunter ---------------------------------------------------------------------------------------
def expected_patterns(m: Array, u: Array, share: float, pairs: int) -> Patterns:
    field = np.array(np.meshgrid(*[[0, 1]] * len(m))).reshape(len(m), -1).T
    of_links, of_others = ((np.where(field == 1, rate, 1 - rate)).prod(axis=1) for rate in (m, u))
    return Patterns(field.astype(np.int8), np.round(pairs * (share * of_links + (1 - share) * of_others)))


def test_em_recovers_two_classes() -> None:
    """1,000 x 1,000 pairs with one link per record; the log-likelihood never falls."""
    m, u = np.array([0.9, 0.8, 0.95, 0.85]), np.array([0.05, 0.1, 0.02, 0.2])
    result = fit_em(expected_patterns(m, u, 1e-3, 1_000_000), 1000, steps=5000)
    assert result.m == pytest.approx(m, abs=0.02)
    assert result.u == pytest.approx(u, abs=1e-3)
    assert result.links == pytest.approx(1, rel=0.05)
    assert result.converged
    assert result.doubts == ()
    assert (np.diff(result.trace) > -1e-12).all()


def test_em_reports_doubts() -> None:
    m, u = np.array([0.9, 0.8, 0.95]), np.array([0.05, 0.1, 0.02])
    assert "many links" in fit_em(expected_patterns(m, u, 0.05, 1_000_000), 1000).doubts  # 50 links per record
    assert "not converged" in fit_em(expected_patterns(m, u, 1e-3, 1_000_000), 1000, steps=2).doubts
    against = fit_em(expected_patterns(np.array([0.9, 0.9, 0.1]), np.array([0.1, 0.1, 0.6]), 1e-3, 1_000_000), 1000)
    assert "agreement against" in against.doubts  # the third field agrees less among links than among others


def test_thresholds_respect_error_rates() -> None:
    """One field, m = 0.9, u = 0.1: agreement weighs log 9, disagreement -log 9."""
    patterns = Patterns(np.array([[0], [1]]), np.array([0.5 * (0.1 + 0.9), 0.5 * (0.9 + 0.1)]) * 1000)
    result = fit_em(patterns, 500, steps=1)._replace(share=0.5, m=np.array([0.9]), u=np.array([0.1]))
    high, low = result.thresholds(mu=0.1, lam=0.1)
    assert (high, low) == pytest.approx((np.log(9), -np.log(9)))
    assert result.thresholds(mu=0.05, lam=0.05) == (np.inf, -np.inf)


def test_centering_protects_against_large_means() -> None:
    """Birth year and height: noise of 1 % of the variance changes the standard deviation of each file, and an
    uncentered scale moves all records by a hundred such changes. Means over five draws, compared with plain numpy.
    """
    rng = np.random.default_rng(4)
    x = np.column_stack([1960 + np.round(rng.normal(0, 18, 500)), 172 + rng.normal(0, 9, 500)])
    data, method = numeric(*x.T), sm.Noise(on=("x0", "x1"), variance=0.01)
    assert data.names == ("x0", "x1")
    centered, scaled, plain = [], [], []
    for seed in range(5):
        masked = sm.mask(data, method, seed=seed)
        centered.append(rate(sm.risk.NearestRecord(), data, masked))
        scaled.append(rate(sm.risk.NearestRecord("scaled"), data, masked))
        y = np.column_stack([masked["x0"], masked["x1"]])
        a, b = ((z - z.mean(axis=0)) / z.std(axis=0, ddof=1) for z in (x, y))
        nearest = ((a[:, np.newaxis] - b[np.newaxis]) ** 2).sum(axis=2).argmin(axis=0)
        plain.append((nearest == np.arange(500)).mean())
    assert np.mean(centered) == pytest.approx(np.mean(plain), abs=0.01)
    assert np.mean(centered) > 1.5 * np.mean(scaled)


# ---- the informed attack --------------------------------------------------------------------------------------
def test_informed_attack_needs_method_with_likelihood(people: Microdata) -> None:
    same = people.change(None, {})
    with pytest.raises(sm.errors.Undefined, match="the method is not known"):
        rate(sm.risk.Informed(), people, same)
    twice = sm.Chain([sm.Noise(on="age"), sm.RankSwap(on="age", p=0.1)])
    with pytest.raises(sm.errors.Undefined, match="likelihood"):
        rate(sm.risk.Informed().for_informed_attacker(twice), people, same)
    estimate = sm.WorstLinkage().for_informed_attacker(twice).score(people, same, RNG)
    assert "informed" not in estimate.parts and "calibrated" in estimate.parts
    assert [one for one in estimate.skipped if one.attack == "informed" and "likelihood" in one.reason]


def test_unmasked_columns_must_be_equal() -> None:
    """Noise hides x completely; only the key c separates the records, two and two."""
    original = sm.read(pl.DataFrame({"x": [1.0, 2, 3, 4], "c": list("aabb")}), keys=["c"], numeric=["x"])
    method = sm.Noise(on="x", variance=0.01)
    masked = original.change(None, {"x": np.array([1.1, 1.9, 4.1, 2.9])})  # the last two look exchanged
    links = sm.risk.Informed(method).links(original, masked)
    assert links.correct.tolist() == [1, 1, 0, 0]
    assert sm.risk.Informed(method, on=["c"]).score(original, masked, RNG).value == pytest.approx(2 / 4)


@pytest.mark.parametrize("dense", [True, False], ids=["all pairs", "candidates"])
def test_informed_attack_on_randomized_categories_matches_plain_formula(
    dense: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer: log densities of all pairs in numpy, and scipy's assignment. Epsilon 1 keeps a category of three with
    probability e/(e + 2)."""
    if not dense:
        monkeypatch.setattr(cost_models, "MAX_MATRIX_PAIRS", 0)
    rng, n, sd = np.random.default_rng(3), 150, 0.2
    x, c = rng.normal(0, 1, n), rng.integers(0, 3, n)
    data = sm.read(pl.DataFrame({"x": x, "c": [str(one) for one in c]}), keys=["c"], numeric=["x"])
    y, other = x + rng.normal(0, sd, n), np.where(rng.random(n) < np.e / (np.e + 2), c, rng.integers(0, 3, n))
    masked = data.change(None, {"x": y, "c": other.astype(data.codes("c").dtype)})
    method = sm.Chain((
        sm.methods.RandomizedResponse("c", 1.0), sm.Noise(on="x", variance=sd**2 / x.var(ddof=1)),
    ))  # fmt: skip
    score = np.where(c[:, None] == other, 1.0, 0.0) - (x[:, None] - y) ** 2 / (2 * sd**2)
    _, partner = linear_sum_assignment(score, maximize=True)
    links = sm.risk.Informed(method).links(data, masked)
    assert links.correct.tolist() == [float(partner[row] == row) for row in range(n)]
    assert 5 < links.correct.sum() < n and links.facts["gap"] == 0


def test_informed_attack_tolerates_archive_errors(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    frame = pl.DataFrame({f"x{i}": rng.normal(0, 1, 60) for i in range(4)} | {"c": rng.choice(list("abc"), 60)})
    data = sm.read(frame, keys=["c"], numeric=[f"x{i}" for i in range(4)])
    method = sm.Noise(on=data.numeric, variance=0.01)
    masked = sm.mask(data, method, seed=1)
    wrong = np.array(["b" if c == "a" else "a" for c in frame["c"][:10]] + frame["c"][10:].to_list())
    frame.with_columns(c=pl.Series(wrong)).write_parquet(tmp_path / "archive.parquet")
    attack = sm.risk.Informed(archive=str(tmp_path / "archive.parquet")).for_informed_attacker(method)
    assert rate(attack, data, masked) > 0.9


def test_informed_attack_with_some_masked_variables(people: Microdata) -> None:
    method = sm.RankSwap(on=["age", "gain"], p=0.1)
    masked = sm.mask(people, method, seed=1)
    assert (
        1 / 300
        < rate(sm.risk.Informed(method, on=["age", "race"]), people, masked)
        < rate(sm.risk.Informed(method), people, masked)
    )


# ---- the best of all ------------------------------------------------------------------------------------------
def test_worst_linkage_is_the_best_single_attack(people: Microdata) -> None:
    method = sm.Noise(on=["age", "hours", "gain"], variance=0.05)
    masked = sm.mask(people, method, seed=1)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    result = attack.score(people, masked, RNG)
    tables = attack.attacks(people, masked)
    rates = {name: table.rate for name, table in tables.items()}
    assert set(rates) > {"unit-free d", "unit-free l", "nearest", "mahalanobis", "gower", "informed", "calibrated"}
    assert max(rates.values()) < 1
    assert {name: result.parts[name] for name in rates} == pytest.approx(rates)  # work and race leave few candidates
    assert len([name for name in result.parts if "one-to-one" in name]) == len(rates) / 2
    assert result.value == max(rates.values()) <= attack.union_rate(people, masked) <= 1
    assert max(rates, key=lambda name: rates[name]) == "informed one-to-one"
    assert rates["informed one-to-one"] == pytest.approx(rate(sm.risk.Informed(method), people, masked), abs=0.02)
    highest = np.max([table.probability for table in tables.values()], axis=0)
    np.testing.assert_array_equal(attack.records(people, masked), highest)
    assert attack.link_files(people, masked)[1].rate == result.value


def test_attack_that_cannot_lead_is_stopped_with_an_upper_bound(people: Microdata) -> None:
    masked = sm.mask(people, sm.Noise(on=["age", "hours", "gain"], variance=0.05), seed=1)
    attack = sm.risk.NearestRecord("mahalanobis")
    pair = attack.pair(people, masked, ("age", "hours", "gain"))
    models = attack.cost_models(pair)
    whole = attack_targets(pair, models, pair.targets)
    stopped = attack_targets(pair, models, pair.targets, BestSoFar(rate=1.1, potential=1.1))
    assert whole.complete and not stopped.complete
    assert whole.rate < stopped.rate < 1


def test_sweep_fills_in_the_method() -> None:
    data = sm.demo.population(120, seed=1)
    plan = sm.Plan(
        sm.Noise(on="wage"), [sm.WorstLinkage(on=["wage", "Age"]), sm.risk.Informed(on=["wage", "Age"])], seed=1
    )
    scores = sm.sweep(data, plan, workers=1)
    both = [scores.column(measure.text).filter(pl.col("method").str.starts_with("Noise")) for measure in plan.measures]
    assert both[0]["value"][0] >= both[1]["value"][0] > 1 / 120


def test_worst_linkage_is_proposed_for_numeric_files() -> None:
    from sdcmap.explore.first_look import look

    plan = look(numeric(range(60), range(60, 0, -1))).plan("x.csv")
    assert sm.WorstLinkage() in plan.measures


# ---- archives and membership ----------------------------------------------------------------------------------
@pytest.fixture
def data() -> Microdata:
    x = np.random.default_rng(9).lognormal(3, 1, (50, 3))
    return numeric(*x.T)


def archive_of(data: Microdata, rows: Sequence[int], path: Path, strangers: int = 0) -> str:
    """A file with these rows and small errors, and some strangers."""
    rng = np.random.default_rng(10)
    x = data.matrix(data.numeric)[list(rows)] * rng.uniform(0.99, 1.01, (len(rows), 3))
    x = np.vstack([x, rng.lognormal(3, 1, (strangers, 3))])
    row = [*rows, *[None] * strangers]
    pl.DataFrame(x, schema=list(data.numeric)).with_columns(row=pl.Series(row, dtype=pl.Int64)).write_parquet(path)
    return str(path)


@pytest.mark.parametrize("attack", [sm.risk.Linkage, sm.risk.NearestRecord, sm.WorstLinkage])
def test_archive_with_other_rows_and_errors(attack: type[Attack], data: Microdata, tmp_path: Path) -> None:
    same = data.change(None, {})
    part = attack(archive=archive_of(data, range(40, 20, -1), tmp_path / "part.parquet"), row="row")
    result = part.links(data, same)
    assert result.correct[21:41].mean() > 0.9
    assert result.correct[np.r_[0:21, 41:50]].sum() == 0  # not in the archive
    more = attack(archive=archive_of(data, range(50), tmp_path / "more.parquet", strangers=60), row="row")
    assert rate(more, data, same) > 0.8
    assert attack(archive=archive_of(data, range(50), tmp_path / "all.parquet")).links(data, same).correct.mean() > 0.9


def test_unusable_archive_is_rejected(data: Microdata, tmp_path: Path) -> None:
    same = data.change(None, {})
    path = archive_of(data, range(20), tmp_path / "archive.parquet")
    with pytest.raises(sm.errors.SchemaError, match="Name in `row` the column"):
        rate(sm.risk.Linkage(archive=path), data, same)
    with pytest.raises(sm.errors.SchemaError, match="no column 'nowhere' of row numbers"):
        rate(sm.risk.Linkage(archive=path, row="nowhere"), data, same)
    with pytest.raises(sm.errors.SchemaError, match="whole numbers from 0 to 49"):
        rate(
            sm.risk.Linkage(archive=archive_of(data.take(np.arange(50)), [1, 49], tmp_path / "b.parquet"), row="x0"),
            data,
            same,
        )
    pl.DataFrame({"x0": [1.0, 2.0], "row": [3, 3]}).write_parquet(tmp_path / "twice.parquet")
    with pytest.raises(sm.errors.SchemaError, match="names a row of the data twice"):
        rate(sm.risk.Linkage(archive=str(tmp_path / "twice.parquet"), row="row"), data, same)
    pl.DataFrame({"other": [1.0]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(sm.errors.SchemaError, match="no variable in common"):
        rate(sm.risk.Linkage(archive=str(tmp_path / "other.parquet")), data, same)
    with pytest.raises(sm.errors.SchemaError, match="has no column 'x2'"):
        rate(sm.risk.Linkage(archive=str(tmp_path / "twice.parquet"), on=["x2"], row="row"), data, same)
    with pytest.raises(sm.errors.PlanError, match="there is no file nowhere"):
        sm.risk.Linkage(archive="nowhere.csv")
    with pytest.raises(sm.errors.PlanError, match="needs an archive"):
        sm.risk.Linkage(row="row")


def test_one_to_one_rejects_files_of_very_different_size(tmp_path: Path) -> None:
    data = numeric(range(1, 402))
    pl.DataFrame({"x0": [1.0, 2.0, 3.0], "row": [0, 1, 2]}).write_parquet(tmp_path / "few.parquet")
    few = {"archive": str(tmp_path / "few.parquet"), "row": "row"}
    with pytest.raises(sm.errors.Undefined, match="the attacker's file has 3 records and the released one 401"):
        rate(sm.risk.Linkage(**few), data, data.change(None, {}))
    assert rate(sm.risk.NearestRecord(**few), data, data.change(None, {})) == 1  # all three are found


def test_inclusion_probability_lowers_the_risk(data: Microdata) -> None:
    masked = sm.mask(data, sm.Noise(on=data.numeric), seed=1)
    sure, unsure = sm.WorstLinkage(), sm.WorstLinkage(inclusion=0.1)
    result = unsure.score(data, masked, RNG)
    assert result.parts["prosecutor"] == rate(sure, data, masked)
    assert result.value == pytest.approx(0.1 * result.parts["prosecutor"])
    np.testing.assert_allclose(unsure.records(data, masked), 0.1 * sure.records(data, masked))
    assert unsure.baseline(data) == pytest.approx(0.1 / 50)


# ---- interval disclosure --------------------------------------------------------------------------------------
def test_intervals_by_hand() -> None:
    """s = 10, errors 0.05, 0.25, 0.95 and 2: inside 10, 8, 1 and 0 of the ten widths 0.1, 0.2 ... 1."""
    x = np.array([0.0, 10, 20, 10])
    scale = 10 / x.std(ddof=1)
    original = numeric(x * scale)
    masked = original.change(None, {"x0": x * scale + [0.05, -0.25, 0.95, 2]})
    measure = sm.risk.IntervalDisclosure("sd")
    assert measure.records(original, masked) == pytest.approx([1, 0.8, 0.1, 0])
    assert rate(measure, original, masked) == pytest.approx(1.9 / 4)


def test_rank_intervals_by_hand() -> None:
    """100 values 0..99, one of which moves by 5 ranks: inside the widths 5 to 10 %."""
    x = np.arange(100.0)
    original = numeric(x)
    moved = x.copy()
    moved[[10, 15]] = moved[[15, 10]]
    result = sm.risk.IntervalDisclosure().records(original, original.change(None, {"x0": moved}))
    assert result[[10, 15]] == pytest.approx([0.6, 0.6])
    assert np.delete(result, [10, 15]).min() == 1


def test_missing_values_are_left_out_of_intervals() -> None:
    original = numeric([1, 2, np.nan, 4], [1, 1, np.nan, 2])
    result = sm.risk.IntervalDisclosure("sd").records(original, original.change(None, {}))
    np.testing.assert_array_equal(result, [1, 1, np.nan, 1])
    with pytest.raises(sm.errors.Undefined, match="no value"):
        empty = numeric([np.nan, np.nan])
        rate(sm.risk.IntervalDisclosure(), empty, empty.change(None, {}))


# ---- bad input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tolerance", [0, -0.1, 1.01])
def test_tolerance_outside_range_is_rejected(tolerance: float) -> None:
    with pytest.raises(sm.errors.PlanError, match=r"Linkage.tolerance must be in \(0, 1\]"):
        sm.risk.Linkage(tolerance=tolerance)


def test_weights_that_do_not_fit_the_variables_are_rejected(data: Microdata) -> None:
    with pytest.raises(sm.errors.SchemaError, match="has 2 numbers for 3 variables"):
        rate(sm.risk.Linkage(weights=(1, 2)), data, data.change(None, {}))
    for weights in ((-1.0, 1.0), (0.0, 0.0), ()):
        with pytest.raises(sm.errors.PlanError, match="at least 0, not all 0"):
            sm.risk.Linkage(weights=weights)


@pytest.mark.parametrize("attack", BLIND, ids=str)
def test_fewer_records_than_variables(attack: Attack) -> None:
    original = numeric(*np.random.default_rng(12).lognormal(2, 1, (6, 3)))  # 3 records, 6 variables
    assert rate(attack, original, original.change(None, {})) == 1


@pytest.mark.parametrize("attack", BLIND, ids=str)
def test_file_without_origin_is_undefined(data: Microdata, attack: Attack) -> None:
    synthetic = numeric(*np.random.default_rng(13).lognormal(2, 1, (3, 20)))
    with pytest.raises(sm.errors.Undefined, match="does not tell which original record"):
        rate(attack, data, synthetic)


def test_numeric_metrics_reject_categories(people: Microdata) -> None:
    with pytest.raises(sm.errors.SchemaError, match="'work' is not: use \"gower\""):
        rate(sm.risk.NearestRecord("mahalanobis", on=["age", "work"]), people, people.change(None, {}))
    with pytest.raises(sm.errors.SchemaError, match="no column 'ages'. Did you mean 'age'"):
        rate(sm.risk.Linkage(on=["ages"]), people, people.change(None, {}))


def test_informed_attack_with_few_targets_uses_released_covariance(tmp_path: Path) -> None:
    """Twelve targets cannot estimate a covariance of five variables; the released file can (Cov Z = (1 + d) Cov X)."""
    rng = np.random.default_rng(3)
    names = [f"x{j}" for j in range(5)]
    mixing = np.linalg.cholesky(0.1 * np.eye(5) + 0.9)
    data = sm.read(pl.DataFrame(rng.standard_normal((800, 5)) @ mixing.T, schema=names), numeric="all")
    targets = rng.choice(800, 12, replace=False)
    people = pl.DataFrame({**{name: data[name][targets] for name in names}, "who": targets})
    people.write_csv(tmp_path / "targets.csv")
    result = {}
    method = sm.Noise(on=names, variance=0.05, correlated=True)
    releases = [sm.mask(data, method, seed=seed) for seed in range(12)]
    for measure in (sm.risk.Informed(archive=str(tmp_path / "targets.csv"), row="who"), sm.risk.Informed()):
        attack = measure.for_informed_attacker(method)
        rates = [attack.links(data, masked).correct[targets].mean() for masked in releases]
        result[measure.archive != ""] = float(np.mean(rates))
    assert result[True] > 0.75 * result[False] > 0.3


@pytest.mark.parametrize("kind", ["rank", "sd"])
def test_interval_disclosure_leaves_out_records_with_a_missing_value(kind: Any) -> None:
    """A file with missing values has the value of the same file without these records."""
    rng = np.random.default_rng(4)
    x = rng.normal(0, 1, 60)
    z = x + rng.normal(0, 0.1, 60)
    known = np.arange(60) % 4 > 0

    def score(x: Array, z: Array) -> float:
        before = sm.read(pl.DataFrame({"wage": x}), numeric="wage")
        measure = sm.risk.IntervalDisclosure(on="wage", kind=kind)
        return measure.score(before, before.change(None, {"wage": z}), rng).value

    with_missing = score(np.where(known, x, np.nan), np.where(known, z, np.nan))
    assert 0 < with_missing < 1 and with_missing == pytest.approx(score(x[known], z[known]))
