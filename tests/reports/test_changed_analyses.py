"""What the report says about users' analyses: conclusions that change, stated models, and a picture of the estimates."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.note import Relation, describe_relations
from sdcmap.charts.estimate_pairs import EstimatePair, draw_estimate_pairs
from sdcmap.reports.changed_analyses import (
    ANALYSES_SHOWN,
    NAMED_IN_DECISION,
    describe_analyses,
    draw_public,
    summarize_choice,
)
from sdcmap.utility.changed_findings import find_showable, repeat_analyses
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


def test_every_estimate_of_the_table_is_drawn(frame: pl.DataFrame) -> None:
    """Means and shares of a distribution are far from 0: the picture shows how far they moved."""
    found = describe_analyses(plan_with(MODEL), read(frame), read(frame.with_columns(wage=pl.col("wage") + 1)))
    assert found is not None and len(found.pairs) == len(found.rows)
    moved = {
        row.term: pair for row, pair in zip(found.rows, found.pairs, strict=True) if "distribution" in row.analysis
    }
    assert moved and all(pair.before == 0 and abs(pair.after) > 2 for pair in moved.values())
    assert all(pair.name == f"wage: {term} (change)" for term, pair in moved.items())


def test_note_and_report_count_the_same_analyses(frame: pl.DataFrame) -> None:
    data, released = read(frame), read(frame.with_columns(minority=1 - pl.col("minority")))
    found, repeated = describe_analyses(plan_with(MODEL), data, released), repeat_analyses(data, released, [MODEL])
    assert found is not None and repeated is not None
    assert describe_relations(repeated)["summary"] == found.sentence


def test_decision_names_the_most_changed_relations(frame: pl.DataFrame) -> None:
    rng = np.random.default_rng(7)
    mirrored = frame.with_columns(minority=1 - pl.col("minority"), region=pl.Series(rng.permutation(frame["region"])))
    found = describe_analyses(plan_with("log(wage) ~ educ", MODEL), read(frame), read(mirrored))
    assert found is not None and 0 < len(found.most_changed) <= NAMED_IN_DECISION
    row = found.rows[1]
    first = f"minority in {MODEL} has the opposite sign: {row.before} in the original, {row.after} in the release."
    assert first in found.most_changed and "opposite sign" in found.most_changed[0]
    unchanged = describe_analyses(plan_with(MODEL), read(frame), read(frame))
    assert unchanged is not None and unchanged.most_changed == []


def test_kept_model_is_not_among_the_most_changed(frame: pl.DataFrame) -> None:
    kept = sm.Synthesize(["minority", "wage"], model="regressions", keep="log(wage) ~ minority+educ")
    plan = sm.Plan([kept], [sm.SmallCells(on=["region"])], seed=1)
    found = describe_analyses(plan, read(frame), read(frame.with_columns(minority=1 - pl.col("minority"))))
    assert found is not None and found.rows[0].conclusion == "opposite sign (kept by the method, not counted)"
    assert not any(" in log(wage) ~ " in sentence for sentence in found.most_changed)


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


def test_reports_say_what_changed_to_their_readers(frame: pl.DataFrame, tmp_path: Path) -> None:
    """Six people live in the east: the public report states numbers of the model without regions only."""
    few = frame.with_columns(region=pl.Series(["east"] * 6 + frame["region"].to_list()[6:]))
    secret = "log(wage) ~ educ + region"
    measures = [sm.SmallCells(on=["region"]), sm.utility.AnalysisError((MODEL, secret))]
    plan = sm.Plan([sm.Noise(on="educ", variance=2000.0)], measures, seed=1)
    sm.sweep(read(few), plan, tmp_path / "study")
    with sm.Study.open(tmp_path / "study") as study:
        picked = sm.workflow.choose(study, candidate=list(plan.candidates)[1].id, reason="for the test")
        inside, outside = (sm.report(study, picked, audience=to).html for to in ("internal", "external"))
        found = describe_analyses(plan, study.data, plan.make(study.data, picked))
    assert found is not None and f'{found.sentence} <a href="#utility">' in inside
    assert found.most_changed and all(f"<li>{escape(sentence)}</li>" in inside for sentence in found.most_changed)
    rows = [re.findall("<td.*?>(.*?)</td>", row) for row in re.findall("<tr>(.*?)</tr>", outside)]
    own = {cells[0]: cells for cells in rows if len(cells) == 5 and cells[1] == "educ"}
    assert found.sentence in outside and "=east" not in outside
    assert own[secret][3:] == ["-", "-"]
    share, original = own[MODEL][3:]
    slope, error = map(float, re.fullmatch(r"(.*) \((.*)\)", original).groups())  # type: ignore[union-attr]
    assert slope == pytest.approx(0.08, rel=0.1) and 0 < error < 0.01 and share.endswith(" %")
    assert "log(wage): educ" in outside and "<svg" in outside


def test_public_picture_draws_rounded_numbers_only() -> None:
    known: Relation = {
        "model": "log(wage) ~ educ", "term": "educ", "change": "weaker",
        "share": 0.5, "original": 0.08, "error": 0.01, "released_error": 0.02,
    }  # fmt: skip
    unknown: Relation = {**known, "share": None, "original": None, "error": None, "released_error": None}
    (pair,) = draw_public([known, unknown])
    assert pair.name == "log(wage): educ" and pair[1:] == pytest.approx((8.0, 1.96, 4.0, 3.92))
