"""Compute the tables of utility.md about synthetic data: its models, and the order of columns. Run it after a change.

    python docs/make_utility.py

It takes some minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

import sdcmap as sm
from sdcmap.core.roles import Roles
from sdcmap.core.streams import Stream
from sdcmap.methods import Chain, RestoreMoments, Synthesize
from sdcmap.methods.synthesize import MODEL_LABELS
from sdcmap.utility import AnalysisError, ChangedConclusions

sys.path.append(str(Path(__file__).parents[1] / "bench" / "targets"))
from kept_relations import draw_firms, draw_wages

PAGE = Path(__file__).with_name("utility.md")
RECORDS, PERSONS, DRAWS, LEAF = 2_000, 3_000, 10, 100
ORDERED: tuple[tuple[Literal["trees", "regressions"], int], ...] = (("trees", 20), ("trees", 100), ("regressions", 100))


class MadeFile(NamedTuple):
    """A file with known relations, and the column by which means are restored."""

    data: sm.Microdata
    by: str

    def methods(self) -> Iterator[tuple[str, sm.Method]]:
        """Yield the syntheses with their names."""
        on = stated_order(self.data)
        for model in MODEL_LABELS:
            yield f'`"{model}"`', Synthesize(on, model=model, leaf=LEAF)
        restored = RestoreMoments(self.data.numeric, by=(self.by,))
        yield '`"trees"`, then `RestoreMoments`', Chain((Synthesize(on, leaf=LEAF), restored))


def stated_order(data: sm.Microdata) -> tuple[str, ...]:
    """Return the columns in the order of a starting plan: those with few categories first, amounts last."""
    names = Roles(data).descriptive_columns
    few_first = sorted((name for name in names if name not in data.numeric), key=data.level_count)
    return (*few_first, *(name for name in names if name in data.numeric))


def files() -> dict[str, MadeFile]:
    """Return the made files by name."""
    wages, firms = (draw(RECORDS, np.random.default_rng(1)) for draw in (draw_wages, draw_firms))
    keys, amounts = ["region", "educ", "exper", "minority", "union"], ["employees", "capital", "turnover"]
    return {
        "wages": MadeFile(sm.read(wages, keys=keys, numeric="wage"), "minority"),
        "firms": MadeFile(sm.read(firms, keys=["industry", "exports"], numeric=amounts), "exports"),
    }


def models() -> list[str]:
    """Return the table of the models as lines of Markdown."""
    measures = {"loss": AnalysisError(), "changed conclusions": ChangedConclusions()}
    made = files()
    rows: dict[str, list[str]] = {}
    for file in made.values():
        for title, method in file.methods():
            rows.setdefault(title, []).extend(mean_scores(file.data, method, *measures.values()))
    return markdown("model", [f"{name}: {title}" for name in made for title in measures], rows)


def orders() -> list[str]:
    """Return the table of the orders as lines of Markdown."""
    data = sm.demo.population(PERSONS, seed=1)
    rows: dict[str, list[str]] = {}
    titles: dict[str, Literal["stated", "association"]] = {
        '`"stated"`: few categories first, amounts last': "stated",
        '`"association"`: largest total association first': "association",
    }
    for title, order in titles.items():
        methods = [Synthesize(stated_order(data), model=model, leaf=leaf, order=order) for model, leaf in ORDERED]
        rows[title] = [cell for method in methods for cell in mean_scores(data, method, AnalysisError())]
    return markdown("`order`", [f"{model}, leaf {leaf}" for model, leaf in ORDERED], rows)


def mean_scores(data: sm.Microdata, method: sm.Method, *measures: sm.Measure) -> Iterator[str]:
    """Yield the mean of each measure over the draws of a method, with its standard error."""
    released = [method.apply(data, Stream.of_seed(seed)) for seed in range(DRAWS)]
    for measure in measures:
        values = [measure.score(data, one, np.random.default_rng(0)).value for one in released]
        yield f"{np.mean(values):.3f} ({np.std(values, ddof=1) / np.sqrt(DRAWS):.3f})"


def markdown(corner: str, titles: list[str], rows: dict[str, list[str]]) -> list[str]:
    """Return a table as lines of Markdown."""
    lines = [f"| {corner} | " + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    return [*lines, *(f"| {title} | " + " | ".join(cells) + " |" for title, cells in rows.items())]


if __name__ == "__main__":
    for table in (models, orders):
        lines, begin, end = table(), f"<!-- computed: {table.__name__} -->", f"<!-- end: {table.__name__} -->"
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
        PAGE.write_text("\n".join([before + begin, "", *lines, "", end]) + rest.partition(end)[2], encoding="utf-8")
