"""The seed, the origin and the data stay in the room: every file, every printed line and every error of a whole run is
searched for them, in every form they could take.

What may be where (docs/design.md, "What may leave the room"): the seed in manifest.json alone; the data in the study's
working copy, in kept and *.study.* files, and, where they are not masked, in the released file and its codebook; names of
persons and the origin nowhere.
"""

from __future__ import annotations

import base64
import html
import io
import json
import os
import re
import sqlite3
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.bundle.prepared_file import prepare, round_like_original
from sdcmap.bundle.procedure import release_draw

SEED = 0xC0FFEE5EED5ECBE7_0123_4567_89AB_CDEF_DEADBEEF_FEEDFACE_0BADF00D_17171717
ROWS = 260
RELEASED = "Town"  # a column that is not masked: its values may be in the released file

LEAKY = '''
from dataclasses import dataclass
from typing import ClassVar
import sdcmap as sm
from samples import PROFILE_OVERRIDES
from sdcmap.core.method import Method
from sdcmap.core.measure import Estimate, Measure

@dataclass(frozen=True)
class Leaky(Method):
    """A method that fails with an error that quotes its data."""
    def mask(self, data, rng):
        raise ValueError(f"{data.numbers('Wage')[:9].tolist()} {data.column('Town').levels[0]} {rng.bit_generator.state}")

@dataclass(frozen=True)
class LeakyMeasure(Measure):
    axis: ClassVar = "risk"
    unit: ClassVar = "share"
    on: tuple[str, ...] = ("Wage",)
    def score(self, original, masked, rng):
        raise KeyError(original.numbers("Wage")[3])
'''

SWEEP = """
import sys
import sdcmap as sm
from samples import PROFILE_OVERRIDES
from leaky import Leaky, LeakyMeasure

if __name__ == "__main__":
    folder, engine, seed = sys.argv[1:]
    data = sm.read("people.csv", keys=["Age", "Sex"], sensitive="Wage", other=["Town"], identifiers="Person",
                   weight="Weight")
    both = sm.Chain([sm.Swap(on="Age", rate=0.2), sm.Noise(on="Wage", variance=0.5)])
    methods = [both, sm.Noise(on="Wage", variance=0.1), sm.Swap(on=["Age", "Sex"], rate=0.5)]
    measures = [sm.SmallCells(), sm.Hellinger(on=["Age", "Sex"]), sm.IL1s(on="Wage")]
    plan = sm.Plan(methods, measures, replicates=3, risk="SmallCells", utility="IL1s(on='Wage')",
                   rule=sm.Threshold(risk=0.95), seed=int(seed),
                   data=sm.Source("people.csv", keys=("Age", "Sex"), sensitive=("Wage",), other=("Town",),
                                  identifiers=("Person",), weight=("Weight",)))
    print(plan, repr(plan), plan.toml(), plan.digest, data, repr(data), list(plan.candidates)[:2])
    scores = sm.sweep(data, plan, folder, engine=engine, workers=2)
    print(scores, scores.candidate, scores.score)
    ru = sm.RUMap(scores, plan.risk, plan.utility)
    choice = ru.choose(plan.rule)
    print(ru, choice, repr(choice), [c.id for c in plan.candidates if c.method == both][0])
    print(sm.release(data, plan, choice))
    failing = sm.Plan([Leaky(), both], [LeakyMeasure(), sm.SmallCells(), sm.IL1s(on="Wage")], seed=int(seed))
    print(sm.sweep(data, failing, "failing", engine=engine, workers=2).candidate["reason"])
    for wrong in (lambda: sm.sweep(data, sm.Plan(both, [sm.IL1s(on="Wage")], seed=5), folder),
                  lambda: sm.Plan(sm.Noise(on="Wage", variance=-1), [sm.IL1s(on="Wage")], seed=int(seed)),
                  lambda: sm.mask(data, sm.Noise(on="Town"), seed=int(seed)),
                  lambda: sm.mask(data, sm.Swap(on="Nothing"), seed=int(seed)),
                  lambda: sm.score(data, data.only(["Age"]), sm.IL1s(on="Wage"))):
        try:
            print(wrong())
        except sm.errors.SdcmapError as error:
            print(type(error).__name__, error)
"""

