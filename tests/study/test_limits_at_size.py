"""Whether limits can be shown to hold with the records of a file: predicted errors against simulations, and sentences."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.core.limit import Limit
from sdcmap.core.release_policy import DEFAULT_POLICY
from sdcmap.data.schema import KINDS
from sdcmap.risk import AttributeInference, ClosestRecord, ExactMatch, WorstLinkage
from sdcmap.study.limits_at_size import (
    LimitAtSize,
    describe_limits,
    limits_at_size,
    margin_to_pass,
    nothing_can_pass,
)
from sdcmap.study.plan import limits_of_plan
from sdcmap.study.profiles import PROFILES


def people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(11)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows), "sex": rng.choice(["f", "m"], rows),
            "income": rng.lognormal(8, 0.6, rows).round(), "region": rng.choice(list("ABCDE"), rows),
        }
    )  # fmt: skip


def prospects(rows: int, profile: str = "public-use") -> tuple[LimitAtSize, ...]:
    data = sm.read(people(rows), keys=["age", "sex", "region"], numeric="income")
    measures = PROFILES[profile].measures(data).limits
    return limits_at_size(data, [Limit(m, value) for m, value in measures.items()], DEFAULT_POLICY)


def test_membership_error_is_that_of_simulated_attacks_that_learn_nothing() -> None:
    """The mean AUC over four refits, each with its own scores that say nothing: its spread over 4,000 simulations."""
    rng, rows, refits = np.random.default_rng(1), 104, 4
    m, out = 91, 13  # each refit leaves out an eighth
    scores = rng.random((4000, refits, rows))
    ranks = scores.argsort(axis=2).argsort(axis=2)[:, :, :m].sum(axis=2)  # ranks of the members, from 0
    auc = 1 - (ranks - m * (m - 1) / 2) / (m * out)
    data = sm.read(people(rows), keys=["age", "sex", "region"], numeric="income")
    predicted = ClosestRecord(held_out=0.5, folds=refits).error_at_baseline(data)
    assert predicted == pytest.approx(float(auc.mean(axis=1).std()), rel=0.05)


def test_inference_error_is_that_of_simulated_random_guesses() -> None:
    """Each person is attacked once left out and in three refits with them, by the value of a random person."""
    rng, rows, refits = np.random.default_rng(2), 400, 4
    secret = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    data = sm.read(pl.DataFrame({"sex": rng.choice(["f", "m"], rows), "health": secret}), keys="sex", sensitive="health",
                   kinds={"health": "nominal"})  # fmt: skip
    predicted = AttributeInference("health", held_out=0.5, folds=refits).error_at_baseline(data)
    half = secret[rng.permutation(rows)[: rows // 2]]
    right = rng.choice(secret, (2000, refits, len(half))) == half
    gains = right[:, 1:].mean(axis=1) - right[:, 0]
    assert predicted == pytest.approx(float(gains.mean(axis=1).std()), rel=0.1)


@dataclass(frozen=True)
class Blind(sm.Method):
    """A synthesizer that draws every row from the population of `people`, with other random numbers for other input."""

    kinds: ClassVar[tuple[str, ...]] = KINDS
    mixes_records: ClassVar[bool] = True

    def mask(self, data: sm.Microdata, rng: np.random.Generator) -> sm.Microdata:
        of_input = np.random.default_rng([rng.integers(1 << 30), int(data.numbers("income").sum())])
        rows = of_input.integers(0, 4_000, len(data))
        drawn = sm.read(people(4_000), keys=["age", "sex", "region"], numeric="income").take(rows)
        return sm.Microdata(data.schema, drawn.columns, paired=False)


@pytest.mark.parametrize("rows", [300, 1_000])
def test_errors_of_the_few_are_those_that_are_reported_where_nothing_is_revealed(rows: int) -> None:
    """The mean reported error over six draws is between 0.65 and 1.3 times the predicted one.

    The error of ExtremeValues depends on how near the largest values are to each other: from 0.5 times.
    """
    data = sm.read(people(rows), keys=["age", "sex", "region"], numeric="income")
    measures = [
        sm.risk.Reconstruction(held_out=0.5, folds=4), sm.risk.ExtremeValues(on="income", times=20),
        sm.risk.OutlierMembership(on=data.knowable, times=20),
    ]  # fmt: skip
    released = sm.mask(data, Blind(), seed=1)
    draws = [sm.score(data, released, measures, paired=False, method=Blind(), seed=s) for s in range(6)]
    for measure in measures:
        predicted, least = measure.error_at_baseline(data), 0.5 if isinstance(measure, sm.risk.ExtremeValues) else 0.65
        stated = np.mean([draw[measure.text].se or 0.0 for draw in draws])
        assert predicted is not None and least < stated / predicted < 1.3, measure.text
        assert (
            abs(np.mean([draw[measure.text].value for draw in draws]) - (measure.baseline(data) or 0.0)) < 2 * predicted
        )


def test_error_of_surest_links_is_that_of_independent_links() -> None:
    data, measure = sm.read(people(300), keys=["age", "sex", "region"], numeric="income"), sm.risk.SurestLinks()
    study, release = (m.error_at_baseline(data) for m in (measure, measure.release_variant()))
    true = np.random.default_rng(1).random((20_000, 10, 20)) < 1 / 20  # about one true link of 20
    assert study == pytest.approx(float(true[:, 0].mean(axis=1).std()), rel=0.1)
    assert release is not None and release < float(true.mean(axis=(1, 2)).std())


def test_errors_of_exact_and_sampled_measures() -> None:
    data = sm.read(people(300), keys=["age", "sex", "region"], numeric="income")
    assert ExactMatch().error_at_baseline(data) == 0 == WorstLinkage().error_at_baseline(data)
    sampled, unknown = WorstLinkage(targets=100).error_at_baseline(data), sm.risk.SinglingOut().error_at_baseline(data)
    assert sampled is not None and 0 < sampled < 0.02 and unknown is None


def test_margin_uses_the_levels_of_the_policy() -> None:
    assert margin_to_pass(0.0, 0.0, DEFAULT_POLICY) == 0
    assert margin_to_pass(0.03, 0.04, DEFAULT_POLICY) == pytest.approx(2.33 * 0.04 + 1.5 * 0.05)
    policy: Any = SimpleNamespace(z_release=1.0, z_study=2.0)
    assert margin_to_pass(0.03, 0.04, policy) == pytest.approx(0.04 + 2.0 * 0.05)


def test_few_records_cannot_show_membership_and_the_records_needed_can() -> None:
    few = {one.kind: one for one in prospects(103)}
    membership = few["ClosestRecord"]
    assert membership.prospect == "cannot be shown" and membership.baseline + membership.margin > membership.limit
    assert {few[kind].prospect for kind in ("ExactMatch", "RecordRisk", "WorstLinkage")} == {"exact"}
    assert nothing_can_pass(list(few.values()))
    needed = membership.records_needed
    assert needed is not None and 200 < needed < 600
    assert {one.prospect for one in prospects(needed) if one.kind == "ClosestRecord"} == {"can be shown"}
    assert not nothing_can_pass(prospects(3000))


def test_limit_at_the_value_of_guessing_needs_no_number_of_records() -> None:
    data = sm.read(people(200), keys=["age", "sex", "region"], numeric="income")
    (one,) = limits_at_size(data, [Limit(ClosestRecord(), 0.5)], DEFAULT_POLICY)
    assert one.prospect == "cannot be shown" and one.records_needed is None
    assert "No number of records would do" in " ".join(describe_limits([one], data))
    (other,) = limits_at_size(data, [Limit(ClosestRecord(targets=20), 0.52)], DEFAULT_POLICY)
    assert "More people must be attacked" in " ".join(describe_limits([other], data))


def test_sentences_say_what_can_be_promised_instead() -> None:
    text = " ".join(describe_limits(prospects(103), sm.read(people(103))))
    for words in (
        "with 103 records", "ClosestRecord (limit 0.6) cannot be shown to hold", "records would be needed",
        "k-anonymity (WorstLinkage, ExactMatch, RecordRisk", "scientific-use", "is not offered yet",
        "AttributeInference and ClosestRecord were not tested", "their values are exact for this file: WorstLinkage",
    ):  # fmt: skip
        assert words in text
    large = list(describe_limits(prospects(8000), sm.read(people(8000))))
    assert len(large) == 2 and "can be shown to hold with 8,000 records: SurestLinks (limit 0.5), Attribute" in large[0]


def panel(role: str, persons: int = 100, years: int = 6) -> sm.Microdata:
    """Return persons with a record in every year; all their records are alike but for the income."""
    rng = np.random.default_rng(12)
    number = np.repeat(np.arange(persons), years)
    income = (people(persons)["income"].to_numpy()[number] * rng.uniform(0.95, 1.05, len(number))).round()
    frame = people(persons)[number].with_columns(pid=number, income=income)
    return sm.read(frame, keys=["age", "sex", "region"], numeric="income", **{role: "pid"})  # type: ignore[arg-type]


def test_records_of_one_person_count_as_one_person() -> None:
    data, records = panel("case"), panel("drop")
    for measure in (
        ClosestRecord(held_out=0.5, folds=4), sm.risk.Reconstruction(held_out=0.5, folds=4),
        AttributeInference("income", ("age", "sex", "region"), held_out=0.5, folds=4),
    ):  # fmt: skip
        of_people, of_records = measure.error_at_baseline(data), measure.error_at_baseline(records)
        assert of_people is not None and of_records is not None and of_people > 2 * of_records, measure.text
        assert measure.error_at_baseline(data, 600) == of_people
        assert measure.error_at_baseline(data, 3600) == pytest.approx(of_records, rel=0.02), measure.text
        in_households = measure.error_at_baseline(panel("household"))
        assert in_households == of_records, "the members of a household are different people"


def test_error_with_repeated_persons_is_the_stated_one_where_nothing_is_revealed() -> None:
    """By records, the predicted error would be less than half of what the measure states."""
    data, measure = panel("case"), ClosestRecord(on=["age", "sex", "region", "income"], held_out=0.5, folds=4)
    drawn = panel("case", 700, 1)

    @dataclass(frozen=True)
    class BlindPanel(sm.Method):
        kinds: ClassVar[tuple[str, ...]] = KINDS
        mixes_records: ClassVar[bool] = True

        def mask(self, data: sm.Microdata, rng: np.random.Generator) -> sm.Microdata:
            return sm.Microdata(data.schema, drawn.take(rng.integers(0, 700, len(data))).columns, paired=False)

    released = sm.mask(data, BlindPanel(), seed=1)
    draws = [
        sm.score(data, released, measure, paired=False, method=BlindPanel(), seed=s).popitem()[1] for s in range(4)
    ]
    predicted = measure.error_at_baseline(data)
    assert predicted is not None and 0.65 < np.mean([draw.se or 0.0 for draw in draws]) / predicted < 1.3


def test_sentences_count_the_people_of_a_panel() -> None:
    data = panel("case")
    text = " ".join(
        describe_limits(limits_at_size(data, [Limit(ClosestRecord(held_out=0.5, folds=4), 0.6)], DEFAULT_POLICY), data)
    )
    assert "600 records of 100 people" in text and re.search(r"About ([\d,]+) records of ([\d,]+) people would", text)


PLAN = """
risk = ["ClosestRecord"]
utility = "KolmogorovSmirnov"
limits = {ClosestRecord = 0.6, RecordRisk = 0.34}
data = {path = "people.csv", keys = ["sex", "region"], numeric = ["income"], other = ["age"]}
methods = [{type = "Noise", on = ["income"]}]
measures = [{type = "ClosestRecord", held_out = 0.5}, {type = "RecordRisk"}, {type = "KolmogorovSmirnov"}]
"""


def test_check_says_before_the_sweep_that_nothing_can_pass(tmp_path: Path) -> None:
    people(103).write_csv(tmp_path / "people.csv")
    (tmp_path / "plan.toml").write_text(PLAN)
    problems = json.loads(sdcmap("check", tmp_path / "plan.toml", "--json", code=2).stdout)["problems"]
    assert len(problems) == 1 and "a limit cannot be shown to hold for any file" in problems[0]
    plan, data = sm.Plan.read(tmp_path / "plan.toml"), sm.read(people(900), keys=["sex", "region"], numeric="income")
    (membership, record) = limits_at_size(data, limits_of_plan(plan), plan.policy)
    assert (membership.kind, membership.prospect, record.prospect) == ("ClosestRecord", "can be shown", "exact")


def test_look_says_before_the_sweep_that_nothing_can_pass(tmp_path: Path) -> None:
    people(103).write_csv(tmp_path / "people.csv")
    shown = sdcmap("look", tmp_path / "people.csv", "-o", tmp_path / "plan.toml")
    assert "No candidate can be released: with 103 records" in shown.stdout and "With so few records" in shown.stderr
