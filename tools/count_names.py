"""Count participle function names, vague constants and full-line comments, and compare them with the writing rules.

    python tools/count_names.py [--list]

A function name counts as a participle when its first word is one ("settled", "drawn_from"), even where it is an adjective
before a noun ("squared_error"), so the printed share is an upper bound.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "sdcmap"
MAX_PARTICIPLE_SHARE = 0.04
MIN_COMMENTS_PER_1000 = 10
VAGUE_CONSTANTS = {"FEW", "MOST", "NEAR", "BLOCK", "SAMPLE", "ROUNDING", "KEPT", "LINE"}

IRREGULAR = re.compile(
    "begun|bent|bought|broken|brought|built|caught|chosen|dealt|done|drawn|driven|fallen|fed|felt|found|frozen|given|gone|"
    "grown|heard|held|hidden|kept|known|laid|led|lent|lost|made|meant|met|paid|said|seen|sent|shaken|shown|sold|spent|"
    "spoken|stood|struck|stuck|swept|sworn|taken|taught|thought|thrown|told|torn|understood|undone|withdrawn|won|worn|written"
)
NOT_PARTICIPLES = frozenset({"embed", "exceed", "feed", "hundred", "need", "proceed", "seed", "speed"})


def is_participle(name: str) -> bool:
    """Return whether the first word of an identifier is a past participle.

    >>> is_participle("_settled"), is_participle("squared_error"), is_participle("seed_of"), is_participle("draw")
    (True, True, False, False)
    """
    word = name.strip("_").split("_")[0]
    if word in NOT_PARTICIPLES:
        return False
    return bool(IRREGULAR.fullmatch(word)) or (word.endswith("ed") and len(word) > 3)


def main() -> int:
    """Print the counts; return 1 if one of them breaks its rule."""
    functions, participles, vague, comments, code_lines = 0, [], [], 0, 0
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(SOURCE)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions += 1
                if is_participle(node.name):
                    participles.append(f"{where}:{node.lineno} {node.name}")
            elif (
                isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.strip("_") in VAGUE_CONSTANTS
            ):
                vague.append(f"{where}:{node.lineno} {node.id}")
        lines = [line.strip() for line in text.splitlines()]
        comments += sum(bool(re.match(r"#(?!\s*(fmt:|type:|noqa|-{4}|!))", line)) for line in lines)
        code_lines += sum(bool(line) and not line.startswith("#") for line in lines)
    share, density = len(participles) / functions, 1000 * comments / code_lines
    if "--list" in sys.argv:
        print("\n".join([*participles, *vague]))
    print(f"participle names: {len(participles)} of {functions:,} functions, {100 * share:.1f} %")
    print(f"vague constants: {len(vague)}")
    print(f"full-line comments: {comments} in {code_lines:,} lines, {density:.1f} per 1,000")
    return int(share >= MAX_PARTICIPLE_SHARE or bool(vague) or density < MIN_COMMENTS_PER_1000)


if __name__ == "__main__":
    sys.exit(main())
