"""Fuzzing of every reader: for any bytes only errors of sdcmap are raised; no hang, no excessive memory, no crash.

Each reader gets valid files with seeded damage (bytes flipped, put in, taken out, cut off, copied elsewhere, overwritten by
awkward integers) and structured nonsense from Hypothesis, in a process with limits on processor time and memory; how many
says `sizes.FUZZ_CASES`, minutes of them in a soak. Case number i is a function of (reader, i) alone:

    python tests/files/test_fuzz.py sav 1234          one case again, in this process, with its traceback
    python tests/files/test_fuzz.py sav 1234 5000     5000 cases from there on

Statistics files are read by a C library in a subprocess (files/stat/reader_process.py). Here it runs in the fuzzing
process itself, thousands of times faster; a case that ends that process is read again as a user reads it, and must be
refused.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyreadstat
import pytest
import tomli_w
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from polars.testing.parametric import dataframes
from sas_files import write_catalog, write_sas

import sdcmap as sm
import sdcmap.files.stat
from sdcmap.bundle.ledger import Ledger
from sdcmap.core.grid import Grid
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.rule import Rule
from sdcmap.core.value import decode, parse
from sdcmap.errors import PlanError, SdcmapError
from sdcmap.explore.first_look import look
from sdcmap.files.stat.statfile_reader import read_statfile
from sdcmap.files.working_copy import open_copy
from sdcmap.study.database_repair import repair

sys.path[:0] = (
    [] if "sizes" in sys.modules else [str(Path(__file__).parents[1])]
)  # run as a script: tests/ is not there
from sizes import FUZZ_CASES, GUARD  # noqa: E402

pytestmark = pytest.mark.slow
CASE_SECONDS = 10  # processor time per case; each is a file of a few kilobytes
MEMORY = 1 << 30  # bytes that one case may allocate
MARK = "Quokka"  # in every text value of the valid files, but in no name: errors must not contain it
AWKWARD = [-1, 0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 1000, 32767, 32768, 65535, 65536, 10**6, 2**24, 2**31 - 1, 2**31,
           2**32 - 1, 2**40, 2**53, 2**62, 2**63 - 1]  # fmt: skip
Case = Callable[[], object]


# ---- valid files ----------------------------------------------------------------------------------------------
def people(rows: int = 23) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 60, rows),
            "sex": rng.choice([f"{MARK} f", f"{MARK} m"], rows),
            "wage": np.where(rng.random(rows) < 0.2, np.nan, rng.normal(3000, 500, rows).round(2)),
            "region": rng.choice([1.0, 2.0, 9.0], rows),
            "born": pl.Series(rng.integers(0, 20_000, rows)).cast(pl.Int32).cast(pl.Date),
        }
    )


@cache
def valid(reader: str) -> list[tuple[str, bytes]]:
    """Return (ending, content) of valid files."""
    with tempfile.TemporaryDirectory() as name:
        return [(path.name, path.read_bytes()) for path in made(reader, Path(name))]


def made(reader: str, folder: Path) -> Iterator[Path]:
    frame = people()
    pandas = frame.with_columns(pl.col("region").fill_nan(None))
    labels = {"region": {1.0: f"{MARK} north", 2.0: f"{MARK} south", 9.0: f"{MARK} refused"}}
    words = {name: f"the {name}" for name in frame.columns}
    if reader == "csv":
        frame.write_csv(folder / "plain.csv")
        yield folder / "plain.csv"
        frame.write_csv(folder / "quoted.csv", quote_style="always", line_terminator="\r\n")
        yield folder / "quoted.csv"
    elif reader in ("parquet", "blocks"):
        for place, packing in enumerate(("uncompressed", "zstd", "snappy", "gzip")):
            typed = frame.with_columns(pl.col("sex").cast(pl.Categorical)) if place % 2 else frame
            typed.write_parquet(folder / f"{packing}.parquet", compression=packing, row_group_size=10)
            yield folder / f"{packing}.parquet"
    elif reader == "sav":
        for name, compress, row in (
            ("plain.sav", False, False),
            ("bytes.sav", False, True),
            ("zipped.zsav", True, False),
        ):
            pyreadstat.write_sav(
                pandas, folder / name, compress=compress, row_compress=row, column_labels=words,
                variable_value_labels=labels, missing_ranges={"region": [9.0]}, note="a note",
            )  # fmt: skip
            yield folder / name
    elif reader == "dta":
        for version in (8, 10, 13, 14, 15):
            plain = pandas if version > 8 else pandas.drop("born")
            pyreadstat.write_dta(plain, folder / f"v{version}.dta", version=version, column_labels=words,
                                 variable_value_labels=labels)  # fmt: skip
            yield folder / f"v{version}.dta"
    elif reader == "xpt":
        for version in (5, 8):
            path = folder / f"v{version}.xpt"
            pyreadstat.write_xport(pandas, path, file_format_version=version, column_labels=words)
            yield path
        yield write_sas(folder / "letters.xpt", {"sex": [1.0, 2.0, "A", None], "name": [MARK] * 4}, {"sex": "SEXF"})
    elif reader == "sas7bdat":
        columns: dict[str, list[Any]] = {"sex": [1.0, 2.0, "A", None] * 5, "name": [MARK] * 20}
        yield write_sas(folder / "panel.sas7bdat", columns, {"sex": "SEXF"})
    elif reader == "sas7bcat":
        write_catalog(folder / "panel.sas7bcat", "SEXF", {1.0: f"{MARK} f", 2.0: f"{MARK} m"})
        yield folder / "panel.sas7bcat"
    elif reader == "plan":
        (folder / "plan.toml").write_text(plan().toml())
        yield folder / "plan.toml"
    elif reader in ("manifest", "scores", "copy"):
        sm.sweep(data(), plan(), folder / "s", workers=1)
        sm.Study.open(folder / "s").connection.execute("pragma wal_checkpoint(truncate)")
        for name in STUDY_FILES[reader]:
            yield folder / "s" / name
    elif reader == "ledger":
        sweep = sm.Plan(sm.Noise(on="wage"), [sm.IL1s(on="wage")], seed=2**200 + 7)
        first = next(iter(sweep.candidates))
        part = folder / "aside" / "part"
        part.mkdir(parents=True)
        with (
            Ledger.open_locked(folder / "ledger") as ledger,
            ledger.record_release(data(), sweep, first, "public-use", Path("public"), part),
        ):
            part.rmdir()  # the release has been renamed
        for name in ("ledger.sqlite", "key"):
            yield folder / "ledger" / name
    else:
        raise KeyError(reader)


STUDY_FILES = {
    "manifest": ("manifest.json", "plan.toml"),
    "scores": ("scores.sqlite",),
    "copy": ("schema.arrow", "data.bin"),
}


@cache
def data() -> sm.Microdata:
    return sm.read(people(), keys=["age", "sex", "region"], sensitive="wage", other="born")


def plan() -> sm.Plan:
    methods = [
        sm.grid(sm.Swap, on=sm.subsets(["age", "sex"], 1, 2), rate=[0.1, 0.2]),
        sm.Chain([sm.Swap(on="sex", rate=0.1), sm.Noise(on="wage", variance=0.2)]),
        sm.RankSwap(on="wage", p=0.1),
    ]
    source = sm.Source("people.csv", keys=("age", "sex"), numeric=("wage",), ordinal=("age",))
    return sm.Plan(methods, [sm.SmallCells(), sm.Hellinger(), sm.IL1s(on="wage")], replicates=2,
                   rule=sm.Threshold(risk=0.5), limits=(0.5,), data=source, seed=2**180 + 3)  # fmt: skip


# ---- damage ---------------------------------------------------------------------------------------------------
def damaged(content: bytes, dice: random.Random, others: list[bytes]) -> bytes:
    """Damage a valid content in one to six ways, more often near the beginning, where headers are."""
    found = bytearray(content)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 6))):
        size = len(found)
        if not size:
            break
        place = dice.randrange(size if dice.random() < 0.5 else min(size, 400))
        kind = dice.randrange(8)
        if kind == 0:
            found[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            found[place] = dice.randrange(256)
        elif kind == 2:
            found[place:place] = dice.randbytes(dice.choice((1, 2, 4, 8, 80)))
        elif kind == 3:
            del found[place : place + dice.choice((1, 2, 4, 8, 100))]
        elif kind == 4:
            del found[place:]
        elif kind == 5:
            other = dice.choice(others)
            start, length = dice.randrange(len(other)), dice.choice((4, 16, 100, 1000))
            found[place : place + dice.choice((0, length))] = other[start : start + length]
        else:
            width, order = dice.choice((1, 2, 4, 8)), dice.choice("<>")
            number = dice.choice(AWKWARD) % (1 << 8 * width)
            cells = number.to_bytes(width, "little" if order == "<" else "big")
            if dice.random() < 0.1:
                cells = struct.pack(f"{order}d", dice.choice((float("nan"), float("inf"), 1e308, -1.0, 2.0**63)))
            found[place : place + len(cells)] = cells
    return bytes(found)


# ---- what reads -----------------------------------------------------------------------------------------------
def read_file(path: Path, dice: random.Random) -> None:
    roles: dict[str, Any] = dice.choice([{}, {"keys": "all"}, {"numeric": "all"}, {"other": "all"}])
    found = sm.read(path, **roles)
    assert len(found) > 0 and found.digest
    found.frame()
    look(path if dice.random() < 0.5 else found)


def read_blocks(path: Path, dice: random.Random) -> None:
    roles: dict[str, Any] = dice.choice([{}, {"keys": ("age", "sex")}, {"numeric": ("wage",)}])
    sm.files.read_in_blocks(sm.Source(path.name, **roles), path.parent / "copy", below=path.parent)


def read_plan(text: str) -> None:
    found = sm.Plan.from_toml(text)
    if found.replicates < 100 and sum(len(list(m)) if isinstance(m, Grid) else 1 for m in found.methods) < 1000:
        found.problems_with(data())
        found.toml()


def read_study(folder: Path, *, report: bool = False) -> None:
    study = sm.Study.open(folder)
    try:
        pages = [lambda: sm.report(folder).html] if report else []
        for use in (lambda: study.data, lambda: study.plan, study.scores, lambda: study.rule_was_fixed_first, *pages):
            try:
                use()
            except SdcmapError as error:
                check_message(error)
    finally:
        study.connection.close()


def file_case(reader: str, dice: random.Random, folder: Path) -> Case:
    """Return a damaged file and its reader."""
    files = valid(reader)
    name, content = dice.choice(files)
    path = folder / name
    found = damaged(content, dice, [other for _, other in files])
    if reader == "sas7bcat":
        path.with_suffix(".sas7bdat").write_bytes(valid("sas7bdat")[0][1])
        path.write_bytes(found)
        return lambda: read_file(path.with_suffix(".sas7bdat"), dice)
    if reader in STUDY_FILES:
        for part in STUDY_FILES:
            for other, whole in valid(part):
                (folder / other).write_bytes(whole)
        path.write_bytes(found)
        if reader == "copy":
            return lambda: open_copy(folder, dice.choice([None, data().digest]))
        return lambda: (read_study(folder, report=dice.random() < 0.1), repair(folder), read_study(folder))
    if reader == "ledger":
        for other, whole in files:
            (folder / other).write_bytes(whole)
        path.write_bytes(found)
        return lambda: Ledger.open_readonly(folder).entries()
    path.write_bytes(found)
    if reader == "plan":
        return lambda: read_plan(sm_text(path))
    return lambda: read_blocks(path, dice) if reader == "blocks" else read_file(path, dice)


def sm_text(path: Path) -> str:
    sm.Plan.read(path)
    return path.read_text(encoding="utf-8")


# ---- structured nonsense --------------------------------------------------------------------------------------
LEAVES = (
    st.none() | st.booleans() | st.sampled_from(AWKWARD) | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["Swap", "Noise", "Chain", "age", "wage", "SmallCells", "Threshold", "sdcmap:Plan", "os:getcwd", ""])
)  # fmt: skip
NESTED = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "on", "rate", "grid", "subsets", "sizes", "methods", "x"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def places_in(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places_in(part, (*before, key))


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[place[0]] = put(copy[place[0]], place[1:], new)
    return copy


def without_null(value: Any) -> Any:
    """TOML has no null."""
    if isinstance(value, dict):
        return {key: without_null(part) for key, part in value.items() if part is not None}
    return [without_null(part) for part in value if part is not None] if isinstance(value, list) else value


@st.composite
def replaced(draw: Any, whole: Any) -> Any:
    """Return a valid tree with some parts replaced, removed or added."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(places_in(whole))
        whole = put(whole, draw(st.sampled_from(places)), draw(NESTED))
    return whole


