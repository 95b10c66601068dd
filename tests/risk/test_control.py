"""People inside and outside a release whose rows are nobody's: the method is made again without some of them."""

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
from sdcmap.core.refits import Folds, assign_folds, refit_without
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.data.schema import KINDS
from sdcmap.errors import Infeasible, PlanError, Undefined
from sdcmap.study.profiles import find_profile

ALL = ("a", "b", "secret", "wage", "rent")
SYNTHETIC = sm.methods.Synthesize(on=ALL)
INFER, MEMBER = sm.risk.AttributeInference(), sm.risk.ClosestRecord()
SEEDS = 12


@dataclass(frozen=True)
class Copies(Method):
    """A synthesizer that gives its input away."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        return replace(data.take(rng.permutation(len(data))), paired=False)


@dataclass(frozen=True)
class FromAfar(Method):
    """A synthesizer that never looks at its input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: Microdata, rng: Generator) -> Microdata:
        other = people(len(data), int(rng.integers(1 << 40)))
        drawn = {name: other.column(name).values for name in ALL}
        return replace(data.change(None, drawn), paired=False)


@dataclass(frozen=True)
class FromAfarAgain(Method):
    """A synthesizer that draws each column on its own from what any file of these columns may hold."""

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
class NeedsAll(FromAfar):
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


def test_a_synthesizer_that_copies_scores_high_and_one_that_does_not_look_is_at_the_floor() -> None:
    """Who does not look at the people cannot tell them apart: means over seeds within 4 standard errors of 0 and 1/2."""
    on_all = sm.risk.AttributeInference(on=("a", "b", "wage"))
    for infer, worst, member in estimates(Copies(), on_all, replace(on_all, worst=True), MEMBER, seeds=3):
        assert member.value == member.parts["copies"] == 1
        assert infer.parts["inside"] == infer.parts["sure inside"] == 1 and infer.value > 0.6
        assert worst.value >= infer.value
    found = np.array(
        [[e.value for e in row] for row in estimates(FromAfar(), on_all, replace(on_all, worst=True), MEMBER)]
    )
    error = found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    assert (abs(found.mean(axis=0) - [0, 0, 0.5]) < 4 * error + 1e-12).all()
    assert abs(found[:, 0]).max() < 0.25


def test_the_nearer_a_model_comes_to_its_input_the_more_it_tells() -> None:
    means = []
    for method in (replace(SYNTHETIC, model="copula"), SYNTHETIC, replace(SYNTHETIC, leaf=1)):
        means.append(np.mean([row[0].value for row in estimates(method, MEMBER, seeds=4)]))
    assert means[0] < 0.56 < means[1] < 0.69 < means[2]  # .51, .61, .75; sd of a mean of four: .011


def test_values_that_were_dealt_out_stay_in_the_file() -> None:
    """Every wage is released, in another record: taking rows out takes nobody out, and makings see it."""
    data = people()
    shuffle = sm.methods.Shuffle(on="wage")
    masked = sm.mask(data, shuffle, seed=1)
    member = sm.risk.ClosestRecord(on="wage")
    rows, best = (
        sm.score(data, masked, replace(member, control=how), method=shuffle).popitem()[1] for how in ("rows", "best")
    )
    assert 0.35 < rows.value < 0.65
    assert best.value > 0.99 and best.parts["copies"] == 1
    chain = sm.Chain([sm.Noise(on="rent"), shuffle])
    assert sm.score(data, sm.mask(data, chain, seed=1), member, method=chain).popitem()[1].value > 0.99


def test_a_control_file_is_taken_before_makings(tmp_path: Path) -> None:
    data = people()
    outside = str(sm.write(people(200, seed=9), tmp_path / "outside.csv"))
    shuffle = sm.methods.Shuffle(on="wage")
    masked = sm.mask(data, shuffle, seed=1)
    member = sm.risk.ClosestRecord(on="wage", control_file=outside)
    assert member.for_informed_attacker(shuffle).refits(masked) is None
    assert replace(member, control="refits").for_informed_attacker(shuffle).refits(masked) == Folds(2, 0.1)
    assert sm.score(data, masked, member, method=shuffle).popitem()[1].value > 0.95


def test_methods_that_mask_each_record_alone_are_made_once() -> None:
    data = people()
    for method in (sm.Noise(on="wage"), sm.Swap(on="a", rate=0.1), sm.Identity()):
        masked = sm.mask(data, method, seed=1)
        assert (
            INFER.for_informed_attacker(method).refits(masked)
            is MEMBER.for_informed_attacker(method).refits(masked)
            is None
        )
        told = sm.score(data, masked, MEMBER, method=method)
        assert told == sm.score(data, masked, MEMBER)


