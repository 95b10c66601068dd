"""Links to an external file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm

RNG = np.random.default_rng(0)
DATA = pl.DataFrame({"sex": list("ffmmm"), "age": ["1", "2", "1", "2", "2"]})
ARCHIVE = pl.DataFrame({"age": [1, 2, 2, 2, 3], "sex": list("ffmmm"), "name": list("ABCDE")})


@pytest.fixture
def archive(tmp_path: Path) -> str:
    ARCHIVE.write_csv(tmp_path / "archive.csv")
    return str(tmp_path / "archive.csv")


def test_unique_and_nearly_unique_external_links(archive: str) -> None:
    data = sm.read(DATA, keys="all")
    same = data.change(None, {})
    unique, near = sm.risk.ExternalLink(archive), sm.risk.ExternalLink(archive, near=2)
    assert unique.score(data, same, RNG).value == 2 / 5  # the two women; no man of age 1 is in the archive
    assert near.score(data, same, RNG).value == 4 / 5  # and the men of age 2, each one of two
    assert near.records(data, same).tolist() == [1, 1, 0, 1, 1]
    assert sm.risk.ExternalLink(archive, on="sex", near=3).score(data, same, RNG).value == 1
    rows = np.array([0, 3])
    swapped = data.change(rows, {"sex": data.codes("sex")[rows[::-1]]})
    assert near.score(data, swapped, RNG).value == 2 / 3  # records 1, 2 and 4 are left: one is unique, one of two
    assert np.array_equal(near.records(data, swapped), [np.nan, 1, 0, np.nan, 1], equal_nan=True)
    part = swapped.take(np.array([4, 1, 0]))
    assert near.score(data, part, RNG).value == 1
    all_rows = np.arange(5)
    other = data.change(all_rows, {"sex": 1 - data.codes("sex")})
    with pytest.raises(sm.errors.Undefined, match="every record has changed"):
        near.score(data, other, RNG)


def test_archive_must_match_its_digest(archive: str) -> None:
    data = sm.read(DATA, keys="all")
    measure = sm.risk.ExternalLink(archive)
    assert len(measure.sha256) == 16
    Path(archive).write_text("age,sex\n1,f\n")
    with pytest.raises(sm.errors.SchemaError, match="is not the file that was named"):
        measure.score(data, data, RNG)
    with pytest.raises(sm.errors.SchemaError, match="has no column 'income'"):
        sm.risk.ExternalLink(archive).score(sm.read(DATA.with_columns(income=pl.lit("x")), keys="all"), data, RNG)
    with pytest.raises(sm.errors.SchemaError, match="column 'sex' is String in the archive and Int64 in the data"):
        numbers = sm.read(DATA.with_columns(sex=pl.Series([1, 1, 2, 2, 2])), keys="all")
        sm.risk.ExternalLink(archive).score(numbers, numbers, RNG)
    Path(archive).unlink()
    with pytest.raises(sm.errors.SchemaError, match="there is no file"):
        measure.score(sm.read(DATA, keys="all"), data, RNG)


def test_unreadable_archive_is_rejected_at_construction() -> None:
    with pytest.raises(sm.errors.PlanError, match="there is no file nowhere.csv to read"):
        sm.risk.ExternalLink("nowhere.csv")
    with pytest.raises(sm.errors.PlanError, match="16 hexadecimal digits"):
        sm.risk.ExternalLink("nowhere.csv", sha256="ABC")
