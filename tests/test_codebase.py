"""The structure of the package: who imports whom, the names and sizes of files, and the public names.

The contracts of import-linter in pyproject.toml say which package may import which. This file tests what they
cannot say: when a slow module is imported, who imports by name, and what kernels may import from other projects.
"""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import grimp
import pytest
from importlinter.api import read_configuration
from importlinter.cli import lint_imports
from importlinter.contracts import acyclic_siblings, independence, layers, protected
from tools.count_code import count_lines

import sdcmap
from sdcmap.core.measure import Measure
from sdcmap.core.method import Method
from sdcmap.core.value import Value
from sdcmap.methods import METHODS
from sdcmap.risk import RISKS
from sdcmap.utility import UTILITIES

SOURCE = Path(sdcmap.__file__).parent
PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
FILES = sorted(SOURCE.rglob("*.py"))
MAX_FILES = 480
MAX_LINES_PER_FILE = 440  # of code
CONTRACT_TYPES = {
    "layers": layers.LayersContract,
    "acyclic_siblings": acyclic_siblings.AcyclicSiblingsContract,
    "independence": independence.IndependenceContract,
    "protected": protected.ProtectedContract,
}
USE_PUBLIC_NAMES = {"cli", "web", "papers", "demo_run", "reports", "bundle"}  # packages that may import sdcmap itself
IMPORT_BY_NAME = {"sdcmap.core.catalog", "sdcmap.cli"}  # values of a plan, charts; commands
KERNELS_MAY_IMPORT = {"numpy", "scipy", "numba", "cachetools"}
SLOW = ("scipy.stats", "scipy.optimize")
HEAVY = {"numpy", "numba", "polars", "scipy", "altair", "dask", "fastapi"}
VERBS = (
    "read", "write", "mask", "score", "sweep", "look", "compare", "search", "choose_pair", "release", "report", "grid",
    "subsets",
)  # fmt: skip
NOUNS = ("Plan", "Source", "Microdata", "Study", "Scores", "RUMap", "Choice")


def module_of(file: Path) -> str:
    parts = file.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# ---- who imports whom: the contracts in pyproject.toml ---------------------------------------------------------
def test_imports_keep_the_contracts() -> None:
    assert lint_imports(str(PYPROJECT), no_cache=True, no_logo=True) == 0, "`lint-imports` names the imports"


@cache
def import_graph() -> grimp.ImportGraph:
    return grimp.build_graph("sdcmap", include_external_packages=True, cache_dir=None)


def broken_contracts(importer: str, imported: str) -> list[str]:
    """Return the names of the contracts that one more import would break."""
    graph = deepcopy(import_graph())
    if imported not in graph.modules:
        graph.add_module(imported, is_squashed=not imported.startswith("sdcmap"))
    graph.add_import(importer=importer, imported=imported)
    options = read_configuration(str(PYPROJECT))
    broken = []
    for contract in options["contracts_options"]:
        check = CONTRACT_TYPES[contract["type"]](contract["name"], options["session_options"], contract).check
        broken += [] if check(graph, verbose=False).kept else [contract["name"]]
    return broken


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("sdcmap.kernels.tables.coding", "numba"),
        ("sdcmap.kernels.tables.coding", "sdcmap.errors"),
        ("sdcmap.kernels.tables.coding", "sdcmap.data.microdata"),
        ("sdcmap.kernels.tables.coding", "sdcmap.risk.linkage.link_search"),
        ("sdcmap.kernels.tables.coding", "sdcmap.kernels.masking.breaks"),
        ("sdcmap.kernels.neighbors.counting", "sdcmap.kernels.tables.coding"),
        ("sdcmap.kernels.neighbors.counting", "sdcmap.kernels.gpu.groups"),
        ("sdcmap.kernels.jit", "sdcmap.kernels.tables.coding"),
        ("sdcmap.kernels.gpu.groups", "sdcmap.kernels.arrays"),
        ("sdcmap.risk.linkage.link_search", "sdcmap.kernels.gpu.groups"),
        ("sdcmap.risk.linkage.link_search", "cupy"),
        ("sdcmap.risk.linkage.link_search", "sdcmap.risk.linkage.attack"),
        ("sdcmap.risk.linkage.link_search", "sdcmap.risk.singling_out"),
        ("sdcmap.data.microdata", "sdcmap.methods"),
        ("sdcmap.methods.noise", "sdcmap.risk.small_cells"),
        ("sdcmap.methods.noise", "sdcmap.utility"),
        ("sdcmap.methods.noise", "sdcmap.files.reader"),
        ("sdcmap.risk.small_cells", "sdcmap.study.plan"),
        ("sdcmap.risk.small_cells", "sdcmap.recordwise.table"),
        ("sdcmap.utility.sse_sst", "sdcmap.files.reader"),
        ("sdcmap.theory.fishing", "sdcmap.methods"),
        ("sdcmap.study.sweep", "sdcmap.charts"),
        ("sdcmap.study.sweep", "sdcmap.choose"),
        ("sdcmap.study.sweep", "distributed"),
        ("sdcmap.map", "sdcmap.charts"),
        ("sdcmap.map", "sdcmap.methods"),
        ("sdcmap.choose.two_axes", "sdcmap.map"),
        ("sdcmap.testing.laws", "sdcmap.methods"),
        ("sdcmap.bundle.releasing", "sdcmap.cli"),
        ("sdcmap.searches.search_space", "sdcmap.charts"),
        ("sdcmap.papers.seri2005", "sdcmap.bundle"),
        ("sdcmap.web.service", "sdcmap.papers.seri2005"),
        ("sdcmap.study.plan", "sdcmap.helpers"),
    ],
)
def test_an_import_that_breaks_a_contract_is_reported(importer: str, imported: str) -> None:
    assert broken_contracts(importer, imported)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("sdcmap.kernels.masking.breaks", "sdcmap.kernels.tables.coding"),
        ("sdcmap.methods.noise", "sdcmap.recordwise.table"),
        ("sdcmap.map", "sdcmap.study.scores"),
        ("sdcmap.risk.small_cells", "sdcmap.files.reader"),
        ("sdcmap.risk.singling_out", "sdcmap.risk.linkage.link_search"),
        ("sdcmap.cli.files", "sdcmap.papers.seri2005"),
    ],
)
def test_an_import_that_keeps_the_contracts_is_not_reported(importer: str, imported: str) -> None:
    assert broken_contracts(importer, imported) == []