def test_a_file_of_unknown_making_has_no_value() -> None:
    data = people()
    copy = data.frame().sample(fraction=1, shuffle=True, seed=1)
    for measure in (INFER, MEMBER):
        with pytest.raises(Undefined, match=r"control file .* or the method that made it"):
            sm.score(data, copy, measure, paired=False)
    with pytest.raises(Undefined, match="or the method that made it"):
        sm.score(data, data, replace(MEMBER, control="refits"))


def test_a_making_that_cannot_be_made_says_why() -> None:
    scores = sm.sweep(people(), sm.Plan(NeedsAll(), [INFER, MEMBER, sm.Hellinger()], seed=1), workers=1)
    made = scores.candidate.filter(pl.col("kind") == "candidate")
    assert made["status"].to_list() == ["ok"]
    rows = scores.score.filter(pl.col("candidate") == made["id"][0], pl.col("measure").is_in([INFER.text, MEMBER.text]))
    assert rows["status"].to_list() == ["undefined"] * 2
    assert all("cannot be made without some of the people" in r and "300 records" in r for r in rows["reason"])


@pytest.mark.parametrize(
    "recode",
    [
        sm.Recode(on="secret", merge=[["0", "1"], ["2", "3"]]),
        sm.Recode(on="wage", breaks=[0, 500, 1000, 2000, 1e9]),
        sm.Recode(on="a", merge=[["0", "1"], ["2", "3"]]),
    ],
)
def test_what_was_recoded_first_is_read_in_its_categories(recode: Method) -> None:
    """Who is copied is found whatever was recoded before, and nobody is farther off because his value is his alone."""
    data = people()
    measures = [replace(INFER, on=("a", "b", "rent")), replace(MEMBER, on=("a", "b", "wage", "rent"))]
    infer, member = (by_makings(measure, data, sm.Chain([recode, Copies()])) for measure in measures)
    assert infer.parts["inside"] == 1 > infer.parts["outside"] and member.value == member.parts["copies"] == 1
    floor = by_makings(measures[1], data, sm.Chain([recode, FromAfarAgain()]))
    assert floor.se is not None and abs(floor.value - 0.5) < 5 * floor.se


def by_makings(measure: Measure, data: Microdata, method: Method, seed: int = 1) -> Estimate:
    stream = Stream.of_seed(seed, "test")
    masked, informed = method.apply(data, stream), measure.for_informed_attacker(method)
    folds = informed.refits(masked)
    assert folds is not None
    return informed.apply(data, masked, stream.rng(), refit_without(data, method, stream, folds))


def test_a_secret_in_other_categories_is_no_zero(tmp_path: Path) -> None:
    """Categories that nobody can lay beside the true ones leave the measure undefined: 0 would say that nothing is told."""
    data = people()
    strange = data.frame().with_columns(secret=pl.lit("x") + pl.col("secret"))
    infer = sm.risk.AttributeInference(control_file=str(sm.write(people(200, seed=9), tmp_path / "outside.csv")))
    with pytest.raises(Undefined, match="'secret' was recoded"):
        sm.score(data, strange, infer, paired=False)


# ---- folds ----------------------------------------------------------------------------------------------------
def test_folds_keep_households_whole_and_strata_spread() -> None:
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


def test_makings_leave_other_people_out_and_say_who_came_in() -> None:
    data = people(100)
    folds, stream = Folds(3, 0.25), Stream.of_seed(1, "test")
    shuffle = sm.methods.Shuffle(on="wage", within=("a",))
    made = refit_without(data, shuffle, stream, folds)
    assert sum(making.outside.astype(int) for making in made).max() == 1
    for making in made:
        origin = making.released.origin
        assert origin is not None and sorted(origin) == np.flatnonzero(~making.outside).tolist()
        np.testing.assert_array_equal(making.released["rent"], data["rent"][origin])
        assert sorted(making.released["wage"]) == sorted(data["wage"][~making.outside])
    again = refit_without(data, shuffle, stream, Folds(1, 0.25))[0]
    np.testing.assert_array_equal(again.released["wage"], made[0].released["wage"])  # more folds move none


