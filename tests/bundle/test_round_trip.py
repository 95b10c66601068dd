"""The written file as it is scored: what the study measured in memory, read back from what was written."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import SEED
from sdcmap.bundle.prepared_file import Prepared, as_written, prepare
from sdcmap.bundle.round_trip import align_with_original, check_round_trip, read_released
from sdcmap.core.method import Method
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.files.writer import write
from sdcmap.methods import Sample

STREAM = Stream.of_seed(SEED, "read back")


def people(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    start = date(1930, 1, 1)
    return pl.DataFrame(
        {
            "age": rng.integers(16, 120, rows),
            "sex": rng.choice(["f", "m"], rows),
            "born": [start + timedelta(int(days)) for days in rng.integers(0, 9000, rows)],
            "seen": [datetime(2020, 1, 1, 12) + timedelta(seconds=int(s)) for s in rng.integers(0, 9, rows)],
            "at": [time(int(hour), 30) for hour in rng.integers(8, 12, rows)],
            "employed": [None if row % 9 == 0 else bool(row % 2) for row in range(rows)],
        }
    )


def written(data: Microdata, method: Method, folder: Path) -> tuple[Microdata, Prepared, Microdata]:
    """The masked file, as prepared, and as read back."""
    masked = as_written(data, method, method.apply(data, STREAM))
    prepared = prepare(data, method, masked, STREAM)
    write(prepared.data, folder / f"data.{data.schema.format}")
    return masked, prepared, read_released(folder / f"data.{data.schema.format}", prepared)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("kind", ["numeric", "ordinal"])
@pytest.mark.parametrize("last", [(), (sm.Suppress(on=["age", "sex"], k=3),), (Sample(rate=0.5),)])
def test_bands_of_number_score_as_in_study(form: str, kind: str, last: tuple[Method, ...], tmp_path: Path) -> None:
    """Ages released as bands: what finds people in memory finds them in the written file."""
    getattr(people(), f"write_{form}")(tmp_path / f"people.{form}")
    data = sm.read(tmp_path / f"people.{form}", keys=["age", "sex"], kinds={"age": kind}, other="all")
    method = sm.Chain([sm.Recode(on=["age"], width=10), *last])
    masked, prepared, back = written(data, method, tmp_path)
    released = align_with_original(data, back, prepared)
    levels = [level for level in released.column("age").levels if level is not None]  # type: ignore[union-attr]
    assert levels == sorted(levels, key=lambda band: float(band.split(",")[0].strip("(<= "))), "in their order"
    for measure in (sm.risk.ExactMatch(on=["age", "sex"], k=20), sm.risk.WorstLinkage(on=["age", "sex"])):
        values = [measure.apply(data, file, np.random.default_rng(0)).value for file in (masked, released)]
        assert values[0] == pytest.approx(values[1]) and values[0] > 0


def test_dates_times_and_booleans_survive_round_trip(tmp_path: Path) -> None:
    people().write_csv(tmp_path / "people.csv")
    data = sm.read(tmp_path / "people.csv", keys=["age", "sex"], other="all")
    assert data.schema["born"].storage == "Date" and data.schema["seen"].storage == "Datetime"
    _, prepared, back = written(data, sm.Swap(on=["sex"], rate=0.1), tmp_path)
    assert check_round_trip(prepared, back).passed
    frame = pl.read_csv(tmp_path / "data.csv")
    assert set(frame["born"]) == {day.isoformat() for day in people()["born"]}
