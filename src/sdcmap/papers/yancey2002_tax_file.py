"""The large file of Yancey, Winkler, Creecy (2002): Tables 4 to 9 on a substitute file, with their link files, and figure 1
of Duncan, Keller-McNulty, Stokes (2001).

The matched tax file of the paper is not public, so only the pattern of its cells can be compared with ours.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

from sdcmap import Method, Microdata, Plan, Scores, read, sweep
from sdcmap.charts.curves import draw_curves
from sdcmap.core.chart import Chart
from sdcmap.data.private_folder import private_folder
from sdcmap.map import overall_score
from sdcmap.methods import Chain, Noise, SwapReidentified
from sdcmap.papers.reference import Document, Result, reference_file
from sdcmap.papers.yancey2002_tables import LOSSES, TABLES, Cells, beside, cells_beside, method_of
from sdcmap.risk import Informed, Linkage
from sdcmap.risk.linkage.attack import Attack
from sdcmap.risk.linkage.file_pair import LinkTable
from sdcmap.study.progress import progress_bar
from sdcmap.utility import S1, S2

EIGHT_INCOMES = ("TOTINC", "AGI", "WAGES", "TAXINT", "DIVID", "BUSFARM", "NTXINT", "SOCSEC")
ELEVEN_INCOMES = (*EIGHT_INCOMES, "PENSION", "IRADIST", "CAPGAIN")
CATEGORIES = ("RETTYPE", "NCHILD", "NEXEMPT", "AGED", "SCHC", "SCHF")
SUBPOPULATIONS = {"heads": ("RETTYPE", 4), "schedule_c": ("SCHC", 1)}  # the subpopulations of Tables 8 and 9
UNUSUAL_SHARE = 771 / 64_998  # share of records with unusual combinations, Duncan et al. (2001), figure 1
NOISE_VARIANCES = (0.0049, 0.01, 0.02, 0.05, 0.1, 0.2333, 1.0, 9.0)  # lambda2; printed: .0049 to .2333, then 9
DRAWS_PER_VARIANCE = 3  # of each lambda2
TOP_LINKS = (10, 20, 50, 100, 500, 1000)


def row_method(row: str, on: tuple[str, ...]) -> Method:
    """Return the method of a row; add01_sw swaps the records that linkage still re-identifies, within return types."""
    if row == "add01_sw":
        return Chain((method_of("add01", on), SwapReidentified(on=on, within=("RETTYPE",))))
    return method_of(row, on)


def tax_units(data: Path | None, every: int) -> tuple[Microdata, str]:
    """Return every `every`-th record of the substitute for the tax file, or of a generated one; and which it is.

    A subpopulation is a column with its name for its records and a unique text for all others, which are therefore too
    few to be measured.
    """
    file = reference_file("cps_tax_income.parquet", data)
    frame = pl.read_parquet(file) if file is not None else _generate_incomes()
    frame = frame.gather_every(every).select(*ELEVEN_INCOMES, *CATEGORIES)
    unique_text = pl.int_range(pl.len()).cast(pl.String)
    frame = frame.with_columns(
        pl.when(pl.col(name) == value).then(pl.lit(part)).otherwise(unique_text).alias(part)
        for part, (name, value) in SUBPOPULATIONS.items()
    )
    where = "generated stand-in" if file is None else f"reference file {file.name}, itself a stand-in"
    description = f"{where}; {frame.height:,} records" + (f", 1 in {every} (--large: all)" if every > 1 else "")
    return read(frame, numeric=list(ELEVEN_INCOMES), other=[*CATEGORIES, *SUBPOPULATIONS]), description


def _generate_incomes(n: int = 6_000) -> pl.DataFrame:
    """Return skewed incomes of tax units, most of them zero, and a few categories."""
    rng = np.random.default_rng(2)
    common = rng.normal(size=(n, 1))
    x = np.exp(8 + common + rng.normal(size=(n, 11))).round() * (rng.random((n, 11)) < np.linspace(1, 0.1, 11))
    x[:, 0] = x[:, 1:].sum(axis=1) + 1
    return pl.DataFrame(x, schema=list(ELEVEN_INCOMES)).with_columns(
        **{name: rng.geometric(0.5, n) for name in CATEGORIES}
    )


def large_file(data: Path | None, every: int, seed: int, workers: int | None) -> Result:
    """Return Tables 4 to 9, the link files and figure 1."""
    units, which = tax_units(data, every)
    eleven = Plan([row_method(row, ELEVEN_INCOMES) for row in TABLES["table4"]], _sums(ELEVEN_INCOMES), seed=seed)
    ways = [("", False), *((part, corrected) for part in SUBPOPULATIONS for corrected in (True, False))]
    losses = [loss for part, corrected in ways for loss in _sums(EIGHT_INCOMES, part, corrected)]
    eight = Plan([row_method(row, EIGHT_INCOMES) for row in TABLES["table5"]], losses, seed=seed)
    scores = sweep(units, eight, workers=workers)
    links = link_files(units, eight)
    tables = {
        "table4": _losses(sweep(units, eleven, workers=workers), ELEVEN_INCOMES, "table4"),
        "table5": _losses(scores, EIGHT_INCOMES, "table5"),
        "table8": _losses(scores, EIGHT_INCOMES, "table8", "heads"),
        "table9": _losses(scores, EIGHT_INCOMES, "table9", "schedule_c"),
        "table6": {row: cells_beside("table6", row, _shares(table)) for row, table in links.items()},
    }
    tables["table7"] = {row: _scores(tables, row) for row in links}
    curve = unusual_records(units, seed, workers)
    document = {
        **tables, "link_files": {row: _precision(table) for row, table in links.items()},
        "survivors": _survivors(units, links), "duncan_figure1": curve, "large_data": which,
    }  # fmt: skip
    return Result(document, tuple(_lines(document, which)), {"duncan_figure1": _figure(curve)})


def _sums(on: tuple[str, ...], part: str = "", corrected: bool = False) -> tuple[S1, S2]:
    """Return the measures s1 and s2, whose parts are all losses; for a subpopulation if given."""
    by = (part,) if part else ()
    return S1(on=on, by=by, corrected=corrected), S2(on=on, by=by, corrected=corrected)


def _losses(scores: Scores, on: tuple[str, ...], table: str, part: str = "") -> Cells:
    """Return IL1 to s2 of each row, from the parts of s1 and s2; in a subpopulation, noise is corrected by Kim's method."""
    sums = [loss.text for corrected in ((True, False) if part else (False,)) for loss in _sums(on, part, corrected)]
    ids = dict(scores.candidate.select("method", "id").iter_rows())
    cells: Cells = {}
    for row in TABLES[table]:
        mine = (scores.estimates(loss).get(ids[row_method(row, on).text]) for loss in sums)
        parts = ChainMap(*(dict(estimate.parts) for estimate in mine if estimate is not None))
        values = {name: parts[name] for name in LOSSES[:6] if name in parts}
        if "IL1" in parts and "IL1s" in parts:
            four = [parts[name] for name in ("IL2", "IL3", "IL4", "IL5")]
            values |= {"s0": sum(four) / 4, "s1": (parts["IL1"] + sum(four)) / 5}
            values["s2"] = (parts["IL1s"] + parts["IL2"] + parts["IL4"] + parts["IL5"]) / 4
        cells[row] = cells_beside(table, row, {name: [values[name]] if name in values else [] for name in LOSSES})
    return cells


