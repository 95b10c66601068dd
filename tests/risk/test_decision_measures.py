"""The four numbers of decision theory as measures of real releases: closed forms, limits, laws, the choice, bad input.

Closed forms come from sdcmap.theory.decision, whose own numbers tests/known/test_trottini2001.py holds to the paper.
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
from sdcmap.errors import Undefined
from sdcmap.kernels.statistics.beliefs import normal_divergence, normal_posterior, posterior_moments
from sdcmap.risk._beliefs import beliefs_from_records
from sdcmap.risk.linkage.cost_models import link_to_cheapest, link_to_known
from sdcmap.testing import check_measure
from sdcmap.theory.decision import Discrete, KullbackLeibler, NoiseScenario, Normal, global_risk, global_utility
from sdcmap.theory.decision import normal_posterior as in_theory
from stored_numbers import changed_lines

NAMES = ("a", "b", "c")
NEAREST = sm.risk.NearestRecord("standardized", one_to_one=True)
SLOPE: dict[str, Any] = {"on": "a", "of": "coefficient", "formula": "b ~ a", "prior_records": 50}
INTRUDER: dict[str, Any] = {"on": "c", "attack": NEAREST}
RNG = np.random.default_rng(0)  # none of these measures draws


@pytest.fixture(scope="module")
def data() -> Microdata:
    z = np.random.default_rng(1).standard_normal((300, 3))
    z[:, 1] = 0.6 * z[:, 0] + 0.8 * z[:, 1]
    z[:, 2] = 0.5 * z[:, 0] + 0.8 * z[:, 2]
    return sm.read(pl.DataFrame(100 + 20 * z, schema=list(NAMES)), numeric="all")


def masked(data: Microdata, method: Method, seed: int = 1) -> Microdata:
    return method.apply(data, Stream.of_seed(seed, "test"))


def score(measure: Measure, data: Microdata, method: Method, seed: int = 1) -> Estimate:
    return measure.for_informed_attacker(method).score(data, masked(data, method, seed), RNG)


# ---- scenario (i): noise and normal models --------------------------------------------------------------------
def test_normal_posterior_matches_theory_package() -> None:
    mean, variance = normal_posterior((1.0, 4.0), np.array([2.5, -3.0]), np.array([0.5, 2.0]))
    theory = in_theory(Normal(1, 4), [2.5, -3.0], [0.5, 2.0])
    assert mean == pytest.approx(theory.mean) and variance == pytest.approx(theory.variance)
    exact = normal_posterior((1.0, 4.0), np.array([7.0]), np.array([0.0]))
    assert [float(one[0]) for one in exact] == [7.0, 0.0]


@pytest.mark.parametrize("how", [{}, {"divergence": "kl", "scale": "raw", "measured": 0.01}], ids=["loss", "kl"])
def test_noise_scenario_matches_closed_form_on_average(data: Microdata, how: dict[str, Any]) -> None:
    """IEK of the record of rank .8 over 300 seeds against `NoiseScenario.expected_risk`, within 4 standard errors; RDH
    has no noise in it."""
    method = sm.Noise(on="c", variance=0.5)
    x = data["c"]
    value, mean, s2 = float(np.sort(x)[239]), float(x.mean()), float(x.var())
    scenario = NoiseScenario(n=300, variance=s2, noise_variance=0.5 * float(x.var(ddof=1)))
    prior = Normal(mean, s2)
    if how:
        expected = scenario.expected_risk(Normal(value, 0.01 * s2), prior, value, divergence=KullbackLeibler())
    else:  # a known value is no density; quadrature of its own
        nodes, masses = np.polynomial.hermite_e.hermegauss(40)
        seen = scenario.intruder(prior, value + np.sqrt(scenario.noise_variance) * nodes)
        pair = global_risk(Discrete([value], [1]), seen, prior=prior)
        expected = tuple(float(masses @ np.broadcast_to(one, 40) / masses.sum()) for one in pair)
    measure = sm.risk.IntruderKnowledge(on="c", scenario="noise", targets=0.8, **how)
    result = [score(measure, data, method, seed).value for seed in range(300)]
    assert np.mean(result) == pytest.approx(expected[0], abs=4 * float(np.std(result)) / math.sqrt(300))
    harm = sm.risk.DiscreditHarm(on="c", scenario="noise", targets=0.8, **how)
    assert score(harm, data, method).value == pytest.approx(expected[1])


def test_society_measures_match_closed_form_on_average(data: Microdata) -> None:
    """A flat prior makes the normal posterior that of the bootstrap, except for n + 1 instead of n."""
    method = sm.Noise(on="c", variance=0.5)
    x = data["c"]
    s2 = float(x.var())
    scenario = NoiseScenario(n=301, variance=s2, noise_variance=0.5 * s2)
    vague = Normal(0, 1e9 * s2)
    agency = scenario.agency_of_mean(vague, float(x.mean()))
    expected = scenario.expected_utility(agency, vague, float(x.mean()))
    for measure, target in zip((sm.utility.SocietyKnowledge, sm.utility.SocietyUtility), expected, strict=True):
        result = [score(measure(on="c", scale="raw"), data, method, seed).value for seed in range(300)]
        band = 4 * float(np.std(result)) / math.sqrt(300)
        assert np.mean(result) == pytest.approx(target, abs=band)
        assert band < abs(target) / 4


def test_noise_scenario_needs_plain_noise_and_method(data: Microdata) -> None:
    measure = sm.risk.IntruderKnowledge(on="c", scenario="noise")
    with pytest.raises(sm.errors.Undefined, match="not plain additive noise"):
        score(measure, data, sm.RankSwap(on="c", p=0.1))
    with pytest.raises(sm.errors.Undefined, match="method of the file is not known"):
        measure.score(data, masked(data, sm.Noise(on="c")), RNG)
    assert score(measure, data, sm.Noise(on="a")).value == 0  # the variable itself is not masked


def test_noise_variance_per_stratum_and_after_rescaling() -> None:
    rng = np.random.default_rng(3)
    wide = np.repeat([1.0, 10.0], 400)
    frame = pl.DataFrame({"x": wide * rng.standard_normal(800), "g": np.repeat(["n", "w"], 400)})
    data = sm.read(frame, numeric=["x"], keys=["g"])
    harm = sm.risk.DiscreditHarm(on="x", scenario="noise")
    for method in (
        sm.Noise(on="x", variance=0.5, within="g"),
        sm.Noise(on="x", variance=0.5, within="g", rescale=True),
    ):
        each = harm.for_informed_attacker(method).records(data, masked(data, method))
        l2 = 0.5 * np.array([data["x"][:400].var(ddof=1), data["x"][400:].var(ddof=1)])
        assert each[[0, 400]] == pytest.approx(-l2 / (l2 + data["x"].var()))
        linked = sm.risk.DiscreditHarm(on="x", attack=sm.risk.NearestRecord("gower")).for_informed_attacker(method)
        assert np.isfinite(linked.score(data, masked(data, method), RNG).value)


# ---- scenario (ii): links and likelihoods ---------------------------------------------------------------------
def test_grid_posterior_matches_conjugate_posterior() -> None:
    """From a noise of one prior standard deviation down to 1e-5, and far out in the tails."""
    prior = (10.0, 4.0)
    seen = np.array([10.0, 13.0, 60.0])
    for variance in (4.0, 0.1, 4e-10):
        mean, spread = posterior_moments(
            lambda s, v=variance: -0.5 * (s - seen[:, None]) ** 2 / v, seen, prior, (-10, 30)
        )
        exact = normal_posterior(prior, seen, np.full(3, variance))
        assert mean == pytest.approx(exact[0], rel=1e-6) and spread == pytest.approx(exact[1], rel=2e-3)


def test_rank_swap_posterior_is_truncated_prior(data: Microdata) -> None:
    """A rank swap of p implies that the value lies between two values of the file: the normal prior, truncated there."""
    from scipy.stats import truncnorm

    method = sm.RankSwap(on="c", p=0.1)
    x, file = np.sort(data["c"]), masked(data, method)
    prior = (float(x.mean()), float(x.var()))
    center, variance = beliefs_from_records(data, file, "c", method, prior)
    row = int(np.flatnonzero(file["c"] == x[150])[0])
    ends = [(float(one) - prior[0]) / math.sqrt(prior[1]) for one in (x[150 - 29], x[150 + 29])]  # |rank - rank| < 30
    cut = truncnorm(*ends, loc=prior[0], scale=math.sqrt(prior[1]))
    assert center[row] + prior[0] == pytest.approx(cut.mean(), abs=0.2)
    assert variance[row] == pytest.approx(cut.var(), rel=0.1)


def test_certain_links_match_noise_scenario(data: Microdata) -> None:
    """The known variables are not masked, so every link is correct, and both scenarios agree."""
    for method in (sm.Noise(on="c", variance=0.3), sm.Noise(on="c", variance=0.3, correlated=True, rescale=True)):
        file = masked(data, method)
        for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
            linked, known = (
                kind(**INTRUDER).for_informed_attacker(method),
                kind(on="c", scenario="noise").for_informed_attacker(method),
            )
            assert linked.records(data, file) == pytest.approx(known.records(data, file), rel=5e-3, abs=5e-4)


def test_identity_gives_full_knowledge_and_no_release_the_prior(data: Microdata) -> None:
    for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
        measure = kind(**INTRUDER)
        result = score(measure, data, sm.Identity())
        assert result.value == pytest.approx(0, abs=1e-12) and result.parts["linked"] == 1
        assert measure.baseline(data) == pytest.approx(-1)
    far = sm.risk.IntruderKnowledge(on="c", targets="maximum", attack=NEAREST)
    x = data["c"]
    assert far.baseline(data) == pytest.approx(-((x.max() - x.mean()) ** 2) / x.var())
    assert sm.utility.SocietyKnowledge(on="c").baseline(data) == pytest.approx(-1 - 1 / 301)
    assert sm.utility.SocietyUtility(on="c").baseline(data) == -1


def test_inclusion_probability_mixes_in_prior(data: Microdata) -> None:
    """With inclusion q and a certain link: mean q x + (1 - q) mu, so IEK = -(1 - q)^2 in the mean."""
    attack = sm.risk.NearestRecord("standardized", one_to_one=True, inclusion=0.6)
    result = score(sm.risk.IntruderKnowledge(on="c", attack=attack), data, sm.Identity())
    assert result.value == pytest.approx(-(0.4**2)) and result.parts["linked"] == pytest.approx(0.6)
    own = score(
        sm.risk.DiscreditHarm(on="c", attack=attack), data, sm.Identity()
    ).value  # q(1 - q)(x - mu)^2 + (1 - q) s2
    assert own == pytest.approx(-(0.6 * 0.4 + 0.4))


def test_equal_records_share_one_belief() -> None:
    """Two persons with equal known values, unmasked: the belief is the mean of both, with half of their spread."""
    frame = pl.DataFrame({"sex": ["f", "f", "m", "m"], "wage": [10.0, 20.0, 40.0, 50.0]})
    data = sm.read(frame, keys=["sex"], numeric=["wage"])
    measure = sm.risk.IntruderKnowledge(on="wage", attack=sm.risk.NearestRecord("gower"), scale="raw")
    assert score(measure, data, sm.Identity()).value == pytest.approx(-25)
    harm = sm.risk.DiscreditHarm(on="wage", attack=sm.risk.NearestRecord("gower"), scale="raw")
    assert score(harm, data, sm.Identity()).value == pytest.approx(-25)


def test_more_noise_means_less_knowledge(data: Microdata) -> None:
    """On average over 8 seeds, for both risks and for both utilities of a naive user."""
    measures = [sm.risk.IntruderKnowledge(**INTRUDER), sm.risk.DiscreditHarm(**INTRUDER)]
    measures += [sm.utility.SocietyKnowledge(**SLOPE), sm.utility.SocietyUtility(on="c")]  # type: ignore[list-item]
    for measure in measures:
        rising = [
            np.mean([score(measure, data, sm.Noise(on=NAMES, variance=v), seed).value for seed in range(8)])
            for v in (0.0001, 0.003, 0.03, 0.5)
        ]
        assert rising == sorted(rising, reverse=True)


def test_people_outside_archive_keep_prior(data: Microdata, tmp_path: Path) -> None:
    """The belief about people who are not in the attacker's file does not change."""
    rows = [0, 1, 2, None]
    values = {name: [*data[name][:3], 100.0] for name in ("a", "b")}
    pl.DataFrame({**values, "row": pl.Series(rows, dtype=pl.Int64)}).write_csv(tmp_path / "archive.csv")
    attack = sm.risk.NearestRecord("standardized", archive=str(tmp_path / "archive.csv"), row="row")
    each = sm.risk.DiscreditHarm(on="c", attack=attack).records(data, masked(data, sm.Identity()))
    assert (each[3:] == -1).all() and (each[:3] != -1).all()


