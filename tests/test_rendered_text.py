"""No code reads the text that sdcmap renders: it asks the value that the text was made from.

A static check of the source. A text counts as rendered if it comes from an attribute or a function that renders a value
(`measure.text`, `str(method)`, `scores.words_of(name)`), from a column of texts, or from an f-string. Assignments, loops
and comprehensions within a function are followed. Parsing what a person or a file states is fine.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sdcmap

SOURCE = Path(sdcmap.__file__).parent
RENDERING_ATTRIBUTES = {
    "text", "words", "title", "action", "label", "description", "reason", "sentence", "utility", "risk", "runners_up",
    "method", "measure", "skipped", "labels", "why",
}  # fmt: skip
RENDERING_CALLS = {
    "title_of",
    "name_of",
    "name_of_method",
    "name_draw",
    "join_names",
    "brief",
    "name_axis",
    "text_of",
    "repr",
}
COLUMNS_OF_TEXTS = {"method", "measure", "reason", "why"}
PARSING_METHODS = {
    "partition", "rpartition", "split", "rsplit", "startswith", "endswith", "removeprefix", "removesuffix", "find",
    "rfind", "replace", "splitlines",
}  # fmt: skip
PASSED_ON = {  # methods and functions that hand on the texts that they are given
    "to_list", "items", "keys", "values", "get", "strip", "rstrip", "lstrip", "casefold", "lower", "unique", "sorted",
    "list", "tuple", "set", "enumerate", "zip", "fromkeys", "reversed", "filter", "sort", "drop_nulls", "implode", "map",
}  # fmt: skip


def parsed_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield every place that parses a rendered text: its line, and the code."""
    tree = ast.parse(source)
    for scope in ast.walk(tree):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | ast.Lambda):
            yield from _in_scope(scope)


def _in_scope(scope: ast.AST) -> Iterator[tuple[int, str]]:
    nodes = list(_own_nodes(scope))
    rendered = set(_texts_given(scope))
    while True:  # until no more names are found to hold a rendered text
        found = {name for node in nodes for name in _assigned(node, rendered)}
        if found <= rendered:
            break
        rendered |= found
    for node in nodes:
        if _parses(node, rendered):
            yield node.lineno, ast.unparse(node)  # type: ignore[attr-defined]


def _texts_given(scope: ast.AST) -> Iterator[str]:
    """Return the parameters that contain the text of a measure or a method."""
    if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        for one in (*scope.args.args, *scope.args.kwonlyargs):
            if one.arg in ("measure", "method") and isinstance(one.annotation, ast.Name) and one.annotation.id == "str":
                yield one.arg


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of nested functions."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _own_nodes(child)


def _assigned(node: ast.AST, rendered: set[str]) -> Iterator[str]:
    """Return the names that a statement or a loop assigns to a rendered text."""
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr | ast.AugAssign) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.comprehension):
        pairs = [(node.target, node.iter)]
    else:
        return
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            several = zip(target.elts, value.elts, strict=True)
        else:
            several = zip([target], [value], strict=True)
        for one, given in several:
            if _is_rendered(given, rendered):
                yield from (part.id for part in ast.walk(one) if isinstance(part, ast.Name))


