"""The study on disk: plan, manifest and one table of scores, written by one writer and resumed by `insert or ignore`."""

from __future__ import annotations

import fcntl
import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sdcmap import __version__
from sdcmap.errors import PlanError, SdcmapError, StudyDamaged, StudyMismatch, did_you_mean
from sdcmap.io import write
from sdcmap.measure import Estimate, Measure
from sdcmap.microdata import Microdata
from sdcmap.plan import Plan
from sdcmap.scoring import CandidateRow, ScoreRow
from sdcmap.workcopy import open_copy, write_copy

TABLES = {
    "candidate": "id text primary key, method text, replicate integer, status text, reason text, seconds real",
    "score": "candidate text, measure text, value real, se real, parts text, status text, reason text, "
    "primary key (candidate, measure)",
    "measure": "name text primary key, direction text, low real, high real, unit text, axis text, at_nothing real",
}
BAND_REPLICATES = 40  # a quantile q needs 1/(1 - q) replicates, and the band of single releases ends at 97.5 %
ELSEWHERE = "file: "  # the method of a file made elsewhere begins so


@dataclass(frozen=True)
class Scores:
    """Three tables of numbers: candidate, score and measure; `values` are the measures, for pooling replicates."""

    candidate: pl.DataFrame
    score: pl.DataFrame
    measure: pl.DataFrame
    values: Mapping[str, Measure] = field(default_factory=dict, repr=False)

    def column(self, measure: str) -> pl.DataFrame:
        """One measure of every candidate that was made: id, method, replicate, value (infinite is inf), se, parts."""
        names = self.measure["name"].to_list()
        if measure not in names:
            raise PlanError(f"no measure {measure!r} in these scores.{did_you_mean(measure, names)}")
        value = pl.when(pl.col("status") == "infinite").then(math.inf).otherwise(pl.col("value")).alias("value")
        rows = self._by_measure.get((measure,), self.score.clear()).select("candidate", value, "se", "parts")
        return self._made.join(rows, left_on="id", right_on="candidate", how="inner", maintain_order="left").drop_nulls(
            "value"
        )

    @cached_property
    def _made(self) -> pl.DataFrame:
        return self.candidate.filter(pl.col("status") == "ok").select("id", "method", "replicate")

    @cached_property
    def _by_measure(self) -> dict[tuple[Any, ...], pl.DataFrame]:
        return self.score.partition_by("measure", as_dict=True)

    def pooled(self, measure: str) -> pl.DataFrame:
        """One measure of each method: pooled value, standard error, 2.5 and 97.5 % of single releases, count."""
        pool = self.values.get(measure, _PLAIN).pool
        table = self.column(measure)
        parts = json.loads(f"[{','.join(table['parts'].to_list())}]")  # one document is read much faster than many
        draws: dict[str, list[Estimate]] = {}
        single = map(Estimate, table["value"].to_list(), table["se"].to_list(), parts)
        for method, estimate in zip(table["method"].to_list(), single, strict=True):
            draws.setdefault(method, []).append(estimate)
        rows = []
        for method, estimates in draws.items():
            found = pool(estimates)
            rows.append((method, found.value, found.se, *_band(estimates), len(estimates)))
        schema = {"method": pl.String, "value": pl.Float64, "se": pl.Float64, "low": pl.Float64, "high": pl.Float64}
        return pl.DataFrame(rows, schema={**schema, "count": pl.Int64}, orient="row")

    def with_file(self, name: str, estimates: Mapping[str, Estimate]) -> Scores:
        """The same scores with a file made elsewhere beside our candidates."""
        key = f"{ELSEWHERE}{name}"
        row = pl.DataFrame([(key, key, 0, "ok", "", 0.0)], schema=self.candidate.schema, orient="row")
        scores = [(key, m, e.value, e.se, json.dumps(dict(e.parts)), "ok", "") for m, e in estimates.items()]
        more = pl.DataFrame(scores, schema=self.score.schema, orient="row")
        return Scores(self.candidate.vstack(row), self.score.vstack(more), self.measure, self.values)


