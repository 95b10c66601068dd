"""Seri (2005): the confidentiality plot on known data.

Golden values: an independent prototype, unless marked [paper]. The tiny file is worked by hand in the notes on the paper.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from commands import sdcmap
from sdcmap.papers.reference import reference_file
from sdcmap.papers.seri2005 import FACTS, FIRM_VARIABLES, run, simulate_firms
from sizes import IN_CI

KEYS = ("employees", "turnover")
needs_files = pytest.mark.skipif(
    not IN_CI and reference_file("firms157_X.csv") is None, reason="reference files are not here"
)


def frame(values: object, names: tuple[str, ...] = KEYS) -> pl.DataFrame:
    return pl.DataFrame(np.asarray(values, dtype=float), schema=list(names))


def firms() -> sm.recordwise.RecordTable:
    x, y = (np.loadtxt(str(reference_file(f"firms157_{which}.csv")), delimiter=",") for which in "XY")
    return sm.records(frame(x), frame(y), KEYS)


def test_the_tiny_file() -> None:
    x = [(3, 4), (6, 8), (0, 5), (1, 1)]
    y = [(3, 4.5), (6, 7), (0.5, 5), (4, 4)]
    table = sm.records(frame(x), frame(y), KEYS, alpha=0.25)
    assert table.delta == pytest.approx(0.5358439259, abs=1e-10)
    assert table.neighbors.tolist() == [1, 2, 1, 1]
    assert table.perturbation == pytest.approx([0.1, 0.1, 0.1, 3])
    assert (table.links_in_reach, table.nearest_links, table.ties) == (3, 3, 0)


@needs_files
def test_157_firms() -> None:
    table = firms()
    assert table.delta == pytest.approx(0.045018599514, abs=1e-12)
    assert int(table.neighbors.sum()) == 1263
    assert (table.links_in_reach, table.nearest_links, table.empty) == (39, 9, 18)
    assert table.mean_perturbation == pytest.approx(0.0705586393, abs=1e-10)
    assert (table.unsafe_at(1.0), table.unsafe_at(0.5), len(table.unsafe)) == (83, 29, 83)
    n, rank = 157, 1225  # delta is the 1,225th of 24,492 nonlinks, and as many lie strictly below it as its rank less 1
    assert int(table.neighbors.sum()) == rank - 1 + table.links_in_reach
    assert table.neighbors.mean() == pytest.approx(0.05 * (n - 1) + table.links_in_reach / n, abs=1 / n)


@needs_files
def test_the_quantile_is_the_inverted_distribution_function() -> None:
    """Linear interpolation gives .045041 and all pairs pooled .044360: neither is delta."""
    pairs = firms().pairs
    assert pairs is not None
    distances = pairs.distances()
    assert np.quantile(distances, 0.05, method="linear") == pytest.approx(0.045041, abs=1e-6)
    pooled = np.concatenate([distances, pairs.link_distances()])
    assert np.quantile(pooled, 0.05, method="linear") == pytest.approx(0.044360, abs=1e-6)
    assert np.quantile(distances, 0.05, method="inverted_cdf") == firms().delta


def test_firms_like_the_papers_fit_its_delta_and_links_in_reach() -> None:
    """[paper] delta .040838 and 33 links in reach. Simulated: .0419 (sd .0019) and 34.3 (5.9); nearest links 10.4 (2.9),
    where the paper's model-based masking gave 5. Bands: 4 standard errors of 60 draws."""
    found = []
    for seed in range(60):
        x, y = simulate_firms(np.random.default_rng(seed))
        table = sm.records(frame(x), frame(y), KEYS)
        found.append((table.delta, table.links_in_reach, table.nearest_links))
    delta, in_reach, nearest = np.mean(found, axis=0)
    assert delta == pytest.approx(0.0419, abs=4 * 0.0019 / 60**0.5)
    assert in_reach == pytest.approx(34.3, abs=4 * 5.9 / 60**0.5)
    assert nearest == pytest.approx(10.4, abs=4 * 2.9 / 60**0.5)
    assert abs(delta - 0.040838) < 0.0019 and abs(in_reach - 33) < 5.9


