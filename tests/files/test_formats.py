"""All code uses one table of formats, so a new format needs only a row, a reader and a writer."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from sdcmap.data.schema import Variable
from sdcmap.files import formats
from sdcmap.files.csv_parquet import ReadOptions
from sdcmap.files.decoded_size import check_decoded
from sdcmap.files.formats import FORMATS, Format, endings, format_named, format_of
from sdcmap.web.workspace import Workspace


def read_lines(path: Path, asked: ReadOptions) -> tuple[pl.DataFrame, dict[str, Variable]]:
    """Read a line of names, then one record per line; fields are separated by bars, empty ones are missing."""
    names, *records = (line.split("|") for line in path.read_text().splitlines())
    columns = zip(*records, strict=True)
    texts = {name: [cell or None for cell in cells] for name, cells in zip(names, columns, strict=True)}
    frame = pl.DataFrame(texts)
    return frame.with_columns(pl.col("wage").cast(pl.Float64)), {}


def write_lines(data: sm.Microdata, path: Path) -> None:
    rows = [data.names, *data.frame().rows()]
    path.write_text("\n".join("|".join("" if cell is None else str(cell) for cell in row) for row in rows) + "\n")


BARS = Format("bars", "Bars", (".bars", ".bar"), read_lines, write_lines, hint="Fields stand between bars.")


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "FORMATS", (*FORMATS, BARS))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [f"{'abc'[number % 3]}|{'fm'[number % 2]}|{20 + number % 7}" for number in range(60)]
    path = tmp_path / "people.bar"
    path.write_text("\n".join(["region|sex|wage", *rows, "a||31"]) + "\n")
    return path


@pytest.mark.usefixtures("bars")
def test_new_format_needs_a_row_a_reader_and_a_writer(file: Path, tmp_path: Path) -> None:
    data = sm.read(file, keys=["region", "sex"], numeric="wage")
    assert data.schema.format == "bars" and data.missing("sex").sum() == 1
    plan = sm.Plan([sm.Swap("sex", 0.1), sm.Noise("wage", 0.1)], [sm.SmallCells(), sm.Hellinger()], seed=1)
    scores = sm.sweep(data, plan, tmp_path / "study", workers=1)
    assert set(scores.candidate["status"]) == {"ok"}
    masked = sm.mask(data, sm.Swap("sex", 0.1), seed=1)
    back = sm.read(sm.write(masked, tmp_path / "masked.bars"), keys=["region", "sex"], numeric="wage")
    assert back.frame().equals(masked.frame())
    assert not back.frame().equals(data.frame())


@pytest.mark.usefixtures("bars")
def test_the_workbench_knows_a_new_format(file: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert [found.name for found in workspace.files()] == ["people.bar"]
    with file.open("rb") as source:
        assert workspace.store_upload("C:\\more.bars", source) == tmp_path / "more.bars"


@pytest.mark.usefixtures("bars")
def test_format_table_is_used(tmp_path: Path) -> None:
    (tmp_path / "x.bars").write_text("a|b\n1\n")
    with pytest.raises(sm.errors.SchemaError, match=r"x\.bars cannot be read as bars .*Fields stand between bars\.$"):
        sm.read(tmp_path / "x.bars")
    with pytest.raises(sm.errors.SchemaError, match=r"must be one of .*\.rds, \.bars\."):
        sm.read(tmp_path / "x.xlsx")
    with pytest.raises(sm.errors.SchemaError, match="only a Parquet file can be read in blocks"):
        sm.files.read_in_blocks(sm.Source("x.bars"), tmp_path / "copy", below=tmp_path)


def test_endings_and_names_are_unique() -> None:
    assert len(set(endings())) == len(endings())
    assert len({form.name for form in FORMATS}) == len(FORMATS)
    for form in FORMATS:
        assert format_of(Path(f"x{form.endings[-1].upper()}")) is form
        assert format_named(form.released).write is not None
        assert form.name == form.endings[0][1:]


@pytest.mark.parametrize("ending", [ending for form in FORMATS if form.write for ending in form.endings])
@pytest.mark.usefixtures("read_here")
def test_every_written_ending_is_checked_and_read(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]})
    path = sm.write(sm.read(frame), tmp_path / f"x{ending}")
    assert sm.read(path).frame().equals(frame)
    form = format_of(path)
    # .xpt headers do not state the number of rows, and text files have no such header
    assert form.cells(path) in ((0, 6) if form.name == "xpt" else (6,) if form.packed else (0,))
    check_decoded(path, 1 << 20)
