"""Count the files and lines of code of each package: `python tools/count_code.py [FOLDER]`.

Lines that contain only a comment or a docstring, and empty lines, do not count.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "sdcmap"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def count_lines(text: str) -> int:
    """Return the lines of code of a module.

    >>> count_lines('"A module."\\n\\nx = 1  # one\\n# two\\n')
    1
    """
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            code.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code)


def count_packages(source: Path = SOURCE) -> dict[str, tuple[int, int]]:
    """Return the number of files and the lines of code of each package and module directly below `source`."""
    files: dict[str, list[int]] = defaultdict(list)
    for file in source.rglob("*.py"):
        files[file.relative_to(source).parts[0]].append(count_lines(file.read_text(encoding="utf-8")))
    return {name: (len(lines), sum(lines)) for name, lines in files.items()}


def main() -> None:
    counts = count_packages(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    print(f"{'package':15}{'files':>7}{'lines':>9}")
    for name, (files, lines) in sorted(counts.items(), key=lambda item: -item[1][1]):
        print(f"{name:15}{files:7}{lines:9,}")
    print(f"{'all':15}{sum(f for f, _ in counts.values()):7}{sum(n for _, n in counts.values()):9,}")


if __name__ == "__main__":
    main()
