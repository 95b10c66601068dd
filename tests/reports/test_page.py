"""The report: what each audience sees, and what no audience may see."""

from __future__ import annotations

import contextlib
import re
from html import unescape
from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from documents import run_page
from sdcmap.core.audience import Audience, format_significant
from sdcmap.map import RUMap
from sdcmap.reports.masked_columns import merge_small
from sdcmap.study.folder import Study
from sdcmap.study.public_view import round_scores
from sdcmap.study.sweep import sweep
from sdcmap.workflow import report

SEED = 0x5EED_0F_7E57_1234_5678_9ABC_DEF0_1122_3344
HOSTILE = "<script>alert(1)</script>"
RULE = sm.Threshold(risk=0.095)


def sweep_study(folder: Path, data: sm.Microdata, plan: sm.Plan) -> Study:
    sweep(data, plan, study=folder, workers=1)
    return Study.open(folder)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Swaps of a small population, one of them infeasible, with a rule fixed first."""
    data = sm.demo.population(700, seed=5)
    data = sm.read(data, keys=["Age", "Educ", "Race"], sensitive=["wage"], household="household")
    methods = [*sm.grid(sm.Swap, on=["Age", "Educ"], rate=[0.05, 0.1]), sm.Swap(on="Race", rate=0.5)]
    plan = sm.Plan(methods, [sm.SmallCells(n=10), sm.Hellinger()], replicates=5, rule=RULE, seed=SEED)
    return sweep_study(tmp_path_factory.mktemp("report") / "study", data, plan)


@pytest.fixture(scope="module")
def pages(study: Study) -> dict[str, str]:
    made = {"method": "Swap(on='Age')", "replicate": 1, "profile": "public-use", "folder": "/x/out", "when": "2026"}
    study.note(
        overrides=[{"check": "weight", "reason": "agreed by the board", "when": "2026-01-02T03:04:05"}],
        releases=[made],
    )
    with contextlib.chdir(study.path.parent):
        run_page("docs/report.md")  # the board's
        internal = Path("report.html").read_text(encoding="utf-8")
    shown = report(study, audience="external", show_risk="the board asked for it").html
    return {"internal": internal, "external": report(study, audience="external").html, "shown": shown}


def text_of(page: str) -> str:
    """The words of a page, without its style and its drawings."""
    bare = re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]+>", " ", bare))


def test_internal_report_contains_method_rule_and_reason(study: Study, pages: dict[str, str]) -> None:
    text = text_of(pages["internal"])
    ru = RUMap(study.scores(), study.plan.risk, study.plan.utility)
    choice = ru.choose(RULE)
    assert choice.candidate and choice.reason in text and all(str(runner) in text for runner in choice.runners_up)
    assert "The rule and its limits were fixed before the first score." in text
    assert "Race swapped 50 %" in text and "admissible" in text
    assert "Survey weights do not identify (weight): agreed by the board" in text
    assert "/x/out" in text and "public-use" in text
    assert sm.SmallCells.description in text
    for word in ("700 records", "nominal", "1 (unique)", "Cramér's V", f"sdcmap {sm.__version__}", "release nothing"):
        assert word in text
    for method in ru.means.filter("frontier")["method"]:
        assert method in text
    assert pages["external"].count("<svg") == 0 and pages["shown"].count("<svg") == 1


@pytest.mark.parametrize("audience", ["internal", "external", "shown"])
def test_report_contains_neither_seed_nor_digest(study: Study, pages: dict[str, str], audience: str) -> None:
    page = pages[audience].lower()
    for secret in (f"{SEED:x}", str(SEED), study.manifest["data"], study.data.digest):
        assert secret not in page and secret[:12] not in page


@pytest.mark.parametrize("audience", ["internal", "external", "shown"])
def test_report_loads_nothing(pages: dict[str, str], audience: str) -> None:
    page = pages[audience]
    assert not re.findall(r"src\s*=|href\s*=(?!\"#)|@import|url\(\s*['\"]?https?:|<script", page)
    assert page.startswith("<!doctype html>")


def test_external_report_has_no_single_release_and_two_digits(study: Study, pages: dict[str, str]) -> None:
    page, text = pages["shown"], text_of(pages["shown"])
    scores = study.scores()
    assert not [name for name in scores.candidate["id"] if name in page]
    tables = re.findall(r"<td class=\"n\">(.*?)</td>", page)
    numbers = [number for cell in tables for number in re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?", cell)]
    assert numbers
    for number in numbers:
        digits = re.sub(r"e.*|[.,]", "", number).strip("0")
        assert len(digits) <= 2, number
    for word in ("median", "quartile", "admissible", "agreed by the board", "/x/out", "draw 1", "2026-01"):
        assert word not in text
    assert "Some candidates of the plan could not be created" in text and "releases</th>" not in page
    exact = [f"{value:.4g}" for value in scores.column("Hellinger")["value"] if value > 0]
    assert not [value for value in exact if value in page]


def test_external_report_shows_risk_only_with_a_reason(study: Study, pages: dict[str, str]) -> None:
    text, shown, scores = text_of(pages["external"]), text_of(pages["shown"]), study.scores()
    assert "Values of risk are not published." in text and "because" not in text
    assert "Values of risk are shown because: the board asked for it" in shown
    to = Audience("external", 700)
    risks = {to.score(value, "share of records") for value in scores.column("SmallCells(n=10)")["value"]} - {"0"}
    risks |= {to.score(value, "share of records") for value in scores.pooled("SmallCells(n=10)")["value"]} - {"0"}
    losses = {to.score(value, "") for value in scores.pooled("Hellinger")["value"]}
    cells = set(re.findall(r"<td class=\"n\">(.*?)</td>", pages["external"]))
    before, _, _ = pages["external"].partition("Relations that changed most")  # these may equal a risk by chance
    result = set(re.findall(r"<td class=\"n\">(.*?)</td>", before))
    assert cells & losses and not result & (risks - losses) and RULE.text not in text
    assert set(re.findall(r"<td class=\"n\">(.*?)</td>", pages["shown"])) & risks and RULE.text in shown
    with pytest.raises(sm.errors.PlanError, match="external report"):
        report(study, show_risk="why not")


def test_external_reports_are_identical(study: Study, pages: dict[str, str]) -> None:
    again = [report(study, audience="external").html for _ in range(2)]
    assert set(again) == {pages["external"]}  # nothing is drawn anew that could be averaged


def test_external_map_shows_rounded_means_only(study: Study) -> None:
    scores = study.scores()
    public = round_scores(scores, 700)
    assert public.candidate["method"].is_unique().all()
    assert set(public.candidate["id"]).isdisjoint(scores.candidate["id"])
    for value in public.score["value"].drop_nulls():
        assert value == float(f"{value:.2g}")
    pooled = dict(scores.pooled("Hellinger").select("method", "value").iter_rows())
    result = dict(public.column("Hellinger").select("method", "value").iter_rows())
    assert result == {method: float(f"{value:.2g}") for method, value in pooled.items()}


def test_external_counts_below_ten_are_hidden() -> None:
    to = Audience("external", rows=500)
    assert to.count(9) == "under 10 records" and to.count(10) == "10" and to.count(0) == "0"
    assert to.percent(3) == "under 10 records" and to.percent(497) == "all but under 10 records"
    assert to.score(0.004, "share of records") == "under 10 records" and to.score(0.004, "distance") == "0.0040"
    inside = Audience("internal", rows=500)
    assert inside.count(9) == "9" and inside.score(0.0041234, "share of records") == "0.004123"
    with pytest.raises(sm.errors.PlanError, match="'internal' or 'external'"):
        Audience("press")


def test_merge_small_categories() -> None:
    assert merge_small({"a": (50, 50), "b": (20, 20)}) == {"a": (50, 50), "b": (20, 20)}
    assert merge_small({"a": (95, 95), "b": (5, 5)}) == {"2 other categories": (100, 100)}
    assert merge_small({"a": (50, 50), "b": (20, 20), "c": (8, 8), "d": (5, 5)})["2 other categories"] == (13, 13)
    assert merge_small({"a": (3, 3)}) == {}
    assert merge_small({"a": (20, 20), "unused": (0, 0)}) == {"a": (20, 20)}
    many = merge_small({str(i): (100 + i, 100 + i) for i in range(40)})
    assert len(many) == 12 and sum(before for before, _ in many.values()) == sum(100 + i for i in range(40))


def test_format_significant_digits() -> None:
    assert [format_significant(v, 2) for v in (123456, 0.0999, 1.0, float("inf"), -0.0149)] == [
        "120,000",
        "0.10",
        "1",
        "infinite",
        "-0.015",
    ]


def test_report_compares_numeric_columns(tmp_path: Path) -> None:
    data = sm.demo.population(200, seed=2).only(["Age", "Sex", "wage"])
    measures = [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")]
    plan = sm.Plan([sm.Noise(on="wage", variance=0.5)], measures, replicates=10, rule=sm.Threshold(risk=1.0), seed=SEED)
    kept = sweep_study(tmp_path / "study", data, plan)
    inside, outside = (text_of(report(kept, audience=name).html) for name in ("internal", "external"))
    wage = data.numbers("wage")
    assert format_significant(float(wage.mean()), 4) in inside and "upper quartile" in inside and "infinite" in inside
    assert (
        format_significant(float(wage.mean()), 2) in outside and "quartile" not in outside and "median" not in outside
    )


def test_report_without_rule_has_no_choice(tmp_path: Path) -> None:
    data = sm.demo.population(150, seed=2)
    plan = sm.Plan([sm.Swap(on="Sex", rate=0.1)], [sm.SmallCells(), sm.Hellinger()], seed=SEED)
    kept = sweep_study(tmp_path / "study", data, plan)
    text = text_of(report(tmp_path / "study").html)
    assert "No choice was made." in text and "fixed before" not in text.split("The map")[0].split("report again")[1]
    nothing = RUMap(kept.scores(), plan.risk, plan.utility).choose(sm.Threshold(risk=1e-9))
    for audience in ("internal", "external"):
        assert "Release nothing" in text_of(report(kept, nothing, audience=audience).html)


def test_report_without_feasible_candidate(tmp_path: Path) -> None:
    data = sm.read(pl.DataFrame({"a": ["x"] * 30, "b": ["u", "v"] * 15}), keys=["a", "b"])
    plan = sm.Plan([sm.Swap(on="a", rate=0.1)], [sm.SmallCells(), sm.Hellinger()], rule=sm.Linear(slope=1.0), seed=SEED)
    sweep_study(tmp_path / "study", data, plan)
    for audience in ("internal", "external"):
        text = text_of(report(tmp_path / "study", audience=audience).html)
        assert "Release nothing" in text
        assert ("No masked candidate could be created and scored." in text) == (audience == "internal")


def test_report_escapes_hostile_names(tmp_path: Path) -> None:
    frame = pl.DataFrame({HOSTILE: ["x", "y", HOSTILE] * 40, "b": ["u", "v"] * 60})
    data = sm.read(frame, keys=[HOSTILE, "b"])
    plan = sm.Plan([sm.Swap(on=HOSTILE, rate=0.1)], [sm.SmallCells(), sm.Hellinger()], rule=RULE, seed=SEED)
    kept = sweep_study(tmp_path / "study", data, plan)
    for audience in ("internal", "external"):
        page = report(kept, audience=audience).html
        assert "<script" not in page and HOSTILE in unescape(page)


def test_save_writes_the_page(study: Study, tmp_path: Path) -> None:
    made = report(study, audience="external")
    assert made.save(tmp_path / "report.html").read_text(encoding="utf-8") == made.html
    assert "html" not in repr(made)
    with pytest.raises(sm.errors.SdcmapError, match="cannot be written"):
        made.save(tmp_path / "no" / "report.html")


def test_internal_report_lists_skipped_attacks(tmp_path: Path) -> None:
    data = sm.demo.population(120, seed=6).only(["Sex", "wage", "interest"])
    chain = sm.Chain((sm.Noise("wage", 1.0), sm.RankSwap("wage", 0.3), sm.Noise("interest", 1.0)))
    plan = sm.Plan(
        [chain], [sm.WorstLinkage(on=("wage", "interest")), sm.IL1s(on="wage")], rule=sm.Threshold(risk=0.3), seed=SEED
    )
    study = sweep_study(tmp_path / "study", data, plan)
    inside, outside = (text_of(report(study, audience=audience).html) for audience in ("internal", "external"))
    assert "These attacks could not run on the chosen release" in inside and "informed on wage: " in inside
    assert "informed on wage" not in outside


BOARD_QUESTIONS = {  # question -> id of the section that answers it, and a text that the section must contain
    "What are we asked to decide?": ("decision", "Release"),
    "What was tested, and what was not?": ("decision", "What was not tested"),
    "Who is responsible?": ("decision", "Who is responsible"),
    "Was the rule fixed before the first score?": ("decision", "fixed before the first score"),
    "How much safer is the release than the unmasked file?": ("risk-chart", "<svg"),
    "Which attackers were considered?": ("attackers", "register that contains the key variables"),
    "Which attackers were not considered?": ("attackers", "an insider who knows the seed"),
    "What was done to each column, and which records does it still identify?": ("columns", "swapped"),
    "What else could have been released?": ("map", "frontier"),
    "What will users get wrong?": ("utility", "subgroups that changed most"),
    "What was overridden, and why?": ("history", "agreed by the board"),
    "Where do I sign?": ("signatures", "Chair of the review board"),
}


@pytest.mark.parametrize("question", BOARD_QUESTIONS)
def test_report_answers_questions_of_the_board(pages: dict[str, str], question: str) -> None:
    name, word = BOARD_QUESTIONS[question]
    assert word in pages["internal"].split(f'<h2 id="{name}">')[1].split("<h2")[0]


def test_external_report_contains_no_planted_value(tmp_path: Path) -> None:
    """Values, a label of a rare category and a file's name that may not leave, looked for in every external page."""
    planted = {"value": 987654.321, "level": "Zyxwvut", "title": "Qponml"}
    frame = pl.DataFrame(
        {"group": [planted["level"], *["a", "b", "c"] * 40], "amount": [planted["value"], *map(float, range(120))]}
    )
    data = sm.read(frame, keys=["group"], sensitive=["amount"])
    measures = [sm.SmallCells(n=3), sm.Hellinger(), sm.IL1s(on="amount")]
    plan = sm.Plan(sm.Noise("amount", 0.5), measures, rule=sm.Threshold(risk=1.0), seed=SEED)
    study = sweep_study(tmp_path / planted["title"], data, plan)
    for why in ("", "asked for"):
        page = report(study, audience="external", show_risk=why).html
        assert not [word for word in ("987654", "987,654", planted["level"], planted["title"]) if str(word) in page]


