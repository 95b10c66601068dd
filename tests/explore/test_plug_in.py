"""A method of another package is one class, and automatically gets comparisons, a form, a page and a place in plans."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import sdcmap as sm
from documents import script
from sdcmap.core.catalog import plug_in_classes, plug_in_modules
from sdcmap.core.method import Method
from sdcmap.explore.parameter_forms import forms
from sdcmap.study.plan import Plan
from sdcmap.testing import check_method

SOURCE = '''
from dataclasses import dataclass
from typing import Annotated

from sdcmap.core.method import Method, Trials
from sdcmap.core.roles import Roles
from sdcmap.core.value import Range
from sdcmap.methods import Noise


@dataclass(frozen=True)
class Jitter(Method):
    """Add a number between -width and width to each value, all numbers equally likely.

    Parameters
    ----------
    on : numeric variables to mask.
    width : half of the interval, in the variable's unit, at least 0.

    Examples
    --------
    >>> Jitter(on="wage", width=2).width
    2.0
    """

    on: tuple[str, ...]
    width: Annotated[float, Range(0)] = 1.0

    @classmethod
    def trials(cls, roles: Roles) -> Trials:
        return {f"Jitter {width}": cls(roles.numbers, width) for width in ((10, 1000) if roles.numbers else ())}

    def mask(self, data, rng):
        masked = {name: data.numbers(name) + rng.uniform(-self.width, self.width, len(data)) for name in self.on}
        return data.change(None, masked)
'''


@pytest.fixture(scope="module")
def jitter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[type[Method]]:
    """Install a package with one class as pip does: a module and its entry point."""
    site = tmp_path_factory.mktemp("site")
    (site / "jitter_plug_in.py").write_text(SOURCE)
    facts = site / "jitter-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: jitter\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[sdcmap]\njitter = jitter_plug_in:Jitter\n")
    sys.path.insert(0, str(site))
    plug_in_modules.cache_clear()
    yield next(cls for cls in plug_in_classes(Method) if cls.__name__ == "Jitter")
    sys.path.remove(str(site))
    plug_in_modules.cache_clear()


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return script("make_reference")


def test_imported_classes_are_not_plug_ins(jitter: type[Method]) -> None:
    assert plug_in_classes(Method) == (jitter,)


def test_plug_in_passes_the_law_tests(jitter: type[Method]) -> None:
    check_method(jitter("wage", 2.0), sm.demo.population(50, seed=1))  # type: ignore[call-arg]


def test_plug_in_takes_part_in_a_comparison(jitter: type[Method]) -> None:
    data = sm.demo.population(120, seed=2).only(["wage"])
    compared = sm.compare(data, replicates=1, seed=1, workers=1)
    assert {"wage by jitter 10", "wage by jitter 1,000"} <= set(compared.table["name"])
    loss = dict(compared.table.select("name", "utility").iter_rows())
    assert 0 < loss["wage by jitter 10"] < loss["wage by jitter 1,000"]


def test_plug_in_has_a_form(jitter: type[Method]) -> None:
    form = next(form for form in forms()["methods"] if form.type == "jitter_plug_in:Jitter")
    assert form.summary.startswith("Add a number between -width and width")
    words = {entry.name: (entry.range, entry.help) for entry in form.entries}
    assert words["width"] == ("[0, inf)", "half of the interval, in the variable's unit, at least 0.")
    assert words["within"][1].startswith("mask each stratum")


def test_plug_in_has_a_page(jitter: type[Method], generator: ModuleType) -> None:
    page = generator.page(jitter)
    assert page.startswith("# Jitter") and "| `width` |" in page


def test_plug_in_can_be_used_in_a_plan(jitter: type[Method]) -> None:
    plan = sm.Plan([jitter("wage", 2.0)], [sm.IL1s(), sm.WorstLinkage()])  # type: ignore[call-arg]
    assert 'type = "jitter_plug_in:Jitter"' in plan.toml()
    assert Plan.from_toml(plan.toml()).digest == plan.digest
