"""A chart: a Vega-Lite spec that saves itself as HTML, SVG or PNG with no browser and no network."""

from __future__ import annotations

import copy
import html
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from sdcmap.data.private_folder import write_atomically
from sdcmap.errors import MissingExtra, SdcmapError

if TYPE_CHECKING:
    from altair import TopLevelMixin


# vl-convert bundles Vega, Vega-Lite and Vega-Embed. Building the script takes seconds, so it is cached for each version
# of vl-convert. The cache is in the user's own folder: a script in a study folder could have been written by others.


GROUP_OR_OTHERS_WRITE = 0o022


@cache
def vega_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that sets `window.vegaEmbed`."""
    script = read_cached_script()
    if script is None:
        import vl_convert

        script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        with suppress(OSError, SdcmapError):  # the home folder cannot be written to
            _cache_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(_cache_path(), script)
    return script


def read_cached_script() -> str | None:
    """Return the script that an earlier run cached, or None where there is none or other users can write to it."""
    with suppress(OSError, RuntimeError):  # RuntimeError: the user has no home folder
        if all(map(_is_private, (_cache_path().parent, _cache_path()))):
            return _cache_path().read_text(encoding="utf-8")
    return None


def _cache_path() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "sdcmap" / f"vega-{version('vl-convert-python')}.js"


def _is_private(path: Path) -> bool:
    facts = path.lstat()
    return os.name != "posix" or (facts.st_uid == os.geteuid() and not facts.st_mode & GROUP_OR_OTHERS_WRITE)


Spec: TypeAlias = dict[str, Any]  # a Vega-Lite spec or a part of one: JSON
Row: TypeAlias = dict[str, Any]  # one row of a data table, by column

# The menu offers SVG and PNG. Entries that would open an online editor are removed: they would send the data there.
EMBED = {"actions": {"export": True, "source": False, "compiled": False, "editor": False}, "renderer": "canvas"}
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body {{ margin: 24px; background: #fff; color: #222; font-family: Helvetica, Arial, sans-serif; }}</style>
</head>
<body>
<div id="chart"></div>
<script type="module">
{library}
</script>
<script type="application/json" id="spec">{spec}</script>
<script type="module">
window.vegaEmbed("#chart", JSON.parse(document.getElementById("spec").textContent), {embed});
</script>
</body>
</html>
"""


@dataclass(frozen=True)
class Chart:
    """A chart as a Vega-Lite spec. Notebooks display it; `save` writes it to a file."""

    spec: Spec = field(repr=False)
    title: str = "sdcmap"

    def to_dict(self) -> Spec:
        """Return the Vega-Lite spec with its data. `altair.Chart.from_dict` reads it."""
        return copy.deepcopy(self.spec)

    def altair(self) -> TopLevelMixin:
        """Return an altair chart, to be changed or combined with others. Needs altair."""
        try:
            import altair
        except ImportError:
            raise MissingExtra("an altair chart needs: pip install altair") from None
        tables: dict[str, list[Row]] = {}
        chart = altair.Chart.from_dict(
            _name_tables(self.to_dict(), tables)
        )  # row by row, altair would check for minutes
        chart.datasets = {**tables, **self.spec.get("datasets", {})}
        return chart

    def save(self, path: str | Path, *, scale: float = 2.0) -> Path:
        """Write the chart in the format of the file's suffix: .html, .svg or .png (`scale` times its size)."""
        path = Path(path)
        form = path.suffix.lower()
        if form not in (".html", ".svg", ".png"):
            raise SdcmapError(f"{path.name}: the name of a chart file must end in .html, .svg or .png.")
        content = self.png(scale=scale) if form == ".png" else (self.svg() if form == ".svg" else self.html()).encode()
        return write_atomically(path, content)

    def svg(self) -> str:
        """Return the chart as SVG."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self._json, allowed_base_urls=[]))

    def png(self, *, scale: float = 2.0) -> bytes:
        """Return the chart as PNG, `scale` times its size in pixels."""
        import vl_convert

        return bytes(vl_convert.svg_to_png(self.svg(), scale=scale))  # faster than vegalite_to_png

    def html(self) -> str:
        """Return the chart as one page with tooltips. The JavaScript is included and nothing is loaded."""
        spec = self._json.replace("<", "\\u003c")  # a text in the data must not end the script element
        library = vega_script().replace("</script", "<\\/script")
        return PAGE.format(title=html.escape(self.title), library=library, spec=spec, embed=json.dumps(EMBED))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {"application/vnd.vegalite.v6+json": self.to_dict(), "image/png": self.png(scale=1.5)}

    @property
    def _json(self) -> str:
        return json.dumps(self.spec, allow_nan=False)


def _name_tables(spec: Any, tables: dict[str, list[Row]]) -> Any:
    """Return the spec with every data table replaced by a name, and add the tables to `tables`."""
    if isinstance(spec, list):
        return [_name_tables(part, tables) for part in spec]
    if not isinstance(spec, dict):
        return spec
    if "values" in spec.get("data", {}):
        name = f"table{len(tables) + 1}"
        tables[name] = spec["data"]["values"]
        spec = {**spec, "data": {**{key: v for key, v in spec["data"].items() if key != "values"}, "name": name}}
    return {
        key: part if key == "data" else _name_tables(part, tables) for key, part in spec.items() if key != "datasets"
    }