def link_files(units: Microdata, plan: Plan) -> dict[str, LinkTable]:
    """Return the links of the l metric for the first draw of each row, record by record; a sweep does not store them."""
    attack, links = Linkage("l", on=EIGHT_INCOMES, open_columns="as any"), {}
    rows = {row_method(row, EIGHT_INCOMES).text: row for row in TABLES["table5"]}
    with progress_bar() as report:
        for done, candidate in enumerate(plan.candidates):
            report(done, plan.count)
            if candidate.method.text in rows:
                masked = candidate.method.apply(units, candidate.stream(plan.seed))
                links[rows[candidate.method.text]] = attack.links(units, masked)
    return links


def _shares(links: LinkTable) -> dict[str, list[float]]:
    """Return the re-identified shares of one release, over all links and in the zone."""
    return {
        "total": [float(links.correct.mean())],
        "zone": [float(links.correct[links.zone()].sum()) / len(links.correct)],
    }


def _scores(tables: dict[str, Cells], row: str) -> dict[str, Document]:
    scores = {}
    pairs = product((("", "total"), ("zone ", "zone")), (("A", "s0"), ("D", "s1"), ("S", "s2")))
    for (zone, share), (name, loss) in pairs:
        parts = tables["table5"][row][loss]["mean"], tables["table6"][row][share]["mean"]
        scores[zone + name] = [] if None in parts else [overall_score(*parts)]
    return cells_beside("table7", row, scores)


def _precision(links: LinkTable) -> Document:
    """Return the share of true links among the best links by weight, and the numbers of links and of believed links."""
    rows, precision = links.rank_links()
    shares = {str(top): float(precision[top - 1]) for top in TOP_LINKS if top <= len(rows)}
    return {"links": len(rows), "linked": links.facts["linked"], "zone": len(links.zone()), "precision": shares}


