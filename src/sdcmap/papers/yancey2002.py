"""Yancey, Winkler, Creecy (2002), Disclosure risk assessment in perturbative microdata protection.

Tables 1 to 3 on the paper's small file over many seeds, with the printed cells; Tables 4 to 9 on a substitute for its large
file; and figure 1 of Duncan, Keller-McNulty, Stokes (2001), which is based on the same work.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap import Microdata, Plan, Scores, read, sweep
from sdcmap.core import Array, Generator
from sdcmap.kernels.masking.mixtures import centers, draw_mixture
from sdcmap.kernels.masking.noise_covariance import complete_covariance_root, restore_covariance
from sdcmap.kernels.statistics.information_losses import il2_losses, il5_losses
from sdcmap.kernels.statistics.moments import moments
from sdcmap.map import overall_score
from sdcmap.papers.reference import Document, Result, errata, reference_file
from sdcmap.papers.yancey2002_tables import LOSSES, TABLES, WRONG_CELLS, Cells, beside, cells_beside, method_of
from sdcmap.papers.yancey2002_tax_file import large_file
from sdcmap.risk import Calibrated, Informed, Linkage, NearestRecord, WorstLinkage
from sdcmap.utility import S0, S1, S2

ROWS = tuple(TABLES["table1"])
MIXTURE_SHARES = (0.01, 0.05, 0.10, 0.20)  # d of the mixtures
SINGLE_ATTACKS = {
    "d": Linkage("d", open_columns="as any"),  # as published: all columns are masked, and compared alike
    "l": Linkage("l", open_columns="as any"),
    "nearest": NearestRecord(open_columns="as any"),
    "nearest one-to-one": NearestRecord(one_to_one=True, open_columns="as any"),
    "mahalanobis": NearestRecord("mahalanobis", open_columns="as any"),
    "mahalanobis one-to-one": NearestRecord("mahalanobis", one_to_one=True, open_columns="as any"),
    "informed": Informed(),
    "calibrated": Calibrated(),
}
ATTACKS = (*SINGLE_ATTACKS, "worst")


def load_census(data: Path | None) -> tuple[Microdata, str]:
    """Return the paper's small file, or a generated one of its size without the reference file; and which it is."""
    file = reference_file("casc_census.parquet", data) or reference_file("casc_census.csv", data)
    if file is not None:
        return read(file, numeric="all"), f"reference file {file.name}"
    rng = np.random.default_rng(1)
    x = np.exp(8 + rng.normal(size=(1080, 1)) + 0.7 * rng.normal(size=(1080, 12))).round() + 1
    frame = pl.DataFrame(np.column_stack([x, x[:, 0] + x[:, 1]]), schema=[f"v{j}" for j in range(1, 14)])
    return read(frame, numeric="all"), "generated stand-in; the printed cells are of another file"


def run(
    *, seeds: int = 20, large: bool = False, data: Path | None = None, seed: int | None = None,
    workers: int | None = None,
) -> Result:  # fmt: skip
    """Run the experiment.

    seeds : random draws of each row of Tables 1 to 3.
    large : use all 59,315 records of the large file instead of a sixth.
    data : folder of reference files.
    seed : of the whole run; by default a random one.
    """
    key = secrets.randbits(256) if seed is None else seed
    small, which = load_census(data)
    measures = [S0(), S1(), S2(), WorstLinkage(), *SINGLE_ATTACKS.values()]
    plan = Plan([method_of(row, small.numeric) for row in ROWS], measures, replicates=seeds, seed=key)
    tables = Draws.of(sweep(small, plan, workers=workers), small.numeric)
    document: Document = {"table1": tables.table1(), "table2": tables.table2(), "table3": tables.table3()}
    exact = exact_statements(small.matrix(small.numeric), np.random.default_rng(key))
    part = large_file(data, every=1 if large else 6, seed=key, workers=workers)
    lines = [*_lines(document, exact, which, seeds), *part.lines, "Other errata of the paper:", *errata("yancey2002")]
    document |= {"exact": exact, **part.document, "data": which, "seeds": seeds}
    return Result(document, tuple(lines), part.figures)