def _band(estimates: Sequence[Estimate]) -> tuple[float | None, float | None]:
    if len(estimates) < BAND_REPLICATES:
        return None, None
    values = np.sort([estimate.value for estimate in estimates])
    low, high = np.interp([0.025 * (len(values) - 1), 0.975 * (len(values) - 1)], np.arange(len(values)), values)
    return float(low), float(high)


_PLAIN = Measure()  # pools by the mean: what a table made elsewhere gets


@dataclass(frozen=True)
class Study:
    """A study folder, or a study in memory (`path` None)."""

    path: Path | None
    connection: sqlite3.Connection = field(repr=False)
    manifest: dict[str, Any] = field(repr=False)

    # ---- opening ----------------------------------------------------------------------------------------------
    @staticmethod
    def open(path: str | Path) -> Study:
        """An existing study folder, for reading and choosing."""
        path = Path(path)
        if not (path / "manifest.json").is_file():
            raise StudyDamaged(f"{path} is no study: it has no manifest.json. `sdcmap sweep` makes one.")
        try:
            manifest = json.loads((path / "manifest.json").read_text())
            int(manifest["seed"], 16), str(manifest["data"])
        except (OSError, ValueError, KeyError, TypeError):
            raise StudyDamaged(f"{path / 'manifest.json'} cannot be read; the study needs it for its seed.") from None
        return Study(path, _connect(path / "scores.sqlite"), manifest)

    @staticmethod
    def begin(path: str | Path | None, data: Microdata, plan: Plan) -> Study:
        """The study of this plan: a new one, or an existing one of the same data and seed whose plan may have grown."""
        if path is None:
            manifest = {"seed": hex(plan.seed), "data": data.digest}
            return Study(None, _connect(None), manifest)
        path = Path(path)
        if (path / "manifest.json").exists():
            study = Study.open(path)
            plan.settle_seed(study.seed)
            if study.manifest["data"] != data.digest:
                raise StudyMismatch(f"{path} belongs to other data: name another folder.")
            if study.seed != plan.seed:
                raise StudyMismatch(f"{path} was begun with another seed: leave the seed out to go on with its own.")
        else:
            if path.exists() and any(path.iterdir()):
                raise StudyDamaged(f"{path} is not empty and no study: name another folder.")
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o700)
            study = Study(path, _connect(path / "scores.sqlite"), {})
            study.note(version=__version__, created=_now(), data=data.digest, seed=hex(plan.seed), rules=[])
        study.fix_rule(plan)
        _write(path / "plan.toml", plan.toml())
        try:
            open_copy(path, data.digest)
        except StudyDamaged:
            write_copy(data, path)
        return study

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"], 16)

    @property
    def plan(self) -> Plan:
        """The plan as last swept, with the study's seed."""
        if self.path is None:
            raise StudyDamaged("a study in memory keeps no plan.")
        return Plan.read(self.path / "plan.toml", seed=self.seed)

    @property
    def data(self) -> Microdata:
        """The data of the study, identifiers left out."""
        if self.path is None:
            raise StudyDamaged("a study in memory keeps no data.")
        return open_copy(self.path, self.manifest["data"])

    @property
    def rule_was_fixed_first(self) -> bool:
        """Whether the present rule and its limits were fixed before the first score."""
        rules, first = self.manifest.get("rules", []), self.manifest.get("first_score")
        return bool(rules) and (first is None or rules[-1]["fixed"] <= first)

    # ---- writing ----------------------------------------------------------------------------------------------
    @contextmanager
    def writing(self) -> Iterator[None]:
        """One writer at a time."""
        if self.path is None:
            yield
            return
        with (self.path / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SdcmapError(f"another sweep is writing {self.path}: wait for it, or stop it.") from None
            yield

    def add(self, rows: Sequence[CandidateRow]) -> None:
        """Store candidates and their scores in one transaction; what is there already stays."""
        if rows and self.path is not None and "first_score" not in self.manifest:
            self.note(first_score=_now())
        candidates = [row[:-1] for row in rows]  # all but the scores
        scores = [(row.id, *score) for row in rows for score in row.scores]
        try:
            with self.connection:
                self.connection.executemany("insert or ignore into candidate values (?,?,?,?,?,?)", candidates)
                self.connection.executemany("insert or ignore into score values (?,?,?,?,?,?,?)", scores)
        except sqlite3.OperationalError as error:
            raise SdcmapError(f"the study cannot be written ({error}); what was stored before is kept.") from None

    def add_file(self, name: str, scores: Sequence[ScoreRow]) -> None:
        """Put the scores of a file made elsewhere beside our candidates."""
        key = f"{ELSEWHERE}{name}"
        self.add([CandidateRow(key, key, 0, "ok", "", 0.0, tuple(scores))])

    def keep(self, masked: Microdata, candidate: str) -> Path:
        """Keep a masked file for study; it carries no origin and is never copied by a release."""
        if self.path is None:
            raise StudyDamaged("a study in memory keeps no files.")
        (self.path / "kept").mkdir(mode=0o700, exist_ok=True)
        return write(masked, self.path / "kept" / f"{candidate}.study.parquet")

    def add_measures(self, measures: Sequence[Measure], original: Microdata) -> None:
        rows = [(m.text, m.direction, *m.bounds, m.unit, m.axis, m.nothing(original)) for m in measures]
        with self.connection:
            self.connection.executemany("insert or replace into measure values (?,?,?,?,?,?,?)", rows)

    def note(self, **facts: Any) -> None:
        """Keep facts in the manifest."""
        self.manifest.update(facts)
        if self.path is not None:
            _write(self.path / "manifest.json", json.dumps(self.manifest, indent=1))

    def fix_rule(self, plan: Plan) -> None:
        """Remember when the present rule, its limits and its axes were fixed."""
        rule = [plan.rule.text if plan.rule else "", list(plan.risk), list(plan.limits), plan.utility]
        rules = self.manifest.setdefault("rules", [])
        if plan.rule is not None and (not rules or rules[-1]["rule"] != rule):
            self.note(rules=[*rules, {"rule": rule, "fixed": _now()}])

    # ---- reading ----------------------------------------------------------------------------------------------
    def done(self) -> dict[str, tuple[str, frozenset[str]]]:
        """Candidate id -> its status and the measures it has."""
        measures: dict[str, set[str]] = {}
        for candidate, measure in self.connection.execute("select candidate, measure from score"):
            measures.setdefault(candidate, set()).add(measure)
        made = self.connection.execute("select id, status from candidate")
        return {name: (status, frozenset(measures.get(name, ()))) for name, status in made}

    def scores(self, plan: Plan | None = None) -> Scores:
        """The scores of this plan's candidates and measures (None: the study's own plan) and of files made elsewhere."""
        plan = plan or self.plan
        candidate, score, measure = (self._table(name) for name in TABLES)
        values = {m.text: m for m in plan.measures}
        if self.path is None:  # a study in memory holds nothing else
            return Scores(candidate, score, measure, values)
        wanted = pl.Series([one.id for one in plan.candidates])
        names = pl.Series(list(values))
        candidate = candidate.filter(pl.col("id").is_in(wanted.implode()) | pl.col("method").str.starts_with(ELSEWHERE))
        score = score.filter(
            pl.col("candidate").is_in(candidate["id"].implode()), pl.col("measure").is_in(names.implode())
        )
        measure = measure.filter(pl.col("name").is_in(names.implode()))
        return Scores(candidate, score, measure, values)

    def _table(self, name: str) -> pl.DataFrame:
        types = {"text": pl.String, "real": pl.Float64, "integer": pl.Int64}
        columns = [part.split() for part in TABLES[name].split(", primary")[0].split(", ")]
        schema = {column[0]: types[column[1]] for column in columns}
        rows = self.connection.execute(f"select {', '.join(schema)} from {name} order by 1, 2").fetchall()
        return pl.DataFrame(rows, schema=schema, orient="row")


def _connect(path: Path | None) -> sqlite3.Connection:
    try:
        if path is not None:
            path.touch(mode=0o600)
        connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
        if path is not None and connection.execute("pragma quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        for name, columns in TABLES.items():
            connection.execute(f"create table if not exists {name} ({columns}) without rowid")
        return connection
    except sqlite3.DatabaseError:
        raise StudyDamaged(f"{path} is damaged; the folder cannot be used as a study.") from None
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None


def _write(path: Path, text: str) -> None:
    """Write a private file whole or not at all."""
    part = path.with_suffix(".part")
    try:
        part.touch(mode=0o600)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
