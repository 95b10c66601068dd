"""The house: which room may use which, no circles, and what stands at the front door; read from the source itself."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import sdcmap
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Value
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES

SOURCE = Path(sdcmap.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
MOST_AT_THE_TOP = 26
FAMILIES = {"decision", "gpu", "masking", "neighbours", "statistics", "tables"}
BELOW = {"errors", "kernels", "data", "core"}
ENGINE = BELOW | {"files", "recordwise", "corrections", "methods", "risk", "utility", "theory"}
NUMBERS = ENGINE | {"study", "map", "choose"}
MAY_USE: Mapping[str, set[str]] = {  # docs/design.md shows the same table
    "errors": set(),
    "kernels": set(),
    "data": {"errors", "kernels"},
    "core": {"errors", "kernels", "data"},
    "files": BELOW,
    "theory": BELOW,
    "recordwise": BELOW | {"files"},
    "corrections": BELOW | {"files"},
    "methods": BELOW | {"recordwise"},
    "risk": BELOW | {"files"},
    "utility": BELOW | {"corrections"},
    "study": BELOW | {"files", "methods", "risk", "utility"},
    "map": BELOW | {"study"},
    "choose": BELOW,
    "explore": NUMBERS,
    "testing": BELOW | {"study"},
    "frontier": NUMBERS | {"explore"},
    "charts": NUMBERS,
    "bundle": NUMBERS,
    "dossier": NUMBERS | {"explore", "charts", "bundle"},
    "papers": NUMBERS | {"explore", "charts"},
    "workflow": NUMBERS | {"bundle", "dossier"},
    "tour": NUMBERS | {"explore", "charts", "bundle", "dossier", "workflow"},
    "cli": NUMBERS | {"explore", "frontier", "charts", "bundle", "dossier", "workflow", "papers", "tour", "web"},
    "web": NUMBERS | {"explore", "frontier", "charts", "bundle", "dossier", "workflow"},
}
KERNELS_MAY_USE: Mapping[str, set[str]] = {family: set() for family in FAMILIES} | {"masking": {"tables"}}
CHOOSES = "sdcmap.kernels.device"  # the one module that asks kernels of the GPU
FACES = {"cli", "web", "papers", "tour", "dossier", "bundle"}  # they may take public names from the package itself
LATE = {"sdcmap.core.catalogue", "sdcmap.cli.__init__"}  # they find modules by name: values, drawings; commands
HEAVY = {"numpy", "numba", "polars", "scipy", "altair", "dask", "fastapi"}
VERBS = (
    "read", "write", "mask", "score", "sweep", "look", "compare", "search", "choose_pair", "release", "report", "grid",
    "subsets",
)  # fmt: skip
NOUNS = ("Plan", "Source", "Microdata", "Study", "Scores", "RUMap", "Choice")


@dataclass(frozen=True)
class Import:
    """One imported name, dotted and whole, such as `sdcmap.study.scores.Scores`."""

    target: str
    line: int
    function: str  # the function it stands in; empty at module level

    @property
    def package(self) -> str:
        return self.target.split(".")[0]

    @property
    def room(self) -> str:
        """The room of sdcmap that is imported; empty for the package itself."""
        return room_of(self.target)


def room_of(module: str) -> str:
    return module.partition(".")[2].split(".")[0]


def family_of(module: str) -> str:
    """The family of a kernel; empty for what they all stand on."""
    name = module.removeprefix("sdcmap.kernels.").split(".")[0]
    return name if name in FAMILIES else ""


@cache
def imports(source: str, module: str) -> tuple[Import, ...]:
    """Every import of a module: at module level, inside functions, for types, and by name through importlib."""
    return tuple(_imports(ast.parse(source), module, ""))


def _imports(node: ast.AST, module: str, function: str) -> Iterator[Import]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        function = getattr(node, "name", "lambda")
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield Import(alias.name, node.lineno, function)
    if isinstance(node, ast.ImportFrom):
        above = module.split(".")[: -node.level] if node.level else []
        home = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield Import(f"{home}.{alias.name}", node.lineno, function)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")) and node.args:
        name = node.args[0]
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            yield Import(name.value, node.lineno, function)
        elif module not in LATE:
            yield Import("importlib by name", node.lineno, function)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, module, function)


def offences(source: str, module: str) -> list[str]:
    """Every import of `module` that the table does not allow, a line each."""
    return [
        f"{module}:{found.line} imports {found.target}: {reason}"
        for found in imports(source, module)
        if (reason := _reason(found, module))
    ]


def _reason(found: Import, module: str) -> str:
    """Why this import is not allowed; empty when it is."""
    room = room_of(module)
    if found.target == "importlib by name":
        return "only core/catalogue.py and the command line find modules by name"
    if found.package == "numba" and module != "sdcmap.kernels.jit":
        return "only kernels/jit.py imports numba"
    if found.package in ("dask", "distributed"):
        return "" if module == "sdcmap.study.cluster" else "only study/cluster.py imports dask"
    long = ("scipy.stats", "scipy.optimize", *(["scipy.special"] if room in ("core", "methods", "risk") else []))
    if found.target.startswith(long) and not found.function and room != "theory":
        return f"{found.target} is long to load; import it in the function that needs it"
    if found.package == "cupy":
        return "" if module == "sdcmap.kernels.gpu.card" else "only kernels/gpu/card.py imports CuPy"
    if family_of(module) == "gpu" and found.package not in sys.stdlib_module_names | {"numpy"}:
        return "" if family_of(found.target) == "gpu" else "kernels of the GPU stand alone, on numpy and CuPy"
    if found.package != "sdcmap":
        plain = sys.stdlib_module_names | {"numpy", "scipy", "numba", "cachetools"}
        return "" if room != "kernels" or found.package in plain else "kernels import numpy, scipy and cachetools alone"
    if found.target in ("sdcmap", "sdcmap.__version__"):
        fine = found.target == "sdcmap.__version__" or room in FACES
        return "" if fine else "import the module, not the whole package"
    if room == found.room == "kernels":
        mine, theirs = family_of(module), family_of(found.target)
        fine = not theirs or mine == theirs or theirs in KERNELS_MAY_USE.get(mine, set())
        fine = fine or (theirs == "gpu" and module == CHOOSES)
        return "" if fine else f"kernels of {mine or 'all families'} do not use {theirs}"
    if family_of(found.target) == "gpu":
        return "only kernels/device.py asks kernels of the GPU"
    if found.room == room or found.room in MAY_USE.get(room, set()):
        return ""
    return f"{room} may not use {found.room}"


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def name_of(file: Path) -> str:
    return str(file.relative_to(SOURCE))


# ---- the table holds ------------------------------------------------------------------------------------------
def test_imports_follow_the_table() -> None:
    wrong = []
    for file in FILES:
        # `from . import x` in a package counts from the package itself, so its module name needs one more part
        module = module_of(file) + (".__init__" if file.name == "__init__.py" and file.parent != SOURCE else "")
        wrong += offences(file.read_text(encoding="utf-8"), module)
    assert wrong == []


def test_every_room_is_in_the_table_and_there_are_few() -> None:
    rooms = {
        path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or any(path.glob("*.py"))
    }
    rooms -= {"__init__", "__pycache__"}
    assert rooms == set(MAY_USE)
    assert len(rooms) <= MOST_AT_THE_TOP
    families = {path.name for path in (SOURCE / "kernels").iterdir() if path.is_dir()} - {"__pycache__"}
    assert families == FAMILIES


def test_there_is_no_circle_of_rooms() -> None:
    assert circles({room: sorted(uses) for room, uses in MAY_USE.items()}) == []


def test_there_is_no_circle_of_files() -> None:
    modules = {module_of(file): file for file in FILES}
    arrows: dict[str, list[str]] = {}
    for module, file in modules.items():
        if module == "sdcmap":
            continue
        package = ".__init__" if file.name == "__init__.py" else ""
        targets = [found.target for found in imports(file.read_text(encoding="utf-8"), module + package)]
        homes = [target if target in modules else target.rpartition(".")[0] for target in targets]
        arrows[module] = [home for home in homes if home in modules and home not in (module, "sdcmap")]
    assert circles(arrows) == []


def circles(arrows: Mapping[str, list[str]]) -> list[list[str]]:
    """Every circle that a walk along the arrows meets, as the way round."""
    state: dict[str, int] = {}  # 1: on the way, 2: done
    way: list[str] = []
    met: list[list[str]] = []

    def walk(at: str) -> None:
        state[at] = 1
        way.append(at)
        for target in arrows.get(at, []):
            if state.get(target) == 1:
                met.append([*way[way.index(target) :], target])
            elif target not in state:
                walk(target)
        way.pop()
        state[at] = 2

    for start in arrows:
        if start not in state:
            walk(start)
    return met


def test_a_circle_is_found() -> None:
    assert circles({"a": ["b"], "b": ["c"], "c": ["b"]}) == [["b", "c", "b"]]
    assert circles({"a": ["b", "c"], "b": ["c"], "c": []}) == []


def test_errors_stand_on_the_ground() -> None:
    source = (SOURCE / "errors.py").read_text(encoding="utf-8")
    assert {found.package for found in imports(source, "sdcmap.errors")} <= sys.stdlib_module_names


# ---- the table can be broken ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.kernels.tables.coding", "import numba"),
        ("sdcmap.kernels.tables.coding", "from sdcmap.errors import Undefined"),
        ("sdcmap.kernels.tables.coding", "import polars as pl"),
        ("sdcmap.kernels.tables.coding", "from ...data.microdata import Array"),
        ("sdcmap.kernels.tables.coding", "from sdcmap.kernels.neighbours.counting import count_between"),
        ("sdcmap.kernels.neighbours.counting", "from sdcmap.kernels.gpu.groups import mdav_groups"),
        ("sdcmap.kernels.tables.coding", "from sdcmap.risk.linkage.links import Links"),
        ("sdcmap.risk.linkage.links", "from sdcmap.kernels.gpu.pair_scan import Search"),
        ("sdcmap.risk.linkage.links", "import cupy"),
        ("sdcmap.kernels.gpu.pair_scan", "from sdcmap.kernels.arrays import Array"),
        ("sdcmap.kernels.gpu.pair_scan", "import scipy"),
        ("sdcmap.data.microdata", "from sdcmap.methods import Noise"),
        ("sdcmap.data.microdata", "if TYPE_CHECKING:\n    from sdcmap.methods import Noise"),
        ("sdcmap.data.microdata", "from sdcmap import Noise"),
        ("sdcmap.core.method", "import sdcmap"),
        ("sdcmap.methods.noise", "from sdcmap.risk.small_cells import SmallCells"),
        ("sdcmap.methods.noise", "from ..utility import IL1s"),
        ("sdcmap.risk.small_cells", "from sdcmap.study.plan import Plan"),
        ("sdcmap.theory.noise", "def f():\n    from sdcmap.methods import Noise"),
        ("sdcmap.study.sweeping", "from sdcmap.charts import draw_map"),
        ("sdcmap.study.sweeping", "import dask.distributed"),
        ("sdcmap.study.folder", "def f():\n    from sdcmap import RUMap"),
        ("sdcmap.map", "def draw():\n    from sdcmap.charts import draw_map"),
        ("sdcmap.choose.two_axes", "from sdcmap.map import RUMap"),
        ("sdcmap.bundle", "from sdcmap.cli import main"),
        ("sdcmap.dossier", "importlib.import_module('sdcmap.web')"),
        ("sdcmap.dossier", "importlib.import_module(name)"),
        ("sdcmap.testing.laws", "import sdcmap"),
        ("sdcmap.risk.linkage.record_linkage", "from scipy import stats"),
        ("sdcmap.risk.linkage.assignment", "from scipy.optimize import brentq"),
        ("sdcmap.risk.linkage.record_linkage", "try:\n    import scipy.stats\nexcept ImportError:\n    pass"),
        ("sdcmap.study.plan", "from sdcmap.helpers import x"),
    ],
)
def test_an_offence_is_reported(module: str, line: str) -> None:
    assert len(offences(f"import json\n{line}\n", module)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.kernels.jit", "import numba"),
        ("sdcmap.kernels.masking.breaks", "from sdcmap.kernels.jit import jit\nimport scipy.spatial"),
        ("sdcmap.kernels.masking.breaks", "from sdcmap.kernels.tables.coding import compress"),
        ("sdcmap.methods.chain", "from sdcmap.methods.noise import Noise\nfrom sdcmap.data.cells import cells"),
        ("sdcmap.study.cluster", "def f():\n    from dask.distributed import Client"),
        ("sdcmap.map", "from sdcmap.study.scores import Scores"),
        ("sdcmap.study.folder", "from sdcmap import __version__\nfrom sdcmap.errors import StudyMismatch"),
        ("sdcmap.core.catalogue", "importlib.import_module(name)"),
        ("sdcmap.cli", "def demo():\n    import sdcmap as sm"),
        ("sdcmap.risk.linkage.record_linkage", "def f():\n    from scipy import stats"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, line: str) -> None:
    assert offences(f"{line}\n", module) == []


# ---- the front door -------------------------------------------------------------------------------------------
def test_the_package_and_its_command_line_start_without_heavy_packages() -> None:
    for module in ("sdcmap", "sdcmap.cli"):
        script = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert HEAVY & set(done.stdout.split()) == set()


def test_a_process_of_a_sweep_starts_without_what_few_methods_need() -> None:
    script = "import sys, sdcmap.study.sweeping; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert {"scipy.special", "scipy.optimize", "dask", "altair"} & set(done.stdout.split()) == set()


def test_public_names_resolve_and_are_few() -> None:
    unresolved = {}
    for name in sdcmap.__all__:
        try:
            getattr(sdcmap, name)
        except (ImportError, AttributeError) as error:
            unresolved[name] = str(error)
    assert unresolved == {}
    assert {*VERBS, *NOUNS} <= set(sdcmap.__all__)
    flat = [name for name in sdcmap.__all__ if not isinstance(getattr(sdcmap, name), type(sys))]
    assert len(flat) <= 47


def test_no_module_hides_a_public_function() -> None:
    for name in sdcmap.__all__:
        if callable(getattr(sdcmap, name)):
            assert not (SOURCE / name).exists() and not (SOURCE / f"{name}.py").exists(), name


@pytest.mark.parametrize(
    ("room", "members", "base"),
    [("methods", METHODS, Method), ("risk", RISKS, Measure), ("utility", UTILITIES, Measure)],
    ids=["methods", "risk", "utility"],
)
def test_every_member_of_a_room_is_exported(room: str, members: tuple[type[Value], ...], base: type) -> None:
    own: set[type] = set()
    for file in sorted((SOURCE / room).rglob("[!_]*.py")):
        module = importlib.import_module(module_of(file))
        own |= {thing for name, thing in vars(module).items() if _is_own(thing, base, module.__name__, name)}
    bases = {parent for member in members for parent in member.__mro__[1:]}
    assert own - bases == set(members) - bases, "a public class of a file that is not private is exported by its room"
    if base is Measure:
        assert {getattr(cls, "axis", None) for cls in members} == {room}


def _is_own(thing: object, base: type, module: str, name: str) -> bool:
    own = isinstance(thing, type) and issubclass(thing, base) and thing.__module__ == module
    return own and not name.startswith("_")
