"""Categories beside amounts, and the attacker's own file: against plain numpy. Seri (2005), sections 1 to 3."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm

AMOUNTS = ("turnover", "employees")


def firms(n: int = 120, seed: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return firms with an activity and a region, and a masked file: noise, 10 activities changed, 8 suppressed."""
    rng = np.random.default_rng(seed)
    x = rng.normal((9.8, 3.6), (1.1, 0.8), (n, 2))
    y = x + 0.3 * rng.standard_normal(x.shape)
    activity, region = rng.choice(list("ABC"), n), rng.choice(list("ns"), n)
    shown = activity.astype(object)
    shown[:10] = rng.permutation(shown[:10])
    shown[10:18] = None
    names = list(AMOUNTS)
    original = pl.DataFrame(x, schema=names).with_columns(activity=pl.Series(activity), region=pl.Series(region))
    masked = pl.DataFrame(y, schema=names).with_columns(
        activity=pl.Series(shown.tolist(), dtype=pl.String), region=pl.Series(region)
    )
    return original, masked


def compared_distances(x: pl.DataFrame, y: pl.DataFrame, within: tuple[str, ...]) -> np.ndarray:
    """Return z_ij by the plain formula; infinite where a category that record i shows differs from that of unit j."""
    a, b = x.select(AMOUNTS).to_numpy(), y.select(AMOUNTS).to_numpy()
    z = np.sqrt(((b[:, None] - a[None]) ** 2).sum(axis=2)) / np.sqrt((b**2).sum(axis=1))[:, None]
    for i in range(len(b)):
        for j in range(len(a)):
            if any(y[name][i] is not None and y[name][i] != x[name][j] for name in within):
                z[i, j] = np.inf
    return z


@pytest.mark.parametrize("within", [("activity",), ("activity", "region")])
def test_neighbors_within_categories_match_plain_loop(within: tuple[str, ...]) -> None:
    x, y = firms()
    z = compared_distances(x, y, within)
    own, off = np.diag(z), ~np.eye(len(z), dtype=bool)
    nonlinks = np.sort(z[off & np.isfinite(z)])
    table = sm.records(x, y, AMOUNTS, within=within, alpha=0.1)
    assert table.delta == nonlinks[int(np.ceil(0.1 * len(nonlinks))) - 1]
    assert np.array_equal(table.neighbors, (z < table.delta).sum(axis=1))
    assert np.array_equal(table.link_in, own < table.delta)
    assert np.array_equal(table.nearest, np.isfinite(own) & (own <= z.min(axis=1)))
    assert table.linked == np.isfinite(own).sum() < len(z)
    # The perturbation is that of the amounts, with or without categories.
    assert np.array_equal(table.perturbation, sm.records(x, y, AMOUNTS).perturbation)


def test_a_category_that_all_share_changes_nothing() -> None:
    x, y = (part.with_columns(activity=pl.lit("A")) for part in firms())
    plain, within = sm.records(x, y, AMOUNTS), sm.records(x, y, AMOUNTS, within="activity")
    assert within.delta == plain.delta and np.array_equal(within.neighbors, plain.neighbors)
    assert np.array_equal(within.nearest, plain.nearest) and within.links_in_reach == plain.links_in_reach


def test_one_activity_at_a_time_with_stated_delta() -> None:
    """With the same delta, `within` equals Seri's analysis of each activity alone."""
    x, y = firms()
    y = y.with_columns(activity=x["activity"])
    whole = sm.records(x, y, AMOUNTS, within="activity", delta=0.05)
    for activity in "ABC":
        rows = np.flatnonzero((x["activity"] == activity).to_numpy())
        alone = sm.records(x[rows.tolist()], y[rows.tolist()], AMOUNTS, delta=0.05)
        assert np.array_equal(whole.neighbors[rows], alone.neighbors)
        assert np.array_equal(whole.safe[rows], alone.safe)