# ---- a draw of the records ------------------------------------------------------------------------------------
def mixed_pair(n: int = 400) -> tuple[Microdata, Method]:
    """Return records with many ties, and a chain that leaves links uncertain."""
    draw = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"sex": draw.choice(["f", "m"], n), "age": draw.integers(1, 40, n), "wage": draw.normal(size=n)}
    )
    data = sm.read(frame, keys=["sex"], numeric=["age", "wage"])
    return data, sm.Chain([sm.PRAM(on="sex"), sm.Noise(on=("age", "wage"), variance=0.02)])


def test_links_to_sample_match_links_to_all() -> None:
    data, method = mixed_pair()
    pair = sm.WorstLinkage().pair(data, masked(data, method), ("sex", "age", "wage"))
    for attack in (sm.risk.NearestRecord("gower"), sm.risk.Calibrated(method), sm.risk.Linkage("d")):
        models = attack.cost_models(pair)
        every = link_to_cheapest(pair, models)
        wanted = np.arange(0, 400, 3)
        some, whole = link_to_known(pair, models, wanted), link_to_known(pair, models, np.arange(400))
        heads = np.unique(pair.known_group[wanted])
        place = np.empty(400, dtype=np.int64)
        place[pair.known_rows] = pair.known_group
        assert (some.partner == np.where(np.isin(place[every.partner], heads), every.partner, -1)).all()
        assert (some.partner >= 0).any() and (some.partner < 0).any()
        assert (whole.partner == every.partner).all()
        assert whole.probability == pytest.approx(every.probability)


