"""Microdata: immutability, views, changes and their composition."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.cells import cells
from sdcmap.data.microdata import Microdata


@pytest.fixture
def data() -> Microdata:
    frame = pl.DataFrame({"sex": ["f", "m", "f", None], "age": [31, 44, 31, 60], "wage": [1.5, None, 2.5, 3.0]})
    return sm.read(frame, keys=["sex", "age"], numeric=["wage"])


def test_columns_are_arrays_and_keys_a_tuple(data: Microdata) -> None:
    assert data.keys == ("sex", "age")
    assert data["wage"].tolist()[0] == 1.5
    assert np.isnan(data["wage"][1])
    assert data["sex"].tolist() == ["f", "m", "f", None]
    with pytest.raises(sm.errors.SchemaError, match="no column 'wages'. Did you mean 'wage'"):
        data["wages"]


def test_arrays_are_read_only(data: Microdata) -> None:
    with pytest.raises(ValueError, match="read-only"):
        data["wage"][0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        data.codes("sex")[0] = 1
    with pytest.raises(AttributeError):
        data.schema = None  # type: ignore[misc, assignment]


def test_changes_compose_and_do_not_modify_the_base(data: Microdata) -> None:
    rows = np.array([0, 1])
    swapped = data.change(rows, {"sex": data.codes("sex")[rows[::-1]]})
    again = swapped.change(np.array([1, 2]), {"sex": np.array([2, 2], dtype=np.uint8)})
    whole = again.change(None, {"wage": np.arange(4.0)})
    assert data["sex"].tolist() == ["f", "m", "f", None]
    assert swapped["sex"].tolist() == ["m", "f", "f", None]
    assert again["sex"].tolist() == ["m", None, None, None]
    assert again.changed_rows(["sex"]).tolist() == [0, 1, 2]  # type: ignore[union-attr]
    assert whole.changed_rows(["wage"]) is None
    assert whole.base is data
    assert whole["age"].tolist() == data["age"].tolist()


def test_view_of_unchanged_columns_is_shared_with_base(data: Microdata) -> None:
    masked = data.change(None, {"wage": np.zeros(4)})
    assert masked.view(cells, ("sex", "age")) is data.view(cells, ("sex", "age"))
    other = masked.change(np.array([0]), {"sex": np.array([1], dtype=np.uint8)})
    assert other.view(cells, ("sex",)) is not data.view(cells, ("sex",))


def test_views_are_dropped_on_pickling(data: Microdata) -> None:
    data.view(cells, ("sex",))
    back = pickle.loads(pickle.dumps(data))
    assert len(back._views) == 0
    assert back.digest == data.digest


def test_cached_views_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch, data: Microdata) -> None:
    monkeypatch.setattr("sdcmap.data.view_cache.MAX_BYTES_PER_FILE", 100)
    for names in (("sex",), ("age",), ("sex", "age")):
        data.view(cells, names)
    assert sum((cells, names) in data._views for names in (("sex",), ("age",), ("sex", "age"))) <= 2


def test_digest_depends_on_values_roles_and_missing(data: Microdata) -> None:
    frame = data.frame()
    same = sm.read(frame, keys=["sex", "age"], numeric=["wage"])
    assert same.digest == data.digest
    assert sm.read(frame, keys=["sex"], numeric=["wage"], other=["age"]).digest != data.digest
    assert (
        sm.read(frame.with_columns(wage=pl.Series([1.5, 0.0, 2.5, 3.0])), keys=["sex", "age"], numeric=["wage"]).digest
        != data.digest
    )
    with_id = frame.with_columns(id=pl.Series(["a", "b", "c", "d"]))
    assert sm.read(with_id, keys=["sex", "age"], numeric=["wage"], identifiers=["id"]).digest == data.digest


def test_take_records_origin(data: Microdata) -> None:
    part = data.take(np.array([3, 0])).take(np.array([1]))
    assert part.origin is not None
    assert part.origin.tolist() == [0]
    assert part["age"].tolist() == [31]
    assert "origin" not in repr(part)


def test_new_levels_and_wider_codes_survive_later_changes() -> None:
    data = sm.read(pl.DataFrame({"v": ["a", "b", "c"]}), keys="all")
    recoded = data.change(None, {"v": np.array([0, 0, 1], dtype=np.uint8)}, {"v": pl.Series(["ab", "c"])})
    assert recoded.change(np.array([0, 2]), {"v": np.array([1, 0], dtype=np.uint8)})["v"].tolist() == ["c", "ab", "ab"]
    many = pl.Series([str(i) for i in range(400)])
    wide = data.change(np.array([0]), {"v": np.array([0], dtype=np.uint8)}, {"v": many})
    assert wide.change(np.array([1]), {"v": np.array([300], dtype=np.uint16)}).codes("v").tolist() == [0, 300, 2]


def test_repr_shows_no_values(data: Microdata) -> None:
    masked = data.change(np.array([1]), {"age": data.columns["age"].values[:1]})
    for shown in (repr(data.columns), repr(masked.changes), repr(data), data._repr_html_()):
        assert not any(value in shown for value in ("31", "44", "60", "1.5", "2.5"))
