"""Who may import whom: the floor table of the design, read from the source files themselves."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import sdcmap
from sdcmap.measure import Measure
from sdcmap.method import Method
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES

SOURCE = Path(sdcmap.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 300
GROUND = {"errors", "__version__"}  # may be imported by all but the kernels
FLOORS = (
    {"kernels"},
    {
        "archive",
        "attack",
        "beliefs",
        "correct",
        "estimand",
        "pairing",
        "amounts",
        "digests",
        "frequencies",
        "hierarchy",
        "schema",
        "microdata",
        "io",
        "value",
        "method",
        "measure",
        "cells",
        "grid",
        "intervals",
        "likelihood",
        "neighbourhood",
        "record_frequencies",
        "added_noise",
        "noise_likelihood",
        "noising",
        "information_loss",
        "margins",
        "numeric",
        "randomness",
        "rule",
        "statfiles",
        "tables",
        "transition",
    },
    {"methods", "risk", "utility", "theory"},
    {
        "plan",
        "sweep",
        "engines",
        "study",
        "scoring",
        "workcopy",
        "look",
        "progress",
        "cluster",
        "repair",
        "scores",
        "blocks",
        "database",
        "comparison",
        "strengths",
        "weighing",
    },
    {"map", "choose"},
    {"records", "release", "charts", "report", "papers", "tour", "forms"},
    {"cli", "web"},
)
FLOOR_OF = {part: floor for floor, parts in enumerate(FLOORS) for part in parts}
HIGHEST_FOR = {"testing": 3, "demo": 3}  # parts beside the floors: the highest floor they may import
OUTSIDE_KERNELS = {"numpy", "scipy"}
NUMBERS_ONLY = {
    "scores",
    "value",
    "measure",
    "rule",
    "errors",
    "map",
    "choose",
    "kernels.global_criterion",
    "kernels.pareto",
}  # floor 4 imports these
HEAVY = {"numpy", "numba", "polars", "scipy", "altair", "dask", "fastapi"}


@dataclass(frozen=True)
class Import:
    """One imported name, dotted and whole, such as `sdcmap.scores.Scores`."""

    target: str
    line: int
    function: str  # the function it stands in; empty at module level

    @property
    def package(self) -> str:
        return self.target.split(".")[0]

    @property
    def part(self) -> str:
        """The part of sdcmap that is imported; empty for the package itself."""
        return self.target.partition(".")[2].split(".")[0]


def imports(source: str, module: str) -> Iterator[Import]:
    """Every import of a module, at module level or inside a function, but for those under `if TYPE_CHECKING:`."""
    yield from _imports(ast.parse(source), module, "")


def _imports(node: ast.AST, module: str, function: str) -> Iterator[Import]:
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        for child in node.orelse:
            yield from _imports(child, module, function)
        return
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        function = getattr(node, "name", "lambda")
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, function)
    if isinstance(node, ast.ImportFrom):
        above = module.split(".")[: -node.level] if node.level else []
        home = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield Import(_home_of(f"{home}.{alias.name}"), node.lineno, function)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")) and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield Import(name.value, node.lineno, function)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, module, function)


def _home_of(target: str) -> str:
    """`sdcmap.Plan`, a public name, comes from sdcmap.plan."""
    package, _, name = target.partition(".")
    home = sdcmap._HOME.get(name, "sdcmap")
    return f"{home}.{name}" if package == "sdcmap" and home != "sdcmap" else target


def offences(source: str, module: str) -> list[str]:
    """Every import of `module` that the floor table does not allow, a line each."""
    part = module.partition(".")[2].split(".")[0]
    return [
        f"{module}:{found.line} imports {found.target}: {reason}"
        for found in imports(source, module)
        if (reason := _reason(found, module, part))
    ]


def _reason(found: Import, module: str, part: str) -> str:
    """Why this import is not allowed; empty when it is."""
    if found.package == "numba" and module != "sdcmap.kernels.jit":
        return "only kernels/jit.py imports numba"
    if found.package == "dask" or found.package == "distributed":
        return "" if module == "sdcmap.cluster" else "only cluster.py imports dask"
    if found.target.startswith("scipy.stats") and not found.function:
        return "scipy.stats takes a second to load; import it in the function that needs it"
    if part == "kernels":
        known = sys.stdlib_module_names | OUTSIDE_KERNELS | {"numba"}
        allowed = found.target.startswith("sdcmap.kernels.") or found.package in known
        return "" if allowed else "kernels import numpy, scipy and each other"
    if found.package != "sdcmap":
        return ""
    return _reason_inside(found, module, part)


def _reason_inside(found: Import, module: str, part: str) -> str:
    """The same for an import from sdcmap itself, by a module above the kernels."""
    floor = FLOOR_OF.get(part, len(FLOORS))
    if not found.part:
        finder = (module, found.function) in (("sdcmap.value", "find"), ("sdcmap.map", "draw"))
        return "" if (floor >= 5 and part not in HIGHEST_FOR) or finder else "import the module, not the whole package"
    if found.part in GROUND or found.part == part:
        return ""
    if floor == 4:
        named = found.target.removeprefix("sdcmap.")
        fine = any(f"{named}.".startswith(f"{allowed}.") for allowed in NUMBERS_ONLY)
        return "" if fine else "map and choose know only numbers"
    if floor == 2 and found.part in FLOORS[2]:
        return "methods, risk, utility and theory do not import each other"
    if found.part not in FLOOR_OF:
        return "" if part in HIGHEST_FOR or floor >= 5 else "it has no floor in the table"
    highest = HIGHEST_FOR.get(part, floor)
    return "" if FLOOR_OF[found.part] <= highest else f"floor {FLOOR_OF[found.part]} is above {highest}"


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


# ---- the table holds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_imports_follow_the_floors(file: Path) -> None:
    # `from . import x` in a package counts from the package itself, so its module name needs one more part
    module = module_of(file) + (".__init__" if file.name == "__init__.py" and file.parent != SOURCE else "")
    assert offences(file.read_text(encoding="utf-8"), module) == []


def test_every_part_has_a_floor() -> None:
    parts = {module_of(file).partition(".")[2].split(".")[0] for file in FILES} - {""}
    assert parts - set(FLOOR_OF) - set(HIGHEST_FOR) - GROUND == set()


def test_errors_stand_on_the_ground() -> None:
    source = (SOURCE / "errors.py").read_text(encoding="utf-8")
    assert {found.package for found in imports(source, "sdcmap.errors")} <= sys.stdlib_module_names


# ---- the table can be broken ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.kernels.cells", "import numba"),
        ("sdcmap.kernels.cells", "from sdcmap.errors import Undefined"),
        ("sdcmap.kernels.cells", "import polars as pl"),
        ("sdcmap.kernels.cells", "from ..microdata import Array"),
        ("sdcmap.microdata", "from sdcmap.methods import Noise"),
        ("sdcmap.microdata", "from sdcmap import Noise"),
        ("sdcmap.method", "import sdcmap"),
        ("sdcmap.methods.noise", "from sdcmap.risk.small_cells import SmallCells"),
        ("sdcmap.methods.noise", "from ..utility import IL1s"),
        ("sdcmap.risk.small_cells", "from sdcmap.plan import Plan"),
        ("sdcmap.theory.noise", "def f():\n    from sdcmap.methods import Noise"),
        ("sdcmap.sweep", "from sdcmap.charts import draw"),
        ("sdcmap.sweep", "import dask.distributed"),
        ("sdcmap.study", "def f():\n    from sdcmap import RUMap"),
        ("sdcmap.map", "from sdcmap.microdata import Microdata"),
        ("sdcmap.choose", "from sdcmap.kernels.paretofront import x"),
        ("sdcmap.choose", "from sdcmap import Microdata"),
        ("sdcmap.release", "from sdcmap.cli import main"),
        ("sdcmap.report", "importlib.import_module('sdcmap.web')"),
        ("sdcmap.demo", "from sdcmap.map import RUMap"),
        ("sdcmap.testing", "import sdcmap"),
        ("sdcmap.risk.linkage", "from scipy import stats"),
        ("sdcmap.risk.linkage", "try:\n    import scipy.stats\nexcept ImportError:\n    pass"),
        ("sdcmap.plan", "from sdcmap.helpers import x"),
    ],
)
def test_an_offence_is_reported(module: str, line: str) -> None:
    assert len(offences(f"import json\n{line}\n", module)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.kernels.jit", "import numba"),
        ("sdcmap.kernels.cells", "from sdcmap.kernels.jit import jit\nimport scipy.spatial"),
        ("sdcmap.microdata", "if TYPE_CHECKING:\n    from sdcmap.methods import Noise"),
        ("sdcmap.value", "def find():\n    import sdcmap"),
        ("sdcmap.methods.chain", "from sdcmap.methods.noise import Noise\nfrom sdcmap.cells import cells"),
        ("sdcmap.cluster", "def f():\n    from dask.distributed import Client"),
        ("sdcmap.map", "from sdcmap.scores import Scores\nfrom sdcmap.kernels.pareto import frontier"),
        ("sdcmap.study", "from sdcmap import __version__\nfrom sdcmap.errors import StudyMismatch"),
        ("sdcmap.papers.gomatam2003", "import sdcmap as sm"),
        ("sdcmap.cli", "def demo():\n    from sdcmap.demo import population"),
        ("sdcmap.risk.linkage", "def f():\n    from scipy import stats"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, line: str) -> None:
    assert offences(f"{line}\n", module) == []


# ---- the rest of the house ------------------------------------------------------------------------------------


def test_the_command_line_starts_without_heavy_packages() -> None:
    script = "import sys, sdcmap.cli; print(*{name.split('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_no_file_is_too_long() -> None:
    lengths = {name_of(file): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert {name: length for name, length in lengths.items() if length > LONGEST_FILE} == {}


def test_public_names_are_sorted_and_resolve() -> None:
    assert list(sdcmap.__all__) == sorted(set(sdcmap.__all__))
    unresolved = {}
    for name in sdcmap.__all__:
        try:
            getattr(sdcmap, name)
        except (ImportError, AttributeError) as error:
            unresolved[name] = str(error)
    assert unresolved == {}


@pytest.mark.parametrize(
    ("folder", "members", "base"),
    [("methods", METHODS, Method), ("risk", RISKS, Measure), ("utility", UTILITIES, Measure)],
    ids=["methods", "risk", "utility"],
)
def test_each_file_of_a_folder_is_one_member_of_its_tuple(folder: str, members: tuple[type, ...], base: type) -> None:
    found = []
    for file in sorted((SOURCE / folder).glob("*.py")):
        if file.name == "__init__.py":
            continue
        module = importlib.import_module(module_of(file))
        own = [thing for name, thing in vars(module).items() if _is_own(thing, base, module.__name__, name)]
        assert len(own) == 1, f"{name_of(file)} must have one public {base.__name__}, and has {len(own)}"
        found += own
    assert sorted(members, key=lambda cls: cls.__name__) == list(members), "the tuple is sorted by name"
    assert set(members) == set(found) and len(members) == len(found)
    for cls in members:
        assert cls.__name__ in sdcmap.__all__ and getattr(sdcmap, cls.__name__) is cls
        if base is Measure:
            assert getattr(cls, "axis", None) == folder


def _is_own(thing: object, base: type, module: str, name: str) -> bool:
    own = isinstance(thing, type) and issubclass(thing, base) and thing.__module__ == module
    return own and not name.startswith("_")