@needs_files
def test_tarragona_and_innovation() -> None:
    """Squares under noise .1: 199 where the first of two equal companies counts, 200 where a tied link does, as here."""
    found = run().document
    by_noise = found["casc_tarragona"]["by_noise"]
    assert [by_noise[s]["delta"] for s in ("0.1", "0.3", "0.6")] == pytest.approx(
        [0.024053, 0.024972, 0.027678], abs=5e-7
    )
    assert [by_noise[s]["links_in_reach"] for s in by_noise] == [822, 507, 192]
    assert [by_noise[s]["nearest_links"] - by_noise[s]["ties"] for s in by_noise] == [199, 55, 27]
    assert [by_noise[s]["ties"] for s in by_noise] == [1, 0, 0]
    assert [by_noise[s]["unsafe_line"] for s in by_noise] == [170, 185, 218]
    innovation = found["firm_innovation"]
    assert innovation["records"] == 171
    assert [innovation["delta"], innovation["other_units"]["delta"]] == pytest.approx([0.0681, 0.0297], abs=5e-5)
    assert [innovation["unsafe_line"], innovation["other_units"]["unsafe_line"]] == [81, 122]


@needs_files
def test_zeros_have_no_logarithm() -> None:
    """12 of the 834 companies have a value of 0 or below."""
    data = sm.read(reference_file("casc_tarragona.parquet"))
    same = data.change(None, {})
    with pytest.raises(sm.errors.SchemaError, match="12 records have values of 0 or below"):
        sm.records(data, same, ("SALES", "LABOR_COSTS"), scale="log")
    table = sm.records(data, same, ("SALES", "LABOR_COSTS"), scale="log", leave_out=True)
    assert (len(table), len(table.left_out)) == (822, 12)


@needs_files
def test_frequencies_of_cps8d() -> None:
    data = sm.read(reference_file("cps8d.parquet"), keys="all")
    tables = {k: sm.records(data, data.change(None, {}), k=k) for k in (2, 3, 5, 10)}
    assert [len(table.unsafe) for table in tables.values()] == [354, 730, 1453, 3404]
    assert (1 / tables[2].neighbors).sum() == pytest.approx(1675, abs=1e-6)  # the number of cells that occur
    assert tables[2].delta is None and tables[2].perturbation.max() == 0


def test_the_command_prints_the_facts() -> None:
    document = json.loads(sdcmap("paper", "seri2005", "--json").stdout)
    for part in ("firms157", "casc_tarragona", "firm_innovation"):
        assert set(FACTS) <= set(document[part])


def test_without_reference_files_a_stand_in_says_so(tmp_path: Path) -> None:
    result = run(data=tmp_path)
    assert result.document["sample"] == "a generated stand-in"
    assert set(result.figures) >= {"figure1", "figure3", "densities"}


def test_axes_of_the_reproduction_are_named_by_the_papers_magnitudes() -> None:
    """[paper] Figure 1 prints (7.3, 15.5) and (3.4, 9.6) on the log scale: 15.5 and 9.6 can only be turnover, because
    exp(9.6) is 14,765 and the 157 firms would have that many employees each. Plain numpy on the generated firms."""
    x, _ = simulate_firms(np.random.default_rng(1), 5000)
    means = dict(zip(FIRM_VARIABLES, np.asarray(x).mean(axis=0), strict=True))
    assert means["log employees"] == pytest.approx(3.6, abs=0.1)
    assert means["log turnover"] == pytest.approx(9.8, abs=0.1)


def test_figure_1_has_employees_across_and_the_largest_turnover_as_first_triangle(tmp_path: Path) -> None:
    result = run(data=tmp_path)
    x, y = simulate_firms(np.random.default_rng(1))
    whole = result.figures["figure1"].spec["concat"][0]
    assert [whole["encoding"][axis]["title"] for axis in "xy"] == ["log employees", "log turnover"]
    triangle = whole["layer"][1]["data"]["values"][0]
    largest = int(np.argmax(x[:, 1]))
    assert (triangle["row"], triangle["y"]) == (largest, pytest.approx(y[largest, 1]))
    legend = json.dumps(result.figures["figure3"].spec)
    assert "largest unit, by log turnover" in legend


def test_size_names_the_variable_of_the_largest_unit() -> None:
    x = [(3, 4), (6, 3), (1, 5), (1, 1)]
    by_default, by_turnover = (sm.records(frame(x), frame(x), KEYS, delta=1, size=size) for size in ("", "turnover"))
    assert (by_default.largest, by_turnover.largest) == (1, 2)
    assert by_turnover.biggest(2)["row"].to_list() == [2, 0]
    with pytest.raises(sm.errors.PlanError, match="must be one of the compared variables"):
        sm.records(frame(x), frame(x), KEYS, size="profit")