@dataclass(frozen=True)
class Draws:
    """The results of the sweep: for each row the values over the seeds of losses, re-identified shares and scores."""

    values: Mapping[str, Mapping[str, list[float]]]

    @staticmethod
    def of(scores: Scores, on: tuple[str, ...]) -> Draws:
        rows = {method_of(row, on).text: row for row in ROWS}
        values: dict[str, dict[str, list[float]]] = {row: defaultdict(list) for row in ROWS}
        names: dict[str, tuple[str, ...]] = {measure.text: (name,) for name, measure in SINGLE_ATTACKS.items()}
        names |= {"WorstLinkage": ("worst",), "S0": ("s0",), "S2": ("s2", "IL1s")}
        names["S1"] = ("s1", "IL1", "IL2", "IL3", "IL4", "IL5")
        for measure in scores.measure["name"].to_list():
            for score in scores.column(measure).sort("method", "replicate").iter_rows(named=True):
                if score["method"] in rows:
                    parts = {names[measure][0]: score["value"], **scores.estimates(measure)[score["id"]].parts}
                    for part in names[measure]:
                        values[rows[score["method"]]][part].append(parts[part])
        return Draws(values)

    def table1(self) -> Cells:
        """Return information losses."""
        return {row: cells_beside("table1", row, {name: self.values[row][name] for name in LOSSES}) for row in ROWS}

    def table2(self) -> Cells:
        """Return re-identified shares: of the attacks d and l of the paper, and of other attackers."""
        return {row: cells_beside("table2", row, {name: self.values[row][name] for name in ATTACKS}) for row in ROWS}

    def table3(self) -> Cells:
        """Return overall scores, 50 (loss + re-identified share)."""
        cells = {}
        for row, values in self.values.items():
            scores = {
                f"{metric} {name}": list(map(overall_score, values[loss], values[metric]))
                for metric in "dl"
                for name, loss in (("A", "s0"), ("D", "s1"), ("S", "s2"))
            }
            cells[row] = cells_beside("table3", row, scores)
        return cells


def exact_statements(x: Array, rng: Generator) -> dict[str, float]:
    """Return the largest relative errors of statements about the tables that need one draw of W for all d.

    They are computed here because the methods of a plan do not share random draws. IL2 grows as sqrt(d) (printed 0.002
    0.004 0.006 0.008), and rescaling changes neither IL2 nor IL5.
    """
    half, s2 = np.full(2, 0.5), np.full(2, 0.025)
    # One draw of the mixture noise W, scaled by sqrt(d) for every d.
    noise = draw_mixture(x.shape, half, centers(np.array([1.0]), half, s2), s2, rng) @ complete_covariance_root(x).T
    before, losses = moments(x), []
    for d in MIXTURE_SHARES:
        z = x + np.sqrt(d) * noise
        for y in (z, np.column_stack([restore_covariance(column, d) for column in z.T])):
            after = moments(y)
            losses += [il2_losses(before, after).mean(), np.nanmean(il5_losses(before, after))]
    il2, il5, il2_scaled, il5_scaled = np.reshape(losses, (-1, 4)).T
    ratio = il2 / np.sqrt(MIXTURE_SHARES)
    return {
        "IL2 grows as sqrt(d)": float(ratio.max() / ratio.min() - 1),
        "IL2 of scaled equals unscaled": float(np.abs(il2_scaled / il2 - 1).max()),
        "IL5 of scaled equals unscaled": float(np.abs(il5_scaled / il5 - 1).max()),
    }


def _lines(document: Document, exact: Mapping[str, float], which: str, seeds: int) -> Iterator[str]:
    yield "Yancey, Winkler, Creecy (2002)"
    yield f"{which}; {seeds} seeds. sd: of one run. * / **: the printed cell is over 2 / 3 sd from our mean; e: erratum."
    for name, table in document.items():
        yield from beside(name, table)
    yield from ("", "Errata among these cells:")
    for name in document:
        cells = defaultdict(list)
        for (row, column), reason in WRONG_CELLS[name].items():
            cells[reason].append(f"{row} {column}")
        yield from (f"  Table {name[-1]}, {', '.join(names)}: {reason}." for reason, names in cells.items())
    yield "With one draw of W for all d (largest relative error):"
    yield from (f"  {statement}: {error:.1e}" for statement, error in exact.items())