def test_sample_of_targets_is_unbiased() -> None:
    """The mean over 30 draws of 100 of 400 records is that of a draw of all but one, within 4 standard errors; the stated
    standard error is the spread of the draws within a factor of 1.5."""
    data, method = mixed_pair()
    release = masked(data, method)

    def drawn(targets: int, draw: int) -> Estimate:
        attack = sm.WorstLinkage(targets=targets, draw=draw)
        return sm.risk.IntruderKnowledge(on="wage", attack=attack).score(data, release, RNG)

    some, nearly_all = [drawn(100, draw) for draw in range(30)], drawn(399, 0)
    values = np.array([one.value for one in some])
    spread = float(values.std(ddof=1))
    assert abs(values.mean() - nearly_all.value) < 4 * spread / np.sqrt(30) + 0.02
    errors = [one.se for one in some if one.se is not None]
    assert len(errors) == 30 and 2 / 3 < np.mean(errors) / spread < 1.5
    assert some[0].parts["targets"] == 100


def test_named_targets_are_always_attacked() -> None:
    data, method = mixed_pair()
    attack = sm.WorstLinkage(targets=20)
    worst = sm.risk.IntruderKnowledge(on="wage", attack=attack, targets=("maximum", 0.5), over="worst")
    result = worst.score(data, masked(data, method), RNG)
    assert result.se is None and "targets" not in result.parts
    with pytest.raises(Undefined, match="of 400 targets only a sample was attacked"):
        sm.risk.IntruderKnowledge(on="wage", attack=attack, over="worst").score(data, masked(data, method), RNG)
    each = sm.risk.DiscreditHarm(on="wage", attack=attack).records(data, masked(data, method))
    assert np.isfinite(each).sum() == 20
    assert worst.resample() == sm.risk.IntruderKnowledge(
        on="wage", attack=sm.WorstLinkage(targets=20, draw=1), targets=("maximum", 0.5), over="worst"
    )