TABLES = dataframes(
    max_cols=4, max_size=8, allow_null=True,
    excluded_dtypes=[pl.Object],
)  # fmt: skip
RAGGED = st.lists(st.lists(st.text(alphabet='ab,"\n\r01.-\x00é;e', max_size=5), max_size=4), max_size=6)


def structured(reader: str, folder: Path) -> tuple[Any, Callable[[Any], object]] | None:
    """Return the Hypothesis strategy for a reader, and the reader."""
    import tomllib

    if reader == "plan":
        whole = tomllib.loads(plan().toml())
        return replaced(whole), lambda table: read_plan(
            tomli_w.dumps(without_null(table if isinstance(table, dict) else {"methods": table}))
        )
    if reader == "note":
        specs = [method.spec() for method in plan().all_methods] + [m.spec() for m in plan().measures]
        return st.sampled_from(specs).flatmap(replaced), read_note
    if reader == "manifest":
        read_valid_study(folder)
        whole = json.loads(dict(valid("manifest"))["manifest.json"])
        return replaced(whole), lambda tree: (
            (folder / "manifest.json").write_text(json.dumps(tree)), read_study(folder)
        )  # fmt: skip
    if reader in ("parquet", "blocks"):

        def read_table(frame: pl.DataFrame) -> None:
            path = folder / "table.parquet"
            frame.write_parquet(path)
            (read_file if reader == "parquet" else read_blocks)(path, random.Random(frame.width))

        return TABLES, read_table
    if reader == "csv":

        def read_ragged(rows: list[list[str]]) -> None:
            path = folder / "ragged.csv"
            path.write_text("\n".join(",".join(row) for row in rows), newline="")
            read_file(path, random.Random(len(rows)))

        return RAGGED, read_ragged
    return None


