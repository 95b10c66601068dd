"""Public types, read from the source: no public function returns or takes `Any`, and no class stores it.

The service's answers (web/) follow with the workbench. Kernels of the GPU (kernels/gpu/) hold arrays of CuPy, which has no
types where it is not installed; what calls them does so through kernels/device.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sdcmap

SOURCE = Path(sdcmap.__file__).parent
EXCEPTIONS = {  # "file: place" -> why it stays
    "study/cluster.py: Cluster.submit(args)": "as in concurrent.futures.Executor",
    "study/cluster.py: Cluster.submit(kwargs)": "as in concurrent.futures.Executor",
    "study/engines.py: SerialExecutor.submit(args)": "as in concurrent.futures.Executor",
    "study/engines.py: SerialExecutor.submit(kwargs)": "as in concurrent.futures.Executor",
    "study/engines.py: BorrowedExecutor.submit(args)": "as in concurrent.futures.Executor",
    "study/engines.py: BorrowedExecutor.submit(kwargs)": "as in concurrent.futures.Executor",
    "study/engines.py: SharedExecutor.submit(args)": "as in concurrent.futures.Executor",
    "study/engines.py: SharedExecutor.submit(kwargs)": "as in concurrent.futures.Executor",
    "study/engines.py: WorkerProcesses.submit(args)": "as in concurrent.futures.Executor",
    "study/engines.py: WorkerProcesses.submit(kwargs)": "as in concurrent.futures.Executor",
    "study/cluster.py: Cluster.__init__(client)": "a Dask client; dask is not needed to check types",
    "study/cluster.py: unwrap_client()": "a Dask client; dask is not needed to check types",
    "files/stat/user_missing.py: numeric_bytes(facts)": "pyreadstat has no types",
    "files/stat/user_missing.py: read_letters(facts)": "pyreadstat has no types",
}


def untyped(source: str) -> list[str]:
    """Return where `Any` is public in a module: results and parameters of public functions, fields of classes."""
    return list(_untyped(ast.parse(source), ""))


def _untyped(node: ast.AST, inside: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        name = getattr(child, "name", "")
        if name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _of_function(child, inside)
        elif isinstance(child, ast.ClassDef):
            yield from _untyped(child, f"{inside}{name}.")
        elif isinstance(child, ast.AnnAssign) and inside and _is_any(child.annotation):
            field = ast.unparse(child.target)
            yield from () if field.startswith("_") else (f"{inside}{field}",)
        elif isinstance(child, ast.If | ast.Try):
            yield from _untyped(child, inside)


def _of_function(function: ast.FunctionDef | ast.AsyncFunctionDef, inside: str) -> Iterator[str]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    if _is_any(function.returns):
        yield f"{inside}{function.name}()"
    for parameter in named:
        if parameter is not None and _is_any(parameter.annotation):
            yield f"{inside}{function.name}({parameter.arg})"


def _is_any(annotation: ast.expr | None) -> bool:
    """`Any`, or a union with it, which says as little."""
    if isinstance(annotation, ast.BinOp):
        return _is_any(annotation.left) or _is_any(annotation.right)
    return annotation is not None and ast.unparse(annotation).strip("'\"") in ("Any", "typing.Any", "Optional[Any]")


def test_public_signatures_have_no_any() -> None:
    places = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        if not name.startswith(("web/", "kernels/gpu/")):
            places += [f"{name}: {place}" for place in untyped(file.read_text(encoding="utf-8"))]
    assert sorted(set(places) - set(EXCEPTIONS)) == []
    assert sorted(set(EXCEPTIONS) - set(places)) == [], "an exception that is none any more goes"


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("def f() -> Any: ...", ["f()"]),
        ("def f(x: Any, *, y: int, **z: Any) -> int: ...", ["f(x)", "f(z)"]),
        ("class C:\n    x: Any\n    def m(self) -> Any | None: ...", ["C.x", "C.m()"]),
        ("class C:\n    def __init__(self, x: Any) -> None: ...", ["C.__init__(x)"]),
        ("if TYPE_CHECKING:\n    def f() -> Any: ...", ["f()"]),
        ("def _f(x: Any) -> Any: ...\nclass _C:\n    x: Any\nclass C:\n    _x: Any", []),
        ("def f(x: dict[str, Any]) -> dict[str, Any]: ...\nx: Any = 1", []),
    ],
)
def test_any_is_detected(source: str, places: list[str]) -> None:
    assert untyped(source) == places