def test_manifest_records_skipped_attacks_of_a_release(tmp_path: Path) -> None:
    data = sm.demo.population(60, seed=6).only(["wage", "interest"])
    chain = sm.Chain((sm.Noise("wage", 0.1), sm.RankSwap("wage", 0.4), sm.Noise("interest", 1.0)))
    plan = sm.Plan([chain], [sm.WorstLinkage(), sm.IL1s(on="wage")], rule=sm.Threshold(risk=1.0), seed=SEED)
    scores = sm.sweep(data, plan, study=tmp_path / "study")
    choice = sm.RUMap(scores, risk=plan.measures[0], utility=plan.measures[1]).choose(sm.Threshold(risk=1.0))
    with Study.open(tmp_path / "study") as study:
        why = {"profile": "a test of other things", "unmasked": "likewise"}
        made = sm.release(data, scores.plan, choice, study=study, ledger=tmp_path / "ledger", override=why)
        made.write(tmp_path / "public")
        not_tried = study.manifest["releases"][0]["not_tried"]
        assert any(line.startswith("informed on wage: ") for line in not_tried)
        assert not_tried[-1].startswith("at most ") and not_tried[-1].endswith(": the file before RankSwap")
        assert "not tested: informed on wage: " in text_of(report(study).html)
        assert "by the file before RankSwap" in text_of(report(study).html)
    result = [path.read_bytes() for path in (tmp_path / "public").iterdir()]
    assert not any(b"informed on" in content or b"file before" in content for content in result)


def test_report_draws_curves_of_a_parameter(tmp_path: Path) -> None:
    """Where methods differ in one parameter, both reports draw their curve, and the external one no single releases."""
    people = sm.demo.population(100, seed=3)
    measures = [sm.risk.KnownIndex(on="wage"), sm.utility.MeanPrecision(on="wage")]
    plan = sm.Plan(sm.grid(sm.Noise, on="wage", variance=[0.1, 0.5, 1.0]), measures, replicates=2, seed=2**200 + 1)
    sm.sweep(people, plan, tmp_path / "study", workers=1)
    for audience, reason in (("internal", ""), ("external", "The board decided to publish the risk.")):
        page = sm.report(tmp_path / "study", audience=audience, show_risk=reason).html
        assert "numbers at points: variance" in page and "Each line joins the methods" in page
        assert "one candidate release" not in page
