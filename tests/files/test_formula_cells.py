"""Texts that a spreadsheet program would run as formulas: `excel_safe` writes them as texts, and they read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from samples import chosen, plan_of
from samples import release_with_overrides as release
from sdcmap.core.formatting import escape_markdown
from sdcmap.files.text_types import has_formulas, quote_formulas, unquote_formulas

FORMULAS = ["=1+1", "+A1", "-2+3", "@sum", "\t=1", "\r=1", "'=1", "''@x"]
PLAIN = ["", "a=b", "-5", "+1,000.5", "-", "'quoted'", "5-6", None]


def test_formulas_are_quoted_and_restored() -> None:
    frame = pl.DataFrame({"=name": FORMULAS, "b": PLAIN})
    quoted = quote_formulas(frame)
    assert quoted.to_dict(as_series=False) == {"'=name": ["'" + text for text in FORMULAS], "b": PLAIN}
    assert unquote_formulas(quoted).equals(frame)
    assert [has_formulas(pl.Series([text], dtype=pl.String)) for text in (*FORMULAS, *PLAIN)] == [True] * 8 + [
        False
    ] * 8


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["=1+1", "b"])])
def test_write_excel_safe(tmp_path: Path, dtype: Any) -> None:
    data = sm.read(pl.DataFrame({"a": pl.Series(["=1+1", "b"], dtype=dtype), "n": [-1, 2]}))
    assert sm.write(data, tmp_path / "x.csv", excel_safe=True).read_text() == "a,n\n'=1+1,-1\nb,2\n"
    assert sm.write(data, tmp_path / "x.csv").read_text() == "a,n\n=1+1,-1\nb,2\n"
    with pytest.raises(sm.errors.PlanError, match="only CSV files can be written excel-safe"):
        sm.write(data, tmp_path / "x.parquet", excel_safe=True)


def people() -> sm.Microdata:
    rng = np.random.default_rng(1)
    columns = {
        "job": rng.choice(["=1+1", "clerk", "-2+3"], 300),
        "<script>alert(1)</script>": rng.choice(["[x](y)", "b"], 300),
        "wage": rng.integers(1, 90, 300),
    }
    return sm.read(pl.DataFrame(columns), keys=["job"], numeric="wage", sensitive="wage", other="all")


@pytest.mark.parametrize("excel_safe", [False, True])
def test_codebook_warns_of_formulas(tmp_path: Path, excel_safe: bool) -> None:
    data = people()
    plan = plan_of(sm.Swap(on="job", rate=0.2), measures=[sm.SmallCells(on="job"), sm.Hellinger(on="job")])
    folder = release(data, plan, chosen(plan), form="csv", excel_safe=excel_safe).write(tmp_path / "public")
    cells = {line.split(",")[0] for line in (folder / "data.csv").read_text().splitlines()[1:]}
    assert cells == ({"'=1+1", "clerk", "'-2+3"} if excel_safe else {"=1+1", "clerk", "-2+3"})
    entries = {entry["name"]: entry for entry in json.loads((folder / "codebook.json").read_text())}
    assert ("apostrophe" in entries["job"]["formulas"]) == excel_safe
    assert "formulas" not in entries["wage"] and entries["job"]["formulas"] in (folder / "codebook.md").read_text()
    assert ("additional apostrophe" in (folder / "note.md").read_text()) == excel_safe
    for page in folder.glob("*.md"):  # names and labels of a file are no HTML
        assert "<script" not in page.read_text() and "](" not in page.read_text()
    assert "&lt;script>alert(1)&lt;/script>" in (folder / "codebook.md").read_text()


def test_mask_excel_safe(tmp_path: Path) -> None:
    sm.write(people(), tmp_path / "people.csv")
    out = tmp_path / "masked.study.csv"
    sdcmap("mask", tmp_path / "people.csv", "--method", "Swap(on='job', rate=0.1)", "-o", out, "--excel-safe")
    assert set(pl.read_csv(out)["job"]) == {"'=1+1", "clerk", "'-2+3"}


def test_markdown_has_no_html_and_no_links() -> None:
    assert escape_markdown("<b> </b> <!-- <?x a < b 1<2 [a](b)") == "&lt;b> &lt;/b> &lt;!-- &lt;?x a < b 1<2 [a]\\(b)"
