"""The study on disk: plan, manifest and score tables. One process writes at a time; `insert or ignore` resumes a sweep."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sqlite3
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypedDict, Unpack, cast

import polars as pl
from filelock import FileLock, Timeout

from sdcmap import __version__
from sdcmap.core import Measure, Method, Microdata
from sdcmap.core.formatting import count_of
from sdcmap.core.limit import state_limits
from sdcmap.data.private_folder import STAGING_PREFIX, remove_abandoned, write_atomically
from sdcmap.errors import SdcmapError, StudyChanged, StudyDamaged, StudyMismatch
from sdcmap.files.working_copy import open_copy, write_copy
from sdcmap.files.writer import write
from sdcmap.study.database import Database, column_types, connect
from sdcmap.study.further_draws import read_further_draws
from sdcmap.study.jobs import CandidateRow, OutsideFile
from sdcmap.study.memory_tables import MemoryTables
from sdcmap.study.plan import Plan
from sdcmap.study.scores import EMPTY, Scores
from sdcmap.study.search_settings import Proposal
from sdcmap.study.spared_measures import Sparing

DATABASE = "scores.sqlite"
# a folder may contain these files before it has a manifest
FILES_BEFORE_MANIFEST = {"incoming", "lock", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", f"{DATABASE}-journal"}
RENAMED_ENTRIES = {"gate": "checked_draws", "cards": "gpus"}  # of manifests that version 0.1 wrote
COLUMN_DTYPES = {"text": pl.String, "real": pl.Float64, "integer": pl.Int64}


class Manifest(TypedDict, total=False):
    """The contents of manifest.json. The seed in it is secret."""

    version: str
    created: str
    data: str
    seed: str
    # with axes and limits, when each was fixed, and whether that was before the first score
    rules: list[dict[str, Any]]
    first_score: str
    overrides: list[dict[str, str]]
    releases: list[dict[str, Any]]
    ledgers: dict[str, Any]  # id of a ledger -> how far its chain had come when this study last used it
    search: dict[str, str]  # why the last search stopped
    checked_draws: dict[str, list[int]]  # digest of a method -> its draws that went through the release checks
    pair: dict[str, Any]  # the file chosen together with this study's candidate, and how many pairs were tried
    gpus: list[str]  # GPUs that computed scores
    policy: dict[str, Any]  # the release policy of the plan last swept
    plan: str  # SHA-256 of plan.toml as it was written
    checksum: str  # of all other entries


class CandidateState(NamedTuple):
    """What a study stores about one candidate: its status, and the ids of its measures."""

    status: str = ""
    measures: frozenset[str] = frozenset()


Tables = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]


class Study(AbstractContextManager["Study"]):
    """An open study folder, or a study in memory (`path` None). As a context manager it closes itself."""

    def __init__(self, path: Path | None, database: Database | MemoryTables, manifest: Manifest) -> None:
        self.path = path
        self.database = database
        self.manifest = manifest
        self._read: tuple[tuple[int, int], Tables] | None = None

    def __repr__(self) -> str:
        return f"Study({'in memory' if self.path is None else str(self.path)!r})"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. Stored scores stay."""
        self.database.close()

    @property
    def connection(self) -> sqlite3.Connection:
        if isinstance(self.database, MemoryTables):
            raise StudyDamaged("a study in memory has no database.")
        return self.database.connection

    # ---- opening ----------------------------------------------------------------------------------------------
    @staticmethod
    def open(path: str | Path) -> Study:
        """Open an existing study folder, for reading and choosing."""
        manifest = Study.manifest_of(path := Path(path))
        if _has_lost_scores(path, manifest):
            remedy = f"restore it, or compute the scores again: `sdcmap study repair {path.name}`, then sweep."
            raise StudyDamaged(f"{path / DATABASE} is missing or empty, but the study had scores: {remedy}")
        return Study(path, connect(path / DATABASE), manifest)

    @staticmethod
    def manifest_of(path: Path) -> Manifest:
        """Return the contents of manifest.json, or raise StudyDamaged."""
        if not (path / "manifest.json").is_file():
            raise StudyDamaged(f"{path} is not a study: it has no manifest.json. `sdcmap sweep` creates one.")
        try:
            manifest: Manifest = json.loads((path / "manifest.json").read_text())
            int(manifest["seed"], 16), str(manifest["data"]), [(e["rule"][0], e["first"]) for e in manifest["rules"]]
            [e["check"] for e in manifest.get("overrides", [])] + [e["folder"] for e in manifest.get("releases", [])]
            if manifest.pop("checksum", _checksum(manifest)) != _checksum(manifest):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            raise StudyDamaged(f"{path / 'manifest.json'} cannot be read. It contains the seed of the study.") from None
        return cast(Manifest, {RENAMED_ENTRIES.get(name, name): entry for name, entry in manifest.items()})

    @staticmethod
    @contextmanager
    def begin(path: str | Path | None, data: Microdata, plan: Plan) -> Iterator[Study]:
        """Open the study of this plan for writing: a new one, or one of the same data and seed whose plan may have grown.

        The folder is locked before the seed is read, so that of two first sweeps into a folder only one fixes the seed.
        """
        if path is None:
            with Study(None, MemoryTables(), {"seed": hex(plan.seed), "data": data.digest}) as study:
                yield study
            return
        path = Path(path)
        _make_folder(path)
        with lock_folder(path), _open_or_create(path, data, plan) as study:
            study.fix_rule(plan)
            study.note(plan=plan.digest)
            plan.write(path / "plan.toml")
            _take_copy(path, data)
            yield study

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"], 16)

    def bind_plan(self, plan: Plan) -> Plan:
        """Return the plan with this study's seed, unless it states its own."""
        return plan if plan.seed_stated else plan.bind_seed(self.seed)

    @property
    def plan(self) -> Plan:
        """The plan as last swept, with the study's seed."""
        path = self._folder("plan") / "plan.toml"
        plan = Plan.read(path, seed=self.seed)
        if plan.digest != self.manifest.get("plan", plan.digest):
            raise StudyDamaged(f"{path} was changed after the sweep: sweep again with the intended plan.")
        searched = self.search_methods()
        return plan.with_searched_methods(searched) if searched else plan

    def search_methods(self) -> tuple[Method, ...]:
        """Return the methods that searches of this study proposed and evaluated fully, in the order of proposal."""
        with self.database.snapshot():
            stored = self.proposals()
            evaluated = {row[0] for row in self.database.read_in_snapshot("candidate")} if stored else set()
        return tuple(row.method_value for row in stored if row.candidate in evaluated)

    def proposals(self) -> tuple[Proposal, ...]:
        """Return the proposals of all searches of this study, in the order of proposal."""
        rows = (Proposal._make(row) for row in self.database.read_in_snapshot("proposal"))
        return tuple(sorted(rows, key=lambda row: (row.search, row.generation, row.rank)))

    @property
    def data(self) -> Microdata:
        """The data of the study, without identifiers."""
        return open_copy(self._folder("data"), self.manifest["data"])

    def _folder(self, what: str) -> Path:
        if self.path is None:
            raise StudyDamaged(f"a study in memory keeps no {what}.")
        return self.path

    @property
    def rule_was_fixed_first(self) -> bool:
        """Whether the present rule and its limits were fixed before the first score. No clock is used."""
        return any(rule["first"] for rule in self.manifest.get("rules", [])[-1:])

    # ---- writing ----------------------------------------------------------------------------------------------
    def writing(self) -> AbstractContextManager[None]:
        """Lock the study for writing."""
        return nullcontext() if self.path is None else lock_folder(self.path)

    def add(self, rows: Sequence[CandidateRow]) -> None:
        """Store candidates and their scores in one transaction. Existing rows stay."""
        if rows and self.path is not None and "first_score" not in self.manifest:
            self.note(first_score=_now())
        self.database.add(rows)

    def reopen_spared_scores(self, plan: Plan) -> None:
        """Delete the rows of spared measures that have become necessary, because limits or other values changed."""
        _, score, _ = self._tables()
        sparing, measures = Sparing.of_plan(plan), {measure.id: measure for measure in plan.measures}
        own = score.filter(_is_in("measure_id", [*measures]))
        values: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
        for name, measure, value in own.select("candidate", "measure", "value").iter_rows():
            values[name][measure] = value
        spared = own.filter(status="spared").select("candidate", "measure_id").iter_rows()
        needed = [(c, m) for c, m in spared if sparing is None or not sparing.reason(measures[m], values[c])]
        if needed:
            self.database.delete_scores(needed)

    def propose(self, proposals: Sequence[Proposal]) -> None:
        """Store the proposals of a generation in one transaction, before they are evaluated."""
        self.database.insert({"proposal": proposals})

    def add_file(self, file: OutsideFile) -> None:
        """Add the scores of a file made elsewhere. Other content needs another name."""
        for row_id, kind, method, *_ in self.database.rows("candidate"):
            if method == file.name and kind != "file":
                raise SdcmapError(f"a method of this study is named {file.name!r}: give the file another name.")
            if method == file.name and row_id != file.id:
                raise SdcmapError(f"the study has another file named {file.name!r}: give this one another name.")
        self.add([CandidateRow(file.id, "file", file.name, 0, "ok", "", 0.0, "", file.scores)])

    def keep(self, masked: Microdata, candidate: str) -> Path:
        """Keep a masked file for study. It has no origin, and a release never copies it."""
        kept = self._folder("files") / "kept"
        kept.mkdir(mode=0o700, exist_ok=True)
        return write(masked, kept / f"{candidate}.study.parquet")

    def add_measures(self, measures: Sequence[Measure], original: Microdata) -> None:
        facts = [(m.id, m.text, m.direction, *m.bounds, m.value_unit, m.axis, m.baseline(original)) for m in measures]
        self.database.insert({"measure": facts}, replace=True)

    def note(self, **facts: Unpack[Manifest]) -> None:
        """Update the manifest with these facts."""
        self.manifest.update(facts)
        if self.path is not None:
            whole = {**self.manifest, "checksum": _checksum(self.manifest)}
            write_atomically(self.path / "manifest.json", json.dumps(whole, indent=1))

    def note_gpu(self, gpu: str) -> None:
        """Record the GPU that computes scores; empty: none."""
        gpus = self.manifest.get("gpus", [])
        if gpu and gpu not in gpus:
            self.note(gpus=[*gpus, gpu])

    def fix_rule(self, plan: Plan) -> None:
        """Record when the present rule, its limits and its axes were fixed, and the release policy."""
        policy = {"reason": plan.policy.reason, **plan.policy.numbers}
        if self.manifest.get("policy") != policy:
            self.note(policy=policy)
        rule = [plan.rule.text if plan.rule else "", list(plan.risk), state_limits(plan.limits), plan.utility]
        rules = self.manifest.setdefault("rules", [])
        if plan.rule is not None and (not rules or rules[-1]["rule"] != rule):
            self.note(rules=[*rules, {"rule": rule, "fixed": _now(), "first": "first_score" not in self.manifest}])

    # ---- reading ----------------------------------------------------------------------------------------------
    def candidate_states(self) -> dict[str, CandidateState]:
        """Return candidate id -> its status and its measures."""
        measures: defaultdict[str, set[str]] = defaultdict(set)
        candidate, score, _ = self._tables()
        for name, measure_id in score.select("candidate", "measure_id").iter_rows():
            measures[name].add(measure_id)
        ended = candidate.select("id", "status").iter_rows()
        return {name: CandidateState(status, frozenset(measures[name])) for name, status in ended}

    def scores(self, plan: Plan | None = None) -> Scores:
        """Return the scores of this plan's candidates (None: the study's own plan) and of files made elsewhere.

        Numbers from another revision or another default are left out, with a warning that says how many.
        """
        plan = self.plan if plan is None else self.bind_plan(plan)
        candidate, score, measure = self._tables()
        further = read_further_draws(candidate, score, plan)
        if self.path is not None:
            ids = _ids(plan)
            if outdated := _describe_outdated(plan, ids, candidate, score):
                _warn(f"{self.path}: {outdated} left out, because other code or defaults made them. Sweep again.")
            candidate = candidate.filter(_is_in("id", ids) | (pl.col("kind") == "file"))
        else:  # a study in memory has only this plan's rows
            candidate = candidate.filter(pl.col("kind") != "fresh")
            score = score.filter(_is_in("candidate", candidate["id"].to_list())) if further else score
        return self._scores(plan, candidate, score, measure, further)

    def scores_of(self, plan: Plan, ids: Sequence[str]) -> Scores:
        """Return the scores of rows with these ids by the measures of `plan`, of any kind.

        Redraws and screenings are read in this way; they are not on the map of the study.
        """
        candidate, score, measure = self._tables()
        return self._scores(plan, candidate.filter(_is_in("id", ids)), score, measure)

    def _scores(
        self, plan: Plan, candidate: pl.DataFrame, score: pl.DataFrame, measure: pl.DataFrame,
        further: Mapping[tuple[str, str], Sequence[float]] = EMPTY,
    ) -> Scores:  # fmt: skip
        if self.path is not None:
            measures = [m.id for m in plan.measures]
            score = score.filter(_is_in("candidate", candidate["id"].to_list()), _is_in("measure_id", measures))
            measure = measure.filter(_is_in("id", measures))
        return Scores.of_plan(plan, candidate, score.drop("measure_id"), measure.drop("id"), further)

    def _tables(self) -> Tables:
        """Return candidates, scores and measures. They are read again only after a write."""
        with self.database.snapshot():
            version = self.database.version
            if self._read is None or self._read[0] != version:
                self._read = version, (self._table("candidate"), self._table("score"), self._table("measure"))
            return self._read[1]

    def _table(self, name: str) -> pl.DataFrame:
        schema = {column: COLUMN_DTYPES[kind] for column, kind in column_types(name).items() if column != "checksum"}
        columns = self.database.columns(name) or [()] * len(schema)
        types = zip(schema.items(), columns, strict=True)
        return pl.DataFrame([pl.Series(column, values, dtype) for (column, dtype), values in types])


