"""Scoring files made elsewhere, and single masked files."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.microdata import Microdata
from sdcmap.files.alignment import align
from sdcmap.study.early_stop import EarlyStop
from sdcmap.study.jobs import Job, run_job, score_file
from sdcmap.study.plan import Candidate

MEASURES = [sm.SmallCells(), sm.Hellinger(), sm.IL1s()]


@pytest.fixture(scope="module")
def people() -> Microdata:
    return sm.demo.population(300, seed=4)


@pytest.fixture(scope="module")
def masked(people: Microdata) -> Microdata:
    return sm.mask(people, sm.Chain([sm.Swap(on=["Sex", "Educ"], rate=0.1), sm.Noise(on="wage")]), seed=5)


def test_file_has_the_scores_of_its_candidate(people: Microdata, masked: Microdata, tmp_path: Path) -> None:
    inside = sm.score(people, masked, MEASURES)
    for name in ("masked.csv", "masked.parquet"):
        sm.write(masked, tmp_path / name)
        outside = sm.score(people, tmp_path / name, MEASURES)
        for measure, found in outside.items():
            assert found.value == pytest.approx(inside[measure].value, abs=1e-12), measure
    assert sm.score(people, masked.frame(), sm.SmallCells())["SmallCells"].value == inside["SmallCells"].value


def test_score_matches_rows_by_an_id_column(people: Microdata, masked: Microdata) -> None:
    number = pl.Series("id", np.random.default_rng(1).permutation(len(people)))
    roles = {"keys": people.keys, "numeric": people.numeric, "household": "household", "weight": "weight"}
    original = sm.read(people.frame().with_columns(number), **roles, identifiers="id")
    shuffled = masked.frame().with_columns(number).sample(fraction=1, shuffle=True, seed=3)
    inside = sm.score(people, masked, MEASURES)
    assert {m: e.value for m, e in sm.score(original, shuffled, MEASURES, by="id").items()} == pytest.approx(
        {m: e.value for m, e in inside.items()}
    )
    with pytest.warns(sm.errors.OtherOrder, match="no column agrees row by row"):
        assert (
            sm.score(original, shuffled, sm.IL1s())["IL1s"].value > inside["IL1s"].value
        )  # in the wrong order, the loss is larger
    for twice in (shuffled.with_columns(id=pl.lit(1)), shuffled.with_columns(pl.col("id") + 7)):
        with pytest.raises(sm.errors.SchemaError, match="id column 'id'"):
            sm.score(original, twice, MEASURES, by="id")


def test_masked_file_with_other_rows_or_columns_is_refused(people: Microdata, masked: Microdata) -> None:
    with pytest.raises(sm.errors.SchemaError, match="299 rows and the original 300"):
        sm.score(people, masked.frame().head(299), MEASURES)
    with pytest.raises(sm.errors.SchemaError, match="no column in common"):
        sm.score(people, pl.DataFrame({"other": range(300)}), MEASURES)
    with pytest.raises(sm.errors.SchemaError, match="'wage' is ordinal, but a numeric column is needed here"):
        sm.score(people, masked.frame().with_columns(wage=pl.lit("a lot")), MEASURES)


def test_measure_of_an_unreleased_column_is_undefined(people: Microdata, masked: Microdata) -> None:
    """It is neither measured as if it were unmasked, nor ignored silently."""
    part = masked.frame().drop("wage")
    with pytest.raises(sm.errors.Undefined, match="the released file has no column 'wage'"):
        sm.score(people, part, sm.IL1s())
    others = tuple(name for name in people.numeric if name != "wage")
    assert sm.score(people, part, sm.IL1s(on=others)) == sm.score(people, masked, sm.IL1s(on=others))


def test_id_column_is_not_treated_as_a_key(people: Microdata) -> None:
    """Only the id agrees with the original: no record is re-identified beyond chance."""
    draw = np.random.default_rng(4)
    number = pl.Series("id", np.arange(len(people)) + 1000)
    original = sm.read(people.frame().select("Age", "Sex", "wage").with_columns(number), keys=["Age", "Sex"])
    other = original.frame().with_columns(
        *(pl.Series(name, draw.permutation(original.frame()[name])) for name in ("Age", "Sex", "wage"))
    )
    assert sm.score(original, other.reverse(), sm.WorstLinkage(), by="id").popitem()[1].value < 0.1


def test_unpaired_file_has_no_record_comparison(people: Microdata, tmp_path: Path) -> None:
    """A shuffled exact copy is recognized only as an unpaired file."""
    copy = people.frame().sample(fraction=1, shuffle=True, seed=3)
    measure = sm.risk.ClosestRecord(on=people.numeric)
    with pytest.warns(sm.errors.OtherOrder):
        paired = sm.score(people, copy, measure)
    assert 0.4 < paired[measure.text].value < 0.6
    outside = sm.demo.population(300, seed=5)
    with_control = sm.risk.ClosestRecord(
        on=people.numeric, control_file=str(sm.write(outside, tmp_path / "outside.csv"))
    )
    unpaired = sm.score(people, copy, with_control, paired=False)[with_control.text]
    assert unpaired.parts["exact copies"] == 1 and unpaired.value > 0.95
    assert sm.score(people, copy.head(120), sm.utility.TotalVariation(on="Sex"), paired=False).popitem()[1].value < 0.1
    with pytest.raises(sm.errors.Undefined, match="compares records with their originals"):
        sm.score(people, copy, sm.IL1s(), paired=False)
    with pytest.raises(sm.errors.Undefined, match="the released file has no column 'Race'"):
        sm.score(people, copy.drop("Race"), sm.Hellinger(), paired=False)
    with pytest.raises(sm.errors.SchemaError, match="unpaired files have no matching records"):
        sm.score(people, copy, sm.Hellinger(), paired=False, by="household")


def test_warning_when_rows_agree_only_by_chance(people: Microdata, masked: Microdata) -> None:
    """No warning where one column of many was left in its order, nor where noise is strong; one in 20 of 20 orders."""
    frame = masked.frame()
    others = [name for name in frame.columns if name != "Sex"]
    part = frame.select(others).sample(fraction=1, shuffle=True, seed=1).with_columns(people.frame()["Sex"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", sm.errors.OtherOrder)
        align(people, part)
        align(people, sm.mask(people, sm.Noise(on=people.numeric, variance=2.0), seed=1).frame().select(people.numeric))
    for seed in range(20):
        with pytest.warns(sm.errors.OtherOrder):
            align(people, frame.sample(fraction=1, shuffle=True, seed=seed))


def test_new_and_lost_categories_are_scored(people: Microdata) -> None:
    frame = people.frame().with_columns(Sex=pl.lit("any"), Race=pl.col("Race").cast(pl.String).replace("White", "w"))
    found = sm.score(people, frame, [sm.Hellinger(on=["Age", "Sex"]), sm.SmallCells(counting="all")])
    assert found["Hellinger(on=['Age', 'Sex'])"].value == pytest.approx(1.0)
    with pytest.raises(sm.errors.Undefined, match="every record has changed"):
        sm.score(people, frame, sm.SmallCells())


def test_undefined_and_infinite_scores_are_distinguished(people: Microdata) -> None:
    file = score_file(people, people.frame(), [sm.risk.KnownIndex(on="wage"), sm.IL1s(on=["nowhere"]), sm.SmallCells()])
    rows = file.scores
    assert [row.status for row in rows] == ["infinite", "undefined", "ok"]
    assert rows[0].value is None
    assert "no column 'nowhere'" in rows[1].reason


def test_alignment_reports_changed_rows(people: Microdata, masked: Microdata) -> None:
    aligned = align(people, masked.frame())
    rows = aligned.changed_rows(["Sex"])
    assert rows is not None
    assert sorted(rows) == sorted(masked.changed_rows(["Sex"]))  # type: ignore[arg-type]
    assert aligned.base is people


def test_mask_is_replicate_zero_of_the_method(people: Microdata) -> None:
    method = sm.Swap(on="Sex", rate=0.1)
    plan = sm.Plan(method, MEASURES, seed=77)
    candidate = list(plan.candidates)[1]
    assert sm.mask(people, method, seed=77).frame().equals(plan.make(people, candidate).frame())


@pytest.mark.parametrize("kind", ["numeric", "ordinal"])
def test_numbers_recoded_to_bands_are_scored_as_bands(kind: str, tmp_path: Path) -> None:
    """An age that another tool released as "(20, 30]" has the risk of our own recoding."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"age": rng.integers(16, 90, 300), "sex": rng.choice(["f", "m"], 300)})
    data = sm.read(frame, keys=["age", "sex"], kinds={"age": kind})
    masked = sm.mask(data, sm.Recode(on=["age"], width=10), seed=1)
    masked.frame().write_csv(tmp_path / "masked.csv")
    measures = [sm.risk.ExactMatch(k=20), sm.risk.WorstLinkage()]
    rows = score_file(data, tmp_path / "masked.csv", measures, name="elsewhere").scores
    values = [measure.apply(data, masked, np.random.default_rng(0)).value for measure in measures]
    assert [row.value for row in rows] == pytest.approx(values) and min(values) > 0


def test_attack_stops_when_the_candidate_is_dominated(people: Microdata) -> None:
    known = people.only(["Age", "Sex", "wage", "total"])
    method = sm.Chain((sm.PRAM(["Age", "Sex"], 0.6, alpha=1.0), sm.RankSwap(["wage", "total"], 0.2)))
    linkage, loss = sm.WorstLinkage(), sm.IL1s(on="wage")
    candidate = Candidate(method)

    def made(*front: tuple[float, float]) -> tuple[str, dict[str, tuple[float | None, str]]]:
        early_stop = EarlyStop((linkage.text,), (1.0,), loss.text, (1.0, 1.0), front)
        row = run_job(known, Job(candidate, candidate.stream(1).key, (loss, linkage), early_stop=early_stop))
        return row.kind, {score.measure: (score.value, score.status) for score in row.scores}

    (whole, scores), (kind, beaten) = made((1.0, 1.0)), made((0.0, 0.0))
    assert (whole, kind) == ("candidate", "bound") and scores[loss.text] == beaten[loss.text]
    (risk, status), (bound, result) = scores[linkage.text], beaten[linkage.text]
    assert (status, result) == ("ok", "bound") and 0 < bound <= risk  # type: ignore[operator]
