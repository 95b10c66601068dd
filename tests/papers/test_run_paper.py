"""The analysis of each paper on a user's file: numbers against plain Python, files that are written, and refusals."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.papers import duncan2001_own_file, run, seri2005_own_file, trottini2001_own_file, yancey2002_own_file
from sdcmap.papers.analysis import Analysis
from sdcmap.papers.gomatam2003_own_file import shortest_prefixes
from sdcmap.papers.run_paper import PAPERS

SEED = 2**200 + 7
ROWS = 80


def people() -> pl.DataFrame:
    """Return 80 people: wages far above 0, two more amounts, four categories, and a weight."""
    rng = np.random.default_rng(11)
    skill = rng.normal(size=ROWS)
    return pl.DataFrame(
        {
            "wage": (100 + 10 * skill).round(2),
            "rent": np.exp(3 + 0.3 * skill + 0.2 * rng.normal(size=ROWS)).round(2),
            "debt": np.exp(2 + rng.normal(size=ROWS)).round(2),
            "sex": rng.choice(["f", "m"], ROWS),
            "region": rng.choice(["n", "s", "w"], ROWS),
            "marital": [None if i % 7 == 0 else ("single", "married", "widowed")[i % 3] for i in rng.permutation(ROWS)],
            "tenure": rng.choice(["owner", "tenant"], ROWS),
            "design_weight": rng.uniform(1, 9, ROWS).round(3),
        }
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "people.csv"
    people().write_csv(path)
    return path


def analyze(paper: str, file: Path, **options: Any) -> Analysis:
    return run(paper, file, seed=SEED, workers=1, **options)


def section(analysis: Analysis, name: str) -> str:
    return next(part.text for part in analysis.sections if part.name == name)


# ---- numbers ---------------------------------------------------------------------------------------------------
def test_duncan_errors_grow_as_the_noise(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eq. 4: the error of an attacker with the record is lambda; U = n/(sigma^2 + lambda^2). No wage is near 0."""
    monkeypatch.setattr(duncan2001_own_file, "NOISE_LEVELS", (0.1, 0.5, 1.0))
    spread = float(people()["wage"].to_numpy().std(ddof=1))
    analysis = analyze("duncan2001", file, on="wage", error=0.5 * spread, replicates=72, drop="design_weight")
    table = analysis.tables["risks"].filter(masking="equal")
    for level, efficiency, error in table.select("noise (share of S²)", "efficiency", "error: any record").iter_rows():
        assert error == pytest.approx(np.sqrt(level) * spread, rel=0.05)  # 5 sd of a mean over 80 x 72 squared errors
        assert efficiency == pytest.approx(1 / (1 + level), rel=0.1)
    # sqrt(0.1) S is below the limit of 0.5 S, sqrt(0.5) S is far above it.
    assert "this risk is within the limit from 0.5 S² on" in section(analysis, "figure2")
    assert [*analysis.figures] == [f"figure{number}" for number in range(2, 8)] + ["choice"]
    assert analysis.choice is not None
    assert all(limit > 0 for limit in analysis.plan.limits.values())
    assert analysis.choice.name.startswith("noise ")
    assert "times its limit (the worst of 2 measures; pooled over 72 draws" in section(analysis, "choice")
    (row,) = (
        analysis.tables["risks"]
        .filter(
            pl.col("noise (share of S²)") == analysis.scores.methods[analysis.choice.method].variance,
            masking="unequal" if "doubled" in analysis.choice.name else "equal",
        )
        .to_dicts()
    )
    closer = sum(value < 0.5 * spread for name, value in row.items() if name.startswith("error: "))
    assert f"{closer} of 14 attackers come closer" in section(analysis, "choice")


