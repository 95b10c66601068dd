"""Attacks with cost models: against brute force, one to one against scipy, and columns that are certain."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator, default_rng
from plain_gower import gower
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

import sdcmap as sm
from sdcmap.bundle.limit_checks import limit_check, score_file
from sdcmap.core.estimate import Estimate
from sdcmap.core.limit import Limit
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.files.alignment import align
from sdcmap.kernels.arrays import Array
from sdcmap.risk import Calibrated, HouseholdLink, Informed, Linkage, NearestRecord
from sdcmap.risk.linkage import cost_models
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.cost_models import attack_targets, link_one_to_one_by_cost, link_to_cheapest
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.link_search import agreement_scores, distance_scores
from sdcmap.risk.linkage.nearest_record import column_ranges
from sdcmap.risk.linkage.record_linkage import frequency_weights
from sdcmap.risk.linkage.stated_columns import find_certain_columns, state_likelihood
from sdcmap.study.jobs import score_row

ONCE = Stream.of_seed(5)
KEYS, NUMBERS = ("region", "school"), ("age", "wage", "rent")


def people(n: int = 60, seed: int = 1) -> Microdata:
    """Mixed records with ties, zeros and missing values."""
    rng = default_rng(seed)
    wage = np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 30, n) * 100.0)
    frame = pl.DataFrame({
        "region": [None if rng.random() < 0.05 else str(c) for c in rng.choice(list("abcdef"), n)],
        "school": rng.choice(["low", "mid", "high"], n),
        "age": rng.integers(16, 40, n).astype(float),
        "wage": wage,
        "rent": np.where(rng.random(n) < 0.4, 0.0, rng.integers(1, 9, n) * 50.0),
    }).with_columns(pl.col("wage").fill_nan(None))  # fmt: skip
    return sm.read(frame, keys=KEYS, numeric=NUMBERS)


METHODS: dict[str, Method] = {
    "noise": sm.Noise(NUMBERS, 0.1),
    "mixture": sm.methods.MixtureNoise(NUMBERS, 0.1),
    "rank swap": sm.RankSwap(NUMBERS, 0.2),
    "randomized response": sm.methods.RandomizedResponse(KEYS, 1.5),
    "suppressed": sm.Chain((sm.Suppress(KEYS, 4), sm.Noise(NUMBERS, 0.2))),
    "recoded": sm.Chain((sm.Recode("region", merge=(("d", "e", "f"),)), sm.Microaggregate(("wage", "age"), 4))),
    "sampled": sm.Chain((sm.methods.Sample(0.7), sm.Noise(NUMBERS, 0.1))),
    "steps on one variable": sm.Chain(
        (
            sm.Noise(NUMBERS, 0.1),
            sm.Noise(("wage",), 0.1),
            sm.methods.TopCode(("rent",), top=200.0),
            sm.Recode("age", width=5),
            sm.methods.PRAM(KEYS, 0.9),
            sm.methods.RandomizedResponse(("region",), 3.0),
            sm.Suppress(KEYS, 3),
        )
    ),
    "correlated noise, rounded": sm.Chain(
        (
            sm.Noise(NUMBERS, 0.1, correlated=True),
            sm.methods.Round(("wage", "rent"), 30.0),
            sm.RankSwap(("age",), 0.2),
        )
    ),
}


def label_of(value: str, labels: list[str]) -> int:
    """Return the index of the label, a list or an interval, that matches a value; -1: none."""
    for index, label in enumerate(labels):
        low, _, high = label[1:-1].partition(", ")
        if value in label.split("|") or (label[0] == "(" and float(low) < float(value) <= float(high)):
            return index
    return -1


def with_labels(pair: Pair) -> Pair:
    """Return the pair with recoded columns of both files in codes of their labels."""
    columns, released = list(pair.known_columns), pair.released.copy()
    for index in np.flatnonzero(pair.categorical):
        ours, theirs = (
            np.array(file.frame()[pair.names[index]].cast(pl.String).to_list(), dtype=object)[rows]
            for file, rows in ((pair.known_file, pair.known_rows), (pair.released_file, pair.released_rows))
        )
        labels = sorted({text for text in theirs if text is not None})
        if not set(labels) <= set(ours):
            columns[index] = np.array([np.nan if text is None else label_of(text, labels) for text in ours])
            released[:, index] = [np.nan if text is None else labels.index(text) for text in theirs]
    return replace(pair, known_columns=tuple(columns), released=released, shares_known_columns=False, _cache={})


def plain_scores(attack: Attack, pair: Pair) -> Array:
    """Return known x released: the score of each pair by the formula in the attack's docstring."""
    weights = frequency_weights(pair.known)
    pair = pair if isinstance(attack, Informed) else with_labels(pair)
    if isinstance(attack, Linkage):
        known, released, reach = attack._comparable(pair)
        return agreement_scores(known, released, reach, *weights)
    if isinstance(attack, NearestRecord) and attack.metric == "gower":
        return gower(pair.known, pair.released, pair.categorical, column_ranges(pair.known))
    if isinstance(attack, NearestRecord):
        differ = 0.0
        for index in np.flatnonzero(pair.categorical) if attack.metric == "mixed" else ():
            gap = pair.known[:, index, np.newaxis] - pair.released[:, index]
            differ = differ + np.where(np.isnan(gap), 0.5, gap != 0)
        return distance_scores(*attack._coordinates(pair)) - differ
    assert isinstance(attack, Informed)
    fields, unstated = attack._state_likelihood(pair)
    lowest = np.log(attack.slip)
    tops = [np.max(field.block(slice(None))) for field in fields]
    score = sum(
        np.maximum(field.block(slice(None)) - (top if np.isfinite(top) else 0.0), lowest)
        for field, top in zip(fields, tops, strict=True)
    )
    if unstated:  # the other columns by evidence from a shadow
        (learned,) = Calibrated(attack.method).cost_models(pair)
        index = np.arange(len(pair.known))[:, np.newaxis], np.arange(len(pair.released))
        score = score - sum(learned.costs[pair.names.index(name)].pairs(*index) for name in unstated)
    return np.asarray(score)