def test_integer_codes_and_recoded_categories_within() -> None:
    x, y = firms()
    codes = {"A": 10, "B": 11, "C": 20}
    x = x.with_columns(activity=x["activity"].replace_strict(codes, return_dtype=pl.Int64))
    y = y.with_columns(activity=x["activity"])
    z = compared_distances(x, y, ("activity",))
    exact = sm.records(x, y, AMOUNTS, within="activity", delta=0.05)
    assert np.array_equal(exact.neighbors, (z < 0.05).sum(axis=1))
    # 10 and 11 are released as one class, so a record of it is compared with both.
    wide = y.with_columns(activity=x["activity"].replace_strict({10: "10|11", 11: "10|11", 20: "20"}))
    coarse = x.with_columns(activity=(pl.col("activity") < 20).cast(pl.String))
    z = compared_distances(coarse, y.with_columns(activity=coarse["activity"]), ("activity",))
    recoded = sm.records(x, wide, AMOUNTS, within="activity", delta=0.05)
    assert np.array_equal(recoded.neighbors, (z < 0.05).sum(axis=1))


def test_draw_zoom_and_densities_show_only_compared_units() -> None:
    x, y = firms()
    table = sm.records(x, y, AMOUNTS, within="activity", delta=0.2)
    row = 30
    panel = table.draw_zoom(row).spec["concat"][1]["layer"]
    shown = len(panel[1]["data"]["values"]) + len(panel[2]["data"]["values"])
    same = (x["activity"] == y["activity"][row]).sum()
    assert len(panel[2]["data"]["values"]) == table.neighbors[row] and shown <= same
    assert table.draw_densities().spec and "within activity" in str(table.draw().spec)


# ---- the attacker's own file ----------------------------------------------------------------------------------
def register(x: pl.DataFrame, seed: int = 3) -> pl.DataFrame:
    """Return a register: 80 of the firms with small errors, and 50 other firms, in another order."""
    rng = np.random.default_rng(seed)
    known = rng.permutation(len(x))[:80]
    amounts = x.select(AMOUNTS).to_numpy()[known] + 0.01 * rng.standard_normal((80, 2))
    others = rng.normal((9.8, 3.6), (1.1, 0.8), (50, 2))
    rows = pl.Series([*known.tolist(), *[None] * 50], dtype=pl.Int64)
    frame = pl.DataFrame(np.vstack([amounts, others]), schema=list(AMOUNTS)).with_columns(row=rows)
    return frame[rng.permutation(130).tolist()]


def test_archive_units_are_the_neighbors() -> None:
    x, y = firms()
    archive = register(x)
    a, b = archive.select(AMOUNTS).to_numpy(), y.select(AMOUNTS).to_numpy()
    z = np.sqrt(((b[:, None] - a[None]) ** 2).sum(axis=2)) / np.sqrt((b**2).sum(axis=1))[:, None]
    link = np.full(len(b), -1)
    for unit, row in enumerate(archive["row"].to_list()):
        if row is not None:
            link[row] = unit
    linked = link >= 0
    own = np.where(linked, z[np.arange(len(b)), link], np.inf)
    is_nonlink = np.arange(len(a)) != link[:, None]
    nonlinks = np.sort(z[is_nonlink])
    table = sm.records(x, y, AMOUNTS, archive=archive, row="row")
    assert table.delta == nonlinks[int(np.ceil(0.05 * len(nonlinks))) - 1] and table.linked == 80
    assert np.array_equal(table.neighbors, (z < table.delta).sum(axis=1))
    assert np.array_equal(table.link_in, own < table.delta)
    assert np.array_equal(table.nearest, linked & (own <= z.min(axis=1)))
    # The perturbation refers to the original, not to the register.
    assert np.array_equal(table.perturbation, sm.records(x, y, AMOUNTS).perturbation)
    drawn = json.dumps(table.draw_zoom().spec)
    assert "among the units of the archive" in drawn and "its own unit of the archive" in drawn
    assert "original" not in drawn and "its own original" in json.dumps(sm.records(x, y, AMOUNTS).draw_zoom().spec)
    unknown = sm.records(x, y, AMOUNTS, archive=archive, delta=table.delta)
    assert np.array_equal(unknown.neighbors, table.neighbors) and unknown.linked == unknown.links_in_reach == 0


