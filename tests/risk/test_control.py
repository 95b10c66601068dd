"""Members and non-members of releases whose rows do not correspond to people: refits without some of the people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from numpy.random import Generator

import sdcmap as sm
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.refits import EveryoneIn, Folds, HalfIn, assign_folds, refit_without
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.errors import Infeasible, PlanError, Undefined
from sdcmap.study.profiles import find_profile
from sizes import SOAK

ALL = ("a", "b", "secret", "wage", "rent")
SYNTHETIC = sm.methods.Synthesize(on=ALL)
INFER, MEMBER = sm.risk.AttributeInference(), sm.risk.ClosestRecord()
SEEDS = 12


@dataclass(frozen=True)
class Copies(Method):
    """A synthesizer that copies its input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace(data.take(rng.permutation(len(data))), paired=False)


@dataclass(frozen=True)
class BlindSynthesizer(Method):
    """A synthesizer that ignores its input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        other = people(len(data), int(rng.integers(1 << 40)))
        drawn = {name: other.column(name).values for name in ALL}
        return replace(data.change(None, drawn), paired=False)


@dataclass(frozen=True)
class IndependentColumns(Method):
    """A synthesizer that draws each column independently from the values that any such file may contain."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        drawn = {}
        for name in data.names:
            column = data.column(name)
            codes = column.levels is not None and rng.integers(0, len(column.levels), len(data))
            drawn[name] = (rng.lognormal(7, 1, len(data)) if codes is False else codes).astype(column.values.dtype)
        return replace(data.change(None, drawn), paired=False)


@dataclass(frozen=True)
class NeedsAll(BlindSynthesizer):
    """A method that needs at least so many records."""

    least: int = 300

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        if len(data) < self.least:
            raise Infeasible(f"it needs {self.least} records.")
        return super().mask(data, rng)


def people(n: int = 300, seed: int = 0) -> Microdata:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": rng.integers(0, 6, n).astype(str),
            "b": rng.integers(0, 8, n).astype(str),
            "secret": rng.integers(0, 4, n).astype(str),
            "wage": rng.lognormal(7, 1, n),
            "rent": rng.lognormal(5, 1, n),
        }
    )
    return sm.read(frame, keys=["a", "b"], sensitive=["secret"], numeric=["wage", "rent"])


def estimates(method: Method, *measures: Measure, seeds: int = SEEDS) -> Iterator[list[Estimate]]:
    for seed in range(seeds):
        data = people(seed=seed)
        masked = sm.mask(data, method, seed=seed)
        released: Microdata | pl.DataFrame = masked if masked.paired else masked.frame()
        yield list(sm.score(data, released, measures, paired=masked.paired, method=method, seed=seed).values())


def test_copying_synthesizer_scores_high_and_blind_one_at_baseline() -> None:
    """A synthesizer that ignores the people reveals nothing: means over seeds within 4 standard errors of 0 and 1/2."""
    on_all = sm.risk.AttributeInference(on=("a", "b", "wage"))
    for infer, worst, member in estimates(Copies(), on_all, replace(on_all, worst=True), MEMBER, seeds=3):
        assert member.value == member.parts["exact copies"] == 1
        assert infer.parts["members"] == infer.parts["certain, members"] == 1 and infer.value > 0.6
        assert worst.value >= infer.value
    expected_rates = np.array(
        [[e.value for e in row] for row in estimates(BlindSynthesizer(), on_all, replace(on_all, worst=True), MEMBER)]
    )
    error = expected_rates.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    assert (abs(expected_rates.mean(axis=0) - [0, 0, 0.5]) < 4 * error + 1e-12).all()
    assert abs(expected_rates[:, 0]).max() < 0.25


def test_risk_grows_as_synthesizer_approaches_its_input() -> None:
    means = []
    for method in (replace(SYNTHETIC, model="copula"), SYNTHETIC, replace(SYNTHETIC, leaf=1)):
        means.append(np.mean([row[0].value for row in estimates(method, MEMBER, seeds=4)]))
    assert means[0] < 0.56 < means[1] < 0.69 < means[2]  # .51, .61, .75; sd of a mean of four: .011


def test_refits_detect_values_moved_between_records() -> None:
    """Every wage is released, in another record: removing rows removes nobody, and refits detect it."""
    data = people()
    shuffle = sm.methods.Shuffle(on="wage")
    masked = sm.mask(data, shuffle, seed=1)
    member = sm.risk.ClosestRecord(on="wage")
    rows, best = (
        sm.score(data, masked, replace(member, control=how), method=shuffle).popitem()[1] for how in ("rows", "best")
    )
    assert 0.35 < rows.value < 0.65
    assert best.value > 0.99 and best.parts["exact copies"] == 1
    chain = sm.Chain([sm.Noise(on="rent"), shuffle])
    assert sm.score(data, sm.mask(data, chain, seed=1), member, method=chain).popitem()[1].value > 0.99


