"""The unmasked file: what is worse than it is off the frontier, and where it meets every limit, the choice says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.map import RUMap
from sdcmap.study.scores import Scores

SEED = 2**200 + 1
KEYS = ["Age", "WrkTyp", "Educ", "MarStat", "Race"]
RATES = (0.01, 0.02, 0.05, 0.1)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = sm.demo.population(500, seed=1).only(KEYS)
    methods = [sm.Swap(on=name, rate=rate) for name in KEYS for rate in RATES]
    plan = sm.Plan(methods, [sm.SmallCells(), sm.Hellinger()], 3, rule=sm.Threshold(risk=0.165), seed=SEED)
    folder = tmp_path_factory.mktemp("swaps") / "study"
    sm.sweep(data, plan, folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def ru(study: Path) -> RUMap:
    with sm.Study.open(study) as opened:
        return RUMap.of_plan(opened.scores(), opened.plan)


def find_worse(ru: RUMap) -> set[str]:
    """Return the candidates with more risk and more loss than the unmasked file, from the plain table of scores."""
    table = ru.scores.score.pivot(on="measure", index="candidate", values="value")
    kinds = dict(ru.scores.candidate.select("id", "kind").iter_rows())
    rows = {name: (risk, loss) for name, risk, loss in table.select("candidate", "SmallCells", "Hellinger").iter_rows()}
    (whole,) = (point for name, point in rows.items() if kinds[name] == "identity")
    return {name for name, (risk, loss) in rows.items() if risk > whole[0] and loss > whole[1]}


def test_frontier_and_rules_leave_out_what_is_worse_than_not_masking(ru: RUMap) -> None:
    worse = find_worse(ru)
    assert set(ru.points.filter("worse")["id"]) == worse
    among_swaps = RUMap(ru.scores, ru.risk, ru.utility, compares_unmasked=False)
    assert len(worse & set(among_swaps.frontier["id"])) == 3  # of 8 points that were on the frontier before
    assert not worse & set(ru.frontier["id"]) and len(ru.frontier)
    rules = [sm.Threshold(risk=0.165), *(sm.Linear(slope=slope) for slope in (0.001, 0.05, 0.2, 1.0, 20.0))]
    assert {among_swaps.choose(rule).candidate for rule in rules} & worse
    for rule in rules:
        for by in ("release", "mean"):
            choice = ru.choose(sm.Threshold(risk=0.165, by=by) if isinstance(rule, sm.Threshold) else rule)
            assert choice.candidate not in worse
            assert "worse than not masking and cannot be chosen" in choice.reason
    assert not set(ru.linear_path(by="release")["id"]) & worse


def test_only_worse_candidates_means_release_nothing() -> None:
    scores = table_of({"Identity": [(0.2, 0.0, None)], "A": [(0.3, 0.1, None)], "B": [(0.4, 0.2, None)]})
    choice = RUMap(scores, "R", "U").choose(sm.Threshold(risk=0.5))
    assert choice.candidate is None and choice.no_masking_needed
    assert "the 2 candidates that meet the rule and every limit are worse than not masking" in choice.reason
    assert "no masking is needed under these limits" in choice.reason


def test_difference_must_exceed_the_error_of_the_estimates() -> None:
    """A sampled risk of 0.25 with a standard error of 0.03 is not above 0.2 at three standard errors; 0.01 is."""
    for se, is_worse in ((0.03, False), (0.01, True)):
        scores = table_of({"Identity": [(0.2, 0.0, None)], "A": [(0.25, 0.1, se)]})
        ru = RUMap(scores, "R", "U")
        assert ru.points["worse"].to_list() == ru.means["worse"].to_list() == [False, is_worse]
        assert ru.points["frontier"].to_list() == [False, not is_worse]


def test_mean_is_worse_only_beyond_the_error_of_the_mean() -> None:
    """Means of 0.23 and 0.30 against 0.20, with standard errors of 0.04 and 0.0003; no single draw decides."""
    spread = [(0.1 if i % 2 else 0.36, 0.1, None) for i in range(10)]
    close = [(0.3 + i / 1000, 0.1, None) for i in range(9)] + [(0.19, 0.1, None)]
    closer = [(0.3 + i / 1000, 0.1, None) for i in range(60)] + [(0.19, 0.1, None)]
    rows = {"Identity": [(0.2, 0.0, None)], "spread": spread, "close": close, "closer": closer}
    means = RUMap(table_of(rows), "R", "U").means
    assert dict(means.select("method", "worse").iter_rows()) == {
        "Identity": False,
        "spread": False,
        "close": True,
        "closer": True,
    }


def test_method_is_worse_if_every_draw_is() -> None:
    """Two draws do not tell the error of their mean, but neither of the two files is worth releasing."""
    rows = {"Identity": [(0.2, 0.0, None)], "A": [(0.21, 0.1, None), (0.4, 0.2, None)], "B": [(0.1, 0.3, None)] * 2}
    ru = RUMap(table_of(rows), "R", "U")
    assert ru.means.filter("worse")["method"].to_list() == ["A"]
    assert ru.choose(sm.Threshold(risk=0.5, by="mean")).method == "B"


def test_no_masking_is_needed_where_the_unmasked_file_meets_every_limit(study: Path, tmp_path: Path) -> None:
    said = sdcmap("choose", study).stdout  # its risk is 0.162, the limit 0.165
    assert "no masking is needed under these limits" in said and "Next: sdcmap release" in said
    strict = sdcmap("choose", study, "--max-risk", 0.16).stdout
    assert "no masking is needed" not in strict
    assert "no masking is needed" not in sdcmap("choose", study, "--slope", 0.5).stdout  # no limit is stated
    sdcmap("report", study, "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "no masking is needed under these limits" in page and "Worse than not masking" in page
    picture = sdcmap("map", study, "-o", tmp_path / "map.html").stdout and (tmp_path / "map.html").read_text()
    assert "worse than not masking" in picture
    sdcmap("map", study, "-o", tmp_path / "map.csv")
    assert pl.read_csv(tmp_path / "map.csv")["worse"].sum() > 0


def table_of(methods: dict[str, list[tuple[float, float, float | None]]]) -> Scores:
    """Return the scores of methods with draws (risk, loss, standard error of the risk)."""
    rows = [(f"{name}-{i}", name, i, draw) for name, draws in methods.items() for i, draw in enumerate(draws)]
    kinds = np.where([name == "Identity" for _, name, _, _ in rows], "identity", "candidate")
    candidate = pl.DataFrame({
        "id": [row[0] for row in rows], "method": [row[1] for row in rows], "replicate": [row[2] for row in rows],
        "status": "ok", "reason": "", "seconds": 0.0, "kind": kinds,
    })  # fmt: skip
    values = [
        (row[0], name, row[3][i], row[3][2] if name == "R" else None) for row in rows for i, name in enumerate("RU")
    ]
    schema = {"candidate": pl.String, "measure": pl.String, "value": pl.Float64, "se": pl.Float64}
    score = pl.DataFrame(values, schema=schema, orient="row").with_columns(status=pl.lit("ok"), reason=pl.lit(""))
    measure = pl.DataFrame({
        "name": ["R", "U"], "direction": "lower", "low": 0.0, "high": 1.0, "unit": "share", "axis": ["risk", "utility"],
        "baseline_value": [0.0, 1.0],
    })  # fmt: skip
    return Scores(candidate, score, measure)
