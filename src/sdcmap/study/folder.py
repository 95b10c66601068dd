"""The study on disk: plan, manifest and one table of scores, written by one writer and resumed by `insert or ignore`."""

from __future__ import annotations

import fcntl
import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from sdcmap import __version__
from sdcmap.core.measure import Measure
from sdcmap.data.microdata import Microdata
from sdcmap.errors import SdcmapError, StudyDamaged, StudyMismatch
from sdcmap.files.working_copy import open_copy, write_copy
from sdcmap.files.writing import write
from sdcmap.study.database import DAMAGED, TABLES, checksum, columns_of, connect, damaged, typed
from sdcmap.study.jobs import CandidateRow, ScoreRow
from sdcmap.study.plan import Plan
from sdcmap.study.scores import ELSEWHERE, Scores

BEGUN = {"incoming", "manifest.part", "scores.sqlite", "scores.sqlite-wal", "scores.sqlite-shm"}  # before a manifest is


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
        manifest = Study.manifest_of(path)
        return Study(path, connect(path / "scores.sqlite"), manifest)

    @staticmethod
    def manifest_of(path: Path) -> dict[str, Any]:
        """What manifest.json holds."""
        if not (path / "manifest.json").is_file():
            raise StudyDamaged(f"{path} is no study: it has no manifest.json. `sdcmap sweep` makes one.")
        try:
            manifest: dict[str, Any] = json.loads((path / "manifest.json").read_text())
            int(manifest["seed"], 16), str(manifest["data"]), [(e["rule"][0], e["first"]) for e in manifest["rules"]]
            (
                [(e["check"],) for e in manifest.get("overrides", [])],
                [(e["folder"],) for e in manifest.get("releases", [])],
            )
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise StudyDamaged(f"{path / 'manifest.json'} cannot be read; the study needs it for its seed.") from None
        return manifest

    @staticmethod
    def begin(path: str | Path | None, data: Microdata, plan: Plan) -> Study:
        """The study of this plan: a new one, or an existing one of the same data and seed whose plan may have grown."""
        if path is None:
            manifest = {"seed": hex(plan.seed), "data": data.digest}
            return Study(None, connect(None), manifest)
        path = Path(path)
        if (path / "manifest.json").exists():
            study = Study.open(path)
            plan.settle_seed(study.seed)
            if study.manifest["data"] != data.digest:
                raise StudyMismatch(f"{path} belongs to other data: name another folder.")
            if study.seed != plan.seed:
                raise StudyMismatch(f"{path} was begun with another seed: leave the seed out to go on with its own.")
        else:
            if path.exists() and any(file.name not in BEGUN for file in path.iterdir()):
                raise StudyDamaged(f"{path} is not empty and no study: name another folder.")
            try:
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o700)
            except OSError as error:
                raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
            study = Study(path, connect(path / "scores.sqlite"), {})
            study.note(version=__version__, created=_now(), data=data.digest, seed=hex(plan.seed), rules=[])
        study.fix_rule(plan)
        _write(path / "plan.toml", plan.toml())
        _take_copy(path, data)
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
        """Whether the present rule and its limits were fixed before the first score; no clock is asked."""
        rules = self.manifest.get("rules", [])
        return bool(rules) and bool(rules[-1]["first"])

    # ---- writing ----------------------------------------------------------------------------------------------
    @contextmanager
    def writing(self) -> Iterator[None]:
        """One writer at a time."""
        if self.path is None:
            yield
            return
        try:
            lock = (self.path / "lock").open("w")
        except OSError as error:
            raise SdcmapError(f"{self.path} cannot be written ({error.strerror}).") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise SdcmapError(f"another sweep is writing {self.path}: wait for it, or stop it.") from None
            yield

    def add(self, rows: Sequence[CandidateRow]) -> None:
        """Store candidates and their scores in one transaction; what is there already stays."""
        if rows and self.path is not None and "first_score" not in self.manifest:
            self.note(first_score=_now())
        told = [(row.id, *score) for row in rows for score in row.scores]
        if self.path is None:  # memory is not damaged
            candidates, scores = [(*row[:-1], 0) for row in rows], [(*row, 0) for row in told]
        else:
            candidates = [(*row[:-1], checksum("candidate", row[:-1])) for row in rows]  # all but the scores
            scores = [(*row, checksum("score", row)) for row in told]
        try:
            with self.connection:
                self.connection.executemany("insert or ignore into candidate values (?,?,?,?,?,?,?)", candidates)
                self.connection.executemany("insert or ignore into score values (?,?,?,?,?,?,?,?)", scores)
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
        facts = [(m.text, m.direction, *m.bounds, m.unit, m.axis, m.nothing(original)) for m in measures]
        rows = [typed("measure", row) for row in facts]
        checked = [(*row, checksum("measure", row)) for row in rows]
        with self.connection:
            self.connection.executemany("insert or replace into measure values (?,?,?,?,?,?,?,?)", checked)

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
            self.note(rules=[*rules, {"rule": rule, "fixed": _now(), "first": "first_score" not in self.manifest}])

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
        schema = {column: types[kind] for column, kind in columns_of(name).items() if column != "checksum"}
        try:
            rows = self.connection.execute(f"select {', '.join(schema)} from {name} order by 1, 2").fetchall()
            return pl.DataFrame(rows, schema=schema, orient="row")
        except DAMAGED:
            raise damaged(self.path and self.path / "scores.sqlite") from None


def _take_copy(path: Path, data: Microdata) -> None:
    """Let the study hold the working copy of its data: its own, one read in blocks into `incoming`, or a new one."""
    incoming = path / "incoming"
    try:
        open_copy(path, data.digest)
    except StudyDamaged:
        try:
            open_copy(incoming, data.digest)
            for name in ("data.bin", "schema.arrow"):
                (incoming / name).replace(path / name)
        except StudyDamaged:
            write_copy(data, path)
    shutil.rmtree(incoming, ignore_errors=True)


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