@pytest.mark.parametrize("size", [3, 5] if SOAK else [3])
def test_microaggregation_is_measured_with_refits(size: int) -> None:
    """The mean of a group depends on each of its members, and stays in the rows of the others when a row is removed.

    A shadow model in plain numpy compares people inside and outside by the distance to the nearest released record.
    """
    data, names = people(), ("wage", "rent")
    method, rng = sm.methods.Microaggregate(on=names, size=size), np.random.default_rng(1)
    x = np.column_stack([data.numbers(name) for name in names])
    shadow = []
    for k in range(10):
        order = rng.permutation(len(x))
        part = data.take(order[60:])
        masked = sm.mask(sm.Microdata(part.schema, part.columns), method, seed=k)
        y = np.column_stack([masked.numbers(name) for name in names])
        away = np.minimum(np.abs(x[order[:120], np.newaxis] - y) / np.ptp(x, axis=0), 1).sum(axis=2).min(axis=1)
        outside, inside = away[:60], away[60:, np.newaxis]
        shadow.append((inside < outside).mean() + (inside == outside).mean() / 2)
    member = sm.risk.ClosestRecord(on=names, held_out=0.4, folds=2)
    masked = sm.mask(data, method, seed=1)
    stated = {how: replace(member, control=how) for how in ("best", "rows")}
    each = {
        how: [sm.score(data, masked, m, method=method, seed=s)[m.text] for s in range(6)] for how, m in stated.items()
    }
    best, rows = (np.mean([one.parts["by distance"] for one in several]) for several in each.values())
    assert abs(best - np.mean(shadow)) < 0.05 < np.mean(shadow) - rows


def test_control_file_takes_precedence_over_refits(tmp_path: Path) -> None:
    data = people()
    outside = str(sm.write(people(200, seed=9), tmp_path / "outside.csv"))
    shuffle = sm.methods.Shuffle(on="wage")
    masked = sm.mask(data, shuffle, seed=1)
    member = sm.risk.ClosestRecord(on="wage", control_file=outside)
    assert member.for_informed_attacker(shuffle).refits(masked) is None
    assert replace(member, control="refits").for_informed_attacker(shuffle).refits(masked) == Folds(2, 0.1)
    assert sm.score(data, masked, member, method=shuffle).popitem()[1].value > 0.95


def test_record_wise_methods_need_no_refits() -> None:
    data = people()
    for method in (sm.Noise(on="wage"), sm.Swap(on="a", rate=0.1), sm.Identity()):
        masked = sm.mask(data, method, seed=1)
        assert (
            INFER.for_informed_attacker(method).refits(masked)
            is MEMBER.for_informed_attacker(method).refits(masked)
            is None
        )
        result = sm.score(data, masked, MEMBER, method=method)
        assert result == sm.score(data, masked, MEMBER)


def test_synthetic_file_without_method_is_undefined() -> None:
    data = people()
    copy = data.frame().sample(fraction=1, shuffle=True, seed=1)
    for measure in (INFER, MEMBER):
        with pytest.raises(Undefined, match=r"control file .* or the method that made it"):
            sm.score(data, copy, measure, paired=False)
    with pytest.raises(Undefined, match="or the method that made it"):
        sm.score(data, data, replace(MEMBER, control="refits"))


def test_failed_refit_gives_the_reason() -> None:
    scores = sm.sweep(people(), sm.Plan(NeedsAll(), [INFER, MEMBER, sm.Hellinger()], seed=1), workers=1)
    refits = scores.candidate.filter(pl.col("kind") == "candidate")
    assert refits["status"].to_list() == ["ok"]
    rows = scores.score.filter(
        pl.col("candidate") == refits["id"][0], pl.col("measure").is_in([INFER.text, MEMBER.text])
    )
    assert rows["status"].to_list() == ["undefined"] * 2
    assert all("cannot be refitted without some of the people" in r and "300 records" in r for r in rows["reason"])


@pytest.mark.parametrize(
    "recode",
    [
        sm.Recode(on="secret", merge=[["0", "1"], ["2", "3"]]),
        sm.Recode(on="wage", breaks=[0, 500, 1000, 2000, 1e9]),
        sm.Recode(on="a", merge=[["0", "1"], ["2", "3"]]),
    ],
)
def test_recoding_before_copying_does_not_hide_copies(recode: Method) -> None:
    """Copies are detected whatever was recoded before, and nobody is farther away because their value is unique."""
    data = people()
    measures = [replace(INFER, on=("a", "b", "rent")), replace(MEMBER, on=("a", "b", "wage", "rent"))]
    infer, member = (score_by_refits(measure, data, sm.Chain([recode, Copies()])) for measure in measures)
    assert (
        infer.parts["members"] == 1 > infer.parts["non-members"] and member.value == member.parts["exact copies"] == 1
    )
    floor = score_by_refits(measures[1], data, sm.Chain([recode, IndependentColumns()]))
    assert floor.se is not None and abs(floor.value - 0.5) < 5 * floor.se