def _checksum(manifest: Manifest) -> str:
    """Return a checksum that detects a damaged manifest."""
    facts = {name: fact for name, fact in manifest.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


# ---- beginning and going on -----------------------------------------------------------------------------------
@contextmanager
def lock_folder(path: Path) -> Iterator[None]:
    """Lock a study folder, or raise SdcmapError where another process has locked it."""
    lock = FileLock(path / "lock", timeout=0, mode=0o600, is_singleton=False)
    try:
        lock.acquire()
    except Timeout:
        raise SdcmapError(f"another sweep is writing to {path}: wait for it, or stop it.") from None
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None
    try:
        yield
    finally:
        lock.release()


def _make_folder(path: Path) -> None:
    """Create a private folder for a new study, or check that the folder contains a study."""
    others = (
        (f for f in path.iterdir() if f.name not in FILES_BEFORE_MANIFEST and not f.name.startswith(STAGING_PREFIX))
        if path.exists()
        else ()
    )
    # in this order, because another first sweep may write the manifest at this moment
    if any(others) and not (path / "manifest.json").exists():
        raise StudyDamaged(f"{path} is not empty and not a study: name another folder.")
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise SdcmapError(f"{path} cannot be written ({error.strerror}).") from None


def _open_or_create(path: Path, data: Microdata, plan: Plan) -> Study:
    """Return a new study, or the one in this folder, if it has the same data and seed.

    Files that a killed writer left are removed, and a warning says what changed.
    """
    remove_abandoned(path)
    if not (path / "manifest.json").exists():
        study = Study(path, connect(path / DATABASE), {})
        study.note(version=__version__, created=_now(), data=data.digest, seed=hex(plan.seed), rules=[])
        return study
    manifest = Study.manifest_of(path)
    if manifest["data"] != data.digest:
        raise StudyMismatch(f"{path} belongs to other data: name another folder.")
    if plan.seed_stated and plan.seed != int(manifest["seed"], 16):
        raise StudyMismatch(f"{path} was begun with another seed: leave the seed out to continue with its own.")
    version = str(manifest.get("version", "an unknown version"))
    if _has_lost_scores(path, manifest):
        _warn(f"{path / DATABASE} is missing or empty, but the study had scores. All of them are computed again.")
    try:
        study = Study(path, connect(path / DATABASE), manifest)
    except StudyMismatch:
        aside = set_aside(path / DATABASE, version)
        _warn(f"{path} was written by sdcmap {version}, whose scores cannot be read. All of them are computed again.")
        _warn(f"The old scores were set aside as {aside.name}.")
        study = Study(path, connect(path / DATABASE), manifest)
    _warn_what_changed(study, study.bind_plan(plan), version)
    if version != __version__:
        study.note(version=__version__)
    return study


def _has_lost_scores(path: Path, manifest: Manifest) -> bool:
    """Return whether the study had scores, and its database is missing or an empty file."""
    file = path / DATABASE
    return "first_score" in manifest and not (file.is_file() and file.stat().st_size)


def _warn_what_changed(study: Study, plan: Plan, version: str) -> None:
    """Warn which numbers are kept and which are computed again, where another version or other code made the study."""
    with study.database.snapshot():
        candidate, score = (study._table(name) for name in ("candidate", "score"))
    # The id of a stream depends on the seed: it shows whether the numbers belong to the seed in the manifest.
    stored = dict(candidate.select("id", "stream_id").iter_rows())
    if any(one.id in stored and stored[one.id] != one.stream(plan.seed).stream_id for one in plan.candidates):
        raise StudyDamaged(f"{study.path} contains numbers that were drawn with another seed than its own.")
    ids = _ids(plan)
    outdated = _describe_outdated(plan, ids, candidate, score)
    if outdated or version != __version__:
        kept = len(score.filter(_is_in("candidate", ids), _is_in("measure_id", [m.id for m in plan.measures])))
        again = f"; {outdated} computed again, because other code or defaults made them" if outdated else ""
        theirs, ours = ([int(part) for part in re.findall(r"\d+", name)[:3]] for name in (version, __version__))
        newer = f", which is newer than this {__version__}" if theirs > ours else ""
        numbers = _format_count(kept, "number") or "no number"
        _warn(f"{study.path} was last written by sdcmap {version}{newer}: {numbers} of this plan kept{again}.")


def _describe_outdated(plan: Plan, ids: Sequence[str], candidate: pl.DataFrame, score: pl.DataFrame) -> str:
    """Return how many candidates (of these ids) and numbers of this plan the study has only under another identity.

    They have a name of the plan but another revision or default. Empty: none.
    """
    # a candidate is outdated if its text is stored, but under another id
    have = set(candidate["id"])
    wanted = zip(ids, plan.candidates, strict=True)
    lacking = {(made.method.text, made.replicate) for name, made in wanted if name not in have}
    releases = candidate.filter(pl.col("kind").is_in(["candidate", "identity"])).select("method", "replicate")
    candidates = len(lacking.intersection(releases.iter_rows()))
    numbers = 0
    ours = score.filter(_is_in("candidate", ids))
    for measure in plan.measures:
        named = ours.filter(pl.col("measure") == measure.text)
        has = named.filter(pl.col("measure_id") == measure.id)["candidate"]
        numbers += named.filter(~_is_in("candidate", has.to_list()))["candidate"].n_unique()
    return " and ".join(filter(None, (_format_count(candidates, "candidate"), _format_count(numbers, "number"))))


def _ids(plan: Plan) -> list[str]:
    return [candidate.id for candidate in plan.candidates]


def _is_in(column: str, names: Sequence[str]) -> pl.Expr:
    return pl.col(column).is_in(pl.Series(names, dtype=pl.String).implode())


def _format_count(number: int, noun: str) -> str:
    return count_of(number, noun) if number else ""


def _warn(sentence: str) -> None:
    warnings.warn(sentence, StudyChanged, stacklevel=2)


def set_aside(file: Path, version: str) -> Path:
    """Move a database out of the way, under a free name, and remove its log."""
    names = (file.with_name(f"scores.{version}-{number}.sqlite") for number in count(1))
    target = next(name for name in names if not name.exists())
    if file.exists():
        file.replace(target)
    for tail in ("-wal", "-shm"):
        file.with_name(file.name + tail).unlink(missing_ok=True)
    return target


def _take_copy(path: Path, data: Microdata) -> None:
    """Give the study its working copy of the data: its own, one read in blocks into `incoming`, or a new one."""
    incoming = path / "incoming"
    try:
        open_copy(path, data.digest)
    except StudyDamaged:
        # `read_in_blocks` wrote a copy into the folder before the study existed
        try:
            open_copy(incoming, data.digest)
            for name in ("data.bin", "schema.arrow"):
                (incoming / name).replace(path / name)
        except StudyDamaged:
            write_copy(data, path)
    shutil.rmtree(incoming, ignore_errors=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