def test_gomatam_counts_small_cells_of_the_stated_table(file: Path) -> None:
    keys = ["sex", "region", "marital", "tenure"]
    analysis = analyze("gomatam2003", file, keys=keys, rates=[0.05, 0.1], replicates=3)
    cells = Counter(people().select(keys).rows())  # a missing value is a category
    risk = sum(count for count in cells.values() if count <= 2) / ROWS
    assert f"The unswapped file has risk {risk:.4g} and no distortion" in section(analysis, "figure3")
    table = analysis.tables["swaps"]
    assert table.filter(collection="unconstrained").height == 2 * (4 + 6)
    assert set(table["collection"]) == {"unconstrained", "same sex", "tenure differs"}
    pairs = table.filter(pl.col("swapped").str.len_chars() == 2, collection="same sex")
    assert not pairs.filter(pl.col("swapped").str.contains("S"))["feasible"].any()  # sex is the same, so not swapped
    path = analysis.tables["figure1"]
    assert path["from"][0] == 0
    assert path["to"][-1] == np.inf
    assert analysis.choice is None  # no slope was stated
    assert "The weight design_weight is not used" in " ".join(analysis.introduction)


def test_gomatam_table_has_the_stated_keys_only(file: Path) -> None:
    """Region and tenure would be proposed as keys, and would change the cells."""
    keys = ["sex", "marital"]
    analysis = analyze("gomatam2003", file, keys=keys, rates=[0.05], replicates=2)
    assert analysis.introduction[1].startswith("Table: sex, marital. ")
    cells = Counter(people().select(keys).rows())
    risk = sum(count for count in cells.values() if count <= 2) / ROWS
    assert f"The unswapped file has risk {risk:.4g} " in section(analysis, "figure3")
    swapped = analyze("gomatam2003", file, on=keys, rates=[0.05], replicates=2)
    assert "region" in swapped.introduction[1].partition(". ")[0]  # without keys, the table is proposed