def read_valid_study(folder: Path) -> None:
    for part in STUDY_FILES:
        for other, whole in valid(part):
            (folder / other).write_bytes(whole)


def read_note(spec: Any) -> None:
    """Read the `method` of a method note, as a table and as a text."""
    refused = []
    for base in (Method, Measure, Rule):
        try:
            value = decode(spec, base)
            assert parse(value.text, base) == value
        except SdcmapError as error:
            check_message(error)
            refused.append(error)
    with suppress(PlanError):
        parse(repr(spec)[:200], Method)
    if len(refused) == 3:
        raise refused[0]


# ---- one process ----------------------------------------------------------------------------------------------
def check_message(error: SdcmapError) -> None:
    """Return whether an error is one of sdcmap that may be shown."""
    assert str(error).strip(), "an error without a text"
    assert len(str(error)) < 5000, "an error as long as a file"


def run_case(reader: str, number: int, folder: Path) -> str:
    """Run one case; return a word for its outcome, or the traceback of an unexpected error."""
    dice = random.Random(f"{reader}/{number}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    drawn = structured(reader, folder) if reader == "note" or number % 50 == 49 else None
    if drawn is None:
        return outcome(file_case(reader, dice, folder), quotes=reader not in ("csv", "plan", "manifest"))
    strategy, reads = drawn
    found: list[str] = []

    @seed(number)
    @settings(max_examples=40, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(strategy)
    def try_all(value: Any) -> None:
        found.append(outcome(lambda: reads(value), quotes=False))
        if len(found[-1]) > 40:
            found[-1] += f"\nvalue: {value!r}"[:2000]

    try_all()
    bad = [one for one in found if len(one) > 40]
    if bad:
        return bad[0]
    return "read" if "read" in found and number % 2 else max(set(found), key=found.count)  # both outcomes are reported


def outcome(case: Case, *, quotes: bool) -> str:
    try:
        case()
    except SdcmapError as error:
        check_message(error)
        if "MemoryError" in str(error):
            return f"{'memory blow-up':<41}: {error}"
        if quotes and MARK.lower() in str(error).lower():
            return f"{'a data value in an error':<41}: {error}"
        return type(error).__name__
    except BaseException:
        return traceback.format_exc()
    return "read"


def work(todo: list[Task], report: Path) -> None:
    """Run the cases; each begins with its reader and number in `report` and ends with a line of JSON."""
    warnings.simplefilter("error")
    sdcmap.files.stat.read_in_subprocess = read_statfile
    size = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()  # data and stack
    resource.setrlimit(resource.RLIMIT_DATA, (size + 2 * MEMORY, size + 2 * MEMORY))
    with tempfile.TemporaryDirectory() as name, report.open("a") as lines:
        for reader, first, count in todo:
            valid(reader if reader != "note" else "plan")
            limit = _peak() + MEMORY
            for number in range(first, first + count):
                print(reader, number, file=lines, flush=True)
                signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)  # the default action of SIGPROF ends the process
                word = run_case(reader, number, Path(name) / "case")
                signal.setitimer(signal.ITIMER_PROF, 0)
                if len(word) <= 40 and _peak() > limit:
                    word, limit = f"{'memory blow-up':<41}: {_peak() >> 20} MB", _peak() + MEMORY
                print(json.dumps({"word": word}), file=lines, flush=True)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


Task = tuple[str, int, int]  # a reader, its first case, and how many


@dataclass
class Tally:
    """The outcomes of a reader's cases: unexpected ones, and the count of each word."""

    bad: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, case: str, word: str) -> None:
        if len(word) > 40:
            self.bad.append(f"{case}: {word}")
        else:
            self.counts[word] = self.counts.get(word, 0) + 1


