"""Microaggregation, shuffling and household swapping against values that the incumbents print.

"Help" is sdcMicro's rendered help pages and "tests" its own tests (version 5.8.1); "guide" is the SDC Practice Guide of
the IHSN. dRisk, IL1 and IL1s are written out here as sdcMicro defines them: they are sums, and the standard deviation of
dRisk is the masked file's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from sdcmap.core.streams import Stream
from sdcmap.data.microdata import Microdata
from sdcmap.kernels.arrays import Array
from sdcmap.methods._gower_groups import group_means, group_medians
from sdcmap.methods.shuffle import map_by_rank

ONCE = Stream.of_seed(1)


def d_risk(x: Array, y: Array, k: float = 0.05) -> float:
    """The share of records whose every value lies within k standard deviations of its masked value."""
    return float((np.abs(x - y) <= k * y.std(axis=0, ddof=1)).all(axis=1).mean())


def il1s_sum(x: Array, y: Array) -> float:
    return float((np.abs(x - y) / (np.sqrt(2) * x.std(axis=0, ddof=1))).sum())


def eigenvalue_change(x: Array, y: Array) -> float:
    before, after = (np.linalg.eigvalsh(np.corrcoef(z, rowvar=False)) for z in (x, y))
    return float((np.abs(before - after) / before).sum())


def both(data: Microdata, method: sm.Microaggregate) -> tuple[Array, Array]:
    return data.matrix(method.on), method.apply(data, ONCE).matrix(method.on)


@pytest.mark.parametrize(("size", "loss"), [(3, 5.69), (4, 7.49), (5, 9.09), (10, 14.16)])
def test_mdav_loss_on_the_census_file(casc_census: Microdata, size: int, loss: float) -> None:
    """100 SSE/SST of the standardized CASC file "Census", 13 variables: Domingo-Ferrer, Martinez-Balleste, Mateo-Sanz,
    Sebe (2006), MDAV."""
    x, y = both(casc_census, sm.Microaggregate(casc_census.names, size=size))
    spread = x.std(axis=0, ddof=1)
    found = 100 * (((x - y) / spread) ** 2).sum() / (((x - x.mean(axis=0)) / spread) ** 2).sum()
    assert found == pytest.approx(loss, abs=0.005)


@pytest.mark.parametrize(("method", "risk"), [("individual", 0.8717026), ("projection", 0.004796163)])
def test_d_risk_of_tarragona(shared: Path, method: str, risk: float) -> None:
    """The same help page, by the measure."""
    data = sm.read(shared / "data" / "casc_tarragona.parquet", numeric="all")
    masked = sm.Microaggregate(data.names, method=method).apply(data, ONCE)
    assert sm.risk.DRisk().score(data, masked, ONCE.rng()).value == pytest.approx(risk, abs=1e-7)


@pytest.mark.parametrize(
    ("method", "risk", "loss"), [("individual", 0.8717026, 120.8887), ("projection", 0.004796163, 1512.416)]
)
def test_tarragona(shared: Path, method: str, risk: float, loss: float) -> None:
    """Help of dRisk and dUtility: microaggregation(Tarragona, method="onedims" and "pca", aggr=3)."""
    data = sm.read(shared / "data" / "casc_tarragona.parquet", numeric="all")
    x, y = both(data, sm.Microaggregate(data.names, method=method))
    assert d_risk(x, y) == pytest.approx(risk, abs=1e-7)
    assert il1s_sum(x, y) == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "risk", "util1", "eigenvalues"),
    [("simple", 0.0, 207.390, 5.763), ("individual", 0.04, 69.528, 27.008), ("projection", 0.0, 202.370, 6.818)],
)
def test_table_of_methods(shared: Path, method: str, risk: float, util1: float, eigenvalues: float) -> None:
    """Help of valTable(Tarragona[1:50, ]): columns risk0, util1 and deigenvalues; "simple" groups in file order."""
    frame = pl.read_parquet(shared / "data" / "casc_tarragona.parquet").head(50)
    data = sm.read(frame.with_row_index("row"), numeric="all")
    plain = sm.Microaggregate(frame.columns, method="projection", axis="row")
    x, y = both(data, plain if method == "simple" else sm.Microaggregate(frame.columns, method=method))
    assert d_risk(x, y) == pytest.approx(risk)
    assert il1s_sum(x, y) == pytest.approx(util1, abs=5e-4)
    assert eigenvalue_change(x, y) == pytest.approx(eigenvalues, abs=5e-4)


def test_testdata(shared: Path) -> None:
    """Help of the sdcMicroObj class: expend, income and savings of testdata, mdav, aggr=3. IL1s was computed once more by
    an independent script."""
    names = ("expend", "income", "savings")
    data = sm.read(pl.read_parquet(shared / "data" / "sdcmicro_testdata.parquet").select(names), numeric="all")
    x, y = both(data, sm.Microaggregate(names))
    assert d_risk(x, y) == pytest.approx(0.129475983, abs=1e-9)
    assert il1s_sum(x, y) == pytest.approx(533.34336, abs=5e-6)
    assert (100 * np.abs(x - y) / np.abs(x)).sum() == pytest.approx(384097.50, abs=0.005)
    assert y.min(axis=0) == pytest.approx([1151704.6667, 621527.0333, 85811.8537], abs=5e-5)
    assert y.max(axis=0) == pytest.approx([99174302.6667, 99200000, 9928145.6667], abs=5e-5)
    assert 100 * eigenvalue_change(x, y) == pytest.approx(0.0186, abs=5e-5)  # printed as .020 %
    for before, after in zip(x.T, y.T, strict=True):
        assert np.corrcoef(before, after)[0, 1] == pytest.approx(0.998, abs=5e-4)


def test_micro_data(shared: Path) -> None:
    """Help of microaggregation(microData, method="mdav", aggr=3)."""
    data = sm.read(shared / "data" / "sdcmicro_microdata.csv", numeric="all")
    x, y = both(data, sm.Microaggregate(data.names))
    assert d_risk(x, y) == 0
    assert il1s_sum(x, y) == pytest.approx(22.84007, abs=5e-6)
    assert y.min(axis=0) == pytest.approx([4, 8.667, 30.67, 51.67, 103.7], rel=5e-4)
    assert y.max(axis=0) == pytest.approx([9.667, 22.667, 83.75, 59.67, 158.7], rel=5e-4)


@pytest.mark.parametrize(("size", "risk"), [(4, 0.483871), (10, 0.01075269)])
def test_testdata2(shared: Path, size: int, risk: float) -> None:
    """Help of mafast(testdata2, aggr=4 and 10): each variable on its own."""
    names = ("expend", "income", "savings")
    data = sm.read(pl.read_csv(shared / "data" / "sdcmicro_testdata2.csv").select(names), numeric="all")
    assert d_risk(*both(data, sm.Microaggregate(names, size=size, method="individual"))) == pytest.approx(
        risk, abs=1e-7
    )


def test_guide_averages() -> None:
    """Guide, section on microaggregation: groups {1,3,4} and {2,5,6} of six incomes have these means and medians."""
    x, group = np.array([2300.0, 2434, 2123, 2312, 6045, 2345]), np.array([0, 1, 0, 0, 1, 1])
    assert group_means(x, group)[:2] == pytest.approx([2245, 3608])
    assert group_medians(x, group)[:2].tolist() == [2300, 2434]


@pytest.mark.parametrize("method", ["mdav", "gower"])
def test_guide_several_variables(method: str) -> None:
    """Guide, section on multivariate microaggregation."""
    frame = pl.DataFrame(
        {
            "income": [2300.0, 2434, 2123, 2312, 6045, 2345],
            "expenditure": [1714.0, 1947, 1878, 1950, 4569, 1923],
            "wealth": [5.3, 7.4, 6.3, 8.0, 9.2, 7.8],
        }
    )
    _, y = both(sm.read(frame, numeric="all"), sm.Microaggregate(frame.columns, method=method))
    assert np.round(y[:3], 1).tolist() == [[2285.7, 1846.3, 6.3]] * 3
    assert np.round(y[3:], 1).tolist() == [[3567.3, 2814.0, 8.3]] * 3


def test_guide_shuffling() -> None:
    """Guide, section on shuffling: ten incomes dealt out by their predicted ranks."""
    incomes = np.array([2300.0, 2434, 2123, 2312, 6045, 2345, 2543, 2854, 2365, 2643])
    ranks = np.array([4, 7, 8, 6, 10, 5, 1, 9, 2, 3])
    dealt = [2345, 2543, 2643, 2434, 6045, 2365, 2123, 2854, 2300, 2312]
    assert map_by_rank(incomes, ranks.astype(float)).tolist() == dealt


def households(count: int, seed: int = 1) -> Microdata:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 4, 5], count, p=[0.3, 0.33, 0.16, 0.14, 0.07])
    own = np.repeat(np.arange(count), sizes)
    region = rng.integers(0, 4, count)
    district = region * 5 + rng.integers(0, 5, count)
    frame = pl.DataFrame(
        {
            "hid": own,
            "region": region[own],
            "district": district[own],
            "hsize": sizes[own],
            "tenure": rng.integers(0, 3, count)[own],
            "age": rng.integers(0, 9, len(own)),
            "income": rng.lognormal(7, 1, len(own)),
        }
    )
    return sm.read(frame, keys=["age", "region", "district", "hsize", "tenure"], numeric=["income"], household="hid")


@pytest.mark.parametrize(("rate", "moved"), [(0.05, 500), (0.1, 1000), (0.25, 2500)])
def test_swap_rate_of_households(rate: float, moved: int) -> None:
    """Tests of recordSwap: with 10,000 households, swaprate .05/.1/.25 moves exactly 500/1000/2500 of them; all members
    move together, and no other column changes."""
    data = households(10_000)
    method = sm.methods.HouseholdSwap(["region", "district"], rate=rate, similar=[["hsize"]], k=0)
    masked = method.apply(data, ONCE)
    differs = data.codes("district") != masked.codes("district")
    own = data.codes("hid")
    assert len(np.unique(own[differs])) == moved
    assert np.array_equal(np.isin(own, np.unique(own[differs])), differs)
    assert set(masked.changes) == {"region", "district"}


def test_a_household_without_a_partner_stays() -> None:
    """Tests of recordSwap: where 2 of 250 find no partner 496 households move, and 500 with a second profile.

    Here 250 households of one district are at risk, each by an age that nobody else has; two have a tenure of their own.
    """
    frame = households(10_000).frame()
    heads = frame.with_row_index("row").filter(pl.col("district") == 0).group_by("hid", maintain_order=True).first()
    risky = heads.head(250)
    age, tenure = frame["age"].to_numpy().copy(), frame["tenure"].to_numpy().copy()
    age[risky["row"]] = 1000 + np.arange(250)
    for number, hid in enumerate(risky["hid"].to_list()[:2]):
        tenure[frame["hid"].to_numpy() == hid] = 90 + number
    frame = frame.with_columns(age=pl.Series(age), tenure=pl.Series(tenure))
    data = sm.read(
        frame, keys=["age", "region", "district", "hsize", "tenure"], household="hid", kinds={"age": "ordinal"}
    )
    both_alike, size_alike = ["hsize", "tenure"], ["hsize"]

    def moved(**given: object) -> Array:
        method = sm.methods.HouseholdSwap("district", rate=0, risk_on="age", k=2, **given)  # type: ignore[arg-type]
        return np.unique(frame["hid"].to_numpy()[data.codes("district") != method.apply(data, ONCE).codes("district")])

    with pytest.raises(sm.errors.Infeasible, match="2 households at risk have no partner"):
        moved(similar=[both_alike])
    assert len(moved(similar=[both_alike], partial=True)) == 496
    found = moved(similar=[both_alike, size_alike])
    assert len(found) == 500
    assert np.isin(risky["hid"].to_numpy(), found).all()
