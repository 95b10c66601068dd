"""A scientific-use and a public-use file chosen together, held against every pair by plain lines."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, t
from typer.testing import CliRunner

import sdcmap as sm
from samples import PROFILE_OVERRIDES, SEED
from sdcmap.bundle.pairing import PairChoice, TriedPair, find_least_loss, shortlist
from sdcmap.bundle.procedure import release_draw
from sdcmap.cli import app
from sdcmap.errors import PlanError, Refused, StudyDamaged, StudyMismatch
from sdcmap.methods import Synthesize
from sdcmap.reports.decision import parent_file
from sdcmap.study.further_draws import FIRST_FURTHER_DRAW
from sdcmap.study.plan import Candidate

DECIMALS = {"age": 2, "wage": 1}
ROLES: dict[str, Any] = {"keys": ("region",), "numeric": tuple(DECIMALS)}
FOUND = sm.risk.NearestRecord(on=["age", "wage"])
SUF_LOSS, PUF_LOSS = sm.IL1s(on=["wage"]), sm.IL1s(on=["age"])
SUF_LINE, PUF_LINE = 0.45, 0.3
PEOPLE = 60


def noise(age: float, wage: float) -> sm.Method:
    return sm.Chain([sm.Noise(on=["age"], variance=age), sm.Noise(on=["wage"], variance=wage)])


FIRSTS = [noise(0.001, 0.001), noise(0.4, 0.05), noise(0.05, 0.4), noise(0.5, 0.5)]
SECONDS = [noise(0.2, 0.2), noise(1.0, 1.0)]


def plan(methods: list[sm.Method], line: float, loss: sm.Measure, source: sm.Source, **given: Any) -> sm.Plan:
    parts: dict[str, Any] = {"rule": sm.Threshold(risk=line), "profile": "scientific-use", "seed": SEED, **given}
    return sm.Plan(methods, [FOUND, loss], risk=FOUND, utility=loss, limits={FOUND: line}, data=source, **parts)


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study of the scientific candidates, of which the first exceeds the limit."""
    workdir = tmp_path_factory.mktemp("pair")
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "region": rng.choice(["r1", "r2"], PEOPLE),
            "age": rng.normal(40, 12, PEOPLE).round(2),
            "wage": rng.normal(3000, 500, PEOPLE).round(1),
        }
    )
    frame.write_csv(workdir / "people.csv")
    source = sm.Source(str(workdir / "people.csv"), **ROLES)
    sm.sweep(source.read(), plan(FIRSTS, SUF_LINE, SUF_LOSS, source), workdir / "suf", workers=1)
    return workdir


def public(workdir: Path, **given: Any) -> sm.Plan:
    source = sm.Source(str(workdir / "people.csv"), **ROLES)
    return plan(SECONDS, PUF_LINE, PUF_LOSS, source, **{"profile": "public-use", **given})


def together(workdir: Path, **given: Any) -> PairChoice:
    return sm.choose_pair(workdir / "suf", public(workdir), workdir / "pair", workers=1, **given)


@pytest.fixture(scope="module")
def pair(workdir: Path) -> PairChoice:
    return together(workdir)


def found(known: dict[str, Any], released: dict[str, Any]) -> float:
    """The share of released records whose nearest known one is their own; each file has mean 0 and standard deviation 1."""
    x, y = (
        np.column_stack([(v - v.mean()) / v.std() for v in (file[name] for name in known)])
        for file in (known, released)
    )
    distance = ((x[None] - y[:, None]) ** 2).sum(axis=2)
    return float((distance.argmin(axis=1) == np.arange(len(x))).mean())


def loss(name: str, truth: dict[str, Any], released: dict[str, Any]) -> float:
    return float(np.abs(truth[name] - released[name]).mean() / (np.sqrt(2) * truth[name].std(ddof=1)))