def test_a_making_is_masked_as_the_file_is() -> None:
    """Groups of ten among half of the people are coarser than among all: by makings of half a release looked harmless."""
    frame = people(280).frame()
    data = sm.read(frame, keys=["a", "b"], sensitive=["wage"], numeric=["wage", "rent"])
    groups = sm.methods.Microaggregate(on=("wage", "rent"), size=10, method="individual")
    chain = sm.Chain([groups, sm.methods.SwapReidentified(on="rent")])
    [infer] = [m for m in find_profile("public-use").measures(data).limits if isinstance(m, sm.risk.AttributeInference)]
    told = [by_makings(infer, data, chain, seed).parts["inside"] for seed in range(SEEDS)]
    found = [inferred(frame, chain.apply(data, Stream.of_seed(seed, "test")).frame()) for seed in range(SEEDS)]
    assert np.mean(told) == pytest.approx(np.mean(found), abs=0.05)
    halves = replace(infer, folds=1)  # half of the people at once
    assert (
        np.mean([by_makings(halves, data, chain, seed).parts["inside"] for seed in range(SEEDS)]) < np.mean(found) - 0.1
    )


def test_the_same_people_are_attacked_in_makings_with_them_and_without() -> None:
    """Plain lines: each person's success in the makings that hold them, less that in the one that does not."""
    data, stream = people(120), Stream.of_seed(3, "test")
    infer = sm.risk.AttributeInference(on=("a", "b"), held_out=0.5, folds=4).for_informed_attacker(Copies())
    made = refit_without(data, Copies(), stream, Folds(4, 0.125))
    told = infer.apply(data, Copies().apply(data, stream), stream.rng(), made)
    rows = data.frame().to_dicts()
    each = []
    for person in np.flatnonzero(np.any([making.outside for making in made], axis=0)):
        success: dict[bool, list[float]] = {True: [], False: []}
        for making in made:
            others = making.released.frame().to_dicts()
            unlike = [sum(rows[person][n] != other[n] for n in ("a", "b")) for other in others]
            near = [other["secret"] for other, gap in zip(others, unlike, strict=True) if gap == min(unlike)]
            success[bool(making.outside[person])].append(near.count(rows[person]["secret"]) / len(near))
        assert len(success[True]) == 1 and len(success[False]) == 3
        each.append(np.mean(success[False]) - success[True][0])
    assert told.value == pytest.approx(np.mean(each))
    assert told.se == pytest.approx(np.sqrt(np.var(each) * len(each) + 2) / len(each))


def test_a_rare_value_that_some_have_more_often_makes_no_difference_of_its_own() -> None:
    """Half of the people have no wage. Two groups differ in that by chance; the same people inside and outside do not. The
    error is smaller by a third than with one making and other people, and is as large as the values spread."""
    data = people(400)
    frame = data.frame().with_columns(
        wage=pl.when(pl.col("a").is_in(["0", "1", "2"])).then(pl.col("wage")).otherwise(0.0)
    )
    data = sm.read(frame, keys=["a", "b"], sensitive=["wage"], numeric=["wage", "rent"])
    model = sm.methods.Synthesize(on=ALL, model="copula")
    infer = sm.risk.AttributeInference("wage", on=("a", "b", "rent"), held_out=0.5, folds=4)
    told = [by_makings(infer, data, model, seed) for seed in range(3 * SEEDS)]
    error = float(np.mean([e.se for e in told if e.se is not None]))
    assert np.std([e.value for e in told], ddof=1) == pytest.approx(error, rel=0.36)  # three standard errors of it
    assert abs(np.mean([e.value for e in told])) < 4 * error / np.sqrt(len(told))
    apart = by_makings(replace(infer, folds=1), data, model).se
    assert apart is not None and error < 0.67 * apart


def inferred(frame: pl.DataFrame, released: pl.DataFrame) -> float:
    """The share whose wage the nearest record gives within a twentieth, in plain lines."""
    rent = frame["rent"].to_numpy()
    gap = abs(np.subtract.outer(rent, released["rent"].to_numpy())) / np.ptp(rent)
    gap = gap + sum(
        np.not_equal.outer(frame[name].to_numpy(), released[name].to_numpy()) for name in ("a", "b", "secret")
    )
    guess = released["wage"].to_numpy()[gap.argmin(axis=1)]
    return float(np.mean(abs(guess - frame["wage"].to_numpy()) <= 0.05 * frame["wage"].to_numpy()))


def test_fields_are_checked() -> None:
    with pytest.raises(PlanError, match="AttributeInference.control must be one of 'best', 'rows', 'makings'"):
        sm.risk.AttributeInference(control="row")  # type: ignore[arg-type]


# ---- the worst group ------------------------------------------------------------------------------------------
def test_the_worst_sensitive_category_counts_where_it_is_beyond_chance() -> None:
    """The ill have keys of their own, each twice: who is in the file gives his like away; the others tell nothing."""
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
    assert worst.value >= plain.parts["worst category"] > plain.value + 0.4  # for certain, or by chance among his like
    assert plain.se is not None and worst.se is not None and worst.se > plain.se
