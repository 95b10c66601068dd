"""The parts of the board's report: decision, columns, questions of users, evidence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.charts.before_after import Fall, draw_before_after
from sdcmap.charts.change_charts import correlations, draw_correlations
from sdcmap.core.audience import Audience
from sdcmap.core.rule import Choice
from sdcmap.map import RUMap
from sdcmap.reports.decision import falls_of, three_sentences, without_value
from sdcmap.reports.evidence import NOT_ASSESSED, evidence, safe_harbor, snoopers, vocabulary
from sdcmap.reports.masked_columns import GONE, Given, column_rows, given_back, what_holds
from sdcmap.reports.questions import answers, worst_subgroups
from sdcmap.reports.study_rows import tried
from sdcmap.risk import RISKS
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


def test_the_decision_is_three_true_sentences(plan: sm.Plan, scores: Scores, chosen: Choice) -> None:
    what, risk, cost = three_sentences(plan, scores, chosen, 400)
    assert chosen.candidate and "400 records" in what and chosen.name in what
    falls = falls_of(plan, scores, chosen)
    worst = max(falls, key=lambda name: falls[name].after)
    own = scores.column(worst).filter(pl.col("id") == chosen.candidate)["value"][0]
    assert scores.title_of(worst) in risk and f"{100 * own:.3g}" in risk
    loss = scores.column("Hellinger").filter(pl.col("id") == chosen.candidate)["value"][0]
    assert f" {loss:.3g};" in cost and "releasing nothing would have 1" in cost
    nothing = RUMap(scores, plan.risk, plan.utility, plan.limits).choose(sm.Threshold(risk=-1.0))
    assert three_sentences(plan, scores, nothing, 400)[0].startswith("Nothing is to be released")


def test_falls_are_multiples_of_the_limit(plan: sm.Plan, scores: Scores, chosen: Choice) -> None:
    fall = falls_of(plan, scores, chosen)["ExactMatch(on='wage')"]
    whole = [method for method, kind in scores.kinds.items() if kind == "identity"]
    before = scores.column("ExactMatch(on='wage')").filter(pl.col("method").is_in(whole))["value"][0]
    assert fall.before == pytest.approx(before / 0.05) and fall.after == 0.0
    nobodys = next(row for row in scores.candidate.to_dicts() if "Synthesize" in row["method"])
    other = Choice(nobodys["id"], nobodys["method"], 0, None, None, sm.Threshold(risk=1.0), "", ())
    assert "found by looking values up on wage (ExactMatch)" in without_value(plan, scores, other)
    drawn = draw_before_after([Fall("one", float("inf"), 0.0), Fall("two", 3.0, 0.5)]).spec["data"]["values"]
    assert all(0 < row["after"] <= row["before"] <= 1.3 * 3 for row in drawn)


def test_a_column_says_whom_it_gives_away(data: sm.Microdata) -> None:
    method = sm.Noise("wage", 0.5)
    masked = sm.mask(data, method, seed=SEED)
    rows = {row.name: row for row in column_rows(data, masked, method)}
    _, counts = np.unique(data.numbers("wage"), return_counts=True)
    assert rows["wage"].done.startswith("with noise") and rows["Age"].done == "nothing"
    assert rows["wage"].alone == (Given(int((counts == 1).sum())), Given(0))
    assert rows["household"].alone is None and rows["household"].done == "numbered anew at random"
    assert rows["benefits"].together is not None and rows["benefits"].alone is not None
    before, now = rows["benefits"].together
    assert before.records >= now.records >= rows["benefits"].alone[1].records
    joined = pl.DataFrame({name: data[name] for name in ("benefits", *now.others)})
    assert now.records == int(joined.is_unique().sum())  # these columns are as they were


def test_users_of_an_unmasked_file_find_what_was_there(data: sm.Microdata) -> None:
    same = answers(data, data)
    assert all(row.after.startswith(row.before) for row in same) and "100 %" in same[0].after
    assert all(row.off == 0 for row in worst_subgroups(data, data))
    noised = sm.mask(data, sm.Noise(["wage", "total"], 2.0), seed=SEED)
    moved = next(row for row in answers(data, noised) if row.question.startswith("How much of wage"))
    assert float(moved.after) < float(moved.before)


def test_the_worst_subgroup_is_the_worst() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"g": ["a", "b", "c", "d"] * 50, "x": rng.normal(size=200)})
    data = sm.read(frame, keys=["g"], sensitive=["x"])
    values = data.numbers("x").copy()
    values[2::4] += 3.0
    moved = worst_subgroups(data, data.change(None, {"x": values}))[0]
    assert (moved.what, moved.where, moved.records) == ("mean of x", "g = c", 50)
    assert moved.off == pytest.approx(3.0 / frame["x"].std(ddof=0))  # type: ignore[operator]


def test_a_small_subgroup_is_not_named() -> None:
    frame = pl.DataFrame({"g": ["a"] * 60 + ["rare"] * 29, "x": [float(i) for i in range(89)]})
    data = sm.read(frame, keys=["g"], sensitive=["x"])
    moved = data.change(None, {"x": data.numbers("x") * 2})
    assert {row.where for row in worst_subgroups(data, moved, most=99)} == {"g = a"}


def test_evidence_speaks_in_the_terms_of_frameworks(scores: Scores, chosen: Choice) -> None:
    known = {"rule fixed first": "yes", "overrides": "none"}
    tables = {table.name.split(",")[0]: table for table in evidence(scores, chosen, known, Audience("internal", 400))}
    wp216 = {row.term: row.found for row in tables["Article 29 Working Party"].rows}
    assert any(line.startswith("found by looking values up on wage (ExactMatch): 0 ") for line in wp216["singling out"])
    assert wp216["inference"] == (NOT_ASSESSED,)
    safes = {row.term: row.found for row in tables["Five Safes"].rows}
    assert safes["safe projects"] == (NOT_ASSESSED,) and len(safes) == 5
    seen = snoopers(scores, known)
    assert "a member of a household who looks for the others" in seen.not_considered
    assert "somebody with a register of the key variables" in dict(seen.considered)


def test_the_vocabulary_names_every_measure_of_a_file() -> None:
    """All but those of decision theory, which are about one number, and of records that anybody tells were changed."""
    entries = [*vocabulary()["snooper"], *(term for table in vocabulary()["framework"] for term in table["term"])]
    named = {name for entry in entries for name in entry.get("measures", ())}
    elsewhere = {"Index", "KnownIndex", "Position", "MarkedRecords"}
    assert named | elsewhere == {cls.__name__ for cls in RISKS}


def test_safe_harbor_has_its_eighteen_classes() -> None:
    frame = pl.DataFrame({"e_mail": [f"p{i}@example.org" for i in range(60)], "x": [float(i % 7) for i in range(60)]})
    rows = {letter: found for letter, _, found in safe_harbor(sm.read(frame))}
    assert len(rows) == 18 and rows["F"] == "e_mail" and rows["A"].startswith("none found")


def test_correlations_are_numpys_where_all_is_known(data: sm.Microdata) -> None:
    names = ["wage", "interest", "total"]
    table = correlations(data, names)
    assert table == pytest.approx(np.corrcoef([data.numbers(name) for name in names]))
    constant = data.change(None, {"interest": np.zeros(len(data))})
    assert np.isnan(correlations(constant, names)[1]).all()
    assert len(draw_correlations(data, constant, names).spec["data"]["values"]) == 9 + 4


def test_rules_and_relations_are_counted_before_and_after() -> None:
    rng = np.random.default_rng(2)
    wage, rent = rng.integers(500, 4000, 300), rng.integers(0, 900, 300)
    frame = pl.DataFrame({"age": rng.integers(5, 80, 300), "wage": wage, "rent": rent, "total": wage + rent})
    frame = frame.with_columns(work=pl.when(pl.col("age") < 15).then(pl.lit("none")).otherwise(pl.lit("some")))
    data = sm.read(frame, keys=["work"], numeric=["age", "wage", "rent", "total"])
    rule = 'age < 15 -> work = "none"'
    plan = sm.Plan(sm.Noise("wage", 0.5), [sm.SmallCells(), sm.Hellinger()], edits=[rule], seed=SEED)
    swapped = sm.mask(data, sm.Swap("work", 0.1), seed=1)
    noisy = sm.mask(data, sm.Noise("wage", 0.5), seed=1)
    (edit, *relations) = what_holds(plan, data, swapped)
    broken = int(((frame["age"] < 15).to_numpy() & (swapped.frame()["work"] != "none").to_numpy()).sum())
    assert edit == (rule, "broken by nobody", f"broken by {broken}") and broken > 3
    (total,) = (row for row in what_holds(plan, data, noisy) if row.words.startswith("total ="))
    assert total.before == "100.0% of records" and float(total.after.split("%")[0]) < 30
    assert {row.after for row in relations} == {"100.0% of records"}
    cut = sm.mask(data, sm.methods.Recode("age", bins=3), seed=1)
    assert next(what_holds(plan, data, cut)).after == GONE
    assert "'wage' is masked, but unmasked" in given_back(plan, data, noisy, ["wage"])
    assert given_back(plan, data, sm.mask(data, sm.methods.Synthesize(on=data.names), seed=1), ["wage"]) == ""


def test_what_was_tried_is_counted(scores: Scores, chosen: Choice) -> None:
    lines = tried(scores, chosen, {"search": "x", "stopped": "nothing better was found."})
    assert lines[0].startswith("3 candidates were tried") and "3 ok" in lines[0]
    assert lines[1] == "The search ended: nothing better was found." and "one draw was looked at" in lines[2]
    assert "40 random draws" in tried(scores, replace(chosen, searched=40), {})[1]