def linked(truth: dict[str, Any], files: list[dict[str, Any]], region: Any) -> float:
    """Return the share re-identified by the best linkage of files side by side, with the original of each known."""
    known, released = (
        {f"{name} {number}": file[name] for number, file in enumerate(each) for name in file}
        for each in ([truth] * len(files), files)
    )
    both = [
        sm.read(pl.DataFrame({**side, "region": region}), keys=["region"], numeric=list(side))
        for side in (known, released)
    ]
    return sm.WorstLinkage().apply(both[0], both[1], np.random.default_rng(0)).value


def compared(plan: sm.Plan, data: sm.Microdata, one: Candidate, truth: dict[str, Any]) -> float:
    """Return what a limit is compared with: the mean of five draws and 1.5 errors of predicting the next one."""
    draws = [one, *(Candidate(one.method, FIRST_FURTHER_DRAW + k) for k in range(4))]
    made = (draw.method.apply(data, draw.stream(plan.seed)) for draw in draws)
    files = ({name: file.numbers(name) for name in DECIMALS} for file in made)
    rates = [found(truth, file) for file in files]
    return max(rates[0], np.mean(rates)) + t.ppf(norm.cdf(1.5), 4) * np.std(rates, ddof=1) * np.sqrt(1.2)


def every_pair(workdir: Path) -> list[tuple[tuple[str, str], float, float, float, bool]]:
    """Of every scientific draw that passes and every public one: ids, both losses, what the files side by side find, and
    whether the public one passes; by plain lines from the draws alone."""
    people = pl.read_csv(workdir / "people.csv")
    original = {name: people[name].to_numpy() for name in DECIMALS}
    rows = []
    with sm.Study.open(workdir / "suf") as study:
        plan, data = study.plan, study.data
    for first in map(Candidate, plan.all_methods[1:]):
        # the study chooses by its own draw; the file that is paired is the draw that a release makes
        stream, made = release_draw(first).stream(plan.seed), plan.make(data, first)
        order = stream.child("release rows").rng().permutation(len(people))
        masked = {name: made.numbers(name) for name in DECIMALS}
        drawn_anew = first.method.apply(data, stream)
        written = {name: drawn_anew.numbers(name) for name in DECIMALS}
        if compared(plan, data, first, original) > SUF_LINE:
            continue
        truth = {name: original[name][order] for name in DECIMALS}
        suf = {name: written[name][order].round(places) for name, places in DECIMALS.items()}
        region = people["region"].gather(order)
        file = workdir / "pair" / "first" / first.id / "data.study.csv"
        if file.exists():
            assert pl.read_csv(file).equals(pl.DataFrame({"region": region, **suf})), "as it would be released"
        second_data, second_plan = sm.read(pl.DataFrame({"region": region, **suf}), **ROLES), public(workdir)
        for second in map(Candidate, second_plan.all_methods[1:]):
            again = second_plan.make(second_data, second)
            drawn = {name: again.numbers(name) for name in DECIMALS}
            puf = {name: drawn[name].round(places) for name, places in DECIMALS.items()}
            passes = compared(second_plan, second_data, second, suf) <= PUF_LINE and found(truth, puf) <= PUF_LINE
            losses = loss("wage", original, masked), loss("age", truth, puf)
            rows.append(((first.id, second.id), *losses, linked(truth, [suf, puf], region), passes))
    return rows


def test_chosen_pair_is_best_of_all_by_brute_force(workdir: Path, pair: PairChoice) -> None:
    plain = every_pair(workdir)
    ours = {tried.ids: tried for tried in pair.pairs}
    for ids, first, second, side, passes in plain:
        if ids in ours:
            assert ours[ids].utilities == pytest.approx((first, second), rel=1e-9)
            assert ours[ids].joint is not None and ours[ids].joint >= side - 1.001 / 60, (
                "the files side by side, or the first alone; region counts twice there, which moves at most one of 60 links"
            )
            assert passes == (not ours[ids].problems)
    for weights in (None, (1.0, 0.0), (1.0, 1.0), (1.0, 5.0), (0.0, 1.0)):
        cost = lambda row, w=weights or (0, 0): (w[0] * row[1] + w[1] * row[2], *row[1:3])
        best = min((row for row in plain if row[4]), key=cost)
        chosen = find_least_loss(pair.pairs, (1, 1), weights)
        assert chosen and chosen.ids == best[0], weights
    assert (
        pair.first
        and pair.second
        and (pair.first.candidate, pair.second.candidate)
        == min((row for row in plain if row[4]), key=lambda row: row[1:3])[0]
    )
    assert together(workdir, weights=(0.0, 1.0)).first != pair.first, "what the public file loses least by is another"