def fuzz(todo: list[Task], folder: Path) -> dict[str, Tally]:
    """Return the tally of each reader; after a case that ends its process, the rest runs in another."""
    report, tallies = folder / "report", {reader: Tally() for reader, _, _ in todo}
    while todo:
        report.write_text("")
        command = [sys.executable, __file__, "--work", json.dumps(todo), str(report)]
        patience = GUARD + sum(count for _, _, count in todo)  # against hanging, a second a case
        done = subprocess.run(command, capture_output=True, timeout=patience)
        code = done.returncode
        lines = report.read_text().splitlines()
        for case, told_word in zip(lines[::2], lines[1::2], strict=False):
            tallies[case.split()[0]].add(case, json.loads(told_word)["word"])
        if code == 0:
            break
        assert lines, f"the process did not begin: it ended with {code}"
        reader, number = lines[-1].split() if len(lines) % 2 else lines[-2].split()
        word = apart(reader, int(number)) if reader in APART else ""
        ended = f"the process ended with {code} {word}".ljust(41)
        if reader in ABORTING and b"memory allocation of" in done.stderr:
            ended = ABORTED
        tallies[reader].add(lines[-1], "crash, refused" if word == "SchemaError" else ended)
        todo = _after(todo, reader, int(number)) if len(tallies[reader].bad) < 20 else []
    return tallies


