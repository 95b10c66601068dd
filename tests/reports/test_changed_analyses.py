"""What the report says about users' analyses: conclusions that change, stated models, and a picture of the estimates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts.estimate_pairs import EstimatePair, draw_estimate_pairs
from sdcmap.reports.changed_analyses import ANALYSES_SHOWN, describe_analyses, summarize_choice
from sdcmap.utility.changed_findings import find_showable
from sdcmap.utility.stated_model import parse_model

MODEL = "log(wage) ~ educ + minority"


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    """Return employees: wages rise with education and are lower for a minority."""
    rng = np.random.default_rng(5)
    educ, minority = rng.integers(8, 20, 900).astype(float), (rng.random(900) < 0.3).astype(float)
    wage = np.exp(1 + 0.08 * educ - 0.3 * minority + 0.3 * rng.normal(size=900)).round(3)
    region = rng.choice(["north", "south", "west"], 900)
    return pl.DataFrame({"region": region, "minority": minority, "educ": educ, "wage": wage})


def plan_with(*models: str) -> sm.Plan:
    measures = [sm.SmallCells(on=["region"]), sm.utility.AnalysisError(models), sm.utility.ChangedConclusions(models)]
    return sm.Plan([sm.Noise(on="wage", variance=0.1)], measures, seed=1)


def read(frame: pl.DataFrame) -> sm.Microdata:
    return sm.read(frame, keys=["region"], numeric=["minority", "educ", "wage"], sensitive=["wage"])


def test_unchanged_file_leads_to_no_other_conclusion(frame: pl.DataFrame) -> None:
    found = describe_analyses(plan_with(), read(frame), read(frame))
    assert found is not None and "none lead to another conclusion: all" in found.sentence
    assert {row.conclusion for row in found.rows} == {"no other conclusion"}
    assert len(found.rows) <= ANALYSES_SHOWN


def test_reversed_coefficient_is_named_first(frame: pl.DataFrame) -> None:
    """The relation to the minority is turned around; the stated model shows it with both values."""
    mirrored = frame.with_columns(minority=1 - pl.col("minority"))
    found = describe_analyses(plan_with(MODEL), read(frame), read(mirrored))
    assert found is not None
    first = found.rows[0]
    assert first.analysis == MODEL and first.term == "minority" and first.conclusion == "opposite sign"
    assert first.before.startswith("-0.") and first.after.startswith("0.")
    assert first.before.lstrip("-") == first.after
    assert "the opposite sign" in found.sentence
    pair = found.pairs[0]
    assert pair.before < -3 and pair.after == pytest.approx(-pair.before)
    assert pair.before_half == pytest.approx(1.96)


def test_noise_loses_findings(frame: pl.DataFrame) -> None:
    rng = np.random.default_rng(7)
    shuffled = frame.with_columns(wage=pl.Series(rng.permutation(frame["wage"].to_numpy())))
    found = describe_analyses(plan_with(MODEL), read(frame), read(shuffled))
    assert found is not None and " are lost" in found.sentence
    assert found.rows[0].conclusion == "lost"


def test_coarse_release_cannot_estimate_everything(frame: pl.DataFrame) -> None:
    merged = frame.with_columns(region=pl.lit("all"))
    found = describe_analyses(plan_with("wage ~ region"), read(frame), read(merged))
    assert found is not None and "cannot be estimated" in {row.conclusion for row in found.rows}
    assert "<svg" in draw_estimate_pairs(found.pairs).svg()


def test_picture_draws_both_estimates_and_cuts_far_ones() -> None:
    pairs = [EstimatePair("wage: educ", 4.0, 1.96, 1.0, 2.5), EstimatePair("far", 900.0, 1.96, float("nan"), 0.0)]
    layers = draw_estimate_pairs(pairs).spec["layer"]
    drawn = [row for one in layers for row in one["data"]["values"] if "file" in row]
    assert {(row["file"], row["x"]) for row in drawn} == {("original", 4.0), ("release", 1.0), ("original", 30.0)}


def test_estimates_of_few_records_are_not_shown(frame: pl.DataFrame) -> None:
    """Four records are in the east, and few of a region belong to a minority in a product: neither is named."""
    few = frame.with_columns(region=pl.Series(["east"] * 4 + frame["region"].to_list()[4:]))
    model = "wage ~ region + minority + region:minority"
    analysis = parse_model(model, read(few))
    shown = dict(zip(analysis.labels, find_showable(analysis, read(few)).tolist(), strict=True))
    assert {label for label, own in shown.items() if not own} == {label for label in shown if "east" in label}
    assert shown["minority"] and sum(shown.values()) == len(shown) - 2
    blurred = few.with_columns(region=pl.Series(np.random.default_rng(1).permutation(few["region"].to_numpy())))
    found = describe_analyses(plan_with(model), read(few), read(blurred))
    assert found is not None and all("east" not in row.term for row in found.rows)


def test_stated_model_without_estimates_is_left_out(frame: pl.DataFrame) -> None:
    """Nothing can be estimated for an amount that five people have; the other stated model still comes first."""
    rare = frame.with_columns(bonus=pl.Series([1.0, 2, 3, 4, 5] + [None] * 895))
    data = sm.read(rare, keys=["region"], numeric=["minority", "educ", "wage", "bonus"], sensitive=["wage"])
    found = describe_analyses(plan_with("bonus ~ educ", MODEL), data, data)
    assert found is not None and found.rows[0].analysis == MODEL
    assert all("bonus ~" not in row.analysis for row in found.rows)


def test_names_with_quotes_are_labels() -> None:
    """A category may contain anything; the label must stay a text of the picture."""
    chart = draw_estimate_pairs([EstimatePair('job=o\'brien "x" \\', 4.0, 1.96, 1.0, 2.5)])
    assert "o'brien" in chart.svg()


def test_choice_says_how_many_analyses_lead_to_another_conclusion(frame: pl.DataFrame, tmp_path: Path) -> None:
    """The sentence is that of the chosen file, and a plan that does not measure analyses has none."""
    data, plan = read(frame), replace(plan_with(MODEL), rule=sm.Threshold(risk=1.0))
    without = replace(plan, measures=(sm.SmallCells(on=["region"]), sm.IL1s("wage")), utility="")
    for number, own in enumerate((plan, without)):
        sm.sweep(data, own, tmp_path / str(number))
        with sm.Study.open(tmp_path / str(number)) as study:
            choice = sm.workflow.choose(study)
            found = describe_analyses(own, data, study.plan.make(data, choice))
            assert found is not None
            assert summarize_choice(study, choice) == ("" if number else found.sentence)


def test_chosen_file_that_was_made_elsewhere_has_no_sentence(frame: pl.DataFrame, tmp_path: Path) -> None:
    """No method of the plan makes it again, so that choosing it must not fail."""
    data, plan = read(frame), replace(plan_with(MODEL), rule=sm.Threshold(risk=1.0))
    sm.sweep(data, plan, tmp_path / "study")
    with sm.Study.open(tmp_path / "study") as study:
        elsewhere = replace(sm.workflow.choose(study), candidate="0123456789ab")
        assert summarize_choice(study, elsewhere) == ""
