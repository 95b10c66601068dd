"""Red team, repeated releases: ten releases of the same people in ten disguises, so that noise averages out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import ROLES, chosen, failed, plan_of, release_with_overrides
from samples import people as everybody
from sdcmap.bundle import Release

column = pl.col
NOISE = 0.3


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder for the test, with the ledger in its usual location."""
    for name in ("SDCMAP_LEDGER", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def released(frame: pl.DataFrame, seed: int = 0, income: str = "income", **options: object) -> Release:
    """Return noise on the income with its own seed."""
    rest = [name for name in ("rent",) if name in frame.columns]
    data = sm.read(frame, **ROLES | {"sensitive": [income, *rest]})
    measures = [sm.SmallCells(on=["age", "sex", "region"]), sm.Hellinger(), sm.IL1s(on=[income])]
    plan = plan_of(sm.Noise(on=[income], variance=NOISE), measures=measures, seed=2**200 + seed)
    return release_with_overrides(data, plan, chosen(plan), **options)


def people() -> pl.DataFrame:
    return everybody(300)


DISGUISES = {
    "a column dropped": lambda: released(people().drop("rent"), 1),
    "a column renamed": lambda: released(people().rename({"income": "wages"}), 2, "wages"),
    "a column in capitals": lambda: released(people().rename({"income": "INCOME"}), 3, "INCOME"),
    "rescaled": lambda: released(people().with_columns(column("income") / 1000), 4),
    "shifted": lambda: released(people().with_columns(column("income") + 1, column("rent") * 2), 5),
    "one weight changed": lambda: released(pl.concat([people()[:1].with_columns(w=9.0), people()[1:]]), 6),
    "another order": lambda: released(people().sample(fraction=1, shuffle=True, seed=1), 7),
    "half of the rows": lambda: released(people()[:150], 8),
    "dropped and shifted": lambda: released(people().drop("rent").with_columns(column("income") + 1), 9),
}  # fmt: skip


def test_modified_copies_are_recognized(tmp_path: Path) -> None:
    released(people()).write(tmp_path / "first")
    result = {disguise: failed(made()).get("earlier releases", "") for disguise, made in DISGUISES.items()}
    assert [disguise for disguise, sentence in result.items() if "1 earlier release " not in sentence] == []


def test_second_ledger_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released(people()).write(tmp_path / "first")
    for elsewhere in (released(people(), 1, ledger=tmp_path / "new ledger"), released(people(), 1)):
        assert "1 earlier release " in failed(elsewhere)["earlier releases"]
    monkeypatch.setenv("SDCMAP_LEDGER", str(tmp_path / "another"))
    assert "earlier releases" in failed(released(people(), 1))


def test_a_study_remembers_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the first ledger is gone, the study still reports that there was one."""
    plan = plan_of(sm.Noise(on=["income"], variance=NOISE))
    data = sm.read(people(), **ROLES)
    sm.sweep(data, plan, tmp_path / "study", workers=1)
    with sm.Study.open(tmp_path / "study") as study:
        release_with_overrides(data, plan, chosen(plan), study=study).write(tmp_path / "first")
        monkeypatch.setenv("HOME", str(tmp_path / "another home"))
        second = release_with_overrides(data, plan, chosen(plan), study=study)
        assert "in another ledger" in failed(second)["ledger"]
        reason = {"ledger": "the first ledger was merged into this one"}
        assert "ledger" not in failed(release_with_overrides(data, plan, chosen(plan), study=study, override=reason))


def test_averaging_over_releases_is_counted(tmp_path: Path) -> None:
    """One release has an error of sqrt(0.3) sd, ten of 0.17: two are within the limit, three are not."""
    sd, income = float(np.std(people()["income"].to_numpy())), sm.risk.KnownIndex(on="income")
    line = sm.Threshold(risk=2.6 / (NOISE * sd**2))
    refused = 0
    for number in range(5):
        data = sm.read(people().with_columns(column("rent") + number), **ROLES)
        parts = {"measures": [income, sm.IL1s(on=["income"])], "rule": line, "seed": 2**200 + number, "replicates": 12}
        plan = plan_of(sm.Noise(on=["income"], variance=NOISE), **parts)
        more = {"tries": "the joint risk is tested, not the number of tries"}  # of nearly the same records
        try:
            release_with_overrides(data, plan, chosen(plan), again=True, override=more).write(tmp_path / str(number))
        except sm.errors.Refused as error:
            assert "of all releases together" in str(error)
            refused += 1
    assert refused == 3, "the third release and all after it"
