"""Attacks with an archive: the value is the share of the attacker's targets in the file, not of all released records.

The plain versions share nothing with the package: numpy for distances, scipy for the assignment.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linear_sum_assignment

import sdcmap as sm
from sdcmap.core import Array
from sdcmap.core.audience import Audience
from sdcmap.core.limit import Limit
from sdcmap.data.microdata import Microdata
from sdcmap.risk.linkage.attack import Attack

RNG = np.random.default_rng(0)
RECORDS, TARGETS = 500, 20
NAMES = ("x0", "x1", "x2")


@pytest.fixture(scope="module")
def files() -> tuple[Microdata, Microdata, Array]:
    """500 records, the same with noise, and the rows of 20 targets."""
    rng = np.random.default_rng(5)
    x = rng.lognormal(3, 0.7, (RECORDS, 3))
    original = sm.read(pl.DataFrame(x, schema=list(NAMES)), numeric="all")
    y = x * np.exp(rng.normal(0, 0.03, x.shape))
    masked = original.change(None, {name: y[:, index] for index, name in enumerate(NAMES)})
    return original, masked, np.sort(rng.choice(RECORDS, TARGETS, replace=False))


@pytest.fixture(scope="module")
def archive(files: tuple[Microdata, Microdata, Array], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("archive") / "targets.parquet"
    return write_archive(files[0], files[2], path)


def write_archive(original: Microdata, rows: Array, path: Path, strangers: int = 0) -> str:
    """The records of these rows, and some people who are not in the data."""
    known = original.frame().with_row_index("row")[rows.tolist()].cast({"row": pl.Int64})
    others = pl.DataFrame(np.random.default_rng(6).lognormal(3, 0.7, (strangers, 3)), schema=list(NAMES))
    pl.concat([known, others], how="diagonal").write_parquet(path)
    return str(path)


def true_links_to_nearest(known: Array, released: Array, rows: Array) -> int:
    """How many targets are nearest to their own released record, in units of the released file."""
    mean, sd = released.mean(axis=0), released.std(axis=0, ddof=1)
    distance = ((((known - mean) / sd)[:, None] - ((released - mean) / sd)[None]) ** 2).sum(axis=2)
    return int((distance.argmin(axis=1) == rows).sum())


def true_links_one_to_one(known: Array, released: Array, rows: Array, t: float = 0.2) -> int:
    """How many targets the metric "d" with weights "freq" links to their own released record."""
    weight = np.zeros((len(known), len(released)))
    for a, b in zip(known.T, released.T, strict=True):
        u = np.mean(a[:, None] == a[None, :])
        high, low = np.log(0.9 / u), np.log(0.1 / (1 - u))
        r = np.abs(a[:, None] - b[None, :]) / np.maximum(np.abs(a), 0.1)[:, None]
        weight += np.maximum(high - (high - low) * r / t, low)
    own, linked = linear_sum_assignment(weight, maximize=True)
    return int((rows[own] == linked).sum())


def test_nearest_record_divides_by_the_targets_in_the_file(
    files: tuple[Microdata, Microdata, Array], archive: str
) -> None:
    original, masked, rows = files
    true = true_links_to_nearest(original.matrix(NAMES)[rows], masked.matrix(NAMES), rows)
    assert true >= 18  # of 20; as a share of all records at most 0.04, which passed a limit of 0.05
    attack = sm.risk.NearestRecord(archive=archive, row="row")
    result = attack.score(original, masked, RNG)
    assert result.value == true / TARGETS and result.parts["targets in file"] == TARGETS
    assert result.parts["precision of links"] == result.value  # 20 claims
    assert result.parts["share of released records"] == true / RECORDS
    assert Limit(attack, 0.05).judge(result, 0.95).status == "exceeded"


def test_one_to_one_linkage_divides_by_the_targets_in_the_file(
    files: tuple[Microdata, Microdata, Array], archive: str
) -> None:
    original, masked, rows = files
    true = true_links_one_to_one(original.matrix(NAMES)[rows], masked.matrix(NAMES), rows)
    assert true >= 18
    result = sm.risk.Linkage("d", archive=archive, row="row").score(original, masked, RNG)
    assert result.value == true / TARGETS == result.parts["precision of links"]  # 20 links are claimed
    assert result.parts["share of released records"] == true / RECORDS
    assert result.parts["zone"] <= result.value


def test_unit_says_that_targets_are_counted(archive: str) -> None:
    """An external reader of a file of 500 records is told of targets, never that so few records were re-identified."""
    attack = sm.risk.NearestRecord(archive=archive, row="row")
    assert attack.value_unit == "share of the attacker's targets"
    assert sm.risk.NearestRecord().value_unit == sm.risk.NearestRecord.unit == "share of records"
    to = Audience("external", rows=RECORDS)
    assert to.score(0.01, attack.value_unit) == "under 2 % of the attacker's targets"
    assert to.score(0.99, attack.value_unit) == "all but under 2 % of the attacker's targets"
    assert to.score(0.01, "share of records") == "under 10 records" and to.score(0.5, attack.value_unit) == "0.50"


def test_review_is_relative_to_the_targets_in_the_file(files: tuple[Microdata, Microdata, Array], archive: str) -> None:
    """With mu = lam = 1 every link is sure: those above mu are all true links, a share of 20 targets, not of 500."""
    original, masked, _rows = files
    measure = sm.risk.Linkage("d", weights="em", mu=1.0, lam=1.0, archive=archive, row="row")
    result = measure.score(original, masked, RNG)
    assert result.value > 0.5  # at most 0.04 as a share of the released records
    assert result.parts["links above mu"] == pytest.approx(result.value)
    strict = sm.risk.Linkage("d", weights="em", mu=0.0, lam=0.0, archive=archive, row="row")
    decision = strict.classes(original, masked).decide(0.0, 0.0)
    assert strict.score(original, masked, RNG).parts["review pairs"] == pytest.approx(decision.possible / TARGETS)


@pytest.mark.parametrize("attack", [sm.risk.Linkage, sm.risk.NearestRecord, sm.risk.Calibrated, sm.WorstLinkage])
def test_targets_that_are_not_in_the_file_do_not_count(
    attack: type[Attack], files: tuple[Microdata, Microdata, Array], tmp_path: Path
) -> None:
    """Half of the targets are left out of the release, and 30 strangers are in the archive."""
    original, masked, rows = files
    left_out = rows[::2]
    sample = masked.take(np.setdiff1d(np.arange(RECORDS), left_out))
    measure = attack(archive=write_archive(original, rows, tmp_path / "more.parquet", strangers=30), row="row")
    result = measure.score(original, sample, RNG)
    assert result.parts["targets in file"] == TARGETS - len(left_out)
    assert result.value >= 0.5
    assert result.parts["share of released records"] == pytest.approx(result.value * 10 / len(sample))
    assert result.parts["precision of links"] < result.value  # links to strangers are wrong
    with pytest.raises(sm.errors.Undefined, match="none of the people in the attacker's file"):
        measure.score(original, masked.take(np.setdiff1d(np.arange(RECORDS), rows)), RNG)


def test_best_attack_counts_targets(files: tuple[Microdata, Microdata, Array], archive: str) -> None:
    original, masked, _ = files
    worst = sm.WorstLinkage(archive=archive, row="row")
    result, rates = worst.score(original, masked, RNG), worst.rates(original, masked)
    assert result.value == max(rates.values()) >= 0.9
    assert result.se is None  # all 20 targets are attacked
    alone = sm.risk.NearestRecord(archive=archive, row="row").score(original, masked, RNG)
    assert rates["nearest"] == alone.value
    few = sm.WorstLinkage(archive=archive, row="row", targets=8).score(original, masked, RNG)
    assert few.parts["targets"] == 8 and few.se is not None and few.value >= 0.75
    assert worst.title == "Re-identified by the best linkage attack, of the people in targets.parquet"


def test_equal_released_records_share_a_true_link(tmp_path: Path) -> None:
    """Records 0 and 1 are equal, and only 0 is in the archive: it is linked with probability 1/2, one-to-one."""
    original = sm.read(pl.DataFrame({"x0": [5.0, 5.0, 9.0, 40.0]}), numeric="all")
    pl.DataFrame({"x0": [5.0, 40.0], "row": [0, 3]}).write_parquet(tmp_path / "two.parquet")
    same = original.change(None, {})
    one_to_one = sm.risk.Linkage("d", archive=str(tmp_path / "two.parquet"), row="row")
    assert one_to_one.score(original, same, RNG).value == 0.75
    worst = sm.WorstLinkage(archive=str(tmp_path / "two.parquet"), row="row")
    pair, table = one_to_one.link_files(original, same)
    assert pair.average_over_targets(table.correct)[pair.targets].sum() == pytest.approx(1.5)
    assert worst.rates(original, same)["nearest"] == 0.75  # two records are equally near to person 0


def test_useless_release_re_identifies_no_more_than_chance(
    files: tuple[Microdata, Microdata, Array], archive: str
) -> None:
    """Values of other people: 1/500 by chance. Links of records to the nearest of 20 people would be right for 1 in 20."""
    original, masked, _ = files
    attack, values = sm.risk.NearestRecord(archive=archive, row="row"), []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(RECORDS)
        mixed = original.change(None, {name: masked[name][order] for name in NAMES})
        values.append(attack.score(original, mixed, RNG).value)
    # 1,200 claims with probability 1/500: 2.4 true ones are expected, and more than 10 have a probability below 1e-4
    assert sum(values) * TARGETS <= 10


def test_groups_of_equal_records_re_identify_one_person_in_five(tmp_path: Path) -> None:
    """Microaggregation: each of five persons has five equally near records."""
    x = np.repeat(np.arange(10.0) * 100, 5) + np.tile(np.arange(5.0), 10)
    original = sm.read(pl.DataFrame({"x0": x}), numeric="all")
    masked = original.change(None, {"x0": np.repeat(np.arange(10.0) * 100 + 2, 5)})
    path = tmp_path / "all.parquet"
    original.frame().with_row_index("row")[5:30].cast({"row": pl.Int64}).write_parquet(path)
    for attack in (sm.risk.NearestRecord(archive=str(path), row="row"), sm.WorstLinkage(archive=str(path), row="row")):
        result = attack.score(original, masked, RNG)
        assert result.value == pytest.approx(0.2) and result.parts["precision of links"] == pytest.approx(0.2)


def test_archive_of_all_records_changes_no_share(files: tuple[Microdata, Microdata, Array], tmp_path: Path) -> None:
    original, masked, _ = files
    y = masked.matrix(NAMES)[:60]
    original = sm.read(original.frame().head(60), numeric="all")
    masked = original.change(None, {name: y[:, index] for index, name in enumerate(NAMES)})
    original.frame().write_parquet(tmp_path / "all.parquet")
    with_archive = sm.risk.Linkage("d", archive=str(tmp_path / "all.parquet")).score(original, masked, RNG)
    assert with_archive.value == sm.risk.Linkage("d").score(original, masked, RNG).value


def test_households_of_an_archive_are_not_compared_as_wholes(tmp_path: Path) -> None:
    """Rows of the archive are not rows of the data, so their household numbers are unknown."""
    rng = np.random.default_rng(8)
    frame = pl.DataFrame({"h": np.arange(60) // 3, "x0": rng.lognormal(3, 1, 60), "x1": rng.lognormal(3, 1, 60)})
    original = sm.read(frame, numeric=["x0", "x1"], household="h")
    masked = original.change(None, {"x0": original["x0"] + rng.normal(0, 3, 60)})
    rows = rng.permutation(60)[:25]
    more = pl.DataFrame({"x0": rng.lognormal(3, 1, 50), "x1": rng.lognormal(3, 1, 50)})
    known = frame.with_row_index("row")[rows.tolist()].drop("h").cast({"row": pl.Int64})
    pl.concat([more, known], how="diagonal").write_parquet(tmp_path / "people.parquet")
    result = sm.WorstLinkage(archive=str(tmp_path / "people.parquet"), row="row").score(original, masked, RNG)
    assert not any(name.endswith("households as wholes") for name in result.parts)
    assert any(skipped.attack == "households as wholes" for skipped in result.skipped)
    assert result.parts["targets in file"] == 25 and 0.5 < result.value <= 1


def test_external_link_names_the_share_of_the_archive(tmp_path: Path) -> None:
    """Gomatam, Karr, Sanil (2003), 2.1: 2 of 9 unchanged records link uniquely; they name 2 of the archive's 3 people."""
    frame = pl.DataFrame({"a": list("xxyyzzuvww"), "b": list("1112121122")})
    original = sm.read(frame, keys=["a", "b"])
    pl.DataFrame({"a": ["y", "y", "u"], "b": ["1", "2", "1"]}).write_csv(tmp_path / "register.csv")
    masked = original.change(None, {"b": original.column("b").values[[0, 1, 3, 2, 4, 5, 6, 7, 8, 9]]})
    link = sm.risk.ExternalLink(str(tmp_path / "register.csv"))
    whole, changed = (link.score(original, file, RNG) for file in (original.change(None, {}), masked))
    assert whole.value == 3 / 10 and whole.parts["share of the archive"] == 1
    assert changed.value == 1 / 8 and changed.parts["share of the archive"] == 1 / 3
    assert link.records(original, masked).tolist()[6] == 1
