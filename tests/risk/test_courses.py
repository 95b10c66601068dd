"""Attacks that add up costs: each against a twin by brute force, one to one against scipy, and what is certain."""

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
from sdcmap.risk.linkage import cost_models as courses_of
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.cost_models import hits, links_of_cheapest, links_one_to_one
from sdcmap.risk.linkage.file_pair import Pair
from sdcmap.risk.linkage.link_search import agreement_scores, distance_scores
from sdcmap.risk.linkage.nearest_record import ranges
from sdcmap.risk.linkage.record_linkage import frequency_weights
from sdcmap.risk.linkage.stated_columns import certain_columns, stated
from sdcmap.study.jobs import score_row

ONCE = Stream.of_seed(5)
KEYS, NUMBERS = ("region", "school"), ("age", "wage", "rent")


def people(n: int = 60, seed: int = 1) -> Microdata:
    """Mixed records with ties, zeros and gaps."""
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
    """The place of the label that a value is behind, a list or an interval; -1: none."""
    for place, label in enumerate(labels):
        low, _, high = label[1:-1].partition(", ")
        if value in label.split("|") or (label[0] == "(" and float(low) < float(value) <= float(high)):
            return place
    return -1


def with_labels(pair: Pair) -> Pair:
    """Recoded columns of both files by their labels."""
    columns, released = list(pair.known_columns), pair.released.copy()
    for place in np.flatnonzero(pair.categorical):
        ours, theirs = (
            np.array(file.frame()[pair.names[place]].cast(pl.String).to_list(), dtype=object)[rows]
            for file, rows in ((pair.known_file, pair.known_rows), (pair.released_file, pair.released_rows))
        )
        labels = sorted({text for text in theirs if text is not None})
        if not set(labels) <= set(ours):
            columns[place] = np.array([np.nan if text is None else label_of(text, labels) for text in ours])
            released[:, place] = [np.nan if text is None else labels.index(text) for text in theirs]
    return replace(pair, known_columns=tuple(columns), released=released, as_ever=False, _learned={})


def plain_scores(attack: Attack, pair: Pair) -> Array:
    """known x released: the score of each pair as the attack's docstring says it."""
    weights = frequency_weights(pair.known)
    pair = pair if isinstance(attack, Informed) else with_labels(pair)
    if isinstance(attack, Linkage):
        known, released, reach = attack._comparable(pair)
        return agreement_scores(known, released, reach, *weights)
    if isinstance(attack, NearestRecord) and attack.metric == "gower":
        return gower(pair.known, pair.released, pair.categorical, ranges(pair.known))
    if isinstance(attack, NearestRecord):
        differ = 0.0
        for place in np.flatnonzero(pair.categorical) if attack.metric == "mixed" else ():
            gap = pair.known[:, place, np.newaxis] - pair.released[:, place]
            differ = differ + np.where(np.isnan(gap), 0.5, gap != 0)
        return distance_scores(*attack._coordinates(pair)) - differ
    assert isinstance(attack, Informed)
    fields, unstated = attack._stated(pair)
    lowest = np.log(attack.slip)
    tops = [np.max(field.block(slice(None))) for field in fields]
    score = sum(
        np.maximum(field.block(slice(None)) - (top if np.isfinite(top) else 0.0), lowest)
        for field, top in zip(fields, tops, strict=True)
    )
    if unstated:  # the other columns by what a shadow taught
        (learned,) = Calibrated(attack.method).courses(pair)
        places = np.arange(len(pair.known))[:, np.newaxis], np.arange(len(pair.released))
        score = score - sum(learned.costs[pair.names.index(name)].pairs(*places) for name in unstated)
    return np.asarray(score)


def by_brute_force(score: Array, truth: Array) -> Array:
    """The probability that each released record is linked to its own: 1/t of t that tie."""
    best = score.max(axis=0)
    tied = score >= best - 1e-9 * np.abs(best) - 1e-9
    own = tied[truth, np.arange(len(truth))] & (truth >= 0)
    return own / tied.sum(axis=0)


