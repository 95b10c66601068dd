"""Local recoding: each record is recoded only as far as needed, and measures handle the mixed labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.errors import PlanError, SchemaError, Undefined
from sdcmap.risk.exact_match import learn_match_rates

ONCE = Stream.of_seed(1)
LADDER = [sm.Recode(on="age", width=10), sm.Recode(on="age", width=40)]


def test_frequent_combinations_keep_their_values() -> None:
    """Three records of 21 keep it; 31, 32, 33 share a ten-year interval; 45, 58, 61 one of 40 years; 90 none."""
    ages = [21.0, 21, 21, 31, 32, 33, 45, 58, 61, 90, None]
    data = sm.read(pl.DataFrame({"age": ages}), numeric="all")
    masked = sm.methods.RecodeLocally(LADDER, k=3).apply(data, ONCE)
    result = list(masked.frame()["age"])
    assert result[:6] == ["21"] * 3 + ["(30, 40]"] * 3
    assert result[6:9] == ["(40, 80]"] * 3 and result[9:] == [sm.mask(data, LADDER[1], seed=1).frame()["age"][9], None]
    levels = masked.column("age").levels
    assert levels is not None and masked.schema["age"].kind == "ordinal"
    assert levels.to_list() == ["21", "(30, 40]", "(40, 80]", result[9], None]


def test_combinations_have_k_records_with_minimal_recoding() -> None:
    data = sm.demo.population(2000, seed=1)
    merged = sm.Recode(on="Educ", merge=[data.column("Educ").levels.drop_nulls().to_list()])
    method = sm.methods.RecodeLocally([sm.Recode(on="Educ", prefix=1), merged], k=5, on=["Educ", "Age", "Sex"])
    masked = method.apply(data, ONCE)
    names = ["Educ", "Age", "Sex"]
    before, after = (d.frame().select(pl.col(names).cast(pl.String)) for d in (data, masked))
    size = after.select(pl.len().over(names)).to_series().to_numpy()
    last = (after["Educ"] == merged.apply(data, ONCE).frame()["Educ"]).to_numpy()
    assert (size[~last] >= 5).all()
    stay = before.select(pl.len().over(names)).to_series().to_numpy() >= 5
    assert (after["Educ"] == before["Educ"]).to_numpy()[stay].all() and 0 < last.mean() < 0.5
    everybody = sm.Chain([method, sm.Suppress(on=names, k=5)]).apply(data, ONCE)
    assert sm.KAnonymity(k=5, on=names).score(data, everybody, np.random.default_rng(0)).value == 0


def test_invalid_steps_are_rejected() -> None:
    with pytest.raises(PlanError, match="at least one recoding"):
        sm.methods.RecodeLocally([])
    with pytest.raises(PlanError, match="Got Noise"):
        sm.methods.RecodeLocally([sm.Noise(on="age")])
    data = sm.read(pl.DataFrame({"age": [1.0, 2.0]}), numeric="all")
    with pytest.raises(SchemaError, match="no column 'agee'"):
        sm.methods.RecodeLocally(LADDER, on="agee").apply(data, ONCE)


def mixed() -> tuple[sm.Microdata, sm.methods.RecodeLocally, sm.Microdata]:
    """Return 800 people with three keys, and ages recoded to four levels."""
    rng = np.random.default_rng(0)
    ages = {"age": rng.integers(18, 80, 800).astype(float), "sex": rng.choice(["f", "m"], 800)}
    data = sm.read(pl.DataFrame(ages | {"region": rng.choice(list("abcdefgh"), 800)}), keys=["age", "sex", "region"])
    method = sm.methods.RecodeLocally([sm.Recode("age", width=w) for w in (5, 20, 100)], k=3)
    return data, method, method.apply(data, ONCE)


def matching_people(data: sm.Microdata, masked: sm.Microdata) -> np.ndarray:
    """Which people (columns) fit each released record, by plain lines: an age that equals the label or lies in its
    interval, the same sex, the same region."""
    age = data["age"]
    fits = np.ones((len(data), len(data)), dtype=bool)
    for row, label in enumerate(masked.frame()["age"]):
        low, high = map(float, label[1:-1].split(", ")) if label[0] == "(" else (float(label) - 1, float(label))
        fits[row] = (age > low) & (age <= high)
    for name in ("sex", "region"):
        fits &= data[name][:, np.newaxis] == data[name]
    return fits


def test_attacks_handle_labels_of_several_levels() -> None:
    """No attack by plain lines beats the worst one, whether or not the method is known; and the nearest record by Gower's
    distance is that attack."""
    data, method, masked = mixed()
    assert len({label[:1] == "(" for label in masked.frame()["age"]}) == 2
    plain, rng = (1 / matching_people(data, masked).sum(axis=1)).mean(), np.random.default_rng(0)
    assert sm.risk.NearestRecord("gower").score(data, masked, rng).value == pytest.approx(plain)
    for worst in (sm.WorstLinkage(), sm.WorstLinkage().for_informed_attacker(method)):
        assert worst.score(data, masked, rng).value >= plain
    assert sm.risk.Linkage().score(data, masked, rng).value > 0.8 * plain


def test_attribute_inference_uses_labels_of_several_levels() -> None:
    """Of a secret that the age gives away, as many are inferred as by taking one of the records that fit; 5 of 800 people
    are held out, and the standard error of the others is below .02."""
    data, _, masked = mixed()
    frame = data.frame().with_columns(secret=(data["age"] * 7919) % 1009)
    known = sm.read(frame, keys=["age", "sex", "region"], numeric=["age", "secret"], sensitive=["secret"])
    levels = masked.column("age").levels
    released = known.change(None, {"age": masked.column("age").values}, {"age": levels} if levels is not None else {})
    fits, secret = matching_people(data, masked), known["secret"]
    plain = ((secret[:, np.newaxis] == secret) & fits).sum(axis=0) / fits.sum(axis=0)
    infer = sm.risk.AttributeInference("secret", on=["age", "sex", "region"], tolerance=0.0, held_out=0.00625)
    found = infer.score(known, released, np.random.default_rng(1)).parts
    assert found["members"] == pytest.approx(plain.mean(), abs=0.02) and found["members"] > 5 * found["naive"]


def test_attacks_use_labels_explained_in_the_method_note() -> None:
    rng = np.random.default_rng(3)
    jobs = rng.choice(["clerk", "nurse", "miner", "diver", "judge"], 400, p=[0.5, 0.4, 0.05, 0.03, 0.02])
    data = sm.read(pl.DataFrame({"job": jobs, "area": rng.integers(0, 9, 400).astype(str)}), keys=["job", "area"])
    rare = sm.Recode("job", merge=[["miner", "diver", "judge"]], labels=["other"])
    masked = sm.methods.RecodeLocally([rare, sm.Recode("job", merge=[list(set(jobs))], labels=["*"])], k=4).apply(
        data, ONCE
    )
    released = masked.frame()["job"].to_numpy()
    assert {"other", "*"} < set(released)
    group = {"other": {"miner", "diver", "judge"}, "*": set(jobs)}
    fits = np.array([[job in group.get(label, {label}) for job in jobs] for label in released])
    fits &= data["area"][:, np.newaxis] == data["area"]
    result = sm.risk.NearestRecord("gower", open_columns="as any").score(data, masked, rng).value
    assert result == pytest.approx((1 / fits.sum(axis=1)).mean())


# ---- matching through labels ------------------------------------------------------------------------------------
def look_up(data: sm.Microdata, masked: sm.Microdata) -> tuple[np.ndarray, np.ndarray]:
    """Return which people (columns) each released record covers, and which it matches exactly, by simple code."""
    covers = matching_people(data, masked)
    texts = [f"{age:g}" for age in data["age"]]
    exact = covers & np.array([[label == text for text in texts] for label in masked.frame()["age"]])
    return covers, exact


def recode_without_region() -> tuple[sm.Microdata, sm.Microdata]:
    """Return 400 people of which three share each age and sex; regions are not recoded, so some are unique."""
    rng = np.random.default_rng(5)
    frame = {"age": rng.integers(18, 60, 400).astype(float), "sex": rng.choice(["f", "m"], 400)}
    frame |= {"region": rng.choice(list("abcdefghijklmnop"), 400), "ill": rng.choice(["no", "yes"], 400)}
    keys = ["age", "sex", "region"]
    data = sm.read(pl.DataFrame(frame), keys=keys, sensitive=["ill"], numeric=["age"])
    method = sm.methods.RecodeLocally([sm.Recode("age", width=w) for w in (3, 9, 90)], k=6, on=["age", "sex"])
    return data, method.apply(data, ONCE)


@pytest.mark.parametrize("k", [2, 4])
def test_exact_match_bounds_simple_lookups(k: int) -> None:
    """Neither a filter by labels nor a preference for exact values beats ExactMatch; the best of both equals it."""
    data, masked = recode_without_region()
    covers, exact = look_up(data, masked)
    result = sm.risk.ExactMatch(on=data.keys, k=k).records(data, masked)
    alone, first = (table.sum(axis=0) < k for table in (covers, exact))
    own = np.diag(exact)
    assert (result == (np.diag(covers) & alone | own & first)).all()
    assert alone.sum() > 20 and (own & first & ~alone).sum() > 20


def test_record_risk_prefers_records_with_exact_values() -> None:
    data, masked = recode_without_region()
    covers, exact = look_up(data, masked)
    some = exact.any(axis=0)
    left = np.where(some, exact.sum(axis=0), covers.sum(axis=0))
    own = np.where(some, np.diag(exact), np.diag(covers))
    observed = learn_match_rates(left, own)
    result = sm.risk.RecordRisk().score(data, masked, np.random.default_rng(0))
    assert result.value == pytest.approx((observed.right / observed.size).max()) and result.parts["smallest group"] == 1


def test_special_uniques_match_labels() -> None:
    """Unique on age and region in the original; matched in the release by the value or by labels that cover it."""
    data, masked = recode_without_region()
    same = {name: data[name][:, np.newaxis] == data[name] for name in data.keys}
    names = ("age", "region")
    special = np.flatnonzero((same["age"] & same["region"]).sum(axis=0) == 1)
    covers, exact = (table for table in look_up(data.change(None, {"sex": np.zeros(400, np.uint8)}), masked))
    left = np.where(exact.any(axis=0), exact.sum(axis=0), covers.sum(axis=0))
    own = np.where(exact.any(axis=0), np.diag(exact), np.diag(covers))
    assert all((same[name].sum(axis=0) > 1).all() for name in names)  # so no one is unique on fewer columns
    result = sm.risk.SpecialUniques(on=names, largest=2).score(data, masked, np.random.default_rng(0))
    assert result.parts["special uniques"] == len(special) > 100
    assert result.value == pytest.approx(((left == 1) & own)[special].mean()) and result.value > 0.1


def test_attribute_risk_matches_labels() -> None:
    data, masked = recode_without_region()
    covers, ill = matching_people(data, masked), data["ill"]
    equal = ill[:, np.newaxis] == ill
    score = lambda form: sm.risk.CorrectAttribution(form=form).score(data, masked, np.random.default_rng(0)).value
    share = (covers & equal).sum(axis=0) / covers.sum(axis=0)
    assert score("DCAP") == pytest.approx(share.mean()) and score("DiSCO") == pytest.approx((share == 1).mean())
    groups = masked.frame().select(n=pl.col("ill").n_unique().over(data.keys))["n"].to_numpy()
    right = ((covers & equal).sum(axis=1) / covers.sum(axis=1))[groups == 1]
    assert score("TCAP") == score("TCAP all") == pytest.approx(right.mean())


def test_register_counts_match_labels(tmp_path: Path) -> None:
    data, masked = recode_without_region()
    data.frame().write_csv(path := tmp_path / "register.csv")
    some = np.arange(0, 400, 2)
    sample, part = (sm.Microdata(d.schema, d.take(some).columns) for d in (data, masked))
    persons = matching_people(data, masked).sum(axis=1)[some]
    result = sm.risk.KMap(k=3, population=str(path)).score(sample, part, np.random.default_rng(0))
    assert result.value == pytest.approx((persons < 3).mean()) and 0 < result.value < 1
    assert result.parts == {"smallest": persons.min(), "unmatched": 0.0}
    with pytest.raises(Undefined, match="'age' has labels of several depths"):
        sm.risk.DeltaPresence(population=str(path)).score(sample, part, np.random.default_rng(0))


@pytest.mark.parametrize("numeric", [["age"], []])
def test_measures_that_need_unique_categories_are_undefined(numeric: list[str]) -> None:
    """For ages as numbers and as categories."""
    data, masked = recode_without_region()
    age = data.frame()["age"].cast(pl.Int64).cast(pl.String)
    keys = {"keys": data.keys, "sensitive": ["ill"]}
    known = data if numeric else sm.read(data.frame().with_columns(age=age), **keys)
    released = known.change(None, {"age": masked.column("age").values}, {"age": masked.column("age").levels})
    for measure in (
        sm.risk.SinglingOut(),
        sm.risk.CorrectAttribution("age", on=["sex", "region"]),
        sm.risk.RAPID("ill", on=["age", "sex"]),
        sm.utility.TrainOnRelease("ill", on=["age", "sex"], folds=2),
    ):
        with pytest.raises(Undefined, match="several depths|was recoded|a number in one file and a category"):
            measure.apply(known, released, np.random.default_rng(0))