# ---- what contracts cannot say ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Import:
    """An imported name in full, such as `scipy.stats.norm`."""

    target: str
    line: int
    inside_function: bool


def imports_of(source: str) -> Iterator[Import]:
    """Find every absolute import of a module, also inside functions, and modules that are imported by name."""
    yield from _imports_of(ast.parse(source), inside_function=False)


def _imports_of(node: ast.AST, *, inside_function: bool) -> Iterator[Import]:
    inside_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if isinstance(node, ast.Import):
        yield from (Import(alias.name, node.lineno, inside_function) for alias in node.names)
    if isinstance(node, ast.ImportFrom) and not node.level:
        yield from (Import(f"{node.module}.{alias.name}", node.lineno, inside_function) for alias in node.names)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
        yield Import("by name", node.lineno, inside_function)
    for child in ast.iter_child_nodes(node):
        yield from _imports_of(child, inside_function=inside_function)


def problems_of(source: str, module: str) -> list[str]:
    """Describe every import of `module` that is not allowed, one line each."""
    found = ((one, _problem_of(one, module)) for one in imports_of(source))
    return [f"{module}:{one.line} imports {one.target}: {problem}" for one, problem in found if problem]


def _problem_of(found: Import, module: str) -> str:
    """Return why this import is not allowed; empty if it is."""
    package = module.split(".")[1] if "." in module else ""
    origin = found.target.split(".")[0]
    foreign = origin != "sdcmap" and origin not in sys.stdlib_module_names
    slow = (*SLOW, "scipy.special") if package in ("core", "methods", "risk") else SLOW
    if found.target == "by name":
        return "" if module in IMPORT_BY_NAME else "only core/catalog.py and the command line import by name"
    if package == "errors" and (foreign or origin == "sdcmap"):
        return "errors import the standard library alone"
    if module.startswith("sdcmap.kernels.gpu"):
        return "kernels of the GPU import numpy and CuPy alone" if foreign and origin not in ("numpy", "cupy") else ""
    if package == "kernels" and foreign and origin not in KERNELS_MAY_IMPORT:
        return f"kernels import {', '.join(sorted(KERNELS_MAY_IMPORT))} alone"
    if found.target.startswith(slow) and not found.inside_function and package != "theory":
        return f"{found.target} takes long to load; import it in the function that needs it"
    whole = found.target == "sdcmap" or (origin == "sdcmap" and found.target.split(".")[1] in sdcmap.__all__)
    if whole and package not in USE_PUBLIC_NAMES and not _is_package(found.target):
        return "import the module, not the whole package"
    return ""


def _is_package(target: str) -> bool:
    name = target.split(".")[1] if "." in target else "missing"
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists()


