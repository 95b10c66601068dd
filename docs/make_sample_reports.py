"""Write the sample reports of docs/sample-reports: about a social survey, a business file and a census extract, all public.

Each study uses a starting plan. There is a report for the board and one for the public. The pages contain no records.

    SDCMAP_DATA=folder-with-data python docs/make_sample_reports.py
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import polars as pl

import sdcmap as sm
from sdcmap.explore.first_look import look

FOLDER = Path(__file__).parent / "sample-reports"
SEED = 0x5A3B_1E0D_0551_E250_0000_0000_0000_0000_0000_0001  # the data are public, so it need not be secret


class Sample(NamedTuple):
    """A public file that may be redistributed, and how to read it."""

    title: str
    owner: str
    profile: str
    read: Callable[[Path], sm.Microdata]


def incomes(folder: Path) -> sm.Microdata:
    """Return one in forty tax units: created by PSLmodels from the March Current Population Survey, CC0."""
    frame = pl.read_parquet(folder / "cps_tax_income.parquet").gather_every(40)
    keys, amounts = ["RETTYPE", "NCHILD", "AGED", "FIPS"], ["AGEHEAD", "WAGES", "TAXINT", "SOCSEC", "PENSION", "TOTINC"]
    text = frame.select(pl.col(keys).cast(pl.String), *amounts)
    return sm.read(text, keys=keys, numeric=amounts, sensitive=["TOTINC"])


def utilities(folder: Path) -> sm.Microdata:
    """Return electric utilities in January 1996, by state: US Energy Information Administration, public domain."""
    frame = pl.read_parquet(folder / "casc_eia.parquet").filter(pl.col("MONTH") == 1, pl.col("UTILITYID") != 0)
    amounts = [name for name in frame.columns if name.endswith(("REVENUE", "SALES"))]
    return sm.read(frame.select("STATE", *amounts), keys=["STATE"], numeric=amounts, sensitive=["TOTREVENUE"])


def census(folder: Path) -> sm.Microdata:
    """Return one in forty persons of Adult, "Census Income", in eight categories: Becker and Kohavi (1996), CC BY 4.0."""
    return sm.read(pl.read_parquet(folder / "cps8d.parquet").gather_every(40), keys="all", sensitive=["Income"])


SAMPLES = {
    "social-survey": Sample("Incomes of tax units", "US Census Bureau; PSLmodels", "public-use", incomes),
    "business-file": Sample("Electric utilities, 1996", "US Energy Information Administration", "business", utilities),
    "census-extract": Sample("Census income, eight categories", "US Census Bureau", "public-use", census),
}


def write(name: str, sample: Sample, source: Path, workspace: Path) -> None:
    """Write both reports of a sample. The plan does not name its data file, so that the pages name none."""
    data = sample.read(source)
    proposed = look(data).plan("", sample.profile)
    plan = replace(proposed, seed=SEED, data=None)
    sm.sweep(data if proposed.data is None else proposed.data.apply_to(data), plan, workspace / name)
    for audience in ("internal", "external"):
        page = sm.report(workspace / name, audience=audience, title=sample.title, owner=sample.owner)
        page.save(FOLDER / f"{name}-{audience}.html").chmod(0o644)


if __name__ == "__main__":
    if "SDCMAP_DATA" not in os.environ:
        sys.exit("Set SDCMAP_DATA to a folder that contains the public files in its subfolder data/.")
    with tempfile.TemporaryDirectory() as folder:
        for name, sample in SAMPLES.items():
            write(name, sample, Path(os.environ["SDCMAP_DATA"]) / "data", Path(folder))
            print(name)
