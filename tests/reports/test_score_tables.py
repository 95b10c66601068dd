"""Tables of methods by losses, risks and scores. Yancey, Winkler, Creecy (2002), tables 1 to 3."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from sdcmap.cli import app
from sdcmap.reports.score_tables import make_score_tables

AMOUNTS = ("a", "b", "c")
NOISE = sm.Noise(on=AMOUNTS, variance=0.1, correlated=True)
LINKAGE = sm.risk.Linkage("d", open_columns="as any")
MEASURES = [sm.utility.S1(), sm.utility.S2(), LINKAGE, sm.risk.Index(on="a")]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("scores") / "amounts.csv"
    pl.DataFrame(np.exp(rng.normal(8, 1, (40, 3))), schema=list(AMOUNTS)).write_csv(path)
    source = sm.Source(path=str(path), numeric=AMOUNTS)
    methods = [NOISE, sm.RankSwap(on=AMOUNTS, p=0.2)]
    plan = sm.Plan(methods, MEASURES, replicates=3, seed=2**130, data=source)
    sm.sweep(source.read(), plan, path.parent / "study", engine="serial")
    return path.parent / "study"


def draws(study: Path, measure: sm.Measure, method: str, part: str = "") -> np.ndarray:
    """Return the values of single files, read from the scores and averaged by nothing."""
    scores = sm.Study.open(study).scores()
    table = scores.column(measure.text).filter(pl.col("method").str.starts_with(method))
    estimates = scores.estimates(measure.text)
    return np.array([estimates[key].parts[part] if part else estimates[key].value for key in table["id"]])


def test_tables_are_means_over_draws_with_their_errors(study: Path) -> None:
    tables = make_score_tables(sm.Study.open(study).scores())
    name = sm.Study.open(study).scores().name_of(NOISE.text)
    row = next(row for row in tables.losses.to_dicts() if row["method"] == name)
    own = draws(study, MEASURES[0], "Noise")
    assert row["S1"] == pytest.approx(own.mean()) and row["S1 se"] == pytest.approx(own.std(ddof=1) / 3**0.5)
    for part in ("IL1", "IL2", "IL3", "IL4", "IL5"):
        assert row[part] == pytest.approx(draws(study, MEASURES[0], "Noise", part).mean())
    assert row["IL1s"] == pytest.approx(draws(study, MEASURES[1], "Noise", "IL1s").mean())
    risk = next(row for row in tables.risks.to_dicts() if row["method"] == name)
    assert risk["Linkage"] == pytest.approx(draws(study, LINKAGE, "Noise").mean())
    assert len(tables.losses) == len(tables.risks) == len(tables.overall) == 3  # two methods and the unmasked file


def test_scores_follow_from_their_parts(study: Path) -> None:
    """A = 50 (s0 + reid), D = 50 (s1 + reid), S = 50 (s2 + reid), with s0 = (IL2 + IL3 + IL4 + IL5) / 4: section 3.5."""
    tables = make_score_tables(sm.Study.open(study).scores())
    for loss, risk, overall in zip(*(t.to_dicts() for t in (tables.losses, tables.risks, tables.overall)), strict=True):
        rate, name = risk["Linkage"], "Linkage"
        s0 = (loss["IL2"] + loss["IL3"] + loss["IL4"] + loss["IL5"]) / 4
        assert overall[f"A-score, {name}"] == pytest.approx(50 * (s0 + rate))
        assert overall[f"D-score, {name}"] == pytest.approx(50 * (loss["S1"] + rate))
        assert overall[f"S-score, {name}"] == pytest.approx(50 * (loss["S2"] + rate))
    assert not [name for name in tables.overall.columns if "Index" in name]  # its risk is no share


def test_command_writes_every_form(study: Path, tmp_path: Path) -> None:
    run = lambda *given: CliRunner().invoke(app, ["scores", str(study), *map(str, given)])
    wanted = make_score_tables(sm.Study.open(study).scores())
    for ending in ("csv", "xlsx", "md"):
        assert run("-o", tmp_path / f"t.{ending}").exit_code == 0
    assert pl.read_csv(tmp_path / "t.csv").columns == wanted.frame().columns
    text = (tmp_path / "t.md").read_text()
    assert (
        text == wanted.markdown() == run().output.rstrip("\n") + "\n" and "± " in text and "## Overall scores" in text
    )
    with zipfile.ZipFile(io.BytesIO((tmp_path / "t.xlsx").read_bytes())) as book:
        sheets = [ElementTree.fromstring(book.read(f"xl/worksheets/sheet{n}.xml")) for n in (1, 2, 3)]
        names = [sheet.get("name") for sheet in ElementTree.fromstring(book.read("xl/workbook.xml"))[0]]
    assert names == list(wanted.tables)
    rows = [["".join(cell.itertext()) for cell in row] for row in sheets[2][0]]
    assert rows[0] == wanted.overall.columns
    assert [float(row[2]) for row in rows[1:]] == wanted.overall[wanted.overall.columns[2]].to_list()
    document = json.loads(run("--json", "--parts").output)
    assert any("zone" in name for name in document["Disclosure risks"][0])
    with pytest.raises(sm.errors.PlanError, match="as .csv, .xlsx or .md"):
        CliRunner().invoke(app, ["scores", str(study), "-o", str(tmp_path / "t.pdf")], catch_exceptions=False)
