"""The planes of global risk and utility: axes that tell candidates apart, several intruders, the command and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.charts.plane_axis import plane_axis
from sdcmap.charts.planes import Panel, draw_planes
from sdcmap.reports.page import make_report
from sdcmap.workflow import choose_by_criterion


# ---- axes -----------------------------------------------------------------------------------------------------
def spread(values: list[float], **how: Any) -> float:
    """Return the share of an axis between the lowest and the highest candidate."""
    axis = plane_axis("", "", values, **how)
    shares = [axis.axis.share(axis.coordinate(value)) for value in values]
    return max(shares) - min(shares)


@pytest.mark.parametrize("scale", [1e-6, 0.003, 1.0, 500.0])
def test_distant_prior_does_not_squeeze_candidates(scale: float) -> None:
    """Candidates between -1 and -0.9 of a unit, and the prior 300 units away: linear with (0, 0) they had 0.03 %."""
    values = [-scale, -0.95 * scale, -0.9 * scale]
    assert spread(values, guides=[-300 * scale]) > 0.15
    axis = plane_axis("", "", values, guides=[-300 * scale])
    assert axis.is_beyond(-300 * scale) and axis.coordinate(-300 * scale) == axis.ends[0]


def test_values_of_different_magnitude_have_a_logarithmic_axis() -> None:
    values = [-0.002, -0.0021, -0.003, -0.9]
    axis = plane_axis("", "", values)
    at = [axis.axis.share(axis.coordinate(value)) for value in values]
    assert axis.floor > 0 and at == sorted(at, reverse=True) and at[0] - at[2] > 0.04
    assert axis.axis.share(axis.coordinate(0.0)) > at[0]  # 0 has a place of its own
    assert plane_axis("", "", [-0.05, -0.9]).floor == 0  # less than a factor of 20


def test_limit_is_always_on_the_axis() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        values, limit = (-(10 ** rng.uniform(-4, 2, 5))).tolist(), -float(10 ** rng.uniform(-3, 2))
        axis = plane_axis("", "", values, guides=[-1.0], limit=limit)
        assert not axis.is_beyond(limit) and not any(axis.is_beyond(value) for value in values)
    assert plane_axis("", "", []).ends[0] < -1 and plane_axis("", "", [0.0]).ends[1] > 0


# ---- the chart ------------------------------------------------------------------------------------------------
def texts(spec: Any) -> list[str]:
    if isinstance(spec, dict):
        own = [spec["text"]] if isinstance(spec.get("text"), str) else []
        return own + [t for part in spec.values() for t in texts(part)]
    return [t for part in spec for t in texts(part)] if isinstance(spec, list) else []


def test_every_intruder_and_user_has_a_plane_and_long_names_are_numbered() -> None:
    rows = pl.DataFrame(
        {
            "name": ["a name that is much too long for a label", "short"], "region": ["D", "B"], "chosen": [True, False],
            "iek": [-0.7, -0.1], "rdh": [-0.7, -0.1], "sek": [-0.2, -0.01], "dus": [-0.2, -0.01],
            "iek 1": [-0.9, -0.1], "rdh 1": [-0.7, -0.1], "iek 2": [-0.7, -0.2], "rdh 2": [-0.8, -0.1],
        }
    )  # fmt: skip
    risks = [Panel(f"Global risk, intruder {i}: x", (f"iek {i}", f"rdh {i}")) for i in (1, 2)]
    prior = dict.fromkeys(("iek 1", "rdh 1", "iek 2", "rdh 2", "sek", "dus"), -1.0)
    chart = draw_planes(rows, agency_limit=-0.5, intruder_limit=-0.5, prior=prior, risks=risks)
    words = texts(chart.to_dict())
    assert [len(line["hconcat"]) for line in chart.to_dict()["vconcat"]] == [2, 2]
    assert {"Global risk, intruder 1: x", "Global risk, intruder 2: x", "Global utility"} <= {*words}
    assert "1:  a name that is much too long for a label" in words and "2:  short" in words
    assert "1, 0.283 away" in words and chart.svg().startswith("<svg")


# ---- the command and the report -------------------------------------------------------------------------------
PLAN = """
replicates = 12
[data]
path = "people.csv"
keys = ["job"]
numeric = ["age", "wage"]
[[methods]]
type = "Noise"
on = ["age", "wage"]
grid = {variance = [0.0001, 0.5]}
[[measures]]
type = "IntruderKnowledge"
on = "wage"
attack = "NearestRecord(metric='standardized', on='age')"
prior = "Prior(mean=20, variance=30)"
[[measures]]
type = "IntruderKnowledge"
on = "job"
attack = "NearestRecord(metric='standardized', on='age')"
[[measures]]
type = "DiscreditHarm"
on = "wage"
attack = "NearestRecord(metric='standardized', on='age')"
prior = "Prior(mean=20, variance=30)"
[[measures]]
type = "DiscreditHarm"
on = "job"
attack = "NearestRecord(metric='standardized', on='age')"
[[measures]]
type = "SocietyKnowledge"
on = "wage"
[[measures]]
type = "SocietyUtility"
on = "wage"
[rule]
type = "GlobalCriterion"
iek = "IntruderKnowledge"
rdh = "DiscreditHarm"
sek = "SocietyKnowledge"
dus = "SocietyUtility"
agency_limit = -0.3
intruder_limit = -0.3
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("planes")
    rng = np.random.default_rng(5)
    jobs = rng.choice(["cook", "nurse", "smith"], 60)
    frame = {"job": jobs, "age": rng.permutation(60) + 20.0, "wage": rng.normal(20, 5, 60).round(2)}
    pl.DataFrame(frame).write_csv(home / "people.csv")
    (home / "plan.toml").write_text(PLAN.replace("people.csv", str(home / "people.csv")), encoding="utf-8")
    sdcmap("sweep", home / "plan.toml", "-o", home / "study", "--quiet", "--workers", 1)
    return home / "study"