def score_by_refits(measure: Measure, data: Microdata, method: Method, seed: int = 1) -> Estimate:
    stream = Stream.of_seed(seed, "test")
    masked, informed = method.apply(data, stream), measure.for_informed_attacker(method)
    folds = informed.refits(masked)
    assert folds is not None
    return informed.apply(data, masked, stream.rng(), refit_without(data, method, stream, folds))


def test_recoded_secret_is_undefined_rather_than_zero(tmp_path: Path) -> None:
    """Categories that cannot be compared with the true ones leave the measure undefined; 0 would claim no disclosure."""
    data = people()
    strange = data.frame().with_columns(secret=pl.lit("x") + pl.col("secret"))
    infer = sm.risk.AttributeInference(control_file=str(sm.write(people(200, seed=9), tmp_path / "outside.csv")))
    with pytest.raises(Undefined, match="'secret' was recoded"):
        sm.score(data, strange, infer, paired=False)


# ---- folds ----------------------------------------------------------------------------------------------------
def test_folds_keep_households_and_spread_strata() -> None:
    rng = np.random.default_rng(2)
    home = np.repeat(np.arange(100), rng.integers(1, 5, 100))
    area = (home % 4).astype(str)
    frame = pl.DataFrame({"home": home, "area": area, "wage": rng.lognormal(7, 1, len(home))})
    data = sm.read(frame, household="home", stratum="area", numeric=["wage"])
    fold = assign_folds(data, 0.2, ("area",), rng)
    assert all(len(np.unique(fold[home == h])) == 1 for h in range(100))
    for k in range(5):
        assert len(np.unique(home[fold == k])) == 20
        assert np.bincount(np.unique(home[fold == k]) % 4).tolist() == [5] * 4


def test_refits_leave_out_different_people_and_report_members() -> None:
    data = people(100)
    folds, stream = Folds(3, 0.25), Stream.of_seed(1, "test")
    shuffle = sm.methods.Shuffle(on="wage", within=("a",))
    refits = refit_without(data, shuffle, stream, folds)
    assert sum(refit.outside.astype(int) for refit in refits).max() == 1
    for refit in refits:
        origin = refit.released.origin
        assert origin is not None and sorted(origin) == np.flatnonzero(~refit.outside).tolist()
        np.testing.assert_array_equal(refit.released["rent"], data["rent"][origin])
        assert sorted(refit.released["wage"]) == sorted(data["wage"][~refit.outside])
    again = refit_without(data, shuffle, stream, Folds(1, 0.25))[0]
    np.testing.assert_array_equal(again.released["wage"], refits[0].released["wage"])  # more folds move none


@pytest.mark.parametrize("request_", [Folds(5, 0.25), HalfIn(6, EveryoneIn())])
def test_refits_do_not_depend_on_the_number_of_threads(request_: Folds | HalfIn) -> None:
    data, stream = people(300), Stream.of_seed(1, "test")
    method = sm.Synthesize(on=("wage", "rent"), model="regressions", leaf=20)
    one, four = (refit_without(data, method, stream, request_, threads) for threads in (1, 4))
    assert len(one) == len(four) == request_.times
    for ours, theirs in zip(one, four, strict=True):
        assert ours.released.frame().equals(theirs.released.frame()) and (ours.outside == theirs.outside).all()
    with pytest.raises(sm.errors.Undefined, match="cannot be refitted"):
        refit_without(data.take(np.arange(3)), sm.Microaggregate(on="wage", size=3), stream, Folds(3, 0.3), 2)


def test_refit_leaves_out_few_people() -> None:
    """Groups of ten among half of the people are coarser than among all: refits on half made a release look harmless."""
    frame = people(280).frame()
    data = sm.read(frame, keys=["a", "b"], sensitive=["wage"], numeric=["wage", "rent"])
    groups = sm.methods.Microaggregate(on=("wage", "rent"), size=10, method="individual")
    chain = sm.Chain([groups, sm.methods.SwapReidentified(on="rent")])
    [infer] = [m for m in find_profile("public-use").measures(data).limits if isinstance(m, sm.risk.AttributeInference)]
    result = [score_by_refits(infer, data, chain, seed).parts["members"] for seed in range(SEEDS)]
    expected_rates = [
        share_inferred(frame, chain.apply(data, Stream.of_seed(seed, "test")).frame()) for seed in range(SEEDS)
    ]
    assert np.mean(result) == pytest.approx(np.mean(expected_rates), abs=0.05)
    halves = replace(infer, folds=1)  # half of the people at once
    assert (
        np.mean([score_by_refits(halves, data, chain, seed).parts["members"] for seed in range(SEEDS)])
        < np.mean(expected_rates) - 0.1
    )


