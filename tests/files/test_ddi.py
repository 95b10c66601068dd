"""Reading a DDI-Codebook: labels, universes and missing codes; hostile files are rejected."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import sdcmap as sm
from sdcmap.cli import app
from sdcmap.errors import SchemaError
from sdcmap.files import ddi
from sdcmap.files.ddi import read_ddi

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
VARIABLES = """
 <var name="sex" nature="nominal"><labl>Sex</labl><labl xml:lang="de">Geschlecht</labl>
  <catgry><catValu> 1 </catValu><labl>wo<b/>man</labl></catgry><catgry><catValu>2</catValu><labl>man</labl></catgry></var>
 <var name="income"><labl>Income</labl><invalrng><range min="-9" max="-7"/><item VALUE="99999"/></invalrng>
  <universe>Employees
    alone</universe><catgry missing="Y"><catValu>99999</catValu><labl>refused (at once)</labl></catgry></var>
 <var name="town"><catgry missing="Y"><catValu>XX</catValu><labl>unknown</labl></catgry>
  <catgry><catValu>007</catValu><labl>Bonn</labl></catgry><catgry missing="Y"><catValu>.</catValu></catgry></var>
 <var name="absent"><labl>not in the file</labl><invalrng><item VALUE="1"/></invalrng></var>
"""


def book(folder: Path, variables: str = VARIABLES, head: str = HEAD, root: str = 'xmlns="ddi:codebook:2_5"') -> Path:
    path = folder / "codebook.xml"
    path.write_text(
        f"{head}<codeBook {root}><stdyDscr><citation><titlStmt><titl>Wages</titl></titlStmt></citation>"
        f"<stdyInfo><sumDscr><universe>Adults</universe></sumDscr></stdyInfo></stdyDscr><dataDscr>{variables}</dataDscr>"
        "</codeBook>"
    )
    return path


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    path = tmp_path / "survey.csv"
    path.write_text("sex,income,town\n1,1000,007\n2,-8,XX\n1,99999,008\n2,2000,007\n")
    return path


@pytest.mark.parametrize("root", ['xmlns="ddi:codebook:2_5"', 'xmlns="http://www.icpsr.umich.edu/DDI"', ""])
def test_codebook_completes_metadata(survey: Path, root: str) -> None:
    data = sm.read(survey, keys=["sex", "town"], sensitive="income", ddi=book(survey.parent, root=root))
    sex, income, town = data.schema.variables
    assert (data.schema.title, data.schema.universe) == ("Wages", "Adults")
    assert (sex.label, sex.kind, sex.values) == ("Sex", "nominal", ((1.0, "woman"), (2.0, "man")))
    assert (income.label, income.universe) == ("Income", "Employees alone")
    assert income.missing == ((-9.0, -7.0), 99999.0) and dict(income.values)[99999.0] == "refused (at once)"
    assert data.missing("income").tolist() == [False, True, True, False]
    assert town.missing == ("XX",) and dict(town.values)["007"] == "Bonn" and int(data.missing("town").sum()) == 1


def test_codebook_is_kept_in_plan_and_working_copy(survey: Path, tmp_path: Path) -> None:
    from sdcmap.files.working_copy import open_copy, write_copy

    source = sm.Source("survey.csv", keys=("sex",), ddi=book(tmp_path).name)
    data = source.read(tmp_path)
    folder = tmp_path / "copy"
    folder.mkdir()
    again = open_copy(write_copy(data, folder), data.digest).schema
    assert again == data.schema and again["income"].universe == "Employees alone"
    assert sm.read(data).schema.title == "Wages", "data that are read again keep it"
    with pytest.raises(SchemaError, match="codebooks cannot be used"):
        pl.DataFrame({"sex": [1, 2]}).write_parquet(tmp_path / "survey.parquet")
        sm.files.read_in_blocks(sm.Source("survey.parquet", ddi="codebook.xml"), tmp_path / "blocks", below=tmp_path)


def test_look_uses_a_codebook(survey: Path) -> None:
    path = book(survey.parent)
    plan = survey.parent / "plan.toml"
    said = CliRunner().invoke(app, ["look", str(survey), "--ddi", str(path), "--keys", "sex,town", "-o", str(plan)])
    assert said.exit_code == 0, said.output
    stated = sm.Plan.read(plan).data
    assert stated is not None and stated.ddi == str(path.resolve())
    assert int(stated.read().missing("income").sum()) == 2


def test_metadata_of_the_file_takes_precedence(tmp_path: Path) -> None:
    own = sm.read(pl.DataFrame({"sex": [1, 2, 1]}), missing={"sex": {2: "our own"}})
    sex = sm.read(own, ddi=book(tmp_path)).schema["sex"]
    assert dict(sex.values) == {2.0: "our own"} and sex.missing == (2.0,)


LAUGHS = '<!DOCTYPE x [<!ENTITY a "LEAKED"><!ENTITY b "&a;&a;">]>'
OUTSIDE = '<!DOCTYPE x SYSTEM "http://example.invalid/x.dtd">'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + LAUGHS + "<codeBook>&b;</codeBook>", "has a DOCTYPE, which is not allowed"),
        (HEAD + OUTSIDE + "<codeBook/>", "has a DOCTYPE, which is not allowed"),
        ("<codeBook>&LEAKED;</codeBook>", "is not well-formed XML"),
        ("<codeBook><LEAKED></codeBook>", "is not well-formed XML"),
        ("", "is not well-formed XML"),
        ("age,sex\nLEAKED,2\n", "is not well-formed XML"),
        ('<?xml version="1.0" encoding="LEAKED"?><codeBook/>', "is not well-formed XML"),
        ("<DDIInstance>LEAKED</DDIInstance>", "is not a DDI-Codebook: its first element must be codeBook"),
        ("<codeBook>" + "<a>" * 100 + "LEAKED" + "</a>" * 100 + "</codeBook>", "more than 64 levels deep"),
    ],
)
def test_errors_do_not_quote_the_codebook(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "codebook.xml"
    path.write_text(text)
    with pytest.raises(SchemaError) as error:
        read_ddi(path)
    message = str(error.value)
    assert said in message and "LEAKED" not in message and "\n" not in message
    assert error.value.__cause__ is None


def test_codebook_size_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path)
    monkeypatch.setattr(ddi, "MAX_COLUMNS", 2)
    with pytest.raises(SchemaError, match="describes more than 2 variables"):
        read_ddi(path)
    monkeypatch.setattr(ddi, "MAX_BYTES", 100)
    with pytest.raises(SchemaError, match="a codebook may have at most 0 MiB"):
        read_ddi(path)
    with pytest.raises(SchemaError, match=r"other\.xml cannot be read"):
        read_ddi(tmp_path / "other.xml")
