"""What users of a release get beside the data: README with corrections that run, citation, and a codebook that archives
read; all of it from released values."""

from __future__ import annotations

import contextlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import polars as pl
import pytest
from ddi_model import problems_of

import sdcmap as sm
from samples import chosen, plan_of, release_with_overrides
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.errors import PlanError
from sdcmap.methods import Chain, Recode, Suppress, TopCode

DDI = "{ddi:codebook:2_5}"
MEASURES = [sm.SmallCells(on=["region"]), sm.Hellinger(on=["region"])]
RECODED = Chain(
    [
        Recode("region", merge=[["r3", "r4"]]),
        TopCode("age", top=60),
        Suppress(["region", "sex"], k=20, importance=["sex"]),
    ]
)
BOOK = """<codeBook xmlns="ddi:codebook:2_5" version="2.5"><stdyDscr>
  <citation><titlStmt><titl>Living in Utopia</titl></titlStmt></citation>
  <stdyInfo><sumDscr><universe>People in private households</universe></sumDscr></stdyInfo></stdyDscr>
 <dataDscr>
  <var name="sex"><labl>Sex &amp; gender</labl><catgry><catValu>1</catValu><labl>woman</labl></catgry>
    <catgry><catValu>2</catValu><labl>man</labl></catgry><catgry><catValu>3</catValu><labl>nobody here</labl></catgry></var>
  <var name="wage"><labl>Wage</labl><invalrng><item VALUE="-8"/></invalrng><universe>Employees</universe>
    <catgry missing="Y"><catValu>-8</catValu><labl>refused</labl></catgry></var>
 </dataDscr></codeBook>"""


def survey(folder: Path, rows: int = 400) -> sm.Microdata:
    """People with an identifier, a region that masking empties, and a top earner."""
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {
            "pid": [f"PERSON-{number}" for number in range(rows)],
            "sex": rng.choice([1, 2], rows),
            "region": rng.choice(["r1", "r2", "r3", "r4"], rows, p=[0.5, 0.44, 0.03, 0.03]),
            "age": rng.integers(18, 60, rows).astype(float) + np.where(np.arange(rows) == 7, 41.0, 0.0),
            "wage": np.where(np.arange(rows) % 40 == 0, -8.0, rng.normal(3000, 400, rows).round(0)),
            "hours": rng.normal(35, 6, rows).round(1),
        }
    )
    frame.write_csv(folder / "survey.csv")
    (folder / "survey.xml").write_text(BOOK)
    return sm.read(
        folder / "survey.csv", keys=["sex", "region"], numeric=["age", "wage", "hours"], sensitive="wage",
        identifiers="pid", kinds={"sex": "nominal"}, ddi=folder / "survey.xml",
    )  # fmt: skip


def released(folder: Path, method: sm.Method, form: str = "", **given: str) -> Path:
    plan = plan_of(method, measures=MEASURES)
    going = release_with_overrides(survey(folder), plan, chosen(plan), form=form, **given)
    return going.write(folder / "public")


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("masked")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SDCMAP_LEDGER", str(folder / "ledger"))
        with separate_state(folder / "state"):
            return released(folder, RECODED, owner='The "Office"')


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("noisy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SDCMAP_LEDGER", str(folder / "ledger"))
        with separate_state(folder / "state"):
            return released(folder, sm.Noise(on=["wage", "hours"], variance=0.3), title="Wages")


# ---- codebook.xml ---------------------------------------------------------------------------------------------
def test_ddi_codebook_is_valid_and_describes_masking(masked: Path) -> None:
    text = (masked / "codebook.xml").read_text()
    assert problems_of(text) == []
    variables = {var.get("name"): var for var in fromstring(text).iter(f"{DDI}var")}
    assert list(variables) == ["sex", "region", "age", "wage", "hours"], "no identifier"
    done = {name: str(var.findtext(f"{DDI}notes")) for name, var in variables.items()}
    assert "categories merged, then suppressed to k = 20" in done["region"] and done["wage"] == "Masking: none."
    assert variables["wage"].findtext(f"{DDI}universe") == "Employees"
    assert [item.get("VALUE") for item in variables["wage"].iter(f"{DDI}item")] == ["-8"]
    labels = [one.findtext(f"{DDI}labl") for one in variables["sex"].iter(f"{DDI}catgry")]
    assert labels[:2] == ["woman", "man"] and "nobody here" not in labels, "only values that occur"
    entries = {entry["name"]: entry for entry in json.loads((masked / "codebook.json").read_text())}
    assert entries["wage"]["universe"] == "Employees" and "Universe: Employees" in (masked / "codebook.md").read_text()