def _is_rendered(node: ast.expr, rendered: set[str]) -> bool:
    match node:
        case ast.Name(name):
            return name in rendered
        case ast.Attribute(_, name):
            return name in RENDERING_ATTRIBUTES
        case ast.JoinedStr(parts):  # one formatted number is no sentence
            return len(parts) > 1
        case ast.Subscript(inner, ast.Constant(str() as name)):
            of_measures = any(isinstance(part, ast.Attribute) and part.attr == "measure" for part in ast.walk(inner))
            return name in COLUMNS_OF_TEXTS or (name == "name" and of_measures)
        case ast.Subscript(inner, _):
            return _is_rendered(inner, rendered)
        case ast.Call(ast.Attribute(inner, name), given):
            return name in RENDERING_CALLS or (
                name in PASSED_ON
                and (_is_rendered(inner, rendered) or any(_is_rendered(one, rendered) for one in given))
            )
        case ast.Call(ast.Name(name), given):
            passes = name in PASSED_ON or name == "str"
            return name in RENDERING_CALLS or (passes and any(_is_rendered(one, rendered) for one in given))
        case ast.BinOp(left, _, right):
            return _is_rendered(left, rendered) or _is_rendered(right, rendered)
        case ast.IfExp(_, one, other):
            return _is_rendered(one, rendered) or _is_rendered(other, rendered)
        case ast.BoolOp(_, several) | ast.List(several) | ast.Tuple(several):
            return any(_is_rendered(one, rendered) for one in several)
        case ast.Starred(inner):
            return _is_rendered(inner, rendered)
        case ast.ListComp(inner) | ast.SetComp(inner) | ast.GeneratorExp(inner):
            return _is_rendered(inner, rendered)
    return False


def _parses(node: ast.AST, rendered: set[str]) -> bool:
    match node:
        case ast.Call(ast.Attribute(ast.Name("re"), _), [_, *given]):  # the first is the pattern
            return any(_is_rendered(one, rendered) for one in given)
        case ast.Call(ast.Attribute(inner, name)):
            return name in PARSING_METHODS and _is_rendered(inner, rendered)
        case ast.Subscript(inner, ast.Slice()):
            return _is_one_text(inner)
        case ast.Compare(ast.expr() as one, [ast.In() | ast.NotIn()], [whole]):
            return _is_one_text(whole) and not isinstance(one, ast.Tuple)
    return False


def _is_one_text(node: ast.expr) -> bool:
    """Return whether this is a single rendered text, such as `.text`, and not a list of them."""
    match node:
        case ast.Call(ast.Name("str"), [given]):
            return _is_one_text(given)
        case ast.Attribute(_, name):
            return name in {"text", "words", "title", "action", "reason", "sentence"}
    return False


ALLOWED: dict[str, str] = {}  # "file: code" -> why it is no parsing


def test_no_code_parses_rendered_text() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {code}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, code in parsed_texts(path.read_text(encoding="utf-8"))
        if f"{path.relative_to(SOURCE)}: {code}" not in ALLOWED
    ]
    assert found == [], "ask the value (its type, its fields, its id), not its text"


@pytest.mark.parametrize(
    "code",
    [  # what the package once did
        'def f(self): return NAMES.get(self.utility.partition("(")[0])',
        'def f(scores): return [n for n in scores.measure["name"] if n.partition("(")[0] == "X"]',
        'def f(scores):\n    names = scores.measure.filter(risk)["name"].to_list()\n'
        '    return [n for n in names if n.startswith("X(")]',
        'def f(choice): return choice.runners_up[0].rpartition(": ")',
        'def f(row): return row.called.startswith(row.method.title) or row.method.text.startswith("Swap")',
        'def f(loss): return parse(loss["measure"]) if "sha256=" in loss.text else loss',
        'def f(check):\n    text = check.sentence\n    return text.split(": ")[1]',
        'def f(measure): return re.sub("sha256=.*", "", measure.text)',
        'def f(row): return row["reason"].startswith("no value")',
        'def f(x): return f"{x.name}: {x.limit}".split(": ")',
        "def f(method): return str(method.text)[:12]",
        'def f(measure: str): return re.sub("sha256=.*", "", measure)',
    ],
)
def test_the_check_finds_parsing(code: str) -> None:
    assert list(parsed_texts(code))


@pytest.mark.parametrize(
    "code",
    [
        'def f(line): return line.partition("=")',  # what a person wrote
        'def f(path): return path.name.startswith(".")',
        "def f(measure): return type(measure).__name__ in NAMES",
        "def f(scores, name): return scores.values[name].direction",
        'def f(value): return f"{value:g}".replace("e-0", "e-")',  # a number
        "def f(plan, name): return name in plan.risk or name == plan.utility",
    ],
)
def test_check_ignores_other_texts(code: str) -> None:
    assert not list(parsed_texts(code))