def test_trottini_counts_integer_codes_with_gaps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of codes with a missing value is read as 2.0, but its category is "2"."""
    monkeypatch.setattr(trottini2001_own_file, "SWAP_RATES", (0.3,))
    monkeypatch.setattr(trottini2001_own_file, "STAYING_SHARES", ())
    path, frame = tmp_path / "codes.csv", people()
    codes = [None if i % 9 == 0 else 2 if i % 3 else 1 + i % 4 for i in range(ROWS)]
    frame.with_columns(education=pl.Series(codes)).write_csv(path)
    analysis = analyze("trottini2001", path, on="education", keys=["sex", "region"], replicates=10)
    assert "the most frequent category of education" in " ".join(analysis.introduction)
    assert {getattr(m, "category", "2") for m in analysis.plan.measures} == {"2"}


def test_trottini_chooses_the_nearest_safe_masking(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trottini2001_own_file, "NOISE_VARIANCES", (0.1, 3.0))
    monkeypatch.setattr(trottini2001_own_file, "RANK_WINDOWS", (0.6,))
    analysis = analyze("trottini2001", file, on="wage", keys=["sex", "region"], replicates=10)
    assert "They know sex, region (stated)" in " ".join(analysis.introduction)
    table = analysis.tables["candidates"]
    safe = table.filter(pl.col("region") == "D", pl.col("name").is_in([*analysis.plan.names.values()]))
    assert table.filter("chosen").height == 1
    assert table.filter("chosen")["distance"][0] == safe["distance"].min()
    counts = [int(text) for text in re.findall(r"\) (\d+)[;.]", section(analysis, "figure1"))]
    assert sum(counts) == len(analysis.plan.all_methods) - 1  # every masking is in one of the regions A to D
    assert analysis.tables["limits"].shape == (5, 6)


def test_trottini_takes_a_category_as_the_target(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trottini2001_own_file, "SWAP_RATES", (0.3,))
    monkeypatch.setattr(trottini2001_own_file, "STAYING_SHARES", (0.5,))
    analysis = analyze("trottini2001", file, on="marital", replicates=10)
    assert "the proportion of the most frequent category of marital" in " ".join(analysis.introduction)
    assert [*analysis.figures] == ["figure1", "figure2"]


def test_seri_counts_unsafe_records_as_loops_over_all_pairs(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seri2005_own_file, "NOISE_SDS", (0.1, 0.6))
    names, k, r, alpha = ["rent", "debt"], 5, 0.15, 0.1
    analysis = analyze("seri2005", file, on=names, k=k, r=r, alpha=alpha, unsafe=0.9, replicates=2)
    assert analysis.choice is not None
    masked = analysis.plan.make(sm.read(file), analysis.choice)
    x, y = np.log(people().select(names).to_numpy()), np.log(masked.matrix(names))
    z = np.array([[np.linalg.norm(b - a) / np.linalg.norm(b) for a in x] for b in y])
    wrong = np.sort(z[~np.eye(ROWS, dtype=bool)])
    delta = wrong[int(np.ceil(alpha * len(wrong))) - 1]
    moved = np.array([np.linalg.norm(b - a) / np.linalg.norm(a) for a, b in zip(x, y, strict=True)])
    neighbors = (z < delta).sum(axis=1)
    unsafe = (neighbors < k) & (moved < r) & (neighbors / k + moved / r < 1)
    assert f"{int(unsafe.sum()):,} are unsafe by the line" in section(analysis, "figure3")
    assert [*analysis.figures] == ["figure1", "figure3", "densities", "strengths"]


def test_yancey_scores_are_the_means_of_losses_and_links(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yancey2002_own_file, "ROWS", ("add10", "rnkswp10", "mixadd20"))
    monkeypatch.setattr(yancey2002_own_file, "TOP_LINKS", (10,))
    analysis = analyze("yancey2002", file, on=["wage", "rent", "debt"], within="sex", replicates=2)
    losses, risks, scores = (analysis.tables[f"table{number}"] for number in (1, 2, 3))
    assert losses["method"].to_list() == ["add10", "rnkswp10", "mixadd20"]
    for name in ("d", "l", "worst"):
        for summary, score in (("S0", "A"), ("S1", "D"), ("S2", "S")):
            expected = 50 * (losses[summary] + risks[name])
            assert scores[f"{score}-score, {name}"].to_list() == pytest.approx(expected.to_list())
    assert analysis.tables["table8"].height == 3
    assert "map" in analysis.figures


def test_prefixes_are_short_and_differ() -> None:
    assert shortest_prefixes(["a", "ab", "abc"]) == {"a": "A", "ab": "Ab", "abc": "Abc"}


# ---- the command -----------------------------------------------------------------------------------------------
@pytest.fixture
def german(tmp_path: Path) -> Path:
    """A file with semicolons, decimal commas, missing values and a weight."""
    frame = people().with_columns(wage=pl.when(pl.int_range(pl.len()) % 13 == 0).then(None).otherwise("wage"))
    numbers = [name for name, dtype in frame.schema.items() if dtype == pl.Float64]
    texts = [pl.col(name).cast(pl.String).str.replace(r"\.", ",").fill_null("") for name in numbers]
    path = tmp_path / "leute.csv"
    frame.with_columns(texts).write_csv(path, separator=";")
    return path


def test_command_writes_plan_study_figures_tables_and_page(
    german: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seri2005_own_file, "NOISE_SDS", (0.1, 0.6))
    out = tmp_path / "out"
    options = ("--on", "wage,rent", "--within", "sex", "--replicates", 2, "--unsafe", 0.9, "-o", out, "--json")
    said = sdcmap("paper", "seri2005", "--file", german, *options)
    document = json.loads(said.stdout)
    assert document["out"] == str(out)
    assert "7 of 80 records lack a value" in " ".join(document["introduction"])
    assert "semicolons, decimal commas" in document["introduction"][0]
    assert "design_weight is not used" in " ".join(document["introduction"])
    assert "is valid" in sdcmap("check", out / "plan.toml").stdout
    names = {path.name for path in out.iterdir()}
    assert {"plan.toml", "study", "paper.html", "figure1.png", "figure3.svg", "strengths.csv", "strengths.md"} <= names
    page = (out / "paper.html").read_text(encoding="utf-8")
    for part in document["sections"].values():
        assert part["title"] in page
    sources = {row["column"]: row["source"] for row in document["sections"]["roles"]["table"]}
    assert sources["wage"] == "stated"
    assert sources["design_weight"].startswith("proposed")
    assert "do not publish" in said.stderr
    assert json.loads(sdcmap("choose", out / "study", "--json").stdout)["name"] == document["choice"]["name"] != ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("duncan2001", "--on", "wage"), "--on needs --file. State the file with --file."),
        (("seri2005", "--replicates", "3"), "--replicates needs --file."),
        (("duncan2001", "--file", "FILE", "--n", "50"), "--n has no effect on a file of your own."),
        (("yancey2002", "--file", "FILE", "--large"), "--large has no effect on a file of your own."),
    ],
)
def test_option_without_effect_is_refused(arguments: tuple[str, ...], sentence: str, file: Path) -> None:
    said = sdcmap("paper", *(str(file) if part == "FILE" else part for part in arguments), code=2)
    assert sentence in said.stderr


# ---- refusals --------------------------------------------------------------------------------------------------
CATEGORIES, AMOUNTS = ("sex", "region", "marital"), ("wage", "rent")


@pytest.mark.parametrize(
    ("paper", "columns", "options", "sentence"),
    [
        ("duncan2001", CATEGORIES, {}, "duncan2001 needs one numeric variable. part.csv: no column is numeric."),
        ("duncan2001", AMOUNTS, {"on": AMOUNTS}, "duncan2001 studies one variable, and `on` names 2."),
        ("duncan2001", AMOUNTS, {"on": "wages"}, "no column 'wages'. Did you mean 'wage'?"),
        ("duncan2001", AMOUNTS, {"on": "wage", "error": -1.0}, "error must be a number above 0."),
        ("duncan2001", AMOUNTS, {"on": "wage", "replicates": 10}, "state replicates = 72 or more"),
        (
            "gomatam2003",
            AMOUNTS,
            {},
            "gomatam2003 needs at least two variables with categories. part.csv: no column has",
        ),
        ("gomatam2003", CATEGORIES, {"on": "sex"}, "`on` names one. Name at least two."),
        ("gomatam2003", CATEGORIES, {"rates": [0.7]}, "rates must be above 0 and at most 0.5"),
        ("seri2005", CATEGORIES, {}, "seri2005 needs numeric variables that an attacker could know"),
        ("seri2005", AMOUNTS, {"unsafe": 2.0}, "unsafe must be a share above 0 and below 1."),
        ("yancey2002", CATEGORIES, {}, "yancey2002 needs at least two numeric variables. part.csv: it has none."),
        ("yancey2002", AMOUNTS, {"on": "wage"}, "yancey2002 needs at least two numeric variables, and `on` names one."),
        ("trottini2001", ("wage",), {}, "beside 'wage' it has no column that an intruder could know"),
        ("trottini2001", AMOUNTS, {"agency_limit": 0.5}, "agency_limit must be below 0"),
        ("trottini2001", AMOUNTS, {"eror": 1.0}, "trottini2001 has no option 'eror'."),
        ("duncan2010", AMOUNTS, {}, "no paper 'duncan2010'. Did you mean 'duncan2001'?"),
    ],
)
def test_unsuitable_file_or_option_is_refused(
    paper: str, columns: tuple[str, ...], options: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "part.csv"
    people().select(columns).write_csv(path)
    with pytest.raises(SdcmapError) as caught:
        analyze(paper, path, **options)
    assert sentence in str(caught.value)


def test_categories_are_no_amounts(file: Path) -> None:
    with pytest.raises(SdcmapError, match="sex"):
        analyze("duncan2001", file, on="sex")


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SdcmapError, match="is not a file"):
        analyze("duncan2001", tmp_path / "absent.csv")


def test_every_paper_has_a_command() -> None:
    help_text = sdcmap("paper", "--help").stdout
    assert all(name in help_text for name in PAPERS)
    for name in PAPERS:
        assert f"sdcmap paper {name} --file" in " ".join(sdcmap("paper", name, "--help").stdout.split())


def test_plan_without_problems_is_needed_before_the_sweep(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(PlanError):
        analyze("duncan2001", file, on="wage", replicates=5, out=out)
    assert not out.exists()
