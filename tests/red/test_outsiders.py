"""Red team, published files: small counts by difference, and names of internal files."""

from __future__ import annotations

import re
from html import unescape
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

import sdcmap as sm
from samples import KEYS, people, plan_of, release_with_overrides
from sdcmap.bundle.ledger_register import separate_state
from sdcmap.core.named_files import PATH_FIELDS
from sdcmap.core.rule import Rule
from sdcmap.core.value import field_types
from sdcmap.corrections.correction import method_from_note
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.study.jobs import score_file
from sdcmap.utility import UTILITIES

ROWS = 600
SHARE = re.compile(r"<td class=\"n\">(0(?:\.\d+)?|1)</td>")
PERCENT = re.compile(r"<td class=\"n\">([\d.]+) %</td>")


def rare(uniques: int, pairs: int) -> pl.DataFrame:
    """Return records of one variable with these numbers of unique records and pairs."""
    places = [f"u{i}" for i in range(uniques)] + [f"p{i // 2}" for i in range(2 * pairs)]
    places += [f"c{i % 20}" for i in range(ROWS - len(places))]
    return pl.DataFrame(
        {"place": places, "flag": [float(i < 14) for i in range(ROWS)], "other": ["x", "y"] * (ROWS // 2)}
    )


# ---- 13: small counts by difference ---------------------------------------------------------------------------
def test_published_shares_do_not_reveal_counts_below_ten(tmp_path: Path) -> None:
    """Regression test: on 600 records, shares 0.023 and 0.027 for k = 2 and 3 revealed 14 and 16 records, so one pair."""
    data = sm.read(rare(14, 1), keys=["place"], other="all", numeric=["flag"])
    measures = [sm.risk.KAnonymity(k=2), sm.risk.KAnonymity(k=3), sm.SmallCells(), sm.Hellinger()]
    rule = sm.Threshold(risk=1.0)
    methods = [sm.Noise(on="flag", variance=0.1), sm.Recode(on="place", prefix=1)]
    plan = sm.Plan(methods, measures, risk="KAnonymity(k=2)", utility="Hellinger", rule=rule, seed=3 << 200)
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    page = sm.report(tmp_path / "study", audience="external").html
    result = {float(share) for share in SHARE.findall(page)} | {float(share) / 100 for share in PERCENT.findall(page)}
    assert len(result) > 2
    for one, other in combinations(sorted(result), 2):
        assert round((other - one) * ROWS, 6) >= 10, (one, other)


# ---- 13: files of the agency ----------------------------------------------------------------------------------
@pytest.fixture
def planted(tmp_path: Path) -> tuple[sm.Plan, sm.Microdata, list[str]]:
    """Return a plan that names a hierarchy and an archive, its data, and the words that must not be published."""
    data = sm.read(people(240), keys=KEYS, sensitive=["income", "rent"], identifiers="pid", other="all")
    workdir = tmp_path / "dept-of-secrets"
    workdir.mkdir()
    hierarchy, archive = workdir / "hier-zanzibar.csv", workdir / "arch-zanzibar.csv"
    hierarchy.write_text("A;A\nB;A\nC;C\nEmptied;C\n")
    data.frame().select(KEYS).head(60).write_csv(archive)
    recode = sm.Recode(on="region", hierarchy=str(hierarchy))
    chain = sm.Chain((recode, sm.Noise(on="income", variance=0.3)))
    link = sm.risk.ExternalLink(archive=str(archive))
    plan = plan_of(
        chain, measures=[sm.SmallCells(), link, sm.Hellinger()], risk=("SmallCells", link.text), utility="Hellinger",
        limits={"SmallCells": 1.0, link.text: 1.0}, rule=sm.Threshold(risk=1.0),
    )  # fmt: skip
    return plan, data, ["zanzibar", "dept-of-secrets", recode.sha256, link.sha256]


def test_public_files_do_not_name_internal_files(
    planted: tuple[sm.Plan, sm.Microdata, list[str]], tmp_path: Path
) -> None:
    """Regression test: path and digest of a hierarchy or an archive were in the external report and the public note."""
    plan, data, secrets = planted
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    study = sm.Study.open(tmp_path / "study")
    chosen = next(made for made in plan.candidates if made.method.random)
    release = release_with_overrides(data, study.plan, chosen, study=study, ledger=tmp_path / "ledger")
    release.write(tmp_path / "public")
    page = unescape(sm.report(study, audience="external").html)
    result = {path.name: path.read_text(errors="replace") for path in (tmp_path / "public").iterdir()} | {
        "report": page
    }
    assert [(name, word) for name, text in result.items() for word in secrets if word in text] == []
    assert "Recode(on='region', hierarchy='hierarchy 1')" in page and "ExternalLink(archive='archive 2')" in page
    assert all(word in unescape(sm.report(study).html) for word in secrets)  # the board reads them


def test_public_files_have_no_unreplaced_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words that were in no method's text, so that replacing these texts left them in place.

    Two recodings that differ in their file alone are told apart by that file; a name may mention a file; a file made
    elsewhere and a release by an earlier plan are known by name alone. What the agency states for people stays.
    """
    monkeypatch.chdir(tmp_path)
    data = sm.read(people(240), keys=KEYS, sensitive=["income", "rent"], identifiers="pid", other="all")
    for name, groups in (("q.csv", "A;A\nB;A\nC;C\nEmptied;C\n"), ("z.csv", "A;A\nB;C\nC;C\nEmptied;C\n")):
        Path(name).write_text(groups)
    recodes = [sm.Recode(on="region", hierarchy=name) for name in ("q.csv", "z.csv")]
    noise, swap = sm.Noise(on="income", variance=0.3), sm.Swap(on="region", rate=0.2)
    names = {noise: "income as in Q.csv", swap: "regions, light (Recode)"}
    plan = plan_of(*recodes, noise, swap, rule=sm.Threshold(risk=1.0), names=names)
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    study = sm.Study.open(tmp_path / "study")
    made = {candidate.method: candidate for candidate in study.plan.candidates}
    elsewhere = noise.apply(data, made[noise].stream(1))
    study.add_file(score_file(data, elsewhere, study.plan.measures, name="elsewhere-zanzibar.csv"))
    gone = f"Recode(on='region', hierarchy='old-zanzibar.csv', sha256='{recodes[0].sha256}')"
    study.note(
        releases=[{"method": gone, "replicate": 0, "profile": "teaching", "folder": "/zanzibar", "when": "2026-01-02"}],
        overrides=[{"check": "weight", "reason": "the minister insisted", "when": "2026-01-02"}],
    )
    picked = made[recodes[0]]
    choice = sm.Choice(picked.id, picked.method.text, 0, 0.5, 0.1, Rule(), "the minister insisted: use q.csv")
    pages = [
        unescape(sm.report(study, choice, audience="external", show_risk=why).html)
        for why in ("", "asked by the board")
    ]
    for candidate in (picked, made[noise], made[swap]):
        folder = tmp_path / candidate.id
        draft = release_with_overrides(data, study.plan, candidate, ledger=tmp_path / f"ledger {candidate.id}")
        with separate_state(tmp_path / f"state {candidate.id}"):
            draft.write(folder)
        pages += [path.read_text(errors="replace") for path in folder.iterdir()]
    secrets = ["q.csv", "z.csv", "zanzibar", "minister", *(recode.sha256 for recode in recodes)]
    assert [(page[:80], word) for page in pages for word in secrets if word in page.casefold()] == []
    assert "region recoded to level 1" in pages[0] and "file made elsewhere 1" in pages[1]
    assert all("regions, light (Recode)" in page for page in (*pages[:2], (folder / "note.md").read_text()))
    inside = unescape(sm.report(study, choice).html)
    assert all(
        word in inside for word in ("hierarchy q.csv", "elsewhere-zanzibar.csv", "the minister insisted: use q.csv")
    )


def test_public_note_can_be_decoded(planted: tuple[sm.Plan, sm.Microdata, list[str]], tmp_path: Path) -> None:
    """`correct` reads the method off the note, where none of our files is."""
    plan, data, _ = planted
    chosen = next(made for made in plan.candidates if made.method.random)
    release_with_overrides(data, plan, chosen, ledger=tmp_path / "ledger").write(tmp_path / "public")
    method = method_from_note(tmp_path / "public" / "note.json")
    assert isinstance(method, sm.Chain) and method.methods[1] == chosen.method.methods[1]


def test_named_files_are_replaced_by_their_role() -> None:
    """A class with a digest has a path in a field that `PublicValues` knows."""
    for kind in (*METHODS, *RISKS, *UTILITIES):
        fields = set(field_types(kind))
        assert "sha256" not in fields or fields & set(PATH_FIELDS), kind.__name__


# ---- names that nobody has any more ---------------------------------------------------------------------------
JOBS = ["clerk", "smith", "baker"]


def test_public_files_do_not_show_rare_categories(tmp_path: Path) -> None:
    """Labels, codebook and dictionaries forgot the lighthouse keeper, whom the plan merged with others; the note and the
    external report named him."""
    job = pl.Series("job", JOBS * 80).scatter([7, 8], ["lighthouse keeper", "bishop"])
    frame = people(240).with_columns(job.cast(pl.Enum([*JOBS, "bishop", "lighthouse keeper", "astronaut"])))
    data = sm.read(frame, keys=[*KEYS, "job"], sensitive=["income", "rent"], identifiers="pid", other="all")
    others = sm.Recode(on="job", merge=[["bishop", "lighthouse keeper", "baker"]], labels=["others"])
    plan = plan_of(sm.Chain([others, sm.Noise(on="income", variance=0.3)]), rule=sm.Threshold(risk=1.0))
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    study = sm.Study.open(tmp_path / "study")
    chosen = next(made for made in plan.candidates if made.method.random)
    release_with_overrides(data, study.plan, chosen, study=study, ledger=tmp_path / "ledger").write(tmp_path / "public")
    result = {path.name: path.read_bytes() for path in (tmp_path / "public").iterdir()}
    result["report"] = unescape(sm.report(study, audience="external").html).encode()
    gone = (b"lighthouse", b"bishop", b"astronaut")
    assert [(name, word) for name, text in result.items() for word in gone if word in text] == []
    assert b"[['category 1', 'category 2', 'baker']]" in result["report"] and b"clerk" in result["codebook.md"]
    assert method_from_note(tmp_path / "public" / "note.json").methods[0].labels == ("others",)  # type: ignore[attr-defined]
