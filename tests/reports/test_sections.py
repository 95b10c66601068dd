"""The parts of the board's report: decision, columns, questions of users, evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.bundle.limit_checks import check_parts
from sdcmap.charts.before_after import RiskChange, draw_before_after
from sdcmap.charts.change_charts import correlations, draw_correlations
from sdcmap.core.audience import Audience
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap
from sdcmap.reports.decision import decision_sentences, measures_without_value, risk_changes
from sdcmap.reports.evidence import NOT_ASSESSED, framework_evidence, list_attackers, safe_harbor, vocabulary
from sdcmap.reports.masked_columns import (
    NOT_CHECKABLE,
    ExactMatches,
    check_constraints,
    column_rows,
    describe_recoverable,
)
from sdcmap.reports.report_tables import parts_without_limit, summarize_search
from sdcmap.reports.user_questions import answer_questions, worst_subgroups
from sdcmap.risk import RISKS
from sdcmap.study.jobs import estimate_row
from sdcmap.study.scores import Scores

SEED = 1 << 200
ALL = ["Age", "WrkTyp", "Educ", "MarStat", "Race", "Sex", "Hours", "Income", "wage", "interest", "benefits", "total"]


@pytest.fixture(scope="module")
def data() -> sm.Microdata:
    return sm.demo.population(400, seed=4)


@pytest.fixture(scope="module")
def plan() -> sm.Plan:
    measures = [sm.SmallCells(n=10), sm.risk.ExactMatch(on="wage"), sm.Hellinger()]
    limits = {"SmallCells(n=10)": 1.0, "ExactMatch(on='wage')": 0.05}
    methods = [sm.Chain((sm.Swap("Age", 0.1), sm.Noise("wage", 0.5))), sm.methods.Synthesize(on=ALL)]
    return sm.Plan(methods, measures, risk=list(limits), limits=limits, rule=sm.Threshold(risk=1.0), seed=SEED)


@pytest.fixture(scope="module")
def scores(data: sm.Microdata, plan: sm.Plan) -> Scores:
    return sm.sweep(data, plan, workers=1)


@pytest.fixture(scope="module")
def chosen(plan: sm.Plan, scores: Scores) -> Choice:
    ru = RUMap(scores, plan.risk, plan.utility, plan.limits)
    chain = next(row for row in scores.candidate.to_dicts() if row["method"].startswith("Chain"))
    return Choice(
        chain["id"],
        chain["method"],
        0,
        None,
        None,
        sm.Threshold(risk=1.0),
        "",
        (),
        name=ru.scores.name_of(chain["method"]),
    )


def test_decision_sentences_state_release_risk_and_loss(plan: sm.Plan, scores: Scores, chosen: Choice) -> None:
    what, risk, cost = decision_sentences(plan, scores, chosen, 400)
    assert chosen.candidate and what == "The recommendation is to release a masked version of the file (400 records)."
    changes = risk_changes(plan, scores, chosen)
    worst = max(changes, key=lambda name: changes[name].after)
    own = scores.column(worst).filter(pl.col("id") == chosen.candidate)["value"][0]
    assert scores.title_of(worst) in risk and f"{100 * own:.3g}" in risk
    loss = scores.column("Hellinger").filter(pl.col("id") == chosen.candidate)["value"][0]
    assert f" {loss:.3g};" in cost and "if nothing were released, it would be 1" in cost
    nothing = RUMap(scores, plan.risk, plan.utility, plan.limits).choose(sm.Threshold(risk=-1.0))
    assert decision_sentences(plan, scores, nothing, 400)[0].startswith("The recommendation is to release nothing")


def test_risk_changes_are_multiples_of_the_limit(plan: sm.Plan, scores: Scores, chosen: Choice) -> None:
    change = risk_changes(plan, scores, chosen)["ExactMatch(on='wage')"]
    whole = [method for method, kind in scores.kinds.items() if kind == "identity"]
    before = scores.column("ExactMatch(on='wage')").filter(pl.col("method").is_in(whole))["value"][0]
    assert change.before == pytest.approx(before / 0.05) and change.after == 0.0
    synthetic = next(row for row in scores.candidate.to_dicts() if "Synthesize" in row["method"])
    other = Choice(synthetic["id"], synthetic["method"], 0, None, None, sm.Threshold(risk=1.0), "", ())
    assert sm.risk.ExactMatch(on="wage").title in measures_without_value(plan, scores, other)
    tests = dict(list_attackers(scores, other, {}).considered)[
        "an attacker with a register that contains the key variables"
    ]
    assert tests[-1].startswith("not tested on this release: ") and sm.risk.ExactMatch(on="wage").title in tests[-1]
    drawn = draw_before_after([RiskChange("one", float("inf"), 0.0), RiskChange("two", 3.0, 0.5)]).spec["data"][
        "values"
    ]
    assert all(0 < row["after"] <= row["before"] <= 1.3 * 3 for row in drawn)


def test_column_rows_count_identified_records(data: sm.Microdata) -> None:
    method = sm.Noise("wage", 0.5)
    masked = sm.mask(data, method, seed=SEED)
    rows = {row.name: row for row in column_rows(data, masked, method)}
    _, counts = np.unique(data.numbers("wage"), return_counts=True)
    assert rows["wage"].treatment.endswith("% noise") and rows["Age"].treatment == "unchanged"
    assert rows["wage"].unique == (ExactMatches(int((counts == 1).sum())), ExactMatches(0))
    assert rows["household"].unique is None and rows["household"].treatment == "renumbered at random"
    assert rows["benefits"].combined is not None and rows["benefits"].unique is not None
    before, now = rows["benefits"].combined
    assert before.records >= now.records >= rows["benefits"].unique[1].records
    joined = pl.DataFrame({name: data[name] for name in ("benefits", *now.others)})
    assert now.records == int(joined.is_unique().sum())  # these columns are as they were


def test_answers_of_unmasked_file_are_unchanged(data: sm.Microdata) -> None:
    same = answer_questions(data, data)
    assert all(row.after.startswith(row.before) for row in same) and "100 %" in same[0].after
    assert all(row.off == 0 for row in worst_subgroups(data, data))
    noised = sm.mask(data, sm.Noise(["wage", "total"], 2.0), seed=SEED)
    moved = next(
        row for row in answer_questions(data, noised) if row.question.startswith("How much of the variance of wage")
    )
    assert float(moved.after) < float(moved.before)


def test_worst_subgroups_finds_planted_change() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"g": ["a", "b", "c", "d"] * 50, "x": rng.normal(size=200)})
    data = sm.read(frame, keys=["g"], sensitive=["x"])
    values = data.numbers("x").copy()
    values[2::4] += 3.0
    moved = worst_subgroups(data, data.change(None, {"x": values}))[0]
    assert (moved.what, moved.where, moved.records) == ("mean of x", "g = c", 50)
    assert moved.off == pytest.approx(3.0 / frame["x"].std(ddof=0))  # type: ignore[operator]


def test_worst_subgroups_skips_small_subgroups() -> None:
    frame = pl.DataFrame({"g": ["a"] * 60 + ["rare"] * 29, "x": [float(i) for i in range(89)]})
    data = sm.read(frame, keys=["g"], sensitive=["x"])
    moved = data.change(None, {"x": data.numbers("x") * 2})
    assert {row.where for row in worst_subgroups(data, moved, most=99)} == {"g = a"}


def test_framework_evidence_uses_terms_of_frameworks(scores: Scores, chosen: Choice) -> None:
    known = {"rule fixed first": "yes", "overrides": "none"}
    tables = {
        table.name.split(",")[0]: table
        for table in framework_evidence(scores, chosen, known, Audience("internal", 400))
    }
    wp216 = {row.term: row.lines for row in tables["Article 29 Working Party"].rows}
    assert any(line.startswith(f"{sm.risk.ExactMatch(on='wage').title}: 0 ") for line in wp216["singling out"])
    assert wp216["inference"] == (NOT_ASSESSED,)
    safes = {row.term: row.lines for row in tables["Five Safes"].rows}
    assert safes["safe projects"] == (NOT_ASSESSED,) and len(safes) == 5
    seen = list_attackers(scores, None, known)
    assert "a household member who looks for the other members" in seen.not_considered
    assert "an attacker with a register that contains the key variables" in dict(seen.considered)


def test_vocabulary_covers_every_risk_measure() -> None:
    """Except those of decision theory, which measure one number, and of records that are visibly changed."""
    entries = [*vocabulary()["attacker"], *(term for table in vocabulary()["framework"] for term in table["term"])]
    named = {name for entry in entries for name in entry.get("measures", ())}
    precision = {"Index", "KnownIndex", "MeanGuess", "Position", "PositionNoiseGuessed", "PositionNoiseKnown"}
    elsewhere = {*precision, "MarkedRecords"}
    assert named | elsewhere == {cls.__name__ for cls in RISKS}, (
        "list the measure in src/sdcmap/reports/frameworks.toml"
    )


def test_safe_harbor_has_eighteen_classes() -> None:
    frame = pl.DataFrame({"e_mail": [f"p{i}@example.org" for i in range(60)], "x": [float(i % 7) for i in range(60)]})
    rows = {letter: found for letter, _, found in safe_harbor(sm.read(frame))}
    assert len(rows) == 18 and rows["F"] == "e_mail" and rows["A"].startswith("none found")


def test_correlations_equal_numpy(data: sm.Microdata) -> None:
    names = ["wage", "interest", "total"]
    table = correlations(data, names)
    assert table == pytest.approx(np.corrcoef([data.numbers(name) for name in names]))
    constant = data.change(None, {"interest": np.zeros(len(data))})
    assert np.isnan(correlations(constant, names)[1]).all()
    assert len(draw_correlations(data, constant, names).spec["data"]["values"]) == 9 + 4


def test_check_constraints_counts_violations() -> None:
    rng = np.random.default_rng(2)
    wage, rent = rng.integers(500, 4000, 300), rng.integers(0, 900, 300)
    frame = pl.DataFrame({"age": rng.integers(5, 80, 300), "wage": wage, "rent": rent, "total": wage + rent})
    frame = frame.with_columns(work=pl.when(pl.col("age") < 15).then(pl.lit("none")).otherwise(pl.lit("some")))
    data = sm.read(frame, keys=["work"], numeric=["age", "wage", "rent", "total"])
    rule = 'age < 15 -> work = "none"'
    plan = sm.Plan(sm.Noise("wage", 0.5), [sm.SmallCells(), sm.Hellinger()], edits=[rule], seed=SEED)
    swapped = sm.mask(data, sm.Swap("work", 0.1), seed=1)
    noisy = sm.mask(data, sm.Noise("wage", 0.5), seed=1)
    (edit, *relations) = check_constraints(plan, data, swapped)
    broken = int(((frame["age"] < 15).to_numpy() & (swapped.frame()["work"] != "none").to_numpy()).sum())
    assert edit == (rule, "satisfied by all records", f"violated by {broken} records") and broken > 3
    (total,) = (row for row in check_constraints(plan, data, noisy) if row.rule.startswith("total ="))
    assert total.before == "100.0% of records" and float(total.after.split("%")[0]) < 30
    assert {row.after for row in relations} == {"100.0% of records"}
    cut = sm.mask(data, sm.methods.Recode("age", breaks=[10, 20]), seed=1)
    between = int(((frame["age"] > 10) & (frame["age"] <= 20)).sum())
    (after,) = (row.after for row in check_constraints(plan, data, cut) if row.rule == rule)
    assert after == f"satisfied by all records; intervals leave it open for {between} records"
    merged = sm.mask(data, sm.methods.Recode("work", merge=[["none", "some"]]), seed=1)
    assert next(check_constraints(plan, data, merged)).after == NOT_CHECKABLE
    assert "'wage' is masked, but the unmasked" in describe_recoverable(plan, data, noisy, ["wage"])
    assert describe_recoverable(plan, data, sm.mask(data, sm.methods.Synthesize(on=data.names), seed=1), ["wage"]) == ""


def test_summarize_search_counts_candidates(scores: Scores, chosen: Choice) -> None:
    lines = summarize_search(scores, chosen, {"search": "x", "stopped": "nothing better was found."})
    assert lines[0].startswith("3 candidates were tried") and "3 ok" in lines[0]
    assert lines[1] == "The search ended because nothing better was found." and "One random draw" in lines[2]
    assert "40 random draws" in summarize_search(scores, replace(chosen, searched=40), {})[1]


def test_most_recognizable_person_is_stated_without_a_limit(data: sm.Microdata) -> None:
    """The report and the release checks say how well the worst case was recognized, and what chance alone gives."""
    outliers = sm.risk.OutlierMembership(times=4, most=0.3)
    measures = [sm.SmallCells(n=10), outliers, replace(outliers, statistic="detection", fewest=500), sm.Hellinger()]
    noise = sm.Noise("wage", 0.5)
    scores = sm.sweep(data, sm.Plan([noise], measures[:2] + measures[3:], seed=SEED), workers=1)
    own = scores.candidate.filter(method=noise.text)["id"][0]
    choice = Choice(own, noise.text, 0, None, None, sm.Threshold(risk=1.0), "", ())
    (sentence,) = parts_without_limit(scores, choice)
    assert sentence.startswith("The most recognizable of the 30 outlying people: an attacker who compares a release")
    assert "by chance alone in 5 % of cases. No limit is compared with this number." in sentence
    row = estimate_row(outliers, scores.estimates(outliers.text)[own])
    assert [check.reason for check in check_parts({outliers: row, measures[2]: row})] == [sentence]
    assert parts_without_limit(scores, None) == []