ATTACKS: dict[str, Attack] = {
    "d": Linkage("d"), "l": Linkage("l"), "standardized": NearestRecord(), "mahalanobis": NearestRecord("mahalanobis"),
    "scaled": NearestRecord("scaled"), "gower": NearestRecord("gower"), "informed": Informed(),
    "mixed": NearestRecord("mixed"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("method", METHODS)
def test_every_attack_has_its_twin(attack: str, method: str) -> None:
    data = people()
    masked = METHODS[method].apply(data, ONCE)
    snooper = ATTACKS[attack].for_informed_attacker(METHODS[method]) if attack == "informed" else ATTACKS[attack]
    assert isinstance(snooper, Attack)
    pair = snooper.pair(data, masked, (*KEYS, *NUMBERS))
    try:
        courses = snooper.courses(pair)
    except sm.errors.Undefined as reason:
        assert attack == "informed" and "likelihood" in str(reason)
        return
    found = hits(pair, courses, np.arange(len(masked)))
    np.testing.assert_allclose(found.found, by_brute_force(plain_scores(snooper, pair), pair.truth), atol=1e-12)
    table = links_of_cheapest(pair, courses)
    assert table.rate == pytest.approx(found.rate)
    for course in courses:  # of equally cheap records, the first
        costs = course.block(slice(None), course.places)
        first = (costs <= costs.min(axis=0) + 1e-9).argmax(axis=0)
        linked = table.partner[pair.released_rows[course.places]]
        assert (linked == pair.known_rows[first]).all()
    assert found.potential >= found.rate


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("matrix", [True, False], ids=["all at once", "candidates"])
def test_one_to_one_is_the_best_assignment(attack: str, matrix: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courses_of, "MATRIX_PAIRS", 1_000_000 if matrix else 0)
    monkeypatch.setattr(courses_of, "KEEP", 4)
    data = people()
    method = METHODS["noise"]
    masked = method.apply(data, ONCE)
    snooper = ATTACKS[attack].for_informed_attacker(method) if attack == "informed" else ATTACKS[attack]
    assert isinstance(snooper, Attack)
    pair = snooper.pair(data, masked, (*KEYS, *NUMBERS))
    (course,) = snooper.courses(pair)
    costs = course.block(slice(None), np.arange(len(masked)))
    least = costs[linear_sum_assignment(costs)].sum()
    table = links_one_to_one(pair, [course])
    partners = table.partner[table.partner >= 0].tolist()
    assert len(set(partners)) == len(partners) >= (len(data) if matrix else 0.95 * len(data))  # some may find none left
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
def test_a_column_left_open_finds_everybody_in_every_attack(method: Method) -> None:
    frame = people(300).frame().with_columns(pl.col("wage").fill_null(0.0), tag=pl.Series(np.arange(300.0) * 7 + 1000))
    data = sm.read(frame, keys=KEYS, numeric=(*NUMBERS, "tag"))
    masked = method.apply(data, ONCE)
    found = sm.WorstLinkage().for_informed_attacker(method).score(data, masked, default_rng(1))
    assert found.value == 1.0
    assert all(found.parts[name] == 1.0 for name in ("d", "l", "nearest", "mahalanobis", "gower", "calibrated"))
    unaware = sm.WorstLinkage().rates(data, masked)  # nobody told him what was left open
    assert unaware["nearest"] < 1.0


ALONE: list[Linkage | NearestRecord] = [
    Linkage("d"), Linkage("l", weights="equal"), Linkage(weights="known"), NearestRecord(), NearestRecord("mahalanobis"),
    NearestRecord("gower"), NearestRecord(one_to_one=True), NearestRecord("gower", one_to_one=True),
]  # fmt: skip


@pytest.mark.parametrize("attack", ALONE, ids=lambda attack: attack.text)
def test_an_attack_alone_asks_first_that_open_columns_are_equal(attack: Linkage | NearestRecord) -> None:
    frame = people(120).frame().with_columns(pl.col("wage").fill_null(0.0), tag=pl.Series(np.arange(120.0) * 7 + 1000))
    data = sm.read(frame, keys=KEYS, numeric=(*NUMBERS, "tag"))
    masked = sm.methods.Shuffle(TAGGED).apply(data, ONCE)
    attack = replace(attack, on=(*TAGGED, "tag"))
    assert attack.links(data, masked).rate == 1.0
    unaware = replace(attack, open_columns="as any")
    assert unaware.links(data, masked).rate < 1.0 or isinstance(attack, Linkage)  # whose weights found the tag as well
    moved = masked.change(np.array([0]), {"tag": np.array([1.0])})  # one value that is another: the column is not open
    assert attack.links(data, moved).rate == unaware.links(data, moved).rate


@pytest.mark.parametrize("attack", [ALONE[0], *ALONE[3:6]], ids=lambda attack: attack.text)
def test_who_asks_first_links_within_the_groups_of_equal_open_values(attack: Linkage | NearestRecord) -> None:
    """The twin: the best of the known records with the same school and age, missing being a value of its own."""
    data, method = people(), sm.Chain((sm.Noise(("wage", "rent"), 0.5), sm.methods.PRAM(("region",), 0.6)))
    masked = method.apply(data, ONCE)
    names = ("age", "wage", "rent") if not attack.by_column else (*KEYS, *NUMBERS)
    pair = attack.pair(data, masked, names)
    score = plain_scores(attack, pair)
    opened = [pair.names.index(name) for name in ("school", "age") if name in pair.names]
    for place in opened:
        score = np.where(pair.known[:, place, np.newaxis] == pair.released[:, place], score, score - 1e6)
    if isinstance(attack, Linkage):  # one to one
        rows, columns = linear_sum_assignment(-score)
        found, best = attack.link(pair), score[rows, columns].sum()
        own = pair.known_rows.argsort()[found.partner[pair.released_rows]]
        assert score[own, np.arange(60)].sum() == pytest.approx(best)
    else:
        found = attack.link(pair)
        np.testing.assert_allclose(found.found[pair.released_rows], by_brute_force(score, pair.truth), atol=1e-12)


def test_an_archive_with_errors_is_not_asked_for_equality(tmp_path: Path) -> None:
    data, method = people(100), sm.Noise(("wage", "rent"), 0.01)
    masked = method.apply(data, ONCE)
    frame = data.frame().with_columns(pl.col("age") + 1)  # a year later
    frame.write_parquet(tmp_path / "archive.parquet")
    attack = sm.WorstLinkage(archive=str(tmp_path / "archive.parquet")).for_informed_attacker(method)
    assert attack.rates(data, masked)["nearest"] > 0.5
    alone = NearestRecord(archive=str(tmp_path / "archive.parquet"))
    assert alone.links(data, masked).rate == replace(alone, open_columns="as any").links(data, masked).rate > 0.5


# ---- targets ----------------------------------------------------------------------------------------------------
def test_a_draw_of_targets_has_its_interval_and_the_same_people() -> None:
    data, method = people(600, 3), sm.Noise(NUMBERS, 0.3)
    masked = method.apply(data, ONCE)
    whole = sm.WorstLinkage().for_informed_attacker(method)
    every = whole.score(data, masked, default_rng(1))
    assert every.se is None and "targets" not in every.parts
    assert isinstance(whole, sm.WorstLinkage)
    draws = [replace(whole, targets=150, draw=draw).score(data, masked, default_rng(1)) for draw in range(20)]
    nearest = {
        name: rate for name, rate in every.parts.items() if name in ("d", "l", "gower", "informed", "calibrated")
    }
    for name, rate in nearest.items():  # means over the draws, within four standard errors
        drawn = [draw.parts[name] for draw in draws]
        assert np.mean(drawn) == pytest.approx(rate, abs=4 * 0.5 / np.sqrt(20 * 150))
    assert all(draw.parts["targets"] == 150 and 0 < (draw.se or 0) < 0.041 for draw in draws)
    best = max(nearest.values())
    assert sum(draw.upper(0.95) >= best for draw in draws) >= 18
    assert all(any("one-to-one" in skipped.attack for skipped in draw.skipped) for draw in draws)
    assert draws[0] == replace(whole, targets=150).score(data, masked, default_rng(9))
    assert replace(whole, targets=10_000).score(data, masked, default_rng(1)) == every


def test_the_draw_does_not_depend_on_the_order_of_rows() -> None:
    data, method = people(80, 2), sm.Noise(NUMBERS, 0.3)
    masked = method.apply(data, ONCE)
    order = default_rng(1).permutation(80)
    attack = replace(sm.WorstLinkage(), method=method, targets=30)
    turned, turned_masked = (Microdata(part.schema, part.columns) for part in (data.take(order), masked.take(order)))
    mine, other = attack.score(data, masked, default_rng(1)), attack.score(turned, turned_masked, default_rng(1))
    assert mine.value == pytest.approx(other.value) and dict(mine.parts) == pytest.approx(dict(other.parts))


def test_a_release_is_held_to_the_upper_end_of_a_fresh_sample() -> None:
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
    said = limit_check("risk", Limit(measure, 1.0).judge(row.outcome, 0.95), "of the written file", 0.95).reason
    assert f"at most {upper:.4g} by a sample of 100 records" in said and "not tried: " in said


# ---- chains -----------------------------------------------------------------------------------------------------
def test_deterministic_steps_are_done_again() -> None:
    """Suppression that makes the file 3-anonymous: who holds the records and the note knows which cells it blanks."""
    data = people(300, 7)
    method = sm.Chain((sm.Recode("age", bins=4), sm.Suppress((*KEYS, "age"), 3)))
    masked = method.apply(data, ONCE)
    told = sm.WorstLinkage(on=(*KEYS, "age")).for_informed_attacker(method).score(data, masked, default_rng(1))
    rows = masked.frame().select(*KEYS, "age").rows()
    assert told.value == pytest.approx(len(set(rows)) / 300)  # one of each group that looks alike
    assert told.value > sm.WorstLinkage(on=(*KEYS, "age")).score(data, masked, default_rng(1)).parts["gower"]


def test_what_depends_on_rows_that_were_not_released_is_not_certain() -> None:
    """Microaggregation of a sample: done again on the whole file it gives other means."""
    data = people(200, 8)
    method = sm.Chain((sm.methods.Sample(0.5), sm.Microaggregate(("wage", "rent"), 5)))
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    assert isinstance(attack, sm.WorstLinkage)
    pair = attack.pair(data, masked, attack.check_variables(data))
    assert {pair.names[place] for place in certain_columns(pair, method)} == {*KEYS, "age"}
    alone = sm.Microaggregate(("wage", "rent"), 5)
    pair = attack.pair(data, alone.apply(data, ONCE), attack.check_variables(data))
    assert {pair.names[place] for place in certain_columns(pair, alone)} == {*KEYS, *NUMBERS}


@pytest.mark.parametrize("size", [4, 5])
def test_what_a_chain_or_a_release_rounds_is_rounded_again(size: int) -> None:
    """Means of whole ages: a chain puts them on the grid of those that stayed, a written file on that of the original."""
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
        assert pair.names.index("age") in certain_columns(pair, method)


def test_a_chain_states_what_it_can_and_says_what_was_learned() -> None:
    data = people(300, 9)
    method = sm.Chain((
        sm.methods.RandomizedResponse(("region",), 2.0), sm.Noise(("wage",), 0.1),
        sm.Noise(("age", "rent"), 0.2), sm.RankSwap(("rent",), 0.1),
    ))  # fmt: skip
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    found = attack.score(data, masked, default_rng(1))
    learned = {skipped.attack: skipped.reason for skipped in found.skipped if skipped.attack.startswith("informed on ")}
    assert sorted(learned) == ["informed on age", "informed on rent"]
    assert all("learned from a shadow" in reason for reason in learned.values())
    rates = attack.rates(data, masked)
    assert found.parts["informed"] == rates["informed"]
    assert rates["informed"] > max(rates[name] for name in ("d", "l", "nearest", "mahalanobis", "gower"))
    table = Informed(method).links(data, masked)
    assert table.rate == pytest.approx(found.parts["informed"], abs=0.15)


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


def test_a_plug_in_in_a_chain() -> None:
    data = people(200, 4)
    method = sm.Chain((Blur(), sm.Noise(("rent", "age"), 0.05)))
    found = worst(data, method.apply(data, ONCE), method)
    assert found.value > 0.8
    assert any("informed on wage: Blur states no likelihood" in str(skipped) for skipped in found.skipped)


def test_columns_that_say_nothing() -> None:
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


def test_two_records_and_one() -> None:
    for n in (1, 2):
        data = people(n, 6)
        assert worst(data, data.change(None, {})).value == 1
        method = sm.methods.MultiplicativeNoise(("age",))
        assert 0 <= worst(data, method.apply(data, ONCE), method).value <= 1


def test_a_known_file_that_lacks_columns_or_has_others(tmp_path: Path) -> None:
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
def test_one_member_found_gives_the_household_away() -> None:
    frame = people(200, 11).frame().with_columns(home=pl.Series(np.arange(200) // 4).cast(pl.String))
    data = sm.read(frame, keys=KEYS, numeric=NUMBERS, household="home")
    method = sm.Chain((sm.Noise(NUMBERS, 1.0), sm.methods.PRAM(KEYS, 0.5)))
    masked = method.apply(data, ONCE)
    attack = sm.WorstLinkage().for_informed_attacker(method)
    found = attack.score(data, masked, default_rng(1))
    (together,) = [name for name in found.parts if name.endswith(", then the household")]
    leader = together.removesuffix(", then the household")
    alone = attack.attacks(data, masked)[leader].found
    homes = [alone[np.arange(200) // 4 == home].max() for home in range(50)]
    assert found.parts[together] > found.parts[leader]
    assert found.parts[together] == pytest.approx(np.mean(homes), abs=1e-9)
    wholes = {name: share for name, share in found.parts.items() if name.endswith(", households as wholes")}
    for name in ("informed", "calibrated"):  # the same as the measure of households
        told = HouseholdLink(
            {"informed": Informed, "calibrated": Calibrated}[name](on=data.knowable)
        ).for_informed_attacker(method)
        assert wholes[f"{name}, households as wholes"] == pytest.approx(told.score(data, masked, default_rng(1)).value)
    assert found.value == max(found.parts[together], *wholes.values()) > found.parts[together]
    moved = data.change(None, {"home": np.random.default_rng(1).permutation(data.codes("home"))})
    apart = sm.WorstLinkage().for_informed_attacker(sm.methods.Identity()).score(data, moved, default_rng(1))
    assert all(share <= 1 for share in apart.parts.values())


# ---- rounding after noise -----------------------------------------------------------------------------------------
def test_noise_that_was_rounded_is_stated_by_the_chance_of_its_cell() -> None:
    """The likelihood of every pair is the normal integral over the cell, by scipy; and nothing had to be learned."""
    data = people(120, 2)
    method = sm.Chain((sm.Noise(("wage", "rent"), 0.1), sm.methods.Round(("wage", "rent"), 500.0)))
    masked = method.apply(data, ONCE)
    attack = Informed(method, on=("wage", "rent"))
    pair = attack.pair(data, masked, attack.check_variables(data))
    assert attack.unstated(pair) == {}
    fields = stated(method, pair).fields
    for place, name in enumerate(("wage", "rent")):
        sd = math.sqrt(0.1) * np.nanstd(data.numbers(name), ddof=1)
        away = pair.released[:, place] - pair.known[:, place][:, np.newaxis]
        chance = norm.cdf((away + 250) / sd) - norm.cdf((away - 250) / sd)
        there = np.isfinite(away) & (chance > 1e-9)
        np.testing.assert_allclose(np.exp(fields[place].block(slice(None)))[there], chance[there], rtol=0.02, atol=1e-6)


def test_a_snooper_who_knows_of_the_rounding_finds_as_many_as_one_who_learns() -> None:
    """Means over five draws, at least as good but for three standard errors of .02."""
    data = people(300, 4)
    method = sm.Chain((sm.Noise(NUMBERS, 0.02), sm.methods.Round(("wage",), 500.0), sm.methods.Round(("age",), 5.0)))
    draws = [method.apply(data, Stream.of_seed(seed)) for seed in range(5)]
    told, learned = (
        np.mean([attack.links(data, masked).rate for masked in draws])
        for attack in (Informed(method), Calibrated(method))
    )
    assert told > learned - 0.06 and told > 0.3


# ---- steps that mask the same columns -----------------------------------------------------------------------------
def test_who_can_state_both_steps_finds_more_than_who_learns_them() -> None:
    """Noise twice, then classes; means over four draws, by more than three standard errors of .03."""
    data = people(300, 4)
    method = sm.Chain((sm.Noise(NUMBERS, 0.03), sm.Noise(NUMBERS, 0.03), sm.Recode(("age", "wage"), bins=5)))
    draws = [method.apply(data, Stream.of_seed(seed)) for seed in range(4)]
    told, learned = (
        np.mean([attack.links(data, masked).rate for masked in draws])
        for attack in (Informed(method), Calibrated(method))
    )
    assert told > learned + 0.09


def test_a_column_that_is_stated_after_a_deterministic_step_is_not_learned_as_well() -> None:
    data = people(120, 3)
    method = sm.Chain(
        (sm.methods.Round(("age",), 5.0), sm.Recode("region", merge=(("e", "f"),)), sm.Noise(("age",), 0.1))
    )
    attack = Informed(method)
    pair = attack.pair(data, method.apply(data, ONCE), attack.check_variables(data))
    assert attack.unstated(pair) == {"region": "Recode states no likelihood."}


def test_what_is_done_again_lies_on_the_grid_of_its_column_in_every_attack() -> None:
    """A chain keeps the means of whole ages whole where some stayed; the noise after it is that of whole ages."""
    data = people(200, 8)
    means = sm.Microaggregate(("age",), 4)
    method = sm.Chain((means, sm.Noise(("age",), 0.01)))
    attack = Informed(method, on=("age",))
    pair = attack.pair(data, method.apply(data, ONCE), attack.check_variables(data))
    (field,) = stated(method, pair).fields
    sd = 0.1 * np.std(sm.Chain((means,)).apply(data, ONCE).numbers("age"), ddof=1)
    np.testing.assert_allclose(field.known * sd, np.rint(field.known * sd), atol=1e-9)


def overlapped() -> Method:
    return sm.Chain((sm.Noise(NUMBERS, 0.2), sm.RankSwap(("wage", "rent"), 0.3), sm.methods.Round(("age",), 5.0)))


def test_the_file_before_a_step_that_nobody_can_state_bounds_what_it_leaves() -> None:
    data, method = people(300, 9), overlapped()
    masked = method.apply(data, ONCE)
    found = sm.WorstLinkage(inclusion=0.5).for_informed_attacker(method).score(data, masked, default_rng(1))
    (bound,) = [bound for bound in found.bounds if bound.attack == "the file before RankSwap"]
    before = sm.Chain(
        (sm.Noise(NUMBERS, 0.2), sm.methods.Round(("age",), 5.0))
    )  # who rounds the ages does not look at wages
    draws = [before.apply(data, Stream.of_seed(seed)) for seed in range(6)]
    attack = sm.WorstLinkage(inclusion=0.5).for_informed_attacker(before)
    values = [attack.score(data, draw, default_rng(1)).value for draw in draws]
    assert bound.estimate.value == pytest.approx(np.mean(values), abs=4 * 0.5 * 0.5 / math.sqrt(300))
    assert found.value < bound.estimate.value == found.upper(0.95) and found.value == 0.5 * found.parts["prosecutor"]


def test_a_release_is_held_to_the_bound_and_told_it() -> None:
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


def test_a_step_that_looks_back_at_the_original_is_not_bounded() -> None:
    data = people(120, 2)
    more = sm.methods.Protect(sm.recordwise.Unsafe(on=("wage", "age"), k=5), sm.Noise(("wage", "age"), 0.5))
    method = sm.Chain((sm.Noise(("wage", "age"), 0.3), more))
    found = sm.WorstLinkage().for_informed_attacker(method).score(data, method.apply(data, ONCE), default_rng(1))
    assert not any(bound.attack.startswith("the file before") for bound in found.bounds)
    assert any(str(skipped).startswith("the file before Protect: it bounds nothing") for skipped in found.skipped)