# ---- targets, harm, missing values ----------------------------------------------------------------------------
def test_targets_by_rank_are_combined(data: Microdata) -> None:
    method = sm.Noise(on=NAMES, variance=0.01)
    each = sm.risk.IntruderKnowledge(**INTRUDER).for_informed_attacker(method).records(data, masked(data, method))
    order = np.argsort(data["c"])
    for targets, rows in ((("maximum",), [299]), ((0.5, "minimum"), [0, 149]), ((), range(300))):
        for over, of in (("mean", np.mean), ("worst", np.max)):
            measure = sm.risk.IntruderKnowledge(targets=targets, over=over, **INTRUDER)
            assert score(measure, data, method).value == pytest.approx(of(each[order[list(rows)]]))


def test_harm_weights_divide_the_risk(data: Microdata) -> None:
    frame = pl.DataFrame({name: data[name] for name in NAMES}).with_columns(harm=pl.lit(2.0))
    weighed = sm.read(frame, numeric="all")
    attack = sm.risk.NearestRecord("standardized", on=("a", "b"))
    method = sm.Noise(on="c", variance=0.3)
    for kind in (sm.risk.IntruderKnowledge, sm.risk.DiscreditHarm):
        plain, heavy = kind(on="c", attack=attack), kind(on="c", attack=attack, harm="harm")
        assert score(heavy, weighed, method).value == pytest.approx(score(plain, weighed, method).value / 2)
        assert heavy.baseline(weighed) == pytest.approx(-0.5)
    zero = sm.read(frame.with_columns(harm=pl.lit(0.0)), numeric="all")
    with pytest.raises(sm.errors.Undefined, match="harm weights must be above 0"):
        score(sm.risk.DiscreditHarm(on="c", attack=attack, harm="harm"), zero, method)


