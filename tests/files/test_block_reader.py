"""Files larger than memory: reading in blocks equals reading, and a sweep with little memory gives the same scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from sdcmap.cli import app
from sdcmap.errors import PlanError, SchemaError, SdcmapError
from sdcmap.files.block_reader import check_memory, parse_bytes
from sdcmap.files.reader import Source
from sdcmap.kernels.scratch_memory import empty, limit_memory


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return columns of many kinds: text, whole numbers with few and many values, dates, missing, Enum, weight."""
    n = 300_000
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "id": np.arange(n),
            "region": rng.choice(["north", "south", "east"], n),
            "age": rng.integers(0, 90, n),
            "size": rng.integers(1, 9, n),
            "day": pl.Series(rng.integers(0, 50, n)).cast(pl.Int32).cast(pl.Date),
            "level": pl.Series(rng.choice(["low", "high"], n), dtype=pl.Enum(["low", "mid", "high"])),
            "wage": rng.lognormal(3, 1, n),
            "weight": rng.integers(1, 5, n),
        }
    )
    gone = pl.Series(rng.random(n) < 0.1)
    frame = frame.with_columns(pl.when(~gone).then(pl.col(name)).alias(name) for name in ("region", "size", "wage"))
    path = tmp_path_factory.mktemp("large") / "people.parquet"
    frame.write_parquet(path, row_group_size=30_000)
    return path


KEYS = ("region", "age", "size", "day", "level")


def source(file: Path, **more: object) -> Source:
    return Source(str(file), keys=KEYS, identifiers=("id",), weight=("weight",), numeric=("wage",), **more)  # type: ignore[arg-type]


def test_block_reader_equals_read(file: Path, tmp_path: Path) -> None:
    whole = source(file).read()
    mapped = sm.files.read_in_blocks(source(file), tmp_path / "copy", memory=250 << 20)
    assert mapped.digest == whole.digest
    assert mapped.schema.variables == tuple(v for v in whole.schema.variables if v.role != "identifier")
    assert mapped.frame().equals(whole.frame().drop("id"))
    assert isinstance(mapped.column("wage").values.base, np.memmap) or isinstance(
        mapped.column("wage").values, np.memmap
    )


@pytest.mark.parametrize("kinds", [{"nominal": ("age",)}, {"ordinal": ("size", "age")}])
def test_stated_kinds_are_kept(file: Path, tmp_path: Path, kinds: dict[str, tuple[str, ...]]) -> None:
    mapped = sm.files.read_in_blocks(source(file, **kinds), tmp_path / "copy", memory=250 << 20)
    assert mapped.digest == source(file, **kinds).read().digest


@pytest.mark.parametrize(("engine", "workers"), [("serial", 1), ("processes", 2)])
def test_sweep_with_little_memory_gives_the_same_scores(
    file: Path, tmp_path: Path, engine: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = [*sm.grid(sm.Swap, on=["region", "level"], rate=[0.01, 0.05]), sm.Swap(on="region", same="level")]
    measures = [sm.SmallCells(on=("region", "size", "level")), sm.Hellinger(on=("region", "size", "level"))]
    plan = sm.Plan(methods, measures, replicates=2, seed=2**140)
    plain = sm.sweep(source(file).read(), plan, workers=1)
    # so that even the small arrays of this file are put into files
    monkeypatch.setattr("sdcmap.kernels.scratch_memory.LARGEST_ARRAY_DIVISOR", 4096)
    mapped = sm.files.read_in_blocks(source(file), tmp_path / "s" / "incoming", memory=250 << 20)
    scores = sm.sweep(mapped, plan, tmp_path / "s", engine=engine, workers=workers, memory=800 << 20)
    for ours, theirs in (
        (scores.candidate.drop("seconds"), plain.candidate.drop("seconds")),
        (scores.score, plain.score),
    ):
        assert ours.equals(theirs)
    assert not (tmp_path / "s" / "incoming").exists() and (tmp_path / "s" / "data.bin").exists()
    assert {path.name for path in (tmp_path / "s").iterdir()} <= {
        "data.bin", "schema.arrow", "plan.toml", "manifest.json", "lock",
        "scores.sqlite", "scores.sqlite-wal", "scores.sqlite-shm",
    }  # fmt: skip


def test_the_command_line(file: Path, tmp_path: Path) -> None:
    plan = sm.Plan(
        [sm.Swap(on="region")], [sm.SmallCells(on=("region", "level")), sm.Hellinger(on=("region", "level"))],
        data=source(file),
    )  # fmt: skip
    (tmp_path / "plan.toml").write_text(plan.toml())
    words = ["sweep", str(tmp_path / "plan.toml"), "-o", str(tmp_path / "s"), "--workers", "1"]
    for _ in range(2):  # the second run continues the study
        said = CliRunner().invoke(app, [*words, "--memory", "500MB"])
        assert said.exit_code == 0 and "2 ok" in said.stdout, said.output
    with pytest.raises(SdcmapError, match=r"300,000 rows need at least 204 MB for 1 worker"):
        CliRunner().invoke(app, [*words, "--memory", "100MB"], catch_exceptions=False)


def test_memory_sizes_and_checks() -> None:
    assert (parse_bytes("500MB"), parse_bytes("1.5 GB"), parse_bytes("2tb")) == (500 << 20, 3 << 29, 2 << 40)
    for wrong in ("500", "MB", "", "5 PB", "nan"):
        with pytest.raises(PlanError, match="is not a memory size"):
            parse_bytes(wrong)
    check_memory(0, 10**9, 64)
    with pytest.raises(SdcmapError, match="increase --memory, or use fewer --workers"):
        check_memory(1 << 30, 10**8, 2)


def test_large_arrays_are_stored_in_unnamed_files(tmp_path: Path) -> None:
    with limit_memory(64 << 10, tmp_path):
        small, large = empty(100, np.int64), empty((1000, 3), np.int32)
        assert not isinstance(small, np.memmap) and isinstance(large, np.memmap)
        large[:] = 7
        assert large.shape == (1000, 3) and int(large.sum()) == 21_000
        assert list(tmp_path.iterdir()) == []
    assert not isinstance(empty(10**6, np.int8), np.memmap)


def test_block_reader_rejects_other_formats(file: Path, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(SchemaError, match="only a Parquet file"):
        sm.files.read_in_blocks(Source(str(tmp_path / "x.csv")), tmp_path / "c")
    with pytest.raises(SchemaError, match="there is no file"):
        sm.files.read_in_blocks(Source(str(tmp_path / "x.parquet")), tmp_path / "c")
    (tmp_path / "y.parquet").write_bytes(b"PAR1 nothing PAR1")
    with pytest.raises(SchemaError, match="cannot be read as parquet"):
        sm.files.read_in_blocks(Source(str(tmp_path / "y.parquet")), tmp_path / "c")
    with pytest.raises(SchemaError, match="no column 'agee'. Did you mean 'age'"):
        sm.files.read_in_blocks(Source(str(file), keys=("agee",)), tmp_path / "c")
    pl.DataFrame({"w": [1.0, 0.0]}).write_parquet(tmp_path / "w.parquet")
    with pytest.raises(SchemaError, match="must be above zero"):
        sm.files.read_in_blocks(Source(str(tmp_path / "w.parquet"), weight=("w",)), tmp_path / "c")