def _after(todo: list[Task], reader: str, number: int) -> list[Task]:
    """Return the cases after this one."""
    place = [task[0] for task in todo].index(reader)
    _, first, count = todo[place]
    return [(reader, number + 1, first + count - number - 1), *todo[place + 1 :]]


def apart(reader: str, number: int) -> str:
    """Return the outcome of a case in a separate process that reads as a user would."""
    command = [sys.executable, __file__, reader, str(number)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=GUARD)
    return result.stdout.strip() if result.returncode == 0 else f"and then with {result.returncode}"


APART = ("sav", "dta", "xpt", "sas7bdat", "sas7bcat")
ABORTING = (
    "parquet",
    "blocks",
)  # a page header that states 2^61 bytes makes the library end the process: docs/files.md
ABORTED = "ended by the library"
READERS = ["csv", "parquet", "blocks", "sav", "dta", "xpt", "sas7bdat", "sas7bcat", "plan", "note", "manifest", "scores",
           "copy", "ledger"]  # fmt: skip


def cases(reader: str) -> int:
    """Each case of a note is forty examples."""
    return FUZZ_CASES // {"note": 5, "csv": 2}.get(reader, 1)  # a text file is read in many ways, so it is slow


@pytest.fixture(scope="module")
def tallies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tally]:
    return fuzz([(reader, 0, cases(reader)) for reader in READERS], tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize("reader", READERS)
def test_only_sdcmap_errors_are_raised(tallies: dict[str, Tally], reader: str) -> None:
    tally = tallies[reader]
    assert not tally.bad, "\n".join(tally.bad)
    assert sum(tally.counts.values()) == cases(reader) and len(tally.counts) >= 2, "none was read, or none refused"
    assert tally.counts.get(ABORTED, 0) <= cases(reader) / 1000


DEEP = 100_000


@pytest.mark.parametrize(
    "text", ["x = " + "[" * DEEP, "x = " + "{a=" * DEEP, "replicates = " + "9" * DEEP, "a." * 3000 + "b=1"]
)
def test_deeply_nested_plan_is_rejected(text: str) -> None:
    with pytest.raises(sm.errors.PlanError):
        sm.Plan.from_toml(text)


@pytest.mark.parametrize(
    "text", ["(" * DEEP, "-" * DEEP + "1", "Noise(on=" + "[" * 80 + "]" * 80 + ")", "Noise(on=1+1)"]
)
def test_deeply_nested_method_is_rejected(text: str) -> None:
    with pytest.raises(sm.errors.PlanError):
        parse(text, Method)


def test_a_grid_of_all_subsets_of_sixty_names_is_refused() -> None:
    names = [f"v{number}" for number in range(60)]
    table = {"type": "Swap", "grid": {"on": {"subsets": names, "sizes": list(range(1, 60))}}}
    with pytest.raises(sm.errors.PlanError, match="at most 1,000,000 members"):
        sm.Plan.from_toml(tomli_w.dumps({"methods": [table], "measures": [{"type": "SmallCells"}]}))


def test_fuzzing_can_find_something(tmp_path: Path) -> None:
    """A reader that a damaged file can crash: the very library that reads .sav files, without its process apart."""
    number = 152
    file_case("sav", random.Random(f"sav/{number}"), tmp_path)
    [path] = tmp_path.iterdir()
    alone = [sys.executable, "-c", f"import pyreadstat; pyreadstat.read_sav({str(path)!r}, output_format='dict')"]
    assert subprocess.run(alone).returncode < 0
    with pytest.raises(sm.errors.SchemaError, match="the reader ended with code"):
        sm.read(path)


if __name__ == "__main__":
    if sys.argv[1] == "--work":
        work([tuple(task) for task in json.loads(sys.argv[2])], Path(sys.argv[3]))
    elif len(sys.argv) == 3:
        with tempfile.TemporaryDirectory() as scratch:
            print(run_case(sys.argv[1], int(sys.argv[2]), Path(scratch) / "case"))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            print(fuzz([(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))], Path(scratch)))
