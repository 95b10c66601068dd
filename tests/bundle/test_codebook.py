"""The codebook: for each column its masking and reason, its range and counts in the release, and how to read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sdcmap as sm
from samples import chosen, plan_of, release_with_overrides
from sdcmap.methods import Chain, Recode, Suppress, TopCode

METHOD = Chain(
    [
        Recode("race", merge=[["c", "d"]]),
        TopCode("age", top=60),
        Suppress(["race", "region"], k=3, importance=["region"]),
        sm.RankSwap("wage", 0.1),
    ]
)


def survey(rows: int = 400) -> sm.Microdata:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "race": rng.choice(["a", "b", "c", "d", "e"], rows, p=[0.6, 0.3, 0.05, 0.04, 0.01]),
            "region": rng.choice(["n", "s", "w"], rows),
            "age": rng.integers(18, 90, rows).astype(float),
            "wage": rng.lognormal(7, 1, rows).round(0),
            "mood": rng.choice(["good", "bad", None], rows),
        }
    )
    return sm.read(frame, keys=["race", "region"], numeric=["age", "wage"], sensitive="wage", other="mood")


def written(folder: Path) -> tuple[dict[str, dict[str, Any]], pl.DataFrame, str]:
    plan = plan_of(METHOD, measures=[sm.SmallCells(on=["race", "region"]), sm.Hellinger(on=["race", "region"])])
    out = release_with_overrides(survey(), plan, chosen(plan)).write(folder / "public")
    entries = {entry["name"]: entry for entry in json.loads((out / "codebook.json").read_text())}
    return entries, pl.read_parquet(out / "data.parquet"), (out / "codebook.md").read_text()


def test_codebook_describes_masking_and_counts_of_each_column(tmp_path: Path) -> None:
    entries, frame, page = written(tmp_path)
    assert entries["race"]["done"] == "with 2 categories merged, then suppressed to k = 3"
    assert entries["wage"]["done"] == "rank swapped 10 %" and entries["mood"]["done"] == ""
    assert entries["race"]["why"].startswith("Others may know this value") and "learn" in entries["wage"]["why"]
    assert entries["race"]["counts"] == {
        "missing": 0,
        "suppressed": int((frame["race"] == "*").sum()),
        "recoded": int((frame["race"] == "c|d").sum()),
    }
    assert entries["race"]["counts"]["suppressed"] > 0
    assert entries["age"]["counts"]["recoded"] == int((frame["age"] >= 60).sum()) > 100
    assert entries["age"]["range"] == [frame["age"].min(), frame["age"].max()] and entries["age"]["range"][1] == 60
    assert entries["mood"]["counts"]["missing"] == frame["mood"].null_count() > 0
    assert "* marks a value that was suppressed to protect people" in entries["race"]["reading"]
    assert "single value may have been changed" in entries["wage"]["reading"]
    assert entries["mood"]["reading"] == "Not changed by masking."
    assert "- Masking: rank swapped 10 %. Reason: This is what" in page and "- Masking: none." in page


def test_note_uses_name_of_method(tmp_path: Path) -> None:
    written(tmp_path)
    page, note = ((tmp_path / "public" / name).read_text() for name in ("note.md", "note.json"))
    assert f"Method: {METHOD.title}." in page and METHOD.text not in page
    assert json.loads(note)["method"] == METHOD.spec()