def test_same_people_are_attacked_as_members_and_non_members() -> None:
    """In plain Python: each person's success in the refits with them, minus that in the refit without them."""
    data, stream = people(120), Stream.of_seed(3, "test")
    infer = sm.risk.AttributeInference(on=("a", "b"), held_out=0.5, folds=4).for_informed_attacker(Copies())
    refits = refit_without(data, Copies(), stream, Folds(4, 0.125))
    result = infer.apply(data, Copies().apply(data, stream), stream.rng(), refits)
    rows = data.frame().to_dicts()
    each = []
    for person in np.flatnonzero(np.any([refit.outside for refit in refits], axis=0)):
        success: dict[bool, list[float]] = {True: [], False: []}
        for refit in refits:
            others = refit.released.frame().to_dicts()
            unlike = [sum(rows[person][n] != other[n] for n in ("a", "b")) for other in others]
            near = [other["secret"] for other, gap in zip(others, unlike, strict=True) if gap == min(unlike)]
            success[bool(refit.outside[person])].append(near.count(rows[person]["secret"]) / len(near))
        assert len(success[True]) == 1 and len(success[False]) == 3
        each.append(np.mean(success[False]) - success[True][0])
    assert result.value == pytest.approx(np.mean(each))
    assert result.se == pytest.approx(np.std(each, ddof=1) / np.sqrt(len(each)))


def test_pairing_removes_chance_differences_between_groups() -> None:
    """Half of the people have no wage.

    Two groups differ in that by chance; the same people as members and non-members do not. The error is smaller by a
    third than with one refit and different people, and it matches the spread of the values.
    """
    data = people(400)
    frame = data.frame().with_columns(
        wage=pl.when(pl.col("a").is_in(["0", "1", "2"])).then(pl.col("wage")).otherwise(0.0)
    )
    data = sm.read(frame, keys=["a", "b"], sensitive=["wage"], numeric=["wage", "rent"])
    model = sm.methods.Synthesize(on=ALL, model="copula")
    infer = sm.risk.AttributeInference("wage", on=("a", "b", "rent"), held_out=0.5, folds=4)
    result = [score_by_refits(infer, data, model, seed) for seed in range(3 * SEEDS)]
    error = float(np.mean([e.se for e in result if e.se is not None]))
    assert np.std([e.value for e in result], ddof=1) == pytest.approx(error, rel=0.36)  # three standard errors of it
    assert abs(np.mean([e.value for e in result])) < 4 * error / np.sqrt(len(result))
    apart = score_by_refits(replace(infer, folds=1), data, model).se
    assert apart is not None and error < 0.67 * apart


def share_inferred(frame: pl.DataFrame, released: pl.DataFrame) -> float:
    """Return the share of people whose wage the nearest record gives within 5 %, in plain Python."""
    rent = frame["rent"].to_numpy()
    gap = abs(np.subtract.outer(rent, released["rent"].to_numpy())) / np.ptp(rent)
    gap = gap + sum(
        np.not_equal.outer(frame[name].to_numpy(), released[name].to_numpy()) for name in ("a", "b", "secret")
    )
    guess = released["wage"].to_numpy()[gap.argmin(axis=1)]
    return float(np.mean(abs(guess - frame["wage"].to_numpy()) <= 0.05 * frame["wage"].to_numpy()))


def test_control_fields_are_validated() -> None:
    with pytest.raises(PlanError, match="AttributeInference.control must be one of 'best', 'rows', 'refits'"):
        sm.risk.AttributeInference(control="row")  # type: ignore[arg-type]


# ---- the worst group ------------------------------------------------------------------------------------------
def test_worst_category_counts_if_significant() -> None:
    """Ill people have their own keys, each twice: members reveal people like them; the others reveal nothing."""
    rng = np.random.default_rng(3)
    n = 1500
    ill = rng.random(n) < 0.1
    frame = pl.DataFrame(
        {
            "key": np.where(ill, rng.integers(100, 2000, n), rng.integers(0, 3, n)),
            "secret": np.where(ill, "ill", rng.choice(["a", "b", "c"], n)),
        }
    )
    data = sm.read(frame, keys="key", sensitive="secret", kinds={"key": "nominal"})
    plain, worst = (
        sm.risk.AttributeInference(worst=w, held_out=0.5).score(data, data, np.random.default_rng(1))
        for w in (False, True)
    )
    assert plain.parts == worst.parts
    assert worst.value >= plain.parts["worst category"] > plain.value + 0.4  # certain, or by chance within it
    assert plain.se is not None and worst.se is not None and worst.se > plain.se
