"""Pages generated from commands, plans and errors are complete, and every error has a remedy."""

from __future__ import annotations

import re

from documents import ROOT, script

MAKER = script("make_pages")


def test_every_error_has_a_remedy() -> None:
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    assert set(sections) == {cls.__name__ for cls in MAKER.error_classes()}
    assert [name for name, text in sections.items() if "**What to do.** " not in text] == []
    assert set(MAKER.raised()) == {cls.__name__ for cls in MAKER.error_classes() if not issubclass(cls, Warning)}


def test_every_command_has_help_and_an_example() -> None:
    page = MAKER.cli_page()
    sections = re.findall(r"^## (sdcmap .*)\n\n(\S.*)\n\n    (sdcmap .*)$", page, re.MULTILINE)
    assert len(sections) == page.count("\n## ") > 15
    assert [name for name, _, example in sections if not example.startswith(name)] == []
    assert "| `FILE` | must be given |" in page and "| `--profile` | `public-use` |" in page


def test_every_field_of_a_plan_is_documented() -> None:
    page = MAKER.toml_page()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 40 and [name for name, sentence in rows if not sentence] == []