def test_records_with_missing_values_are_no_targets(data: Microdata) -> None:
    c = data["c"].copy()
    c[:50] = np.nan
    holed = sm.read(pl.DataFrame({"a": data["a"], "b": data["b"], "c": c}, nan_to_null=True), numeric="all")
    for method in (sm.Identity(), sm.Noise(on="c", variance=0.2), sm.RankSwap(on="c", p=0.1)):
        each = sm.risk.IntruderKnowledge(**INTRUDER).for_informed_attacker(method).records(holed, masked(holed, method))
        assert np.isnan(each[:50]).all() and np.isfinite(each[50:]).all()
        assert score(sm.risk.IntruderKnowledge(**INTRUDER), holed, method).value == pytest.approx(each[50:].mean())


# ---- society --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("wanted", [{"on": "c"}, SLOPE], ids=["mean", "coefficient"])
def test_belief_matches_weighted_bayesian_bootstrap(wanted: dict[str, Any]) -> None:
    """4,000 Dirichlet draws with the effective number of records: mean within 4 of its standard errors, variance within
    4 of its own (the coefficient's is of first order: 6 % more)."""
    rng = np.random.default_rng(5)
    n = 200
    a, w = rng.standard_normal(n), rng.integers(1, 4, n).astype(float)
    frame = pl.DataFrame(
        {"a": a, "b": a + (1 + np.abs(a)) * rng.standard_normal(n), "c": rng.exponential(size=n), "w": w}
    )
    data = sm.read(frame, numeric=["a", "b", "c"], weight="w")
    result = sm.utility.SocietyKnowledge(**wanted, weighted=True)._belief(data)
    share = w / w.sum()
    drawn = rng.dirichlet(share / (share**2).sum(), size=4_000)
    if wanted is SLOPE:
        centered = [one[None, :] - (drawn @ one)[:, None] for one in (data["a"], data["b"])]
        values = (drawn * centered[0] * centered[1]).sum(axis=1) / (drawn * centered[0] ** 2).sum(axis=1)
    else:
        values = drawn @ data["c"]
    assert result.mean == pytest.approx(
        values.mean(), abs=4 * values.std() / math.sqrt(4_000) + 0.01 * (wanted is SLOPE)
    )
    assert result.variance == pytest.approx(values.var(), rel=4 * math.sqrt(2 / 4_000) + 0.06 * (wanted is SLOPE))