def test_stricter_joint_limit_leads_to_another_pair(workdir: Path, pair: PairChoice) -> None:
    limit = sorted(tried.joint for tried in pair.pairs if tried.joint is not None)[0]
    strict = together(workdir, joint=limit)
    assert strict.first and strict.second and strict.first != pair.first
    assert f"within the limit of {limit:.4g}" in strict.reason
    none = together(workdir, joint=0.01)
    assert none.first is None and none.second is None and none.study is None
    assert none.reason.startswith("Release no pair: ") and "The nearest miss is" in none.reason
    assert "It exceeds the limit" in none.reason


def test_measured_pairs_are_cached(workdir: Path, pair: PairChoice, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a pair was measured again")

    monkeypatch.setattr("sdcmap.bundle.public_candidates.PublicCandidates.measure_pair", never)
    assert together(workdir) == pair
    assert (workdir / "pair").stat().st_mode & 0o077 == 0 and (
        workdir / "pair" / "pair.json"
    ).stat().st_mode & 0o077 == 0


def test_shortlist_is_frontier_of_passing_candidates(workdir: Path) -> None:
    with sm.Study.open(workdir / "suf") as study:
        ru = sm.RUMap(study.scores(), FOUND, SUF_LOSS, {FOUND.text: SUF_LINE})
        passing = ru.points.filter(~pl.col("anchor") & (pl.col("risk") <= SUF_LINE)).sort("utility")
        lowest = passing["risk"].cum_min().shift(1).fill_null(np.inf)
        expected = passing.filter(pl.col("risk") < lowest)["id"].to_list()
        assert [choice.candidate for choice in shortlist(ru, sm.Threshold(risk=SUF_LINE), 9)] == expected
        by_mean = shortlist(ru, sm.Threshold(risk=SUF_LINE, by="mean"), 9)
        assert [choice.candidate for choice in by_mean] == expected, "one draw each: means are the draws"
        assert len(shortlist(ru, sm.Threshold(risk=SUF_LINE), 1)) == 2, "one more shows that there are more"


def test_both_files_are_released_and_report_covers_both(
    workdir: Path, pair: PairChoice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "room"
    shutil.copytree(workdir, here)
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "ledger"))
    chosen = sm.choose_pair(here / "suf", public(here), here / "pair", workers=1)
    assert chosen.first and chosen.second and chosen.study
    with sm.Study.open(chosen.study) as study:
        own = sm.workflow.own_choice(study)
        assert own and own.candidate == chosen.second.candidate and study.manifest["pair"]["tried"] == len(chosen.pairs)
        result = parent_file(study)
        assert result and not result["when"] and "masked version of the file" in result["decision"][0]
        with pytest.raises(Refused, match="Release the scientific-use file first"):
            sm.release(study.data, study.plan, chosen.second, study=study)
    with sm.Study.open(here / "suf") as first:
        sm.release(first.data, first.plan, chosen.first, study=first, override=PROFILE_OVERRIDES).write(
            tmp_path / "suf-out"
        )
    with sm.Study.open(chosen.study) as study:
        going = sm.release(study.data, study.plan, chosen.second, study=study, override=PROFILE_OVERRIDES)
        folder = going.write(tmp_path / "puf-out")
        page = sm.report(study).html.split('<h2 id="parent">')[1].split("<h2")[0]
        outside = sm.report(study, audience="external").html
    assert (
        "held by one attacker" not in outside and "scientific-use file" not in outside and 'id="parent"' not in outside
    )
    assert len(pl.read_csv(folder / "data.csv")) == PEOPLE
    assert (
        "scientific-use, released" in page
        and "both files held by one attacker: " in page
        and "for an attacker with the original records: " in page
    )
    with pytest.raises(Refused, match="released a file already"):
        sm.choose_pair(here / "suf", public(here), here / "pair", workers=1)