def test_archive_equal_to_the_original_changes_nothing(tmp_path: Path) -> None:
    x, y = (part.with_row_index("id") for part in firms())
    x.reverse().write_csv(tmp_path / "register.csv")
    plain = sm.records(x, y, AMOUNTS, by="id", within="region")
    with_archive = sm.records(x, y, AMOUNTS, by="id", within="region", archive=tmp_path / "register.csv")
    assert with_archive.delta == plain.delta and np.array_equal(with_archive.neighbors, plain.neighbors)
    assert np.array_equal(with_archive.nearest, plain.nearest)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (pl.col("row").fill_null(500), "whole numbers from 0 to 119"),
        (pl.col("row").fill_null(0), "names a row of the data twice"),
        (pl.lit(1).alias("employees2"), "no column 'rows'"),
    ],
)
def test_bad_archives_are_rejected(change: pl.Expr, words: str) -> None:
    x, y = firms()
    with pytest.raises(sm.errors.SchemaError, match=words):
        name = "rows" if "rows" in words else "row"
        sm.records(x, y, AMOUNTS, archive=register(x).with_columns(change), row=name)


# ---- arguments without effect ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"population": firms()[0]}, "state the attacker's file as `archive`"),
        ({"row": "id"}, "state `archive` as well"),
        ({"frequency": "population"}, "frequency has no effect with distances"),
        ({"alpha": 0.1, "delta": 0.1}, ".alpha has no effect beside .delta"),
        ({"neighborhood": "fellegi-sunter", "count_to": 20}, "`count_to` has no effect with 'fellegi-sunter'"),
        ({"on": ["activity"], "r": 0.3}, "r has no effect with frequencies"),
        ({"on": ["activity"], "scale": "log"}, "scale has no effect with frequencies"),
        ({"on": ["activity"], "archive": firms()[0]}, "state the file as `population`"),
        ({"on": ["activity"], "population": firms()[0]}, "no effect with frequency='sample'"),
        ({"on": ["activity"], "count_to": 20}, "`count_to` has no effect"),
        ({"neighborhood": "frequency", "q": 0.5}, ".q has no effect with frequencies"),
        ({"within": "turnover"}, ".within and .on both name 'turnover'"),
        ({"amounts": "profit"}, ".amounts names 'profit', which .on does not compare"),
        ({"within": "sector"}, "no column 'sector'"),
        ({"on": ["turnover", "activity"]}, "'activity' has categories. Name it in `within`"),
    ],
)
def test_arguments_without_effect_are_rejected(options: dict, words: str) -> None:
    x, y = firms()
    with pytest.raises(sm.errors.SdcmapError, match=words):
        sm.records(x, y, **{"on": AMOUNTS, **options})


def test_several_categories_are_named_together() -> None:
    x, y = (part.with_columns(region=pl.Series([str(i % 3) for i in range(len(part))])) for part in firms())
    with pytest.raises(sm.errors.SchemaError, match="'activity', 'region' have categories. Name them in `within`"):
        sm.records(x, y, on=["turnover", "activity", "region"])


def test_integer_codes_are_not_amounts() -> None:
    x, y = (part.with_columns(nace=pl.int_range(len(part)) % 40 + 10) for part in firms())
    few = [part.with_columns(size_class=pl.int_range(len(part)) % 4 + 1) for part in (x, y)]
    with pytest.raises(sm.errors.SchemaError, match="'nace' looks like a code of categories"):
        sm.records(x, y, ["turnover", "nace"])
    with pytest.raises(sm.errors.SchemaError, match="'size_class' looks like a code"):
        sm.records(*few, ["turnover", "size_class"])
    assert len(sm.records(x, y, "turnover", within="nace")) == len(x)
    assert len(sm.records(*few, ["turnover", "size_class"], amounts="size_class")) == len(x)
    many = [part.with_columns(staff=pl.int_range(len(part)) * 3 + 1) for part in (x, y)]
    assert len(sm.records(*many, ["turnover", "staff"])) == len(x)