def test_belief_about_totals_proportions_and_weights() -> None:
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 6.0], "g": ["u", "u", "v", None], "w": [1.0, 1.0, 2.0, 4.0]})
    data = sm.read(frame, numeric=["x"], keys=["g"], weight="w")

    def belief(**fields: Any) -> tuple[float, float]:
        return sm.utility.SocietyKnowledge(**({"on": "x"} | fields))._belief(data)[:2]

    assert belief(of="mean") == pytest.approx((3, 3.5 / 5))
    assert belief(of="total") == pytest.approx((12, 16 * 3.5 / 5))
    assert belief(of="total", weighted=True)[0] == pytest.approx(33)
    assert belief(of="proportion", above=2.5) == pytest.approx((0.5, 0.25 / 5))
    assert belief(of="proportion", on="g", category="u")[0] == pytest.approx(2 / 3)
    assert belief(of="proportion", on="g", category="u", weighted=True)[0] == pytest.approx(0.5)


def test_informed_user_is_at_least_as_accurate(data: Microdata) -> None:
    """Noise pulls a slope to 0; with it taken off SEK is nearer to 0, in the mean over 20 seeds. What it cannot take off
    it believes as it stands."""
    naive, informed = (sm.utility.SocietyKnowledge(user=user, **SLOPE) for user in ("naive", "informed"))
    for variance in (0.05, 0.3):
        method = sm.Noise(on=NAMES, variance=variance)
        both = [[score(one, data, method, seed) for seed in range(20)] for one in (naive, informed)]
        assert np.mean([e.value for e in both[1]]) > np.mean([e.value for e in both[0]])
        assert {e.parts["corrected"] for e in both[1]} == {1.0}
    for method in (sm.RankSwap(on=NAMES, p=0.2), sm.Identity()):
        assert score(informed, data, method) == score(naive, data, method)
    identity = score(naive, data, sm.Identity())
    assert identity.value == score(sm.utility.SocietyUtility(**SLOPE), data, sm.Identity()).value  # -v_A/U(prior), both


def test_kl_divergence_of_society(data: Microdata) -> None:
    method = sm.Noise(on=NAMES, variance=0.2)
    how: dict[str, Any] = {"on": "c", "divergence": "kl", "scale": "raw"}
    wanted = sm.utility.SocietyKnowledge(on="c")
    agency, society = (Normal(*wanted._belief(file)[:2]) for file in (data, masked(data, method)))
    expected = global_utility(agency, society, divergence=KullbackLeibler())
    assert score(sm.utility.SocietyKnowledge(**how), data, method).value == pytest.approx(expected.sek)
    assert score(sm.utility.SocietyUtility(**how), data, method).value == pytest.approx(expected.dus)
    assert np.isinf(normal_divergence((np.array([1.0]), np.array([0.1])), (np.array([1.0]), np.array([0.0])))).all()