def test_imports_are_late_and_stated_where_they_must_be() -> None:
    sources = {module_of(file): file.read_text(encoding="utf-8") for file in FILES}
    assert [problem for module, source in sources.items() for problem in problems_of(source, module)] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.errors", "import numpy"),
        ("sdcmap.errors", "from sdcmap.core.value import Value"),
        ("sdcmap.kernels.tables.coding", "import polars as pl"),
        ("sdcmap.kernels.gpu.pairs", "import scipy"),
        ("sdcmap.data.microdata", "from sdcmap import Noise"),
        ("sdcmap.core.method", "import sdcmap"),
        ("sdcmap.testing.laws", "import sdcmap"),
        ("sdcmap.study.folder", "def f():\n    from sdcmap import RUMap"),
        ("sdcmap.reports", "importlib.import_module('sdcmap.web')"),
        ("sdcmap.reports", "importlib.import_module(name)"),
        ("sdcmap.risk.linkage.link_search", "from scipy import stats"),
        ("sdcmap.risk.linkage.link_search", "from scipy.special import ndtr"),
        ("sdcmap.kernels.tables.coding", "from scipy.optimize import brentq"),
        ("sdcmap.risk.linkage.link_search", "try:\n    import scipy.stats\nexcept ImportError:\n    pass"),
    ],
)
def test_an_import_that_is_not_allowed_is_reported(module: str, line: str) -> None:
    assert len(problems_of(f"import json\n{line}\n", module)) == 1


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("sdcmap.kernels.jit", "import numba"),
        ("sdcmap.kernels.tables.coding", "import scipy.spatial\nfrom cachetools import cached"),
        ("sdcmap.kernels.gpu.cuda", "def f():\n    import cupy"),
        ("sdcmap.study.folder", "from sdcmap import __version__\nfrom sdcmap.errors import StudyMismatch"),
        ("sdcmap.core.catalog", "importlib.import_module(name)"),
        ("sdcmap.cli", "def demo():\n    import sdcmap as sm"),
        ("sdcmap.risk.linkage.link_search", "def f():\n    from scipy import stats"),
    ],
)
def test_an_import_that_is_allowed_is_not_reported(module: str, line: str) -> None:
    assert problems_of(f"{line}\n", module) == []


# ---- files -----------------------------------------------------------------------------------------------------
def test_no_two_files_share_a_name() -> None:
    names = Counter(file.name for file in FILES if file.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_number_and_length_of_files_are_limited() -> None:
    assert len(FILES) <= MAX_FILES
    texts = {str(file.relative_to(SOURCE)): file.read_text(encoding="utf-8") for file in FILES}
    long = {name: text for name, text in texts.items() if len(text.splitlines()) > MAX_LINES_PER_FILE}  # code or not
    lines = {name: count_lines(text) for name, text in long.items()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES_PER_FILE} == {}


# ---- the front door -------------------------------------------------------------------------------------------
def test_the_package_and_its_command_line_start_without_heavy_packages() -> None:
    for module in ("sdcmap", "sdcmap.cli"):
        script = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert HEAVY & set(done.stdout.split()) == set()


def test_a_process_of_a_sweep_starts_without_what_few_methods_need() -> None:
    script = "import sys, sdcmap.study.sweep; print(*sys.modules)"
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
    ("package", "members", "base"),
    [("methods", METHODS, Method), ("risk", RISKS, Measure), ("utility", UTILITIES, Measure)],
    ids=["methods", "risk", "utility"],
)
def test_every_class_of_a_package_is_exported(package: str, members: tuple[type[Value], ...], base: type) -> None:
    own: set[type] = set()
    for file in sorted((SOURCE / package).rglob("[!_]*.py")):
        module = importlib.import_module(module_of(file))
        own |= {thing for name, thing in vars(module).items() if _is_own(thing, base, module.__name__, name)}
    bases = {parent for member in members for parent in member.__mro__[1:]}
    assert own - bases == set(members) - bases, (
        "a public class of a file that is not private is exported by its package"
    )
    if base is Measure:
        assert {getattr(cls, "axis", None) for cls in members} == {package}


def _is_own(thing: object, base: type, module: str, name: str) -> bool:
    own = isinstance(thing, type) and issubclass(thing, base) and thing.__module__ == module
    return own and not name.startswith("_")


@pytest.mark.parametrize("cls", (*METHODS, *RISKS, *UTILITIES), ids=lambda cls: cls.__name__)
def test_every_method_and_measure_has_a_label_and_a_description(cls: type[Method | Measure]) -> None:
    assert 0 < len(cls.label) <= 40
    assert cls.description.endswith(".") and "  " not in cls.description


def test_labels_are_unique() -> None:
    labels = Counter(cls.label for cls in (*METHODS, *RISKS, *UTILITIES))
    assert [label for label, count in labels.items() if count > 1] == []


def test_names_and_comments_are_within_their_limits() -> None:
    """`tools/count_names.py` counts participle names, vague constants and full-line comments."""
    counted = subprocess.run(
        [sys.executable, "tools/count_names.py"], cwd=PYPROJECT.parent, capture_output=True, text=True
    )
    assert counted.returncode == 0, counted.stdout
