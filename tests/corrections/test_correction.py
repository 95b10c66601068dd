"""Corrections for data users: intervals cover, estimates agree with theory, and uncorrectable cases are rejected."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from sdcmap.bundle.note import correction
from sdcmap.cli import app
from sdcmap.core.added_noise import noise_strata, undo_rescaling
from sdcmap.core.formula import parse_formula, parse_nested_formula
from sdcmap.core.streams import Stream
from sdcmap.corrections.estimates import Group, Records, estimate_moments
from sdcmap.corrections.wick_polynomials import Wick
from sizes import size

RNG = np.random.default_rng(12)
FILES = size(150, 300)
BAND = 4 * np.sqrt(0.95 * 0.05 / FILES)  # 4 standard deviations of a binomial share


# ---- coverage -------------------------------------------------------------------------------------------------------
BETA = {"(intercept)": 1.0, "a": 0.5, "b": -1.0, "a:b": 0.4}


def draw(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """y = 1 + a/2 - b + 0.4 a b + error, a shifted up by 1.5 in the group "m"; weights are independent of the rest."""
    group = rng.random(n) < 0.4
    a = rng.normal(2, 1, n) + 1.5 * group
    b = 0.5 * (a - 2) + rng.uniform(-2, 2, n)
    y = 1 + 0.5 * a - b + 0.4 * a * b + rng.normal(0, 1, n)
    return {"y": y, "a": a, "b": b, "sex": np.where(group, "m", "f"), "w": rng.uniform(0.5, 1.5, n)}


def truth() -> dict[tuple[str, ...], float]:
    """Return population values from a million records; keys are (domain, statistic, of, with)."""
    big = draw(np.random.default_rng(5), 1_000_000)
    x = np.column_stack([big[name] for name in "yab"])
    result: dict[tuple[str, ...], float] = {}
    for domain in ("", "f", "m"):
        part = x[big["sex"] == domain] if domain else x
        covariance = np.cov(part, rowvar=False)
        spread = np.sqrt(np.diagonal(covariance))
        for j, one in enumerate("yab"):
            result[domain, "mean", one, ""] = part[:, j].mean()
            for k, two in enumerate("yab"):
                result[domain, "covariance", one, two] = covariance[j, k]
                result[domain, "correlation", one, two] = covariance[j, k] / spread[j] / spread[k]
        result |= {(domain, "coefficient", "y", term): value for term, value in BETA.items()}
    return result


TRUTH = truth()
ALL = ("y", "a", "b")
CORRELATED = sm.Noise(on=ALL, variance=0.3, correlated=True)
TEMPLATE = sm.read(pl.DataFrame(draw(RNG, 700)), numeric=ALL, weight="w", keys="sex")


def sample(rng: np.random.Generator, n: int = 700) -> sm.Microdata:
    """Return the file of a new sample."""
    columns = draw(rng, n)
    if n != len(TEMPLATE):
        return sm.read(pl.DataFrame(columns), numeric=ALL, weight="w", keys="sex")
    levels = TEMPLATE.column("sex").levels
    assert levels is not None
    columns["sex"] = (columns["sex"] == levels[1]).astype(np.uint8)
    return TEMPLATE.change(None, columns)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (CORRELATED, {"regress": "y ~ a*b"}),
        (CORRELATED, {"regress": "y ~ a*b", "by": "sex"}),
        (sm.Noise(on=ALL, variance=0.3), {"regress": "y ~ a*b", "by": "sex"}),
        (sm.Noise(on=["a", "b"], variance=0.2, within=("sex",)), {"regress": "y ~ a*b", "weighted": True}),
        (sm.methods.MixtureNoise(on=ALL, variance=0.3), {"by": "sex"}),
    ],
    ids=["correlated", "domains", "independent", "strata-weighted", "mixture"],
)
def test_confidence_intervals_cover(method: sm.Method, options: dict[str, Any]) -> None:
    """95 % intervals of means, covariances, correlations, coefficients and the interaction hold the population's value in
    95 % of 150 files (300 in a soak) of 700 records: within 4 binomial standard deviations (7 %, or 5 %), and 1.5 % for
    asymptotics."""
    rng = np.random.default_rng(8)
    keys: list[tuple[str, ...]] = []
    hits, errors = [], []
    for number in range(FILES):
        result = sm.correct(method.apply(sample(rng), Stream.of_seed(number)), method, on=ALL, **options).table
        domain = result["sex"] if "by" in options else pl.repeat("", len(result), eager=True)
        keys = list(zip(domain, result["statistic"], result["of"], result["with"], strict=True))
        low, high, value, se = (result[name].to_numpy() for name in ("low", "high", "corrected", "se"))
        true = np.array([TRUTH[key] for key in keys])
        hits.append((low < true) & (true < high))
        errors.append((value - true) / se)
    covered = np.mean(hits, axis=0)
    assert len(keys) >= 12
    assert {key: share for key, share in zip(keys, covered, strict=True) if abs(share - 0.95) > BAND + 0.015} == {}
    assert np.abs(np.mean(errors, axis=0)).max() < 0.35  # bias, in standard errors
    assert abs(np.mean(covered) - 0.95) < 0.025


def test_uncorrected_interaction_is_biased() -> None:
    """The uncorrected interaction coefficient of the released file is off by a third."""
    data = sample(np.random.default_rng(1), 20_000)
    masked = sm.Noise(on=ALL, variance=0.3).apply(data, Stream.of_seed(1))
    row = sm.correct(masked, sm.Noise(on=ALL, variance=0.3), regress="y ~ a*b").of("coefficient").row(-1, named=True)
    assert row["with"] == "a:b"
    assert row["released"] < 0.8 * 0.4
    assert abs(row["corrected"] - 0.4) < 3 * row["se"] < 0.1


# ---- closed forms -----------------------------------------------------------------------------------------------
def test_file_covariances_are_divided_by_1_plus_d() -> None:
    """Kim (1986): Cov Z / (1 + d); only variances for independent noise."""
    data = sample(RNG)
    for correlated in (True, False):
        method = sm.Noise(on=ALL, variance=0.25, correlated=correlated)
        masked = method.apply(data, Stream.of_seed(2))
        seen = np.cov(masked.matrix(ALL), rowvar=False)
        table = sm.correct(masked, method).of("covariance")
        for row in table.iter_rows(named=True):
            j, k = ALL.index(row["of"]), ALL.index(row["with"])
            expected = seen[j, k] / 1.25 if correlated or j == k else seen[j, k]
            assert row["corrected"] == pytest.approx(expected, rel=1e-10)
            assert row["released"] == pytest.approx(seen[j, k], rel=1e-10)


def test_noise_of_whole_file_is_subtracted_in_domains() -> None:
    """Kim (1990): Cov_s(Z) - d/(1 + d) Cov(Z), also with survey weights."""
    masked = CORRELATED.apply(sample(RNG), Stream.of_seed(3))
    noise = 0.3 / 1.3 * np.cov(masked.matrix(ALL), rowvar=False)
    for weighted in (False, True):
        table = sm.correct(masked, CORRELATED, by="sex", weighted=weighted).of("covariance")
        here = masked["sex"] == "m"
        weights = masked.weights[here] if weighted else np.ones(here.sum())
        seen = np.cov(masked.matrix(ALL)[here], rowvar=False, aweights=weights)
        for row in table.filter(pl.col("sex") == "m").iter_rows(named=True):
            j, k = ALL.index(row["of"]), ALL.index(row["with"])
            assert row["corrected"] == pytest.approx(seen[j, k] - noise[j, k], rel=1e-10)


@pytest.mark.parametrize("within", [(), ("sex",)], ids=["whole", "strata"])
def test_rescaling_is_undone_exactly(within: tuple[str, ...]) -> None:
    """The same stream with and without rescaling gives the same corrected file, means of domains included."""
    plain = sm.Noise(on=ALL, variance=0.4, correlated=True, within=within)
    drawn_in = sm.Noise(on=ALL, variance=0.4, correlated=True, within=within, rescale=True)
    data = sample(RNG)
    both = [m.apply(data, Stream.of_seed(4)) for m in (plain, drawn_in)]
    assert undo_rescaling(both[1], ALL, drawn_in.added_noise()) == pytest.approx(both[0].matrix(ALL), rel=1e-9)
    options = {"regress": "y ~ a*b", "by": "sex"}
    first, second = (
        sm.correct(file, m, **options).table  # type: ignore[arg-type]
        for file, m in zip(both, (plain, drawn_in), strict=True)
    )
    for name in ("corrected", "se"):
        assert second[name].to_numpy() == pytest.approx(first[name].to_numpy(), rel=1e-8)


def test_without_noise_estimates_and_errors_are_standard() -> None:
    """d = 0: sample covariances and least squares, with the sandwich errors of White (HC0, and n/(n-1))."""
    data = sample(RNG)
    table = sm.correct(data, sm.Noise(on=ALL, variance=0), regress="y ~ a*b + sex").table
    assert (table["released"] - table["corrected"]).abs().max() < 1e-9
    male = data["sex"] == TEMPLATE.column("sex").levels[1]  # type: ignore[index]
    a, b, y = data["a"], data["b"], data["y"]
    x = np.column_stack([np.ones(len(a)), a, b, a * b, male])
    beta, *_ = np.linalg.lstsq(x, y, rcond=None)
    bread = np.linalg.inv(x.T @ x)
    meat = (x * (y - x @ beta)[:, None]).T @ (x * (y - x @ beta)[:, None])
    rows = table.filter(pl.col("statistic") == "coefficient")
    assert rows["corrected"].to_numpy() == pytest.approx(beta, rel=1e-8)
    n = len(y)
    assert rows["se"].to_numpy() == pytest.approx(np.sqrt(np.diagonal(bread @ meat @ bread) * n / (n - 1)), rel=1e-8)


def test_wick_polynomials_are_unbiased() -> None:
    """E[:P:(x + e)] = P(x): products of up to 4 noisy variables, 4 standard errors over 50,000 draws; closed forms."""
    x, noise = np.array([1.0, -2.0, 0.5]), np.array([[0.5, 0.2, 0.0], [0.2, 0.4, 0.1], [0.0, 0.1, 0.3]])
    z = x + np.random.default_rng(3).multivariate_normal(np.zeros(3), noise, 50_000)
    wick = Wick(z, noise)
    for term in [(0,), (0, 1), (0, 0), (0, 0, 1), (0, 0, 1, 1), (0, 1, 1, 2), (2, 2, 2, 2)]:
        values = wick[term]
        assert abs(values.mean() - np.prod(x[list(term)])) < 4 * values.std() / np.sqrt(len(z))
    assert wick[0, 0] == pytest.approx(z[:, 0] ** 2 - 0.5)
    assert wick[0, 0, 0, 0] == pytest.approx(z[:, 0] ** 4 - 6 * 0.5 * z[:, 0] ** 2 + 3 * 0.25)


def test_standard_error_of_variance_equals_closed_form() -> None:
    """Normal X: n Var = 2 s^4 + (4 d + 2 d^2) s^4/(1 + d)^2, since the noise was drawn with the variance of this very
    sample; a sample of X + e would say 2 s^4."""
    n, d = 200_000, 0.5
    x = np.random.default_rng(6).normal(0, 1, n)
    z = x + np.sqrt(d) * x.std(ddof=1) * np.random.default_rng(7).normal(0, 1, n)
    seen = z.var(ddof=1)
    group = Group(np.arange(n), np.array([[d / (1 + d) * seen]]), np.array([[seen / (1 + d)]]), np.array([z.mean()]),
                  d / (1 + d), n, np.ones((1, 1)))  # fmt: skip
    result = estimate_moments(Records(z[:, None], np.full(n, 1 / n), (group,)))
    assert result.covariance_se[0, 0] * np.sqrt(n) == pytest.approx(
        np.sqrt(2 + (4 * d + 2 * d**2) / (1 + d) ** 2), rel=0.01
    )
    assert result.mean_se[0] * np.sqrt(n) == pytest.approx(np.sqrt(1 + d), rel=0.01)


# ---- notes and invalid input ---------------------------------------------------------------------------------
def test_method_note_is_sufficient(tmp_path: Path) -> None:
    """The note contains the method and d, and gives the same result as the method; it contains no original data."""
    masked = CORRELATED.apply(sample(RNG), Stream.of_seed(5))
    whole = sm.correct(masked, CORRELATED).table
    note = {"made_by": "sdcmap", "method": CORRELATED.spec(), "masked": ["y", "a", "b"]}
    path = tmp_path / "note.json"
    path.write_text(json.dumps(note))
    for given in (note, path, str(path), CORRELATED.text, CORRELATED.spec()):
        assert sm.correct(masked, given).table.equals(whole)


def test_code_in_the_note_runs(tmp_path: Path) -> None:
    """The note of a release with noise contains code that a data user can run in its folder; other notes do not."""
    data = CORRELATED.apply(sample(RNG), Stream.of_seed(5))
    lines = correction(data, CORRELATED)
    sm.write(data, tmp_path / f"data.{data.schema.format}")
    (tmp_path / "note.json").write_text(json.dumps({"method": CORRELATED.spec()}))
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:4] == repr(sm.correct(data, CORRELATED, weighted=True)).splitlines()[1:4]
    assert correction(data, sm.RankSwap(on="a")) == ""
    assert "weighted" not in correction(data.only([*ALL, "sex"]), CORRELATED)


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (sm.Noise(on="a", lower=0), "bounds cut off the noise"),
        (sm.Noise(on="a", upper=9), "bounds cut off the noise"),
        (sm.Noise(on="a", above=1, variance_above=0.5), "its variance depends on the true value"),
        (sm.Noise(on="a", keep_zeros=True), "zeros were kept"),
        (sm.Noise(on="a", integers=True), "rounded to whole numbers"),
        (sm.methods.MixtureNoise(on=["a", "b"], lower=0), "bounds cut off the noise"),
        (sm.RankSwap(on="a"), r"\(RankSwap\) is not plain additive noise"),
        (sm.Swap(on="sex"), r"\(Swap\) is not plain additive noise"),
        (sm.methods.MultiplicativeNoise(on="a"), r"\(MultiplicativeNoise\) is not plain additive noise"),
        (sm.Chain([sm.Noise(on="a"), sm.Swap(on="sex")]), r"\(Chain\) is not plain additive noise"),
    ],
    ids=lambda part: part.text if isinstance(part, sm.Method) else "",
)
def test_uncorrectable_methods_are_undefined_with_reason(method: sm.Method, reason: str) -> None:
    with pytest.raises(sm.errors.Undefined, match=reason):
        sm.correct(TEMPLATE, method)


def test_coarse_rounding_is_rejected_and_fine_rounding_is_not() -> None:
    method = sm.Noise(on="a", variance=0.3)
    masked = method.apply(sample(RNG), Stream.of_seed(6))
    fine, coarse = (masked.change(None, {"a": np.round(masked["a"], digits)}) for digits in (2, 0))
    assert sm.correct(fine, method).of("mean")["corrected"][0] == pytest.approx(masked["a"].mean(), abs=0.001)
    with pytest.raises(sm.errors.Undefined, match="rounded too coarsely"):
        sm.correct(coarse, method)


def test_note_reports_matrices_that_are_not_semidefinite() -> None:
    """A domain with almost no spread, and noise as large as that of the whole file."""
    rng = np.random.default_rng(9)
    part = rng.random(2000) < 0.05
    x = np.where(part, 5.0, rng.normal(0, 3, 2000)) + rng.normal(0, 0.01, 2000)
    frame = pl.DataFrame({"x": x, "v": x + rng.normal(0, 1, 2000) * ~part, "part": np.where(part, "in", "out")})
    method = sm.Noise(on=["x", "v"], variance=1.0, correlated=True)
    masked = method.apply(sm.read(frame, numeric=["x", "v"]), Stream.of_seed(21))
    result = sm.correct(masked, method, by="part", regress="v ~ x")
    assert not result.semidefinite
    sentences = [
        s for s in result.notes if s.startswith("in part = in the corrected covariance matrix is not positive semi")
    ]
    assert len(sentences) == 1
    assert "in part = in the corrected covariance" in repr(result)
    assert sm.correct(masked, method).semidefinite


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": "regoin"}, sm.errors.SchemaError, "no column 'regoin'"),
        ({"by": "a"}, sm.errors.Undefined, "was masked, so the true domain"),
        ({"on": "q"}, sm.errors.SchemaError, "no column 'q'"),
        ({"regress": "y ~ q"}, sm.errors.SchemaError, "no column 'q'"),
        ({"regress": "sex ~ a"}, sm.errors.SchemaError, "must be numeric"),
        ({"regress": "y"}, sm.errors.PlanError, "a formula has the form"),
        ({"regress": "y ~ a:b"}, sm.errors.PlanError, "a:b needs a and b"),
        ({"by": "sex", "least": 5000}, sm.errors.Undefined, "no domain has 5000 records"),
    ],
)
def test_invalid_requests_are_rejected(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        sm.correct(TEMPLATE, CORRELATED, **options)


def test_products_under_mixture_noise_are_undefined() -> None:
    method = sm.methods.MixtureNoise(on=["a", "b"])
    sm.correct(TEMPLATE, method, regress="y ~ a + b")
    with pytest.raises(sm.errors.Undefined, match="products of noisy variables can only be corrected for normal noise"):
        sm.correct(TEMPLATE, method, regress="y ~ a*b")


def test_unreadable_notes_are_rejected(tmp_path: Path) -> None:
    for bad in (tmp_path / "none.json", {"method": 3}, ["a"]):
        with pytest.raises(sm.errors.SdcmapError):
            sm.correct(TEMPLATE, bad)  # type: ignore[arg-type]


def test_incomplete_records_are_left_out() -> None:
    data = sample(RNG)
    incomplete = data.change(None, {"a": np.where(np.arange(700) % 5 == 0, np.nan, data["a"])})
    masked = CORRELATED.apply(incomplete, Stream.of_seed(8))
    table = sm.correct(masked, CORRELATED, regress="y ~ a").table
    complete = masked.matrix(ALL)[~np.isnan(masked["a"])]
    assert set(table["records"]) == {560}
    row = table.row(by_predicate=(pl.col("statistic") == "covariance") & (pl.col("of") == "y"), named=True)
    assert row["corrected"] == pytest.approx(complete[:, 0].var(ddof=1) / 1.3)
    with pytest.raises(sm.errors.Undefined, match="fewer than 2 complete records"):
        sm.correct(data.change(None, {"a": np.full(700, np.nan)}), CORRELATED)


def test_parse_formulas() -> None:
    assert parse_formula("y ~ a*b").products == ((), ("a",), ("b",), ("a", "b"))
    assert parse_formula("y ~ x + x:x").products == ((), ("x",), ("x", "x"))
    assert parse_formula("y ~ b:a").products == ((), ("a", "b"))  # allowed without a correction
    for text in ("y", "y ~", "~ x", "y ~ x + ", "y ~ x:", "y ~ x + y"):
        with pytest.raises(sm.errors.PlanError, match="cannot be read"):
            parse_formula(text)
    with pytest.raises(sm.errors.PlanError, match="a:b needs a and b in the formula too"):
        parse_nested_formula("y ~ a:b")


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    masked = CORRELATED.apply(sample(RNG), Stream.of_seed(5))
    sm.write(masked, tmp_path / "data.csv")
    (tmp_path / "note.json").write_text(json.dumps({"method": CORRELATED.spec()}))
    run: Callable[..., Any] = CliRunner().invoke
    command = ["correct", str(tmp_path / "data.csv"), "--note", str(tmp_path / "note.json"), "--regress", "y ~ a + b"]
    shown = run(app, [*command, "--by", "sex", "--json"])
    assert shown.exit_code == 0, shown.output
    document = json.loads(shown.stdout)
    expected = sm.correct(masked, CORRELATED, regress="y ~ a + b", by="sex").table.to_dicts()
    assert [row["corrected"] for row in document["table"]] == pytest.approx([row["corrected"] for row in expected])
    assert document["semidefinite"] is True
    assert "coefficient" in run(app, [*command, "--weight", "w"]).stdout


def test_results_do_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    masked = CORRELATED.apply(sample(RNG), Stream.of_seed(11))
    whole = sm.correct(masked, CORRELATED, regress="y ~ a*b", by="sex").table
    monkeypatch.setattr(sys.modules["sdcmap.corrections.estimates"], "BLOCK_RECORDS", 50)
    parts = sm.correct(masked, CORRELATED, regress="y ~ a*b", by="sex").table
    for name in ("corrected", "se"):
        assert parts[name].to_numpy() == pytest.approx(whole[name].to_numpy(), rel=1e-9)


def test_constant_and_singular_columns(casc_census: sm.Microdata) -> None:
    """PTOTVAL = PEARNVAL + POTHVAL gives a singular covariance under correlated noise; as predictors they are collinear."""
    names = ("PTOTVAL", "PEARNVAL", "POTHVAL")
    method = sm.Noise(on=names, variance=0.1, correlated=True)
    masked = method.apply(casc_census, Stream.of_seed(12))
    result = sm.correct(masked, method, regress="PTOTVAL ~ PEARNVAL + POTHVAL")
    assert result.semidefinite
    assert result.of("coefficient")["corrected"].to_list() == pytest.approx([0, 1, 1], abs=1e-6)
    lost = sm.correct(masked, method, regress="AFNLWGT ~ PTOTVAL + PEARNVAL + POTHVAL")
    assert lost.of("coefficient")["corrected"].null_count() == 4
    assert any("not positive definite" in sentence for sentence in lost.notes)
    flat = masked.change(None, {"POTHVAL": np.full(len(masked), 7.0)})
    rows = sm.correct(flat, method).of("covariance").filter(pl.col("of") == "POTHVAL")
    assert rows["corrected"].to_list() == pytest.approx([0, 0, 0], abs=1e-9)


def test_noise_strata_are_corrected_separately() -> None:
    """Strata with unequal spread have unequal noise variances; each is estimated from its own records."""
    method = sm.Noise(on="a", variance=0.5, within=("sex",))
    masked = method.apply(sample(RNG), Stream.of_seed(9))
    result = {masked["sex"][s.rows[0]]: s for s in noise_strata(masked, ("a",), method.added_noise())}
    for label, stratum in result.items():
        here = masked["sex"] == label
        assert stratum.covariance[0, 0] == pytest.approx(masked["a"][here].var(ddof=1) / 3)
        assert stratum.count == here.sum()