# ---- the sweep and the choice ---------------------------------------------------------------------------------
def test_criterion_chooses_from_sweep(data: Microdata) -> None:
    four = [sm.risk.IntruderKnowledge(**INTRUDER), sm.risk.DiscreditHarm(**INTRUDER)]
    four += [sm.utility.SocietyKnowledge(user="informed", **SLOPE), sm.utility.SocietyUtility(user="informed", **SLOPE)]  # type: ignore[list-item]
    methods = [sm.Noise(on=NAMES, variance=v) for v in (0.0001, 0.05, 0.5)]
    plan = sm.Plan(methods=methods, measures=four, replicates=3, seed=11)
    ru = sm.RUMap(sm.sweep(data, plan), risk=four[0], utility=four[2])
    iek, rdh, sek, dus = (measure.text for measure in four)
    rule = sm.GlobalCriterion(iek=iek, rdh=rdh, sek=sek, dus=dus, agency_limit=-0.8, intruder_limit=-0.8)
    choice = ru.choose(rule)
    table = rule.table(ru)
    assert len(table) == 4  # methods, not draws: IEK is an expectation
    regions = dict(zip(table["method"], table["region"], strict=True))
    assert regions["Identity"] == "B" and regions[methods[0].text] == "B" and regions[methods[2].text] == "D"
    safe = table.filter(pl.col("region") == "D").sort("distance")
    assert choice.method == safe["method"][0] and choice.replicate == 0 and choice.searched == 1
    spec = sm.charts.draw_criterion(ru, choice).to_dict()
    assert "prior" in str(spec)  # every measure says what nothing is
    nothing = {m.text: ru._fact(m.text, "baseline_value") for m in four}
    assert nothing == pytest.approx({iek: -1, rdh: -1, sek: -1 - 50 / 301, dus: -1})


FORMS = [
    sm.risk.IntruderKnowledge(
        on="wage", targets=(0.5, "maximum"), over="worst", attack=sm.risk.Linkage("l", inclusion=0.5)
    ),
    sm.risk.DiscreditHarm(on="wage", scenario="noise", method=sm.Noise(on="wage")),
    sm.risk.IntruderKnowledge(
        on="wage",
        divergence="kl",
        scale="raw",
        measured=0.1,
        attack=sm.WorstLinkage(inclusion=0.5),  # never certain
    ),
    sm.utility.SocietyKnowledge(on="rent", of="coefficient", formula="wage ~ rent", user="informed", weighted=True),
    sm.utility.SocietyUtility(on="sex", of="proportion", category="1"),
    sm.utility.SocietyKnowledge(on="wage", of="total", weighted=True, method=sm.Noise(on="wage")),
    sm.utility.SocietyUtility(on="wage", of="proportion", above=20.0),
]


@pytest.mark.parametrize("measure", FORMS, ids=str)
def test_decision_measures_pass_contract_checks(measure: Measure) -> None:
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {"sex": rng.integers(1, 3, 40).astype(str), "wage": np.round(rng.lognormal(3, 1, 40)),
         "rent": rng.integers(-3, 4, 40).astype(float), "w": rng.integers(1, 4, 40).astype(float)}
    )  # fmt: skip
    data = sm.read(frame, keys=["sex"], numeric=["wage", "rent"], weight="w")
    check_measure(
        measure, data, [sm.Noise(on=["wage", "rent"]), sm.RankSwap(on="wage", p=0.3), sm.Swap(on="sex", rate=0.2)]
    )
    assert decode(measure.spec(), Measure) == measure == parse(measure.text, Measure)


# ---- bad input ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("cls", "fields", "words"),
    [
        (sm.risk.IntruderKnowledge, {"on": "c", "divergence": "kl"}, 'needs .scale "raw"'),
        (sm.risk.IntruderKnowledge, {"on": "c", "divergence": "kl", "scale": "raw"}, ".measured above 0"),
        (sm.risk.IntruderKnowledge, {"on": "c", "attack": sm.risk.Linkage(on=("a", "c"))}, "must not use 'c'"),
        (sm.risk.IntruderKnowledge, {"on": "c", "targets": 1.5}, "targets"),
        (sm.utility.SocietyKnowledge, {"on": "c", "of": "coefficient"}, "formula is required"),
        (sm.utility.SocietyKnowledge, {"on": "c", "of": "proportion"}, "category or .above is required"),
        (sm.utility.SocietyKnowledge, {"on": "c", "formula": "a ~ b"}, 'required for .of "coefficient"'),
        (sm.utility.SocietyKnowledge, {"on": "c", "divergence": "kl"}, 'needs .scale "raw"'),
        (sm.utility.SocietyKnowledge, {"on": "c", "prior_records": 0}, "prior_records"),
    ],
)  # fmt: skip
def test_incompatible_fields_are_rejected(cls: type[Measure], fields: dict[str, Any], words: str) -> None:
    with pytest.raises(sm.errors.PlanError, match=words):
        cls(**fields)


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (sm.risk.IntruderKnowledge(on="d"), "no column 'd'"),
        (sm.risk.IntruderKnowledge(on="c", harm="z"), "harm must name a numeric column"),
        (sm.utility.SocietyKnowledge(on="d"), "no column 'd'"),
        (sm.utility.SocietyKnowledge(on="c", weighted=True), "needs a file with a weight"),
        (sm.utility.SocietyKnowledge(on="z", of="coefficient", formula="b ~ a"), "must name a term of the formula"),
        (sm.utility.SocietyKnowledge(on="a", of="coefficient", formula="b ~ z"), "no column 'z'"),
        (
            sm.utility.SocietyKnowledge(on="c", of="proportion", category="x"),
            "needs .category for a category, or .above",
        ),
    ],
    ids=lambda one: one.text if isinstance(one, Measure) else "",
)
def test_incompatible_file_is_rejected_with_reason(data: Microdata, measure: Measure, words: str) -> None:
    with pytest.raises(sm.errors.SchemaError, match=words):
        score(measure, data, sm.Identity())


