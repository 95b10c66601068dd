"""Intruders with stated priors and losses, categories and identities as targets: known answers, laws, bad input.

Known answers: the notes on Trottini (2001), scenarios (ii) and (iii), and Duncan and Lambert (1986); the others are
computed here with numpy alone.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.measure import Estimate, Measure
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.core.value import decode, parse
from sdcmap.data.microdata import Microdata
from sdcmap.risk._category_guesses import agency_loss, intruder_loss
from sdcmap.study.public_view import PublicView
from sdcmap.testing import check_measure
from sdcmap.theory.decision import Discrete, Prior, ZeroOne

RNG = np.random.default_rng(0)  # none of these measures draws
DISTINCT = sm.risk.NearestRecord("standardized", on=("a",), one_to_one=True)  # `a` is unique and not masked


def masked(data: Microdata, method: Method, seed: int = 1) -> Microdata:
    return method.apply(data, Stream.of_seed(seed, "test"))


def score(measure: Measure, data: Microdata, method: Method, seed: int = 1) -> Estimate:
    return measure.for_informed_attacker(method).score(data, masked(data, method, seed), RNG)


@pytest.fixture(scope="module")
def patients() -> Microdata:
    """200 records: a unique number, a sex, a diagnosis with four categories, and an amount."""
    rng = np.random.default_rng(4)
    diagnosis = rng.choice(["cold", "flu", "hiv", "well"], 200, p=[0.2, 0.15, 0.05, 0.6])
    frame = pl.DataFrame(
        {
            "a": np.arange(200.0),
            "sex": rng.choice(["f", "m"], 200),
            "diagnosis": diagnosis,
            "cost": rng.normal(10, 2, 200),
        }
    )
    return sm.read(frame, numeric=["a", "cost"], keys=["sex", "diagnosis"])


def shares_of(data: Microdata) -> tuple[np.ndarray, np.ndarray]:
    """Return the code of each diagnosis in alphabetical order, and the share of each."""
    words = np.array(data.frame()["diagnosis"].to_list())
    code = np.searchsorted(np.unique(words), words)
    return code, np.bincount(code) / len(code)


# ---- stated priors of numbers ---------------------------------------------------------------------------------
def noise_pair(l2: float) -> tuple[Microdata, Microdata, Method]:
    """Return a file whose largest value is 2.2 and was released as 2.5 with noise of variance l2."""
    x = np.array([2.2, 0.3, -1.0, 0.1, -0.4, 0.9])
    data = sm.read(pl.DataFrame({"a": np.arange(6.0), "x": x}), numeric="all")
    method = sm.Noise(on="x", variance=l2 / float(x.var(ddof=1)))
    return data, data.change(None, {"x": np.array([2.5, 0.3, -1.0, 0.1, -0.4, 0.9])}), method


PAPER: dict[str, Any] = {
    "on": "x", "scenario": "noise", "targets": "maximum", "divergence": "kl", "scale": "raw", "measured": 0.01,
}  # fmt: skip


@pytest.mark.parametrize(("l2", "iek", "rdh"), [(0.5, -1.704946, -0.333333), (2.0, -3.018186, -0.666667)])
def test_stated_prior_gives_golden_values_on_file(l2: float, iek: float, rdh: float) -> None:
    """Intruder's prior N(0, 1), y = 2.5, agency N(2.2, 0.01); the file's own moments are not used."""
    data, released, method = noise_pair(l2)
    for kind, golden in ((sm.risk.IntruderKnowledge, iek), (sm.risk.DiscreditHarm, rdh)):
        measure = kind(**PAPER, prior=Prior(mean=0, variance=1), method=method)
        assert measure.score(data, released, RNG).value == pytest.approx(golden, abs=5e-7)
        assert kind(**PAPER, method=method).score(data, released, RNG).value != pytest.approx(golden, abs=1e-3)
    before = sm.risk.IntruderKnowledge(**PAPER, prior=Prior(mean=0, variance=1)).baseline(data)
    assert before == pytest.approx(-4.237585, abs=5e-7)  # the prior of the notes


def test_class_of_priors_gives_golden_robust_risk_on_file() -> None:
    """Means in [-1, 1], variances in [0.5, 4], l2 = 2: largest RDH -0.4, largest IEK -1.917338 on 41 x 41 points.

    The agency's variance is stated as a share of the prior's, so IEK is computed here with that share for each prior.
    """
    data, released, method = noise_pair(2.0)
    priors = Prior(mean=(-1, 1), variance=(0.5, 4), points=20)
    harm = sm.risk.DiscreditHarm(**PAPER, prior=priors, method=method).score(data, released, RNG)
    assert harm.value == pytest.approx(-0.4, abs=1e-9) and len([n for n in harm.parts if n.startswith("case_")]) == 400
    iek = sm.risk.IntruderKnowledge(**PAPER, prior=priors, method=method).score(data, released, RNG)
    m, v = (part.ravel() for part in np.meshgrid(np.linspace(-1, 1, 20), np.geomspace(0.5, 4, 20), indexing="ij"))
    mean, spread, own = m + v / (v + 2) * (2.5 - m), 2 * v / (v + 2), 0.01 * v
    divergence = 0.5 * (own / spread - 1 - np.log(own / spread) + (2.2 - mean) ** 2 / spread)
    assert iek.value == pytest.approx(float((-divergence - own).max()), rel=1e-9)
    fixed = 0.5 * (0.01 / spread - 1 - np.log(0.01 / spread) + (2.2 - mean) ** 2 / spread) + 0.01
    assert float((-fixed).max()) == pytest.approx(-1.917338, abs=0.02)  # the same grid, coarser than 41 x 41


def test_prior_from_file_and_counts(patients: Microdata, tmp_path: Path) -> None:
    """A file with weights, counts and a stated distribution of the same moments are the same prior."""
    path = tmp_path / "earlier.csv"
    pl.DataFrame({"cost": [8.0, 12.0, 14.0], "w": [2.0, 1.0, 1.0]}).write_csv(path)
    stated = [
        Prior(population=str(path), weight="w"), Prior(categories=["8", "12", "14"], counts=[2, 1, 1]),
        Prior(mean=10.5, variance=6.75),
    ]  # fmt: skip
    method = sm.Noise(on="cost", variance=0.5)
    values = [
        score(sm.risk.IntruderKnowledge(on="cost", attack=DISTINCT, prior=one), patients, method).value
        for one in stated
    ]
    assert values == pytest.approx([values[0]] * 3)
    default = score(sm.risk.IntruderKnowledge(on="cost", attack=DISTINCT), patients, method).value
    assert abs(values[0] - default) > 0.01
    pl.DataFrame({"diagnosis": ["hiv", "hiv", "rare", "well"]}).write_csv(path)
    words = [Prior(population=str(path)), Prior(categories=["hiv", "rare", "well"], counts=[50, 25, 25])]
    both = [
        score(sm.risk.IntruderKnowledge(on="diagnosis", attack=DISTINCT, prior=one, loss="brier"), patients, method)
        for one in words
    ]
    assert both[0].value == pytest.approx(both[1].value)


# ---- losses of a number ---------------------------------------------------------------------------------------
def test_losses_of_normal_belief_match_closed_forms(patients: Microdata) -> None:
    """Noise with the record known: N(m, v), so U is sqrt(2 v/pi) or 2 Phi(-w/sqrt v), Duncan and Lambert (1986).

    101 and 15 points stand for a normal: within 2 % of its exact loss.
    """
    from scipy.special import ndtr

    method, s2 = sm.Noise(on="cost", variance=0.4), float(patients["cost"].var())
    l2 = 0.4 * float(patients["cost"].var(ddof=1))
    v = s2 * l2 / (s2 + l2)
    how: dict[str, Any] = {"on": "cost", "scenario": "noise", "scale": "raw", "width": 1.5}
    exact = {"absolute": math.sqrt(2 * v / math.pi), "zero-one": 2 * float(ndtr(-1.5 / math.sqrt(v))), "quadratic": v}
    for loss, value in exact.items():
        result = score(sm.risk.DiscreditHarm(**how, loss=loss), patients, method)
        assert -result.value == pytest.approx(value, rel=0.03)
    # the agency's view: the mean loss of the guess m about the true value
    y = masked(patients, method)["cost"]
    guess = patients["cost"].mean() + s2 / (s2 + l2) * (y - patients["cost"].mean())
    error = np.abs(guess - patients["cost"])
    truth = {"absolute": error.mean(), "zero-one": (error > 1.5).mean(), "bounded": np.minimum(error**2, 2.25).mean()}
    for loss, value in truth.items():
        result = score(sm.risk.IntruderKnowledge(**how, loss=loss), patients, method)
        assert -result.value == pytest.approx(value, abs=0.02 * value + 0.01)


def test_losses_with_links_agree_with_known_record(patients: Microdata) -> None:
    """Every link is certain, so both scenarios have the same mixture, and unmasked values leave no loss."""
    for loss in ("absolute", "zero-one", "bounded"):
        for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
            linked = kind(on="cost", attack=DISTINCT, loss=loss, width=1.0)
            assert score(linked, patients, sm.Identity()).value == pytest.approx(0, abs=1e-12)
            method = sm.Noise(on="cost", variance=0.4)
            known = kind(on="cost", scenario="noise", loss=loss, width=1.0)
            assert score(linked, patients, method).value == pytest.approx(
                score(known, patients, method).value, abs=0.02
            )
            assert linked.baseline(patients) is not None
    assert sm.risk.DiscreditHarm(on="cost", attack=DISTINCT, loss="absolute").baseline(patients) == pytest.approx(-1)


# ---- categories -----------------------------------------------------------------------------------------------
def test_category_losses_match_theory_and_hand() -> None:
    """(.25 x 4) -> (.7, .1, .1, .1) under 0-1 loss: .75, .3, gain .45, relative .6 (notes, Duncan and Lambert)."""
    before, after = np.full((1, 4), 0.25), np.array([[0.7, 0.1, 0.1, 0.1]])
    assert [float(intruder_loss("zero-one", p)[0]) for p in (before, after)] == pytest.approx([0.75, 0.3])
    assert float(intruder_loss("zero-one", after)[0]) == pytest.approx(
        ZeroOne().uncertainty(Discrete(range(4), after[0]))
    )
    assert float(intruder_loss("brier", after)[0]) == pytest.approx(1 - 0.49 - 0.03)
    assert float(intruder_loss("log", before)[0]) == pytest.approx(math.log(4))
    assert agency_loss("zero-one", before, np.array([2]))[0] == pytest.approx(0.75)  # one of four equal guesses
    assert agency_loss("brier", after, np.array([0]))[0] == pytest.approx(0.3**2 + 3 * 0.1**2)
    assert agency_loss("log", after, np.array([1]))[0] == pytest.approx(-math.log(0.1))


def test_unmasked_category_is_known_and_nothing_leaves_prior(patients: Microdata) -> None:
    code, share = shares_of(patients)
    for loss in ("zero-one", "log", "brier"):
        for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
            measure = kind(on="diagnosis", attack=DISTINCT, loss=loss)
            result = score(measure, patients, sm.Identity())
            assert result.value == pytest.approx(0, abs=1e-12) and result.parts["relative_gain"] == pytest.approx(1)
    iek = sm.risk.IntruderKnowledge(on="diagnosis", attack=DISTINCT, scale="raw")
    assert iek.baseline(patients) == pytest.approx(-(code != share.argmax()).mean())
    log = sm.risk.IntruderKnowledge(on="diagnosis", attack=DISTINCT, scale="raw", loss="log")
    assert log.baseline(patients) == pytest.approx(np.log(share[code]).mean())


def test_equal_records_share_one_belief_about_category(patients: Microdata) -> None:
    """The intruder knows the sex only: the belief is the distribution of the diagnosis in each sex."""
    attack = sm.risk.NearestRecord("gower", on=("sex",))
    code, _ = shares_of(patients)
    sex = np.array(patients.frame()["sex"].to_list())
    by_sex = {one: np.bincount(code[sex == one], minlength=4) / (sex == one).sum() for one in ("f", "m")}
    p = np.array([by_sex[one] for one in sex])
    expected = {"zero-one": (p.argmax(axis=1) != code).mean(), "brier": 1 - (p**2).sum(axis=1).mean()}
    for loss, value in expected.items():
        result = score(
            sm.risk.IntruderKnowledge(on="diagnosis", attack=attack, scale="raw", loss=loss), patients, sm.Identity()
        )
        assert -result.value == pytest.approx(value, rel=1e-4)  # links of both sexes are calibrated together
    rdh = score(sm.risk.DiscreditHarm(on="diagnosis", attack=attack, scale="raw"), patients, sm.Identity())
    assert -rdh.value == pytest.approx((1 - p.max(axis=1)).mean(), rel=2e-3)


def test_randomized_category_is_believed_by_bayes_rule(patients: Microdata) -> None:
    """PRAM with a stated matrix: posterior = prior times column of the matrix; computed here with numpy alone."""
    move = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.2, 0.2, 0.5, 0.1], [0.1, 0.1, 0.1, 0.7]])
    method = sm.PRAM(on="diagnosis", matrix=move)
    released = masked(patients, method)
    code, share = shares_of(patients)
    words = np.unique(patients.frame()["diagnosis"].to_list())
    seen = np.searchsorted(words, released.frame()["diagnosis"].to_list())
    assert (seen != code).mean() > 0.2
    stated = Prior(categories=words.tolist(), counts=[1, 1, 5, 3])
    for prior, vector in (((), share), ((stated,), np.array([1, 1, 5, 3]) / 10)):
        posterior = vector[None, :] * move.T[seen]
        posterior /= posterior.sum(axis=1, keepdims=True)
        right = posterior[np.arange(200), code]
        expected = {
            "brier": ((posterior**2).sum(axis=1) - 2 * right + 1).mean(), "log": -np.log(right).mean(),
            "zero-one": (posterior.argmax(axis=1) != code).mean(),
        }  # fmt: skip
        for loss, value in expected.items():
            measure = sm.risk.IntruderKnowledge(on="diagnosis", attack=DISTINCT, scale="raw", loss=loss, prior=prior)
            assert -score(measure, patients, method).value == pytest.approx(value)
        own = sm.risk.DiscreditHarm(on="diagnosis", attack=DISTINCT, scale="raw", prior=prior)
        assert -score(own, patients, method).value == pytest.approx((1 - posterior.max(axis=1)).mean())


def test_merged_category_leaves_prior_among_its_sources(patients: Microdata) -> None:
    method = sm.Recode(on="diagnosis", merge=[["cold", "flu"]], labels=["infection"])
    code, share = shares_of(patients)
    result = score(sm.risk.DiscreditHarm(on="diagnosis", attack=DISTINCT, scale="raw"), patients, method)
    least = min(share[0], share[1]) / (share[0] + share[1])  # cold or flu
    assert -result.value == pytest.approx(least * (code < 2).mean())


# ---- identity -------------------------------------------------------------------------------------------------
def test_identity_among_equal_records() -> None:
    """Two groups of three equal records, unmasked: one guess in three is correct."""
    data = sm.read(pl.DataFrame({"k": list("bbbccc"), "x": np.arange(6.0)}), keys=["k"], numeric=["x"])
    attack = sm.risk.NearestRecord("gower", on=("k",))
    for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
        result = score(kind(attack=attack), data, sm.Identity())
        assert result.value == pytest.approx(-(1 - 1 / 3) / (1 - 1 / 6))
        assert kind(attack=attack).baseline(data) == pytest.approx(-1)
        raw = {"log": math.log(3), "brier": 2 / 3}
        for loss, value in raw.items():
            assert -score(kind(attack=attack, loss=loss, scale="raw"), data, sm.Identity()).value == pytest.approx(
                value
            )
    sure = sm.risk.IntruderKnowledge(attack=sm.risk.NearestRecord("standardized", on=("x",)))
    assert score(sure, data, sm.Identity()).value == pytest.approx(0, abs=1e-12)
    assert "identity" in sure.title


def test_identity_knowledge_is_rate_of_correct_links(patients: Microdata) -> None:
    """IEK of the best guess, one-to-one links: 1 - the share of correct links, up to ties; more noise means less."""
    attack = sm.risk.NearestRecord("standardized", on=("a", "cost"), one_to_one=True)
    values = []
    for variance in (0.0001, 0.01, 0.3):
        method = sm.Noise(on=("a", "cost"), variance=variance)
        rate = score(attack, patients, method).value
        result = score(sm.risk.IntruderKnowledge(attack=attack, scale="raw"), patients, method)
        values.append(result.value)
        assert 1 + result.value <= rate + 1 / 200  # without a link, one record of 200 is guessed
        assert 1 + result.value >= rate - 0.02
    assert values == sorted(values, reverse=True)


def test_identity_of_records_that_were_not_released(patients: Microdata) -> None:
    """A sample of half: nobody outside it can be identified, whatever the intruder claims."""
    attack = sm.risk.NearestRecord("standardized", on=("a",), inclusion=0.5)
    method = sm.methods.Sample(rate=0.5)
    result = score(sm.risk.IntruderKnowledge(attack=attack, scale="raw"), patients, method)
    assert -result.value == pytest.approx(0.5)  # everybody inside is found


# ---- classes, gains, pooling ----------------------------------------------------------------------------------
def test_class_of_priors_and_losses_takes_the_worst(patients: Microdata) -> None:
    method = sm.PRAM(on="diagnosis", stay=0.6)
    priors = [Prior(categories=["cold", "flu", "hiv", "well"], counts=c) for c in ([1, 1, 1, 1], [0, 0, 1, 9])]
    for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
        single = [
            score(kind(on="diagnosis", attack=DISTINCT, prior=prior, loss=loss), patients, method).value
            for prior in priors
            for loss in ("zero-one", "brier")
        ]
        both = score(kind(on="diagnosis", attack=DISTINCT, prior=priors, loss=["zero-one", "brier"]), patients, method)
        assert both.value == max(single)
        assert [both.parts[f"case_{number}"] for number in range(1, 5)] == pytest.approx(single)


def test_pooled_class_is_worst_mean_and_not_mean_of_worst() -> None:
    draws = [Estimate(value=-0.1, parts={"case_1": -0.1, "case_2": -0.9, "gain": 0.9}),
             Estimate(value=-0.2, parts={"case_1": -0.8, "case_2": -0.2, "gain": 0.8})]  # fmt: skip
    pool = sm.risk.DiscreditHarm(on="x").pool
    pooled = pool(draws)
    assert pooled.value == pytest.approx(-0.45) and pooled.parts["case_2"] == pytest.approx(-0.55)
    assert pooled.parts["gain"] == pytest.approx(0.85) and pooled.se == pytest.approx(0.35)
    assert sm.utility.SocietyUtility(on="x").pool(draws).value == pytest.approx(-0.55)
    plain = pool([Estimate(value=-0.1), Estimate(value=-0.3)])
    assert plain.value == pytest.approx(-0.2) and plain.se == pytest.approx(0.1)


def test_gains_are_parts(patients: Microdata) -> None:
    """U(prior) - U(posterior), and as a share: 1 + RDH where the value is a share of the prior."""
    method = sm.Noise(on="cost", variance=0.5)
    raw = score(sm.risk.DiscreditHarm(on="cost", attack=DISTINCT, scale="raw"), patients, method)
    assert raw.parts["gain"] == pytest.approx(float(patients["cost"].var()) + raw.value)
    share = score(sm.risk.DiscreditHarm(on="cost", attack=DISTINCT), patients, method)
    assert share.parts["relative_gain"] == pytest.approx(1 + share.value) == pytest.approx(raw.parts["relative_gain"])


@pytest.mark.parametrize(
    "measure",
    [
        sm.risk.IntruderKnowledge(on="sex", attack=sm.risk.NearestRecord("gower"), loss=["zero-one", "brier"]),
        sm.risk.DiscreditHarm(on="wage", loss=["absolute", "zero-one"], width=2.0),
        sm.risk.IntruderKnowledge(),
        sm.risk.DiscreditHarm(on="wage", prior=[Prior(mean=(1, 20), variance=9, points=2)]),
    ],
    ids=str,
)
def test_new_forms_pass_contract_checks(measure: Measure) -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"sex": rng.integers(1, 3, 40).astype(str), "wage": np.round(rng.lognormal(3, 1, 40)),
         "rent": rng.integers(-3, 4, 40).astype(float)}
    )  # fmt: skip
    data = sm.read(frame, keys=["sex"], numeric=["wage", "rent"])
    check_measure(measure, data, [sm.Noise(on=["wage", "rent"]), sm.Swap(on="sex", rate=0.2)])
    assert decode(measure.spec(), Measure) == measure == parse(measure.text, Measure)


# ---- bad input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "state one of"),
        ({"mean": 1}, "stated together"),
        ({"mean": 1, "variance": 0}, "variance must be above 0"),
        ({"mean": (2, 1), "variance": 1}, "first number is not above"),
        ({"categories": ["a", "b"], "counts": [1]}, "one of .counts for each"),
        ({"categories": ["a"], "counts": [0]}, "sum above 0"),
        ({"mean": 1, "variance": 1, "weight": "w"}, "column of .population"),
        ({"mean": 1, "variance": 1, "population": "x.csv"}, "state one of"),
    ],
)
def test_invalid_priors_are_rejected(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        Prior(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"on": "c", "loss": ["log", "log"]}, "each loss once"),
        ({"on": "c", "loss": ["quadratic", "absolute"], "scale": "raw"}, "different units"),
        ({"loss": "log", "targets": "maximum"}, "wants the identity"),
        ({"on": "c", "loss": "absolute", "divergence": "kl", "scale": "raw", "measured": 0.1}, "quadratic"),
    ],
)
def test_incompatible_fields_are_rejected(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        sm.risk.IntruderKnowledge(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"on": "cost", "loss": "log"}, "not defined for a number"),
        ({"on": "cost", "loss": "zero-one"}, "need a .width above 0"),
        ({"on": "diagnosis", "loss": "absolute"}, "not defined for a category"),
        ({"loss": "quadratic"}, "not defined for an identity"),
        ({"on": "diagnosis", "targets": "maximum"}, "need a number"),
        ({"on": "diagnosis", "prior": Prior(mean=1, variance=1)}, "state categories and counts"),
        ({"on": "cost", "prior": Prior(categories=["a", "b"], counts=[1, 1])}, "must be numbers"),
    ],
)
def test_unfit_target_is_rejected_with_reason(patients: Microdata, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.SchemaError, match=words):
        score(sm.risk.IntruderKnowledge(attack=DISTINCT, **fields), patients, sm.Identity())


def test_prior_file_problems_name_file_and_no_value(patients: Microdata, tmp_path: Path) -> None:
    path = tmp_path / "earlier.csv"
    pl.DataFrame({"cost": [8.0, 8.0], "w": [1.0, -77.0]}).write_csv(path)
    for prior, words in (
        (Prior(population=str(path)), "does not vary"), (Prior(population=str(path), weight="v"), "no column 'v'"),
        (Prior(population=str(path), weight="w"), "weights of at least 0"),
    ):  # fmt: skip
        with pytest.raises(sm.errors.SchemaError, match=words) as caught:
            score(sm.risk.IntruderKnowledge(on="cost", attack=DISTINCT, prior=prior), patients, sm.Identity())
        assert "77" not in str(caught.value)
    with pytest.raises(sm.errors.PlanError, match="there is no file"):
        Prior(population=str(tmp_path / "none.csv"))


def test_public_view_hides_file_and_rare_categories_of_prior(patients: Microdata, tmp_path: Path) -> None:
    """The rule names its measures as the public plan does."""
    path = tmp_path / "secret-survey.csv"
    pl.DataFrame({"cost": [8.0, 12.0]}).write_csv(path)
    rare = Prior(categories=["a village", "well"], counts=[1, 9])
    intruder: dict[str, Any] = {"on": "cost", "attack": DISTINCT, "prior": Prior(population=str(path))}
    other: dict[str, Any] = {"on": "diagnosis", "attack": DISTINCT, "prior": rare}
    iek, rdh = (
        [kind(**one) for one in (intruder, other)] for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm)
    )
    sek, dus = sm.utility.SocietyKnowledge(on="cost"), sm.utility.SocietyUtility(on="cost")
    rule = sm.GlobalCriterion(iek=iek, rdh=rdh, sek=sek, dus=dus, agency_limit=-0.5, intruder_limit=-0.5)
    plan = sm.Plan(sm.Noise(on="cost"), [*iek, *rdh, sek, dus], rule=rule)
    public = PublicView.of(plan, patients).plan
    text = public.toml()
    assert "secret-survey" not in text and "a village" not in text and "well" in text
    assert public.rule is not None and {*public.rule.measures} == {measure.text for measure in public.measures}