def brute_force_hits(score: Array, truth: Array) -> Array:
    """Return the probability that each released record is linked to its own: 1/t if t records tie."""
    best = score.max(axis=0)
    tied = score >= best - 1e-9 * np.abs(best) - 1e-9
    own = tied[truth, np.arange(len(truth))] & (truth >= 0)
    return own / tied.sum(axis=0)


UNIT_FREE = ("unit-free d", "unit-free l")
ATTACKS: dict[str, Attack] = {
    "d": Linkage("d"), "l": Linkage("l"), "unit-free l": Linkage("unit-free l"),
    "standardized": NearestRecord(), "mahalanobis": NearestRecord("mahalanobis"),
    "scaled": NearestRecord("scaled"), "gower": NearestRecord("gower"), "informed": Informed(),
    "mixed": NearestRecord("mixed"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("method", METHODS)
def test_attack_matches_brute_force(attack: str, method: str) -> None:
    data = people()
    masked = METHODS[method].apply(data, ONCE)
    attacker = ATTACKS[attack].for_informed_attacker(METHODS[method]) if attack == "informed" else ATTACKS[attack]
    assert isinstance(attacker, Attack)
    pair = attacker.pair(data, masked, (*KEYS, *NUMBERS))
    try:
        models = attacker.cost_models(pair)
    except sm.errors.Undefined as reason:
        assert attack == "informed" and "likelihood" in str(reason)
        return
    result = attack_targets(pair, models, np.arange(len(masked)))
    np.testing.assert_allclose(result.correct, brute_force_hits(plain_scores(attacker, pair), pair.truth), atol=1e-12)
    table = link_to_cheapest(pair, models)
    assert table.rate == pytest.approx(result.rate)
    for model in models:  # the first of equally cheap records is linked
        costs = model.block(slice(None), model.positions)
        first = (costs <= costs.min(axis=0) + 1e-9).argmax(axis=0)
        linked = table.partner[pair.released_rows[model.positions]]
        assert (linked == pair.known_rows[first]).all()
    assert result.potential >= result.rate


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("matrix", [True, False], ids=["all at once", "candidates"])
def test_one_to_one_links_match_scipy_assignment(attack: str, matrix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_models, "MAX_MATRIX_PAIRS", 1_000_000 if matrix else 0)
    monkeypatch.setattr(cost_models, "CANDIDATES_PER_RECORD", 4)
    data = people()
    method = METHODS["noise"]
    masked = method.apply(data, ONCE)
    attacker = ATTACKS[attack].for_informed_attacker(method) if attack == "informed" else ATTACKS[attack]
    assert isinstance(attacker, Attack)
    pair = attacker.pair(data, masked, (*KEYS, *NUMBERS))
    (model,) = attacker.cost_models(pair)
    costs = model.block(slice(None), np.arange(len(masked)))
    least = costs[linear_sum_assignment(costs)].sum()
    table = link_one_to_one_by_cost(pair, [model])
    partners = table.partner[table.partner >= 0].tolist()
    assert (
        len(set(partners)) == len(partners) >= (len(data) if matrix else 0.95 * len(data))
    )  # some may find no free partner
    if len(partners) == len(data):
        assert -table.weight.sum() == pytest.approx(least)
    else:
        assert -np.nansum(table.weight) <= least


# ---- what is certain --------------------------------------------------------------------------------------------
TAGGED = ("age", "wage", "rent")


@pytest.mark.parametrize(
    "method",
    [
        sm.methods.Shuffle(TAGGED),
        sm.methods.Synthesize(TAGGED),
        sm.Microaggregate(TAGGED, 100),
        sm.Chain((sm.Noise(TAGGED, 1.0), sm.RankSwap(TAGGED, 0.3))),
    ],
    ids=["shuffle", "synthesis", "microaggregation", "noise and rank swap"],
)
def test_unchanged_unique_column_re_identifies_everyone(method: Method) -> None:
    frame = people(300).frame().with_columns(pl.col("wage").fill_null(0.0), tag=pl.Series(np.arange(300.0) * 7 + 1000))
    data = sm.read(frame, keys=KEYS, numeric=(*NUMBERS, "tag"))
    masked = method.apply(data, ONCE)
    result = sm.WorstLinkage().for_informed_attacker(method).score(data, masked, default_rng(1))
    assert result.value == 1.0
    assert all(result.parts[name] == 1.0 for name in (*UNIT_FREE, "nearest", "mahalanobis", "gower", "calibrated"))
    unaware = sm.WorstLinkage().rates(data, masked)  # sees which columns are open, without knowing the method
    assert unaware["nearest"] == 1.0


ALONE: list[Linkage | NearestRecord] = [
    Linkage("d"), Linkage("l", weights="equal"), Linkage(weights="known"), NearestRecord(), NearestRecord("mahalanobis"),
    NearestRecord("gower"), NearestRecord(one_to_one=True), NearestRecord("gower", one_to_one=True),
]  # fmt: skip


@pytest.mark.parametrize("attack", ALONE, ids=lambda attack: attack.text)
def test_single_attack_requires_open_columns_to_be_equal(attack: Linkage | NearestRecord) -> None:
    frame = people(120).frame().with_columns(pl.col("wage").fill_null(0.0), tag=pl.Series(np.arange(120.0) * 7 + 1000))
    data = sm.read(frame, keys=KEYS, numeric=(*NUMBERS, "tag"))
    masked = sm.methods.Shuffle(TAGGED).apply(data, ONCE)
    attack = replace(attack, on=(*TAGGED, "tag"))
    assert attack.links(data, masked).rate == 1.0
    unaware = replace(attack, open_columns="as any")
    assert unaware.links(data, masked).rate < 1.0 or isinstance(
        attack, Linkage
    )  # its weights identify the tag column as well
    moved = masked.change(np.array([0]), {"tag": np.array([1.0])})  # one changed value: the column is no longer open
    assert attack.links(data, moved).rate == unaware.links(data, moved).rate


@pytest.mark.parametrize("attack", [ALONE[0], *ALONE[3:6]], ids=lambda attack: attack.text)
def test_links_stay_within_groups_of_equal_open_values(attack: Linkage | NearestRecord) -> None:
    """Compare with the best known record of the same school and age, where missing is a value of its own."""
    data, method = people(), sm.Chain((sm.Noise(("wage", "rent"), 0.5), sm.methods.PRAM(("region",), 0.6)))
    masked = method.apply(data, ONCE)
    names = ("age", "wage", "rent") if not attack.has_column_costs else (*KEYS, *NUMBERS)
    pair = attack.pair(data, masked, names)
    score = plain_scores(attack, pair)
    opened = [pair.names.index(name) for name in ("school", "age") if name in pair.names]
    for index in opened:
        score = np.where(pair.known[:, index, np.newaxis] == pair.released[:, index], score, score - 1e6)
    if isinstance(attack, Linkage):  # one to one
        rows, columns = linear_sum_assignment(-score)
        result, best = attack.link(pair), score[rows, columns].sum()
        own = pair.known_rows.argsort()[result.partner[pair.released_rows]]
        assert score[own, np.arange(60)].sum() == pytest.approx(best)
    else:
        result = attack.link(pair)
        np.testing.assert_allclose(result.correct[pair.released_rows], brute_force_hits(score, pair.truth), atol=1e-12)


def test_equality_is_not_required_of_archives(tmp_path: Path) -> None:
    data, method = people(100), sm.Noise(("wage", "rent"), 0.01)
    masked = method.apply(data, ONCE)
    frame = data.frame().with_columns(pl.col("age") + 1)  # a year later
    frame.write_parquet(tmp_path / "archive.parquet")
    attack = sm.WorstLinkage(archive=str(tmp_path / "archive.parquet")).for_informed_attacker(method)
    assert attack.rates(data, masked)["nearest"] > 0.5
    alone = NearestRecord(archive=str(tmp_path / "archive.parquet"))
    assert alone.links(data, masked).rate == replace(alone, open_columns="as any").links(data, masked).rate > 0.5


# ---- targets ----------------------------------------------------------------------------------------------------
def test_sampled_targets_have_confidence_interval_and_same_people() -> None:
    data, method = people(600, 3), sm.Noise(NUMBERS, 0.3)
    masked = method.apply(data, ONCE)
    whole = sm.WorstLinkage().for_informed_attacker(method)
    every = whole.score(data, masked, default_rng(1))
    assert every.se is None and "targets" not in every.parts
    assert isinstance(whole, sm.WorstLinkage)
    draws = [replace(whole, targets=150, draw=draw).score(data, masked, default_rng(1)) for draw in range(20)]
    nearest = {
        name: rate for name, rate in every.parts.items() if name in (*UNIT_FREE, "gower", "informed", "calibrated")
    }
    for name, rate in nearest.items():  # means over the draws, within four standard errors
        drawn = [draw.parts[name] for draw in draws]
        assert np.mean(drawn) == pytest.approx(rate, abs=4 * 0.5 / np.sqrt(20 * 150))
    assert all(draw.parts["targets"] == 150 and 0 < (draw.se or 0) < 0.041 for draw in draws)
    assert sum(draw.upper(0.95) >= max(nearest.values()) for draw in draws) >= 18
    assert all(any("one-to-one" in name for name in draw.parts) for draw in draws)
    assert draws[0] == replace(whole, targets=150).score(data, masked, default_rng(9))
    assert replace(whole, targets=10_000).score(data, masked, default_rng(1)) == every


def test_sampled_targets_do_not_depend_on_row_order() -> None:
    data, method = people(80, 2), sm.Noise(NUMBERS, 0.3)
    masked = method.apply(data, ONCE)
    order = default_rng(1).permutation(80)
    attack = replace(sm.WorstLinkage(), method=method, targets=30)
    turned, turned_masked = (Microdata(part.schema, part.columns) for part in (data.take(order), masked.take(order)))
    mine, other = attack.score(data, masked, default_rng(1)), attack.score(turned, turned_masked, default_rng(1))
    assert mine.value == pytest.approx(other.value) and dict(mine.parts) == pytest.approx(dict(other.parts))


def test_release_is_checked_with_upper_limit_of_new_sample() -> None:
    data, method = people(400, 3), sm.Chain((sm.Recode("region", merge=(("e", "f"),)), sm.Noise(NUMBERS, 0.5)))
    masked = method.apply(data, ONCE)
    measure = sm.WorstLinkage(targets=100)
    (row,) = score_file([measure], data, masked, ONCE, method)
    assert (row.measure_id, row.measure) == (measure.id, measure.text)
    again = score_row(replace(measure, draw=1), data, masked, ONCE, method)
    assert row.value == again.value and row.details == again.details
    assert isinstance(row.outcome, Estimate) and row.value is not None
    upper = row.outcome.upper(0.95)
    assert row.value < upper
    assert Limit(measure, (row.value + upper) / 2).judge(row.outcome, 0.95).status == "exceeded"
    assert Limit(measure, upper).judge(row.outcome, 0.95).status == "met"
    reason = limit_check("risk", Limit(measure, 1.0).judge(row.outcome, 0.95), "of the written file", 0.95).reason
    assert f"upper confidence limit {upper:.4g}, estimated from a sample of 100 records" in reason


# ---- chains -----------------------------------------------------------------------------------------------------
def test_deterministic_steps_are_replayed() -> None:
    """Suppression makes the file 3-anonymous; an attacker with the records and the method note knows which cells it
    suppresses.
    """
    data = people(300, 7)
    method = sm.Chain((sm.Recode("age", bins=4), sm.Suppress((*KEYS, "age"), 3)))
    masked = method.apply(data, ONCE)
    result = sm.WorstLinkage(on=(*KEYS, "age")).for_informed_attacker(method).score(data, masked, default_rng(1))
    rows = masked.frame().select(*KEYS, "age").rows()
    assert result.value == pytest.approx(len(set(rows)) / 300)  # one of each group of equal records
    assert result.value > sm.WorstLinkage(on=(*KEYS, "age")).score(data, masked, default_rng(1)).parts["gower"]


def test_columns_depending_on_unreleased_rows_are_not_certain() -> None:
    """Microaggregation of a sample gives other means when replayed on the whole file."""
    data = people(200, 8)
    method = sm.Chain((sm.methods.Sample(0.5), sm.Microaggregate(("wage", "rent"), 5)))
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    assert isinstance(attack, sm.WorstLinkage)
    pair = attack.pair(data, masked, attack.check_variables(data))
    assert {pair.names[index] for index in find_certain_columns(pair, method)} == {*KEYS, "age"}
    alone = sm.Microaggregate(("wage", "rent"), 5)
    pair = attack.pair(data, alone.apply(data, ONCE), attack.check_variables(data))
    assert {pair.names[index] for index in find_certain_columns(pair, alone)} == {*KEYS, *NUMBERS}


@pytest.mark.parametrize("size", [4, 5])
def test_rounding_by_chain_or_release_is_replayed(size: int) -> None:
    """A chain rounds means of whole ages to the grid of unchanged values, a written file to that of the original."""
    data, means = people(200, 8), sm.Microaggregate(("age",), size)
    chain = sm.Chain((means, sm.Noise(("wage", "rent"), 0.5)))
    in_chain = chain.apply(data, ONCE)
    written = means.apply(data, ONCE)
    written = written.change(None, {"age": np.rint(written.numbers("age"))})
    for method, masked in ((chain, in_chain), (means, written)):
        assert (masked.numbers("age") == np.rint(masked.numbers("age"))).all()
        attack = sm.WorstLinkage().for_informed_attacker(method)
        assert isinstance(attack, sm.WorstLinkage)
        pair = attack.pair(data, masked, attack.check_variables(data))
        assert pair.names.index("age") in find_certain_columns(pair, method)


def test_chain_states_likelihood_and_reports_learned_columns() -> None:
    data = people(300, 9)
    method = sm.Chain((
        sm.methods.RandomizedResponse(("region",), 2.0), sm.Noise(("wage",), 0.1),
        sm.Noise(("age", "rent"), 0.2), sm.RankSwap(("rent",), 0.1),
    ))  # fmt: skip
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    result = attack.score(data, masked, default_rng(1))
    learned = {
        skipped.attack: skipped.reason for skipped in result.skipped if skipped.attack.startswith("informed on ")
    }
    assert sorted(learned) == ["informed on age", "informed on rent"]
    assert all("learned from a shadow" in reason for reason in learned.values())
    rates = attack.rates(data, masked)
    assert result.parts["informed"] == rates["informed"]
    assert rates["informed"] > max(rates[name] for name in (*UNIT_FREE, "nearest", "mahalanobis", "gower"))
    table = Informed(method).links(data, masked)
    assert table.rate == pytest.approx(result.parts["informed"], abs=0.15)


# ---- bad input --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Blur(Method):
    """A plug-in without a likelihood."""

    on: tuple[str, ...] = ("wage",)

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return data.change(None, {name: data.numbers(name) + rng.integers(-50, 51, len(data)) for name in self.on})


def worst(data: Microdata, masked: Microdata, method: Method | None = None) -> Estimate:
    attack = sm.WorstLinkage() if method is None else sm.WorstLinkage().for_informed_attacker(method)
    return attack.score(data, masked, default_rng(1))


def test_chain_with_plug_in() -> None:
    data = people(200, 4)
    method = sm.Chain((Blur(), sm.Noise(("rent", "age"), 0.05)))
    result = worst(data, method.apply(data, ONCE), method)
    assert result.value > 0.8
    assert any("informed on wage: Blur states no likelihood" in str(skipped) for skipped in result.skipped)


def test_uninformative_columns() -> None:
    frame = people(80, 5).frame()
    odd = frame.with_columns(rent=pl.lit(1.0), wage=pl.lit(None, pl.Float64), school=pl.lit("x"))
    data = sm.read(odd, keys=KEYS, numeric=NUMBERS)
    method = sm.Noise("age", 0.01)
    assert 0 < worst(data, method.apply(data, ONCE), method).value <= 1
    whole = sm.read(frame, keys=KEYS, numeric=NUMBERS)
    gone = whole.change(None, {name: np.full(80, np.nan) for name in NUMBERS})
    assert 0 < worst(whole, gone).value <= 1
    blank = align(whole, frame.with_columns(pl.lit(None, pl.String).alias(name) for name in KEYS))  # all suppressed
    assert 0 < worst(whole, blank).value <= 1
    with pytest.warns(sm.errors.OtherOrder):
        nothing = align(
            whole, frame.with_columns(pl.lit(None, frame[name].dtype).alias(name) for name in frame.columns)
        )
    assert worst(whole, nothing).value == pytest.approx(1 / 80)


def test_files_of_one_and_two_records() -> None:
    for n in (1, 2):
        data = people(n, 6)
        assert worst(data, data.change(None, {})).value == 1
        method = sm.methods.MultiplicativeNoise(("age",))
        assert 0 <= worst(data, method.apply(data, ONCE), method).value <= 1


def test_archive_with_other_columns(tmp_path: Path) -> None:
    data, method = people(120, 7), sm.Noise(NUMBERS, 0.05)
    masked = method.apply(data, ONCE)
    own = data.frame().drop("school", "rent").with_columns(nickname=pl.Series(map(str, range(120))))
    own.write_parquet(tmp_path / "own.parquet")
    attack = sm.WorstLinkage(archive=str(tmp_path / "own.parquet")).for_informed_attacker(method)
    assert 0.3 < attack.score(data, masked, default_rng(1)).value <= 1
    pl.DataFrame({"nickname": ["a"]}).write_parquet(tmp_path / "nobody.parquet")
    with pytest.raises(sm.errors.SchemaError, match="no variable in common"):
        sm.WorstLinkage(archive=str(tmp_path / "nobody.parquet")).check_variables(data)


# ---- households -------------------------------------------------------------------------------------------------
def test_one_member_re_identifies_the_household() -> None:
    frame = people(200, 11).frame().with_columns(home=pl.Series(np.arange(200) // 4).cast(pl.String))
    data = sm.read(frame, keys=KEYS, numeric=NUMBERS, household="home")
    method = sm.Chain((sm.Noise(NUMBERS, 1.0), sm.methods.PRAM(KEYS, 0.5)))
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    result = attack.score(data, masked, default_rng(1))
    (together,) = [name for name in result.parts if name.endswith(", then the household")]
    leader = together.removesuffix(", then the household")
    alone = attack.attacks(data, masked)[leader].correct
    homes = [alone[np.arange(200) // 4 == home].max() for home in range(50)]
    assert result.parts[together] > result.parts[leader]
    assert result.parts[together] == pytest.approx(np.mean(homes), abs=1e-9)
    wholes = {name: share for name, share in result.parts.items() if name.endswith(", households as wholes")}
    for name in ("informed", "calibrated"):  # the same as HouseholdLink
        content = HouseholdLink(
            {"informed": Informed, "calibrated": Calibrated}[name](on=data.knowable)
        ).for_informed_attacker(method)
        assert wholes[f"{name}, households as wholes"] == pytest.approx(
            content.score(data, masked, default_rng(1)).value
        )
    assert result.value == max(result.parts[together], *wholes.values()) > result.parts[together]
    moved = data.change(None, {"home": np.random.default_rng(1).permutation(data.codes("home"))})
    apart = sm.WorstLinkage().for_informed_attacker(sm.methods.Identity()).score(data, moved, default_rng(1))
    assert all(share <= 1 for share in apart.parts.values())


# ---- rounding after noise -----------------------------------------------------------------------------------------
def test_rounded_noise_uses_cell_probability() -> None:
    """The likelihood of every pair is the normal integral over the cell (scipy), and no column had to be learned."""
    data = people(120, 2)
    method = sm.Chain((sm.Noise(("wage", "rent"), 0.1), sm.methods.Round(("wage", "rent"), 500.0)))
    masked = method.apply(data, ONCE)
    attack = Informed(method, on=("wage", "rent"))
    pair = attack.pair(data, masked, attack.check_variables(data))
    assert attack.unstated_columns(pair) == {}
    fields = state_likelihood(method, pair).fields
    for index, name in enumerate(("wage", "rent")):
        sd = math.sqrt(0.1) * np.nanstd(data.numbers(name), ddof=1)
        away = pair.released[:, index] - pair.known[:, index][:, np.newaxis]
        chance = norm.cdf((away + 250) / sd) - norm.cdf((away - 250) / sd)
        there = np.isfinite(away) & (chance > 1e-9)
        np.testing.assert_allclose(np.exp(fields[index].block(slice(None)))[there], chance[there], rtol=0.02, atol=1e-6)


def test_stated_rounding_is_as_good_as_learned() -> None:
    """Means over five draws; at least as good up to three standard errors of 0.02."""
    data = people(300, 4)
    method = sm.Chain((sm.Noise(NUMBERS, 0.02), sm.methods.Round(("wage",), 500.0), sm.methods.Round(("age",), 5.0)))
    draws = [method.apply(data, Stream.of_seed(seed)) for seed in range(5)]
    result, learned = (
        np.mean([attack.links(data, masked).rate for masked in draws])
        for attack in (Informed(method), Calibrated(method))
    )
    assert result > learned - 0.06 and result > 0.3


# ---- steps that mask the same columns -----------------------------------------------------------------------------
def test_stating_both_steps_beats_learning_them() -> None:
    """Noise twice, then classes; means over four draws differ by more than three standard errors of 0.03."""
    data = people(300, 4)
    method = sm.Chain((sm.Noise(NUMBERS, 0.03), sm.Noise(NUMBERS, 0.03), sm.Recode(("age", "wage"), bins=5)))
    draws = [method.apply(data, Stream.of_seed(seed)) for seed in range(4)]
    result, learned = (
        np.mean([attack.links(data, masked).rate for masked in draws])
        for attack in (Informed(method), Calibrated(method))
    )
    assert result > learned + 0.09


def test_column_stated_after_deterministic_step_is_not_learned() -> None:
    data = people(120, 3)
    method = sm.Chain(
        (sm.methods.Round(("age",), 5.0), sm.Recode("region", merge=(("e", "f"),)), sm.Noise(("age",), 0.1))
    )
    attack = Informed(method)
    pair = attack.pair(data, method.apply(data, ONCE), attack.check_variables(data))
    assert attack.unstated_columns(pair) == {"region": "Recode states no likelihood."}


def test_replayed_values_lie_on_the_grid_of_their_column() -> None:
    """A chain keeps means of whole ages whole where some ages are unchanged; the noise after it is that of whole ages."""
    data = people(200, 8)
    means = sm.Microaggregate(("age",), 4)
    method = sm.Chain((means, sm.Noise(("age",), 0.01)))
    attack = Informed(method, on=("age",))
    pair = attack.pair(data, method.apply(data, ONCE), attack.check_variables(data))
    (field,) = state_likelihood(method, pair).fields
    sd = 0.1 * np.std(sm.Chain((means,)).apply(data, ONCE).numbers("age"), ddof=1)
    np.testing.assert_allclose(field.known * sd, np.rint(field.known * sd), atol=1e-9)


def overlapped() -> Method:
    return sm.Chain((sm.Noise(NUMBERS, 0.2), sm.RankSwap(("wage", "rent"), 0.3), sm.methods.Round(("age",), 5.0)))


def test_file_before_unstated_step_is_upper_bound() -> None:
    data, method = people(300, 9), overlapped()
    masked = method.apply(data, ONCE)
    result = sm.WorstLinkage(inclusion=0.5).for_informed_attacker(method).score(data, masked, default_rng(1))
    (bound,) = [bound for bound in result.bounds if bound.attack == "the file before RankSwap"]
    before = sm.Chain(
        (sm.Noise(NUMBERS, 0.2), sm.methods.Round(("age",), 5.0))
    )  # rounding the ages does not read wages
    draws = [before.apply(data, Stream.of_seed(seed)) for seed in range(6)]
    attack = sm.WorstLinkage(inclusion=0.5).for_informed_attacker(before)
    values = [attack.score(data, draw, default_rng(1)).value for draw in draws]
    assert bound.estimate.value == pytest.approx(np.mean(values), abs=4 * 0.5 * 0.5 / math.sqrt(300))
    assert (
        result.value < bound.estimate.value == result.upper(0.95) and result.value == 0.5 * result.parts["prosecutor"]
    )


def test_release_check_uses_and_reports_bound() -> None:
    data, method = people(300, 9), overlapped()
    masked = method.apply(data, ONCE)
    measure = sm.WorstLinkage()
    (row,) = score_file([measure], data, masked, ONCE, method)
    assert isinstance(row.outcome, Estimate) and row.value is not None
    (bound,) = [b.estimate.value for b in row.outcome.bounds if b.attack == "the file before RankSwap"]
    assert row.value < bound
    assert Limit(measure, (row.value + bound) / 2).judge(row.outcome, 0.95).status == "exceeded"
    within = Limit(measure, bound).judge(row.outcome, 0.95)
    assert within.status == "met" and f"at most {bound:.4g}: the file before RankSwap" in str(
        limit_check("risk", within, "", 0.95)
    )


def test_step_that_reads_the_original_has_no_bound() -> None:
    data = people(120, 2)
    more = sm.methods.Protect(sm.recordwise.Unsafe(on=("wage", "age"), k=5), sm.Noise(("wage", "age"), 0.5))
    method = sm.Chain((sm.Noise(("wage", "age"), 0.3), more))
    result = sm.WorstLinkage().for_informed_attacker(method).score(data, method.apply(data, ONCE), default_rng(1))
    assert not any(bound.attack.startswith("the file before") for bound in result.bounds)
    assert any(str(skipped).startswith("the file before Protect: it is no upper bound") for skipped in result.skipped)
