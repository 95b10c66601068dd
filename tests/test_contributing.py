"""The method and the measure in CONTRIBUTING.md pass the law tests and can be swept."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import yaml

import sdcmap as sm
from sdcmap.core.catalog import plug_in_modules

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(heading: str) -> list[str]:
    """Return the Python code below a heading of the page."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return BLOCK.findall(page.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Create the three files of the text in a folder and register them as a plug-in."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "jitter.py").write_text(blocks("Add a method")[0])
    (folder / "median_shift.py").write_text(blocks("Add a measure")[0])
    (folder / "squared_loss.py").write_text(blocks("Add a rule")[0])
    facts = folder / "own-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[sdcmap]\na = jitter:Jitter\nb = median_shift:MedianShift\nc = squared_loss:SquaredLoss\n"
    )
    sys.path.insert(0, str(folder))
    plug_in_modules.cache_clear()
    yield folder
    sys.path.remove(str(folder))
    plug_in_modules.cache_clear()


@pytest.mark.parametrize(("heading", "module"), [("Add a method", "jitter"), ("Add a measure", "median_shift")])
def test_documented_plug_ins_pass_the_law_tests(home: Path, heading: str, module: str) -> None:
    """The test in the text is run unchanged on the class in the text."""
    names = dict(vars(__import__(module)))
    exec(compile(blocks(heading)[1], f"CONTRIBUTING.md, {heading}", "exec"), names)


def test_plan_sweeps_documented_plug_ins(home: Path) -> None:
    plan = sm.Plan.from_toml(
        '[[methods]]\ntype = "jitter:Jitter"\non = "wage"\ngrid.width = [0.0, 500.0]\n'
        '[[measures]]\ntype = "median_shift:MedianShift"\non = "wage"\n[[measures]]\ntype = "IntervalDisclosure"\n',
        seed=1,
    )
    data = sm.demo.population(60, seed=1).only(["wage"])
    shifts = sm.sweep(data, plan, workers=1).pooled(plan.measures[0].text)
    values = dict(shifts.select("method", "value").iter_rows())
    assert len(values) == 3 and values["Identity"] == 0.0


def test_the_formulas_by_hand(home: Path) -> None:
    x = np.array([1.0, 2, 3, 4, 5, np.nan])
    assert module("median_shift").median_shift(x, x + 3) == 1.5  # quartiles 2 and 4
    y = module("jitter").add_jitter(np.zeros(1000), 2.0, np.random.default_rng(1))
    assert abs(y).max() <= 2 and abs(y).max() > 1.9


def test_documented_rule_minimizes_its_objective(home: Path) -> None:
    """Gomatam, Karr, Sanil (2003), section 2: objective functions other than a linear one."""
    risks, losses = [0.1, 0.2, 0.3, 0.5], [0.6, 0.35, 0.3, 0.1]
    ru = sm.RUMap.of_pairs({"name": list("ABCD"), "risk": risks, "loss": losses})
    chosen = []
    for slope in (0.0, 0.3, 1.0, 5.0):
        cost = [risk + slope * loss**2 for risk, loss in zip(risks, losses, strict=True)]
        choice = ru.choose(module("squared_loss").SquaredLoss(slope=slope))
        assert choice.method == "ABCD"[int(np.argmin(cost))] and f"{slope:g} * squared loss" in choice.reason
        chosen.append(choice.method)
    assert len(set(chosen)) == 3
    rule = '[rule]\ntype = "squared_loss:SquaredLoss"\nslope = 2.0\n[[measures]]\ntype = "Hellinger"\n'
    plan = sm.Plan.from_toml(rule + '[[measures]]\ntype = "SmallCells"\n[[methods]]\ntype = "Identity"\n', seed=1)
    assert plan.rule == module("squared_loss").SquaredLoss(slope=2.0)


def module(name: str) -> ModuleType:
    return __import__(name)


# ---- habits -------------------------------------------------------------------------------------------------------
def test_the_version_is_stated_once() -> None:
    stated = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in stated and not re.search(r'^version = "\d', stated, re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == sm.__version__ and citation["license"] == "Apache-2.0"
    assert f"## [{sm.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_hooks_fetch_nothing() -> None:
    """Every hook runs a program of the project's environment, as `make test` does."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    entries = [hook["entry"] for hook in hooks[0]["hooks"]]
    assert [Path(entry.split()[0]).name for entry in entries] == ["ruff", "ruff", "mypy"]
    assert all(entry.startswith(".venv/bin/") for entry in entries)