LINE = """
import json, pathlib, sys
from sdcmap.cli import main

wrong = []
for code, words in json.loads(pathlib.Path(sys.argv[1]).read_text()):
    sys.argv = ["sdcmap", *words]
    try:
        main()
        found = 0
    except SystemExit as end:
        found = end.code or 0
    wrong += [(words, found)] if found != code else []
assert not wrong, wrong
"""


def people() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    return pl.DataFrame(
        {
            "Person": [f"Wombat{number:04d}Xq" for number in rng.permutation(ROWS)],
            "Age": rng.choice([f"{number} years" for number in range(20, 50)], ROWS),
            "Sex": rng.choice(["f", "m"], ROWS),
            "Wage": (rng.lognormal(15, 0.5, ROWS) + 111_111).round(2),
            RELEASED: rng.choice([f"Zanzibar{number}Qy" for number in range(7)], ROWS),
            "Weight": rng.choice([1000.5, 2000.25], ROWS),
        }
    )


# ---- the search -----------------------------------------------------------------------------------------------
Secrets = dict[str, set[bytes]]


def forms_of_number(number: int) -> set[bytes]:
    """Return the ways to write a large number."""
    size = (number.bit_length() + 7) // 8
    whole = {number.to_bytes(length, order) for length in {size, 32} for order in ("big", "little")}  # type: ignore[arg-type]
    text = {f"{number:x}", f"{number:X}", str(number), f"{number:,}", f"{number:o}"}
    text |= {base64.b64encode(form).decode().rstrip("=") for form in whole}
    halves = {f"{number:x}"[:16], f"{number:x}"[-16:], str(number)[:20]}  # a part of it is enough
    return {form.encode() for form in text | halves} | whole


def forms_of_key(key: bytes) -> set[bytes]:
    return {key, key[::-1], key.hex().encode(), base64.b64encode(key).rstrip(b"=")} | forms_of_number(
        int.from_bytes(key, "big")
    )


def forms_of_amount(value: float) -> set[bytes]:
    """Return an amount as text and as bytes."""
    whole = {struct.pack("<d", value), struct.pack(">d", value)}
    return {form.encode() for form in (f"{value:.2f}", f"{value:,.2f}", repr(value))} | whole


def forms_of_order(order: Sequence[int]) -> set[bytes]:
    """Return twelve consecutive entries of a permutation, as text and as integers of any width."""
    found = set()
    for start in (0, 50, 100):
        part = list(order[start : start + 12])
        found |= {mark.join(map(str, part)).encode() for mark in (",", ", ", "\n", " ", "\t", ";")}
        found |= {
            np.array(part, dtype=kind).tobytes() for kind in ("<i8", ">i8", "<i4", ">i4", "<u2", ">u2", "<f8", ">f8")
        }
    return found