def test_unpairable_candidates_are_named_with_reason(workdir: Path, tmp_path: Path) -> None:
    source = sm.Source(str(workdir / "people.csv"), **ROLES)
    made = Synthesize(on=["age", "wage"])
    sm.sweep(source.read(), sm.Plan([made, noise(0.4, 0.4)], [sm.SmallCells(on=["region"]), SUF_LOSS],
             rule=sm.Threshold(risk=1), data=source, seed=SEED), tmp_path / "suf", workers=1)  # fmt: skip
    chosen = sm.choose_pair(tmp_path / "suf", public(workdir), tmp_path / "pair", workers=1)
    if chosen.unused:
        assert "fully synthetic" in chosen.unused[0]
    absent = replace(public(workdir).data or sm.Source(""), keys=("region", "town"))
    nothing = sm.choose_pair(tmp_path / "suf", replace(public(workdir), data=absent), tmp_path / "other", workers=1)
    assert nothing.first is None and "no column 'town'" in nothing.reason and not nothing.pairs


def test_joint_risk_breaks_ties_of_loss() -> None:
    pairs = [
        TriedPair(("a", "b"), ("1", "2"), (0.1, 0.2), 0.3, 0.4, ()),
        TriedPair(("a", "c"), ("1", "3"), (0.1, 0.2), 0.2, 0.4, ()),
        TriedPair(("a", "d"), ("1", "4"), (0.1, 0.1), 0.2, 0.4, ("over",)),
        TriedPair(("e", "d"), ("5", "4"), (0.2, 0.9), 0.2, 0.4, ()),
    ]
    assert find_least_loss(pairs, (1, 1), None) == pairs[1] == find_least_loss(pairs, (1, 1), (1, 1))
    assert find_least_loss(pairs, (1, -1), (1, 1)) == pairs[3], "of a utility more is better"
    assert find_least_loss(pairs[2:3], (1, 1), None) is None


def test_invalid_input_is_rejected_at_once(workdir: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError) as error:
        sm.choose_pair(workdir / "suf", sm.Plan(SECONDS, [FOUND]), tmp_path / "x", most=0, joint=2, weights=(0, 0))
    assert len(error.value.problems) == 6
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(StudyDamaged, match="holds no pairs"):
        sm.choose_pair(workdir / "suf", public(workdir), tmp_path / "full")
    (tmp_path / "other" / "first").mkdir(parents=True)
    (tmp_path / "other" / "pair.json").write_text(json.dumps({"whose": "somebody", "pairs": {}}))
    with pytest.raises(StudyMismatch, match="another scientific study"):
        sm.choose_pair(workdir / "suf", public(workdir), tmp_path / "other")
    (tmp_path / "other" / "pair.json").write_text("{")
    with pytest.raises(StudyDamaged, match="cannot be read"):
        sm.choose_pair(workdir / "suf", public(workdir), tmp_path / "other")


def test_pair_command_prints_next_step_and_exits_3_without_pair(workdir: Path, pair: PairChoice) -> None:
    public(workdir).write(workdir / "public.toml")
    ask = ["pair", str(workdir / "suf"), str(workdir / "public.toml"), "-o", str(workdir / "pair"), "--workers", "1"]
    result = CliRunner().invoke(app, ask)
    assert (
        result.exit_code == 0
        and pair.first is not None
        and f'release {workdir / "suf"} "{pair.first.name}"' in result.output
    )
    none = CliRunner().invoke(app, [*ask, "--json", "--joint", "0.01"])
    document = json.loads(none.output)
    assert none.exit_code == 3 and document["second"] is None and len(document["pairs"]) == len(pair.pairs)
    with pytest.raises(PlanError, match="two numbers"):
        CliRunner().invoke(app, [*ask, "--weights", "much"], catch_exceptions=False)