def test_command_writes_planes_and_table_with_gains(study: Path, tmp_path: Path) -> None:
    found = json.loads(sdcmap("planes", study, "-o", tmp_path / "planes.csv", "--json").stdout)
    table = pl.read_csv(tmp_path / "planes.csv")
    assert table["name"].to_list() == [row["name"] for row in found["rows"]] and table["chosen"].sum() == 1
    for name in ("iek 1", "rdh 2", "dus"):
        column = name if " " in name else f"{name} 1"
        gain = 1 - table[name] / found["prior"][column]
        assert table[f"{name} gain"].to_list() == pytest.approx(gain.to_list())
    done = sdcmap("planes", study, "-o", tmp_path / "planes.svg")
    assert "largest of 2 intruders" in done.stdout
    assert (tmp_path / "planes.svg").read_text(encoding="utf-8").startswith("<svg")
    none = sdcmap("planes", study, "-o", tmp_path / "planes.svg", "--agency-limit", "-9", code=3)
    assert "the prior is already above the limit" in none.stdout


def test_report_has_planes_of_this_rule(study: Path) -> None:
    ru, rule, choice = choose_by_criterion(study)
    assert len(rule.iek) == len(rule.rdh) == 2 and rule.iek[0].startswith("IntruderKnowledge(on='wage'")
    how: dict[str, Any] = {"records": None, "title": "", "owner": "", "show_risk": ""}
    with sm.Study.open(study) as opened:
        page = make_report(opened, ru, choice, audience="internal", **how).html
        outside = make_report(opened, ru, choice, audience="external", **how).html
    assert 'id="planes"' in page and "for each of 2 intruders" in page and "IEK 1 gain" in page
    assert 'id="planes"' not in outside and "IEK 1 gain" not in outside


def test_command_needs_four_measures(tmp_path: Path) -> None:
    data = sm.demo.population(40, seed=1)
    plan = sm.Plan(sm.Swap(on="Sex", rate=0.1), [sm.SmallCells(on=["Sex", "Race"]), sm.Hellinger(on=["Sex"])], seed=1)
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    done = sdcmap("planes", tmp_path / "study", "-o", tmp_path / "planes.svg", code=2)
    assert "need four measures in the plan: IntruderKnowledge" in done.stderr