def test_undefined_values_give_a_reason(data: Microdata) -> None:
    flat = sm.read(pl.DataFrame({"a": data["a"], "b": data["b"], "c": np.ones(300)}), numeric="all")
    for measure in (sm.risk.IntruderKnowledge(**INTRUDER), sm.utility.SocietyKnowledge(on="c")):
        with pytest.raises(sm.errors.Undefined, match="nothing to learn"):
            score(measure, flat, sm.Identity())
        assert measure.baseline(flat) is None
    alone = sm.read(pl.DataFrame({"c": data["c"]}), numeric="all")
    with pytest.raises(sm.errors.SchemaError, match="the attack has no variables but"):
        score(sm.risk.IntruderKnowledge(on="c"), alone, sm.Identity())
    kl = sm.risk.IntruderKnowledge(on="c", attack=NEAREST, divergence="kl", scale="raw", measured=0.1)
    with pytest.raises(sm.errors.Undefined, match="certain about a target"):
        score(kl, data, sm.Identity())
    synthetic = Microdata(data.schema, data.take(np.arange(10)).columns)
    with pytest.raises(sm.errors.Undefined, match="does not state which original record"):
        sm.risk.IntruderKnowledge(on="c", scenario="noise", method=sm.Noise(on="c")).score(data, synthetic, RNG)


# ---- the page and the paper -----------------------------------------------------------------------------------
def test_global_risk_page_is_up_to_date() -> None:
    """docs/global-risk.md contains the table that docs/make_global_risk.py computes."""
    import importlib.util

    folder = Path(__file__).resolve().parents[2] / "docs"
    spec = importlib.util.spec_from_file_location("make_global_risk", folder / "make_global_risk.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (folder / "global-risk.md").read_text(encoding="utf-8")
    shown = [line for line in page.split(module.BEGIN)[1].split(module.END)[0].splitlines() if line]
    assert changed_lines(shown, module.table(module.swept())) == []


def test_worked_choice_of_trottini(monkeypatch: pytest.MonkeyPatch) -> None:
    """On generated data: the document has the inputs of the criterion, and the choice is the nearest of region D."""
    from sdcmap.papers import trottini2001_choice

    monkeypatch.delenv("SDCMAP_DATA", raising=False)
    result = trottini2001_choice.run_worked_choice(seed=3, replicates=3)
    assert result.document["file"] == "a generated stand-in"
    rows = result.document["candidates"]
    assert set(rows) == {"unmasked", *trottini2001_choice.METHODS}
    assert rows["unmasked"]["region"] == "B" and rows["unmasked"]["IEK"] == pytest.approx(0, abs=1e-12)
    safe = {name: row["distance"] for name, row in rows.items() if row["region"] == "D"}
    assert result.document["choice"] == min(safe, key=lambda name: safe[name])
    assert len(result.figures["choice"].to_dict()["hconcat"]) == 3
