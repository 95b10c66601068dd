"""The script of charts: built once for each version of vl-convert, and read only from a private cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from sdcmap.core.chart import read_cached_script, vega_script


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record what vl-convert is asked to bundle, with an empty cache folder."""
    calls: list[str] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda code: calls.append(code) or f"bundled; {code}")
    vega_script.cache_clear()
    yield calls
    vega_script.cache_clear()


def again() -> str:
    """Return the script as a new process would."""
    vega_script.cache_clear()
    return vega_script()


def test_vega_script_is_cached_privately(asked: list[str], tmp_path: Path) -> None:
    assert read_cached_script() is None
    assert vega_script() == again() == read_cached_script() == "bundled; window.vegaEmbed = vegaEmbed;"
    assert len(asked) == 1
    (kept,) = (tmp_path / "sdcmap").iterdir()
    assert vl_convert.__version__ in kept.name
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("loose", ["file", "folder", "link"])
def test_cached_script_that_others_can_write_is_ignored(asked: list[str], tmp_path: Path, loose: str) -> None:
    vega_script()
    (kept,) = (tmp_path / "sdcmap").iterdir()
    if loose == "link":
        kept.unlink()
        (tmp_path / "elsewhere.js").write_text("evil")
        kept.symlink_to(tmp_path / "elsewhere.js")
    else:
        (kept if loose == "file" else kept.parent).chmod(0o777)
        kept.write_text("evil")
    assert "evil" not in again() and len(asked) == 2


def test_vega_script_works_without_a_writable_home(
    asked: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert vega_script() == again() and len(asked) == 2