def _survivors(units: Microdata, links: dict[str, LinkTable]) -> dict[str, float | None]:
    """Return the number of records that are correctly linked in every file with mixture noise, how many of them an attacker
    would believe every time (because they are in the zone), and how far they are from the mean."""
    linked, believed = np.ones((2, len(units)), dtype=bool)
    for table in (table for row, table in links.items() if "mixadd" in row):
        linked &= table.correct == 1
        believed &= np.isin(np.arange(len(units)), table.zone())
    x = units.matrix(EIGHT_INCOMES)
    # The distance of a record from the mean is that of its most extreme value, in standard deviations.
    distance = (np.abs(x - x.mean(axis=0)) / x.std(axis=0, ddof=1)).max(axis=1)
    return {
        "records": int(linked.sum()),
        "believed": int((linked & believed).sum()),
        "median_sds_from_mean": float(np.median(distance[linked])) if linked.any() else None,
        "median_sds_of_all": float(np.median(distance)),
    }


def unusual_records(units: Microdata, seed: int, workers: int | None) -> list[dict[str, float]]:
    """Return the share of records with unusual categories that are re-identified by their amounts alone.

    As in Duncan et al. (2001), section 2: noise has covariance lambda2 Cov X, the intruder has the original amounts of the
    unusual records, and U = 1/(1 + lambda2).
    """
    combination = units.frame().with_row_index("row").with_columns(count=pl.len().over(CATEGORIES))
    # The targets are the records with the rarest combinations of categories.
    targets = combination.sort("count", "row").head(max(1, round(UNUSUAL_SHARE * len(units))))
    with private_folder() as folder:
        path = folder / "targets.parquet"
        targets.select(*EIGHT_INCOMES, "row").write_parquet(path)
        attacks: dict[str, Attack] = {
            "informed": Informed(archive=str(path), row="row", on=EIGHT_INCOMES),
            "l": Linkage("l", archive=str(path), row="row", on=EIGHT_INCOMES),
        }
        methods = {noise: Noise(on=EIGHT_INCOMES, variance=noise, correlated=True) for noise in NOISE_VARIANCES}
        plan = Plan(list(methods.values()), list(attacks.values()), replicates=DRAWS_PER_VARIANCE, seed=seed)
        scores = sweep(units, plan, workers=workers)
    rows = []
    for noise, method in methods.items():
        row = {"lambda2": noise, "U": 1 / (1 + noise), "targets": targets.height}
        for name, attack in attacks.items():
            pooled = scores.pooled(attack.text).filter(pl.col("method") == method.text).row(0, named=True)
            row |= {name: pooled["value"], f"{name}_se": pooled["se"]}
        rows.append(row)
    return rows


def _figure(curve: list[dict[str, float]]) -> Chart:
    rows = [
        {"series": label, "x": row["U"], "y": row[name], "se": row[f"{name}_se"], "lambda2": row["lambda2"]}
        for name, label in (("informed", "reader of the method note"), ("l", "linkage, l metric"))
        for row in curve
    ]
    return draw_curves(
        pl.DataFrame(rows), x="Utility of the mean: 1/(1 + λ²), higher is better",
        y="Share of unusual records re-identified, lower is better", log=False,
    )  # fmt: skip


def _lines(document: Document, which: str) -> Iterator[str]:
    yield ""
    yield f"The large file: {which}. The printed cells refer to the tax file, which is not public: compare the pattern."
    for name in sorted(TABLES.keys() & document.keys()):
        yield from beside(name, document[name])
    yield from ("", "Link files sorted by weight: share of true links among the best")
    yield f"{'':<14}{'links':>8}{'linked':>8}{'zone':>8}" + "".join(f"{top:>8}" for top in TOP_LINKS)
    for row, file in document["link_files"].items():
        shares = "".join(f"{file['precision'].get(str(top), float('nan')):>8.3f}" for top in TOP_LINKS)
        yield f"{row:<14}{file['links']:>8,}{file['linked']:>8.2f}{file['zone']:>8,}{shares}"
    survivors = document["survivors"]
    where = ""
    if survivors["records"]:
        where = (
            f", {survivors['believed']:,} of them in every zone; their most extreme value is "
            f"{survivors['median_sds_from_mean']:.1f} "
            f"standard deviations from the mean (median; all records: {survivors['median_sds_of_all']:.1f})"
        )
    yield f"Correctly linked under every mixture noise: {survivors['records']:,} records{where}."
    yield ""
    curve = document["duncan_figure1"]
    yield f"Duncan et al. (2001), figure 1: {curve[0]['targets']} records of unusual categories, re-identified by amounts"
    yield f"{'lambda2':>10}{'U':>8}{'informed':>10}{'l':>8}"
    yield from (f"{row['lambda2']:>10g}{row['U']:>8.3f}{row['informed']:>10.3f}{row['l']:>8.3f}" for row in curve)
