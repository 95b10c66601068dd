"""The internal report has a small map for each pair of a risk and a utility measure."""

from __future__ import annotations

from pathlib import Path

import pytest

import sdcmap as sm
from sdcmap.reports import page
from sdcmap.study.folder import Study
from sdcmap.workflow import report

MEASURES = [sm.SmallCells(), sm.risk.KAnonymity(k=2), sm.Hellinger(), sm.utility.QueryError(queries=100)]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    data = sm.read(sm.demo.population(80, seed=1).only(["Age", "Sex"]), keys=["Age", "Sex"])
    methods = [sm.Swap(on="Age", rate=rate) for rate in (0.1, 0.3)]
    plan = sm.Plan(methods, MEASURES, rule=sm.Threshold(risk=1.0), limits={"Hellinger": 0.9}, seed=2**200)
    folder: Path = tmp_path_factory.mktemp("pairs") / "study"
    sm.sweep(data, plan, folder, workers=1)
    return Study.open(folder)


def test_only_the_internal_report_shows_all_measures(study: Study) -> None:
    internal = report(study).html
    small_maps = internal.split('id="measure-pairs"')[1].split("</figure>")[0]
    assert "<svg" in small_maps and small_maps.count("Hellinger") >= 2  # a column for each utility, a row for each risk
    for options in ({}, {"show_risk": "the board asked for it"}):
        assert 'id="measure-pairs"' not in report(study, audience="external", **options).html


def test_too_many_measures_are_counted_instead(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_SMALL_MAPS", 3)
    html = report(study).html
    assert "make 4 pairs, too many for this page" in html and 'id="measure-pairs"' not in html
