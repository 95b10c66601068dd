"""The command line: the workflow from a file to a release, JSON, exit codes, help."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from samples import PROFILE_OVERRIDES
from sdcmap.bundle.checks import Check
from sdcmap.bundle.releasing import Release
from sdcmap.cli import app
from sdcmap.demo_run import MARK
from sizes import GUARD

COMMANDS = [
    "look", "check", "schema", "sweep", "score", "scores", "mask", "map", "planes", "choose", "pair", "records", "release",
    "report",
    "correct", "compare", "search", "serve", "demo", "docs",
]  # fmt: skip


def process(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `sdcmap` as a user does."""
    command = [sys.executable, "-m", "sdcmap.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=GUARD)


OVERRIDES = [word for name, reason in PROFILE_OVERRIDES.items() for word in ("--override", f"{name}={reason}")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file, a plan and a finished study."""
    folder = tmp_path_factory.mktemp("workflow")
    people = sm.demo.population(600, seed=8)
    sm.write(people, folder / "people.csv")
    roles = {"keys": ["Age", "Sex", "Educ", "Race"], "other": ["WrkTyp", "MarStat", "Hours", "Income"],
             "numeric": ["wage", "interest", "benefits", "total"],
             "household": "household", "weight": "weight"}  # fmt: skip
    data = sm.read(folder / "people.csv", **roles)
    limit = 0.9 * sm.score(data, data, sm.SmallCells())["SmallCells"].value
    plan = sm.Plan(
        sm.grid(sm.Swap, on=sm.subsets(roles["keys"], 1, 2), rate=[0.05, 0.2]), [sm.SmallCells(), sm.Hellinger()],
        replicates=3, rule=sm.Threshold(risk=limit), data=sm.Source("people.csv", **roles), seed=2**200 + 8,
    )  # fmt: skip
    (folder / "plan.toml").write_text(plan.toml())
    sm.sweep(data, plan, folder / "study", workers=1)
    assert " ok" in sdcmap("sweep", folder / "plan.toml", "-o", folder / "study", "--workers", 1).stdout  # it goes on
    return folder


def test_cli_as_process_has_same_output_and_exit_codes(folder: Path) -> None:
    """`python -m sdcmap.cli` gives the same output and exit codes: success, invalid input, nothing can be released."""
    helped = process("--help")
    assert helped.returncode == 0 and helped.stdout.splitlines()[1:] == sdcmap("--help").stdout.splitlines()[1:]
    bad, none = process("look", "absent.csv"), process("choose", folder / "study", "--max-risk=-1", "--json")
    assert (bad.returncode, bad.stdout, bad.stderr) == (2, "", sdcmap("look", "absent.csv", code=2).stderr)
    assert none.returncode == 3 and json.loads(none.stdout)["candidate"] is None
    assert not any("Traceback" in said.stderr for said in (helped, bad, none))


def test_help_of_every_command_has_an_example() -> None:
    text = sdcmap("--help").stdout
    assert [command.name or command.callback.__name__ for command in app.registered_commands] == COMMANDS  # type: ignore[union-attr]
    for command in COMMANDS:
        assert f"\n  {command} " in text
        assert f"Example: sdcmap {command}" in " ".join(sdcmap(command, "--help").stdout.split())


def test_look_writes_plan_that_passes_check(folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    shown = sdcmap("look", folder / "people.csv", "-o", plan).stdout
    assert "household?" in shown
    assert "weight?" in shown
    seen = json.loads(sdcmap("look", folder / "people.csv", "--json").stdout)
    roles = {v["name"]: v["role"] for v in seen["variables"]}
    assert (roles["household"], roles["weight"], roles["Sex"], roles["wage"]) == (
        "household",
        "weight",
        "key",
        "numeric",
    )
    assert seen["sizes"]["<3"] > seen["sizes"]["<2"] > 0
    words = f"are unique on the keys; {seen['sizes']['<3']:,} are in combinations of at most 2 records"
    assert f" {seen['sizes']['<2']:,} of {seen['rows']:,} records {words}" in " ".join(shown.split())
    checked = json.loads(sdcmap("check", plan, "--json").stdout)
    assert checked["problems"] == []
    assert checked["candidates"] == sm.Plan.read(plan).count >= 15
    assert checked["seconds"] > 0


def test_check_reports_every_problem(folder: Path, tmp_path: Path) -> None:
    text = (folder / "plan.toml").read_text().replace('type = "Hellinger"', 'type = "Helinger"').replace("0.2", "2.0")
    (tmp_path / "plan.toml").write_text(text)
    out = sdcmap("check", tmp_path / "plan.toml", code=2).stdout
    assert "Did you mean 'Hellinger'" in out
    assert "Got 2" in out
    (tmp_path / "none.toml").write_text(sm.Plan(sm.Swap(on="a"), [sm.SmallCells()]).toml())
    assert "[data]" in sdcmap("check", tmp_path / "none.toml", code=2).stdout
    assert sdcmap("check", tmp_path / "absent.toml", code=2).stdout.count("\n") == 2


def test_score_prints_one_json_document(folder: Path, tmp_path: Path) -> None:
    masked = tmp_path / "masked.study.csv"
    sdcmap("mask", folder / "people.csv", "--method", "Swap(on='Sex', rate=0.1)", "-o", masked)
    arguments = ("score", folder / "people.csv", masked, "--keys", "Age,Sex,Educ,Race", "--numeric", "wage")
    out = sdcmap(
        *arguments,
        "--measure",
        "SmallCells",
        "--measure",
        "SmallCells(n=5)",
        "--measure",
        "KnownIndex(on='wage')",
        "--json",
    )
    scores = json.loads(out.stdout)
    assert list(scores) == ["SmallCells", "SmallCells(n=5)", "KnownIndex(on='wage')"]
    assert 0 < scores["SmallCells"]["value"] < scores["SmallCells(n=5)"]["value"] < 1
    assert scores["SmallCells"]["se"] is None
    assert scores["KnownIndex(on='wage')"]["value"] is None  # infinite: null, never Infinity
    assert scores["KnownIndex(on='wage')"]["status"] == "infinite"
    every = sdcmap("score", folder / "people.csv", masked, "--keys", "all", "--measure", "Hellinger")
    assert every.stdout.startswith(sm.Hellinger().title) and "[Hellinger]" in every.stdout


def test_score_reproduces_reference_value(shared: Path, tmp_path: Path) -> None:
    """Unswapped cps8d: risk 0.0149461529 (gomatam2003.md)."""
    file = shared / "data" / "cps8d.csv"
    out = sdcmap("score", file, file, "--keys", "all", "--measure", "SmallCells", "--measure", "Hellinger", "--json")
    scores = json.loads(out.stdout)
    assert scores["SmallCells"]["value"] == pytest.approx(0.0149461529, abs=5e-11)
    assert scores["Hellinger"]["value"] == 0


def test_score_adds_external_file_to_map(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    pl.read_csv(folder / "people.csv").with_columns(Sex=pl.lit("Male")).write_csv(other)
    arguments = ("--keys", "Age,Sex,Educ,Race", "--measure", "SmallCells", "--measure", "Hellinger")
    sdcmap("score", folder / "people.csv", other, *arguments, "--study", folder / "study", "--name", "one sex")
    sdcmap("map", folder / "study", "-o", tmp_path / "map.csv")
    assert "one sex" in pl.read_csv(tmp_path / "map.csv")["method"].to_list()


def test_score_uses_roles_codes_and_measures_of_study(folder: Path, tmp_path: Path) -> None:
    masked, study_folder = tmp_path / "masked.study.csv", tmp_path / "study"
    # The file is drawn anew in each run. In the common study it might be the best candidate.
    shutil.copytree(folder / "study", study_folder)
    sdcmap("mask", folder / "people.csv", "--method", "Swap(on='Sex', rate=0.1)", "-o", masked)
    done = sdcmap("score", folder / "people.csv", masked, "--study", study_folder, "--name", "by hand", "--json")
    assert "added to the maps as 'by hand'" in done.stderr
    with sm.Study.open(study_folder) as study:
        own = sm.score(study.data, masked, study.plan.measures)
    assert {name: row["value"] for name, row in json.loads(done.stdout).items()} == {n: e.value for n, e in own.items()}
    another = sdcmap("score", masked, masked, "--study", study_folder, code=2)
    assert "is not the file of" in another.stderr
    assert "at least one --measure" in sdcmap("score", masked, masked, code=2).stderr


def test_map_choose_report_release(folder: Path, tmp_path: Path) -> None:
    sdcmap("map", folder / "study", "--risk", "SmallCells", "--utility", "Hellinger", "-o", tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text()
    assert "window.vegaEmbed(" in page
    assert f"{sm.SmallCells.label} (share of records)" in page
    result = sdcmap("map", folder / "study", "--utility", "Hellinger", "--as-subsample", "-o", tmp_path / "curve.csv")
    assert "random subsamples of the original: about " in result.stderr
    curve = pl.read_csv(tmp_path / "curve.csv")
    assert curve.columns == ["thrown", "risk", "utility"] and curve["utility"].is_sorted()
    choice = json.loads(sdcmap("choose", folder / "study", "--json").stdout)
    limit = sm.Study.open(folder / "study").plan.rule.risk  # type: ignore[union-attr]
    assert 0 < choice["risk"] <= limit
    assert choice["reason"].startswith(f"Recommended: {choice['name']}. ") and " swapped " in choice["name"]
    again = json.loads(sdcmap("choose", folder / "study", "--max-risk", limit, "--json", "--keep").stdout)
    assert again["candidate"] == choice["candidate"]
    kept = list((folder / "study" / "kept").iterdir())
    assert [path.name for path in kept] == [f"{choice['candidate']}.study.parquet"]
    said = sdcmap("choose", folder / "study", "--slope", 0.05).stdout
    assert "swapped" in said and f"Next: sdcmap release {folder / 'study'} " in said
    assert "ideal point" in sdcmap("choose", folder / "study", "--ideal", "--by", "mean").stdout
    sdcmap("report", folder / "study", "-o", tmp_path / "report.html")
    sdcmap("report", folder / "study", "--external", "-o", tmp_path / "external.html")
    assert (tmp_path / "report.html").stat().st_size > (tmp_path / "external.html").stat().st_size > 5000
    ledger = ("--ledger", tmp_path / "ledger")
    made = json.loads(
        sdcmap("release", folder / "study", "-o", tmp_path / "public", *ledger, *OVERRIDES, "--json").stdout
    )
    assert "data.csv" in made["files"]
    assert not any(".study." in name for name in made["files"])
    refused = sdcmap("release", folder / "study", "-o", tmp_path / "public", *ledger, *OVERRIDES, code=2)
    assert "not empty" in refused.stderr


def test_map_colors_and_traces_a_parameter(folder: Path, tmp_path: Path) -> None:
    """Gomatam et al. (2003), figure 3: rates by symbol; Duncan et al. (2001): a curve for each family."""
    study = folder / "study"
    sdcmap("map", study, "--color", "rate", "-o", tmp_path / "map.svg")
    picture = (tmp_path / "map.svg").read_text()
    assert "rate 0.05" in picture and "rate 0.2" in picture
    sdcmap("map", study, "--curve", "rate", "-o", tmp_path / "curve.csv")
    curves = pl.read_csv(tmp_path / "curve.csv")
    by_family = dict(curves.group_by("family").agg("value").iter_rows())  # some swaps are infeasible at 0.2
    assert "Data swapping (on Sex)" in by_family and all(values == [0.05, 0.2] for values in by_family.values())
    sdcmap("map", study, "--curve", "rate", "-o", tmp_path / "curve.svg")
    assert "numbers at points: rate" in (tmp_path / "curve.svg").read_text()
    refused = sdcmap("map", study, "--curve", "variance", "-o", tmp_path / "no.svg", code=2)
    assert "These do: rate" in refused.stderr


def test_limits_of_losses_and_maps_of_all_measures(folder: Path, tmp_path: Path) -> None:
    study = folder / "study"
    free = json.loads(sdcmap("choose", study, "--max-risk", 1, "--json").stdout)
    strict = ("--limit", f"Hellinger={0.9 * free['utility']}")
    limited = sdcmap("choose", study, "--max-risk", 1, *strict, "--json", code=3)
    assert json.loads(limited.stdout)["candidate"] is None  # the least loss exceeds its limit
    loose = json.loads(
        sdcmap("choose", study, "--max-risk", 1, "--limit", f"Hellinger={free['utility']}", "--json").stdout
    )
    assert loose["candidate"] == free["candidate"] and [row["status"] for row in loose["limits"]] == ["met"]
    sdcmap("map", study, "--all", "--limit", "Hellinger=0.05", "-o", tmp_path / "all.svg")
    assert "All measures" in (tmp_path / "all.svg").read_text()
    assert "such as Hellinger=0.05" in sdcmap("choose", study, "--limit", "Hellinger", code=2).stderr
    assert "leave out --by" in sdcmap("map", study, "--all", "--by", "mean", "-o", tmp_path / "no.svg", code=2).stderr


def test_map_of_a_table_made_elsewhere(tmp_path: Path) -> None:
    """Gomatam et al. (2003), figure 1: pairs of risk and utility, their frontier and the line of a linear rule."""
    (tmp_path / "pairs.csv").write_text("name;rate;risk;utility\nA;0,1;0,1;0,2\nB;0,1;0,2;0,5\nC;0,2;0,3;0,4\n")
    sdcmap("map", tmp_path / "pairs.csv", "--color", "rate", "--slope", 0.5, "-o", tmp_path / "map.svg")
    picture = (tmp_path / "map.svg").read_text()
    assert "chosen: B" in picture and "rate 0.2" in picture and "risk − 0.5 × utility" in picture
    sdcmap("map", tmp_path / "pairs.csv", "--loss", "-o", tmp_path / "map.csv")
    table = pl.read_csv(tmp_path / "map.csv")
    assert table.filter("frontier")["method"].to_list() == ["A"]
    for options, words in (
        (("--as-subsample",), "needs the data of a study"),
        (("--utility", "gain"), "the table has no column 'gain'"),
    ):
        assert words in sdcmap("map", tmp_path / "pairs.csv", *options, "-o", tmp_path / "no.svg", code=2).stderr
    assert "there is no file" in sdcmap("map", tmp_path / "none.csv", "-o", tmp_path / "no.svg", code=2).stderr


def test_exit_code_is_three_if_nothing_can_be_released(folder: Path, tmp_path: Path) -> None:
    out = sdcmap("choose", folder / "study", "--max-risk=-1", "--json", code=3)
    assert json.loads(out.stdout)["candidate"] is None
    scored = sm.Study.open(folder / "study").scores().column("SmallCells").filter(kind="candidate")
    name = scored.sort("value", descending=True)["id"][0]
    ledger = ("--ledger", tmp_path / "ledger", "--override", "ledger=the earlier release was a test")
    arguments = ("release", folder / "study", name, "-o", tmp_path / "no", *ledger)
    refused = sdcmap(*arguments, code=3)
    assert "was not measured: No amount is released unmasked" in refused.stderr and "\nNot released." in refused.stderr
    assert "(information):" not in refused.stdout  # a check that needs no score failed
    refused = sdcmap(*arguments, *OVERRIDES, code=3)
    assert "\nNot released." in refused.stderr and "Risk limits of the plan (risk)" in refused.stderr
    heads = [line for line in refused.stdout.splitlines() if line.endswith(":")]
    assert "Further results (information):" in heads and "Ledger of releases is complete (ledger):" in heads
    assert len(set(heads)) == len(heads)  # each check has its name once
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("look", "absent.csv"), "there is no file absent.csv"),
        (("look", "x.docx"), "ending must be one of"),
        (("sweep", "absent.toml", "-o", "s"), "cannot be read as a plan"),
        (("map", "nowhere", "-o", "m.html"), "is not a study"),
        (("choose", "nowhere"), "is not a study"),
        (("mask", "{folder}/people.csv", "--method", "Swp(on='Sex')", "-o", "m.study.csv"), "Did you mean 'Swap'"),
        (("mask", "{folder}/people.csv", "--method", "Swap(on='Sex')", "-o", "m.csv"), "must be named *.study.*"),
        (("mask", "{folder}/people.csv", "--method", "Swap(on='wage')", "-o", "m.study.csv"), "'wage' is numeric"),
        (("score", "{folder}/people.csv", "x.csv", "--keys", "Ages", "--measure", "SmallCells"), "Did you mean 'Age'"),
        (("score", "{folder}/people.csv", "{folder}/people.csv", "--measure", "Smallcell"), "Did you mean 'SmallCells'"),
        (("choose", "{folder}/study", "--slope", "1", "--ideal"), "Give only one rule"),
        (("choose", "{folder}/study", "--slope", "-1"), "Linear.slope must be in [0, inf)"),
        (("release", "{folder}/study", "zzzz", "-o", "{folder}/pub"), "no candidate"),
        (("map", "{folder}/study", "--risk", "Smallcells", "-o", "m.html"), "Did you mean 'SmallCells'"),
        (("look", "{folder}/people.csv", "--keys", "Sex", "--keys=Age"), "--keys is stated 2 times"),
        (("paper", "gomatam2003", "--on", "sex", "--on", "age"), "--on is stated 2 times"),
    ],
)  # fmt: skip
def test_invalid_input_is_one_sentence_with_exit_code_two(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    result = sdcmap(*(part.format(folder=folder) for part in arguments), code=2)
    assert words in result.stderr
    assert result.stderr.startswith("error: ")


def refuse(self: Release, folder: Path, **options: Any) -> Path:
    """Fail the release checks, in place of `Release.write`."""
    raise sm.errors.Refused(())


def fail_first() -> Callable[[Release, Path, Any], Any]:
    """Return a `Release._make` whose first draw is above a limit."""
    calls, make = iter(range(1)), Release._make

    def make_or_fail(self: Release, part: Path, attempt: Any) -> Any:
        made = make(self, part, attempt)
        if next(calls, None) is None:
            return made
        return made._replace(checks=[*made.checks, Check("risk", False, "a risk above its limit.")])

    return make_or_fail


def test_demo_tries_next_candidate_after_failed_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a fixed seed, so that the study is reproducible; the first try fails."""
    monkeypatch.setattr("secrets.randbits", lambda bits: 2**255 + 4)
    monkeypatch.setattr(Release, "_make", fail_first())
    (tmp_path / "demo").mkdir()
    for name in (MARK, "old.html"):  # an earlier demo, which is replaced
        (tmp_path / "demo" / name).touch()
    out = sdcmap("demo", "-o", tmp_path / "demo").stdout
    assert not (tmp_path / "demo" / "old.html").exists()
    for name in ("plan.toml", "map.html", "report.html", "public"):
        assert str(tmp_path / "demo" / name) in out
        assert (tmp_path / "demo" / name).exists()
    assert out.count("failed: Risk limits of the plan (risk): a risk above its limit.") == 1
    assert "Try 2: " in out and "is within every tested limit." in out
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    assert "not empty" in sdcmap("demo", "-o", tmp_path / "mine", code=2).stderr


def test_demo_without_releasable_candidate_writes_map_and_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100 persons; every choice fails the release checks."""
    monkeypatch.setattr("secrets.randbits", lambda bits: 2**255 + 4)
    monkeypatch.setattr(Release, "write", refuse)
    out = sdcmap("demo", "-o", tmp_path / "demo", "--rows", 100).stdout
    assert "No candidate passed the release checks, so nothing was released." in out
    assert (tmp_path / "demo" / "map.html").exists() and (tmp_path / "demo" / "report.html").exists()
    assert not (tmp_path / "demo" / "public").exists()


def test_internal_error_prints_type_and_line_but_no_value(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(study: sm.Study, plan: sm.Plan) -> sm.Scores:
        raise ValueError("the wage of this person is 4,711")

    monkeypatch.setattr(sm.Study, "scores", fault)
    result = sdcmap("map", folder / "study", "-o", tmp_path / "map.html", code=1)
    assert result.stderr.startswith("sdcmap failed: ValueError in test_cli.py")
    assert "4,711" not in result.stderr
    assert len(result.stderr.splitlines()) == 1