def unpacked(name: str, content: bytes) -> Iterator[bytes]:
    """Yield the content of a file, and of compressed content inside it."""
    yield content
    if content[:16] == b"SQLite format 3\\0".replace(b"\\0", b"\0"):
        yield dumped(content)
    elif content[:4] == b"PAR1":
        yield from table_texts(pl.read_parquet(io.BytesIO(content)))
        yield json.dumps(pl.read_parquet_metadata(io.BytesIO(content))).encode()
    elif content[:6] == b"ARROW1":
        yield from table_texts(pl.read_ipc(io.BytesIO(content[:-32])))  # a working copy ends with its digest
    elif content[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield from unpacked(member, archive.read(member))
    elif content[:4] == b"\x89PNG":
        for chunk in re.finditer(rb"(?:zTXt|iTXt)[^\0]+\0{1,5}(.+?)IEND", content, re.DOTALL):
            yield zlib.decompressobj().decompress(chunk[1])
    else:
        yield html.unescape(content.decode("utf-8", "replace")).encode()
        yield re.sub(rb"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)).encode("utf-8", "replace"), content)
        for blob in re.findall(rb"base64,([A-Za-z0-9+/=]{12,})", content):
            yield from unpacked(name, base64.b64decode(blob + b"=="))


def table_texts(frame: pl.DataFrame) -> Iterator[bytes]:
    """Yield a table as text, by rows and by columns, and its numbers as bytes."""
    yield repr(frame.rows()).encode()
    for column in frame.get_columns():
        yield repr(column.to_list()).encode()
        if column.dtype.is_numeric():
            yield column.to_numpy().tobytes()


def dumped(content: bytes) -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(content)
    try:
        return "\n".join(connection.iterdump()).encode()
    except sqlite3.DatabaseError:
        return b""


def leaks(files: dict[str, bytes], secrets: Secrets) -> set[tuple[str, str]]:
    """(file, secret) for every secret found anywhere."""
    lowered = {secret: {form.lower() for form in forms} for secret, forms in secrets.items()}  # bytes are folded alike
    found = set()
    for name, content in files.items():
        for text in {part.lower() for part in unpacked(name, content)}:
            found |= {(name, secret) for secret, forms in lowered.items() if any(form in text for form in forms)}
    return found


# ---- a whole run ----------------------------------------------------------------------------------------------
class Workspace:
    """A folder for the whole run, with everything that was printed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: dict[str, bytes] = {}
        self.environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]), "SDCMAP_LEDGER": str(folder / "ledger"),
            "PYTHONWARNINGS": "always", "COLUMNS": "400",
        }  # fmt: skip
        self.environment.pop("SDCMAP_TRACEBACK", None)

    def run(self, script: str, *arguments: object) -> str:
        """Run a script of the folder and store its output."""
        command = [sys.executable, script, *map(str, arguments)]
        result = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, timeout=600)
        self.printed[f"printed by {script}"] = result.stdout + result.stderr
        assert result.returncode == 0, result.stderr[-2000:].decode()
        return result.stdout.decode()

    def cli(self, commands: Sequence[tuple[int, Sequence[object]]]) -> None:
        """Run commands of the command line, each with its expected exit code."""
        (self.folder / "commands.json").write_text(json.dumps([[c, list(map(str, words))] for c, words in commands]))
        (self.folder / "line.py").write_text(LINE)
        self.run("line.py", "commands.json")

    @property
    def files(self) -> dict[str, bytes]:
        """Yield every written file and every printed line."""
        inputs = {
            "people.csv",
            "leaky.py",
            "drive.py",
            "line.py",
            "commands.json",
            "other.csv",
            "broken.csv",
            "endless.csv",
            "short.csv",
        }
        made = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*") if path.is_file()}
        written = {n: p.read_bytes() for n, p in made.items() if n not in inputs and "__pycache__" not in n}
        return written | self.printed


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("room"))
    folder = workspace.folder
    people().write_csv(folder / "people.csv")
    (folder / "leaky.py").write_text(LEAKY)
    (folder / "drive.py").write_text(SWEEP)
    chosen = workspace.run("drive.py", "study", "processes", SEED).split("\nRelease(")[0].split()[-1]
    (folder / "plan.toml").write_text((folder / "study" / "plan.toml").read_text())
    provoke(folder)
    roles = ["--keys", "Age,Sex", "--numeric", "Wage", "--identifiers", "Person", "--weight", "Weight"]
    noise = ["--method", "Noise(on='Wage', variance=0.5)"]
    past = [word for name, reason in PROFILE_OVERRIDES.items() for word in ("--override", f"{name}={reason}")]
    release = ["release", "study", chosen, "--override", "weight=only two values, looked at by the board", *past, "-o"]
    score = ["score", "people.csv", "masked.study.csv", "--numeric", "Wage", "--keys", "Age,Sex"]
    workspace.cli(
        [
            (0, ["look", "people.csv", *roles, "-o", "looked.toml"]),
            (0, ["check", "plan.toml"]),
            *((0, ["map", "study", "-o", name]) for name in ("map.html", "map.svg", "map.png", "map.csv")),
            (0, ["choose", "study", "--keep"]),
            (3, ["choose", "study", "--max-risk", "0.000001"]),
            (0, ["choose", "study", "--json"]),
            (0, ["report", "study", "-o", "internal.html"]),
            (0, ["report", "study", "--external", "-o", "external.html"]),
            (0, [*release, "public"]),
            (2, [*release, "public"]),  # not empty
            (3, ["release", "study", "-o", "again"]),  # another draw of the same records
            (3, [*release, "strict", "--max-risk", "0.0001"]),  # over the line
            (0, ["mask", "people.csv", *roles, *noise, "--seed", SEED, "-o", "masked.study.csv"]),
            (2, ["mask", "people.csv", *roles, "--method", "Swap(on='Person')", "-o", "x.study.csv"]),
            (2, ["mask", "people.csv", *roles, *noise, "-o", "x.csv"]),  # not named for study
            (0, [*score, "--measure", "IL1s(on='Wage')", "--measure", "SmallCells", "--study", "study"]),
            (0, [*score, "--measure", "IL1s(on='Town')"]),  # undefined, with the reason
            *((2, ["look", f"{name}.csv", *roles]) for name in ("broken", "other", "endless")),
            (2, ["score", "people.csv", "short.csv", "--numeric", "Wage", "--measure", "IL1s(on='Wage')"]),
            (2, ["look", "people.csv", "--numeric", "Town"]),
            (2, ["sweep", "plan.toml", "-o", "damaged", "--quiet"]),
            (2, ["choose", "damaged"]),
            (0, ["study", "repair", "damaged"]),
            (2, ["map", "failing", "-o", "failing.html"]),  # its plug-in is not in use there
        ]
    )
    return workspace


def provoke(folder: Path) -> None:
    """Write invalid files."""
    frame = people()
    (folder / "broken.csv").write_text(frame.write_csv() + "Wombat9999Xq,old,f,1,2,3,4,5,6,7\n")
    frame.with_columns(Weight=-pl.col("Weight")).write_csv(folder / "other.csv")
    frame.with_columns(Wage=pl.lit("inf")).write_csv(folder / "endless.csv")
    frame.head(9).write_csv(folder / "short.csv")
    damaged = folder / "damaged"
    damaged.mkdir()
    for path in (folder / "study").iterdir():
        if path.is_file():
            (damaged / path.name).write_bytes(path.read_bytes())
    content = bytearray((damaged / "scores.sqlite").read_bytes())
    content[4096:4396] = b"\xff" * 300  # the second page: the first table
    (damaged / "scores.sqlite").write_bytes(content)


@pytest.fixture(scope="module")
def secrets(workspace: Workspace) -> Secrets:
    frame = people()
    study = sm.Study.open(workspace.folder / "study")
    candidates = [candidate for candidate in study.plan.candidates if candidate.method.random]
    candidates = [candidate for candidate in candidates if isinstance(candidate.method, sm.Chain | sm.Noise)]
    candidates += [release_draw(candidate) for candidate in candidates]  # what a release makes of them
    data = study.data
    origins = []
    for c in candidates:
        masked = round_like_original(data, c.method.apply(data, c.stream(SEED)))
        origins.append(prepare(data, c.method, masked, c.stream(SEED)).origin)
    return {
        "seed": forms_of_number(SEED),
        "key": set().union(*(forms_of_key(c.stream(SEED).key) for c in candidates)),
        "origin": set().union(*(forms_of_order(o) | forms_of_order(np.argsort(o)) for o in origins)),
        "person": {name.encode() for name in frame["Person"]},
        "wage": set().union(*map(forms_of_amount, frame["Wage"][:60])),
        "town": {name.encode() for name in frame[RELEASED].unique()},
        "digest": {data.digest.encode(), data.digest[:16].encode(), bytes.fromhex(data.digest)},
    }


COPY = ("data.bin", "schema.arrow")


def may_be(file: str, secret: str) -> bool:
    """Return whether a secret may be in a file."""
    path = Path(file)
    inside = path.parts[0] in ("study", "damaged", "failing")
    if secret in ("seed", "digest"):
        return inside and path.name == "manifest.json"
    if secret in ("wage", "town"):
        if path.name in COPY or path.parent.name == "kept":
            return inside
        if path.name == "masked.study.csv":  # its wages are masked
            return secret == "town"
        if path.name == "internal.html":  # names the subgroups that changed most, of 30 records or more
            return secret == "town"
        return secret == "town" and path.parts[0] == "public" and path.name.startswith(("data.", "codebook."))
    return False  # persons, keys and the origin: nowhere


@pytest.fixture(scope="module")
def found(workspace: Workspace, secrets: Secrets) -> set[tuple[str, str]]:
    return leaks(workspace.files, secrets)


def test_no_secret_leaks(found: set[tuple[str, str]]) -> None:
    assert {leak for leak in found if not may_be(*leak)} == set()


def test_leak_search_finds_allowed_values(workspace: Workspace, secrets: Secrets, found: set[tuple[str, str]]) -> None:
    """The search finds the seed in the manifest and the data in the working copy and the release, so it works."""
    assert {("study/manifest.json", "seed"), ("study/data.bin", "wage"), ("study/schema.arrow", "town"),
            ("public/data.csv", "town"), ("study/manifest.json", "digest")} <= found  # fmt: skip
    assert any(name.startswith("study/kept/") and secret == "town" for name, secret in found), "inside Parquet"
    assert leaks({"people.csv": (workspace.folder / "people.csv").read_bytes()}, secrets) >= {
        ("people.csv", "person"), ("people.csv", "wage")
    }  # fmt: skip


def planted(place: str, form: bytes) -> bytes:
    """Write a secret into a file."""
    text = form.decode("latin-1")
    if place == "sqlite":
        connection = sqlite3.connect(":memory:")
        connection.execute("create table t (x)")
        connection.execute("insert into t values (?)", ("." * 6000 + text,))  # over several pages
        connection.commit()
        return bytes(connection.serialize())
    if place == "parquet":
        found = io.BytesIO()
        pl.DataFrame({"x": ["a", text] * 100}).write_parquet(found, compression="zstd")
        return found.getvalue()
    if place == "zip":
        found = io.BytesIO()
        with zipfile.ZipFile(found, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inner.txt", form)
        return found.getvalue()
    if place == "html":
        return b'<p>x</p><img src="data:image/png;base64,' + base64.b64encode(form * 2) + b'">'
    return b"log line: " + form + b"\n"


@pytest.mark.parametrize("place", ["text", "sqlite", "parquet", "zip", "html"])
@pytest.mark.parametrize("secret", ["seed", "key", "origin", "person", "wage", "town", "digest"])
def test_a_planted_leak_is_found(secrets: Secrets, secret: str, place: str) -> None:
    texts = [form for form in sorted(secrets[secret]) if form.isascii() and form.decode().isprintable()]
    anything = sorted(secrets[secret]) if place in ("text", "zip", "html") else []
    for form in [*texts[:3], *texts[-3:], *anything[:3], *anything[-3:]]:
        assert ("planted", secret) in leaks({"planted": planted(place, form)}, secrets), form


def test_an_origin_kept_as_a_column_is_found(secrets: Secrets, tmp_path: Path) -> None:
    order = np.random.default_rng(1).permutation(ROWS)
    pl.DataFrame({"row": order}).write_parquet(tmp_path / "x.parquet")
    hidden = {"origin": forms_of_order(order)}
    assert leaks({"x.parquet": (tmp_path / "x.parquet").read_bytes()}, hidden) == {("x.parquet", "origin")}
    assert leaks({"x.parquet": (tmp_path / "x.parquet").read_bytes()}, {"origin": secrets["origin"]}) == set()


def test_run_used_the_expected_options(workspace: Workspace) -> None:
    """The run provoked errors, made a release and reports, and plug-in failures showed only type and location."""
    files = workspace.files
    assert {"public/data.csv", "public/note.json", "internal.html", "external.html", "map.png"} <= set(files)
    connection = sqlite3.connect(workspace.folder / "failing" / "scores.sqlite")
    [reason] = {row[0] for row in connection.execute("select reason from candidate where status = 'failed'")}
    connection.close()
    assert reason.startswith("ValueError") and "leaky.py" in reason
    said = workspace.printed["printed by line.py"]
    assert said.count(b"error:") >= 10 and said.count(b"Not released. These checks failed") == 2