def test_ddi_model_rejects_invalid_codebooks(masked: Path) -> None:
    text = (masked / "codebook.xml").read_text()
    assert problems_of(text.replace('type="vald"', 'type="valid"')) != []
    assert problems_of(re.sub(r' name="age"', "", text)) == ["var needs name"]
    moved = re.sub(r"(<labl>Wage</labl>)(.*?)(<universe>Employees</universe>)", r"\3\2\1", text, flags=re.DOTALL)
    assert problems_of(moved) == ["order in var"]
    assert "no ID F1" in problems_of(text.replace('ID="F1"', 'ID="F2"'))


def test_suppressed_values_are_in_no_file(masked: Path) -> None:
    planted = [b"PERSON-", b"nobody here", b">r3<", b"| r3 |", b"101.0", b"survey.csv", b"survey.xml"]
    for path in masked.iterdir():
        assert [word for word in planted if word in path.read_bytes()] == [], path.name
    assert "<catValu>r2</catValu>" in (masked / "codebook.xml").read_text(), "what is released is there"


def test_written_codebook_can_be_read_with_the_file(masked: Path) -> None:
    again = sm.read(masked / "data.csv", ddi=masked / "codebook.xml")
    assert again.schema.title == "Living in Utopia"
    assert again.schema.universe == "People in private households"
    assert again.schema["wage"].label == "Wage" and dict(again.schema["wage"].values)[-8.0] == "refused"
    assert int(again.missing("wage").sum()) == 10


def test_characters_forbidden_in_xml_are_replaced(tmp_path: Path) -> None:
    data = survey(tmp_path)
    odd = tuple(replace(v, label="a\x00b<&\ud800") if v.name == "age" else v for v in data.schema.variables)
    plan = plan_of(RECODED, measures=MEASURES)
    going = release_with_overrides(replace(data, schema=replace(data.schema, variables=odd)), plan, chosen(plan))
    with pytest.raises(UnicodeEncodeError):  # a lone surrogate is no text in any file
        going.write(tmp_path / "public")


# ---- README and CITATION --------------------------------------------------------------------------------------
def printed(lines: str, folder: Path) -> str:
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        exec(lines, {})
    return out.getvalue().strip()


def test_corrections_in_readme_run_as_printed(noisy: Path) -> None:
    page = (noisy / "README.md").read_text()
    assert page.startswith("# Wages\n\nThis is a public-use file")
    assert all(f"`{path.name}`" in page for path in noisy.iterdir() if path.name != "README.md")
    worked = re.findall(r"```python\n([^`]*)```\n\n```text\n(.*?)\n```", page, re.DOTALL)
    assert len(worked) == 2 and "regress='wage ~ hours'" in worked[1][0]
    for lines, output in worked:
        assert printed(lines, noisy) == output.strip()
    table = sm.correct(noisy / "data.csv", noisy / "note.json").of("covariance")
    variance = table.filter((pl.col("of") == "wage") & (pl.col("with") == "wage")).row(0, named=True)
    assert variance["corrected"] == pytest.approx(variance["released"] / 1.3)


def test_readme_explains_missing_correction_and_caveats(masked: Path) -> None:
    page = (masked / "README.md").read_text()
    assert page.startswith("# Living in Utopia\n") and "There is no correction for this file" in page
    caveats = page.partition("## What the file cannot tell you")[2].partition("\n## ")[0]
    for words in (
        "`age` (top coded at 60)",
        "were suppressed",
        "Values within a class of",
        "fewer than 30 records",
    ):
        assert words in caveats, words


def test_citation_is_valid_cff(masked: Path) -> None:
    lines = dict(line.split(": ", 1) for line in (masked / "CITATION.cff").read_text().splitlines() if ": " in line)
    assert json.loads(lines["title"]) == "Living in Utopia, public-use file"
    assert json.loads(lines["  - name"]) == 'The "Office"' and json.loads(lines["cff-version"]) == "1.2.0"
    assert re.fullmatch(r'"\d{4}-\d\d-\d\d"', lines["date-released"]) and json.loads(lines["type"]) == "dataset"


# ---- the format asked for -------------------------------------------------------------------------------------
@pytest.mark.parametrize("form", ["parquet", "sav", "dta", "xpt"])
@pytest.mark.usefixtures("read_here")
def test_release_is_written_in_requested_format_with_labels(tmp_path: Path, form: str) -> None:
    folder = released(tmp_path, RECODED, form)
    data = sm.read(folder / f"data.{form}")
    assert len(data) == 400 and problems_of((folder / "codebook.xml").read_text()) == []
    if form != "parquet":
        assert data.schema["sex"].label == "Sex & gender" and data.schema["wage"].label == "Wage"
        labels = (folder / "data.sas").read_text() if form == "xpt" else str(data.schema["sex"].values)
        assert "woman" in labels and "nobody" not in labels
    assert int(data.missing("wage").sum()) == (0 if form == "parquet" else 10)


def test_unwritable_format_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="written as csv, parquet, sav, dta or xpt"):
        released(tmp_path, RECODED, "sas7bdat")
