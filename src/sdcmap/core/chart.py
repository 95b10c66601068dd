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

from sdcmap.data.private_folder import write_whole
from sdcmap.errors import MissingExtra, SdcmapError

if TYPE_CHECKING:
    from altair import TopLevelMixin


# Vega, Vega-Lite and Vega-Embed in one script, of the bundle that vl-convert carries.
#
# To make it takes seconds, so it is kept for each version of vl-convert, in the user's own cache folder and nowhere
# else: a script among the files of a study could be anybody's.


GROUP_OR_OTHERS_WRITE = 0o022


@cache
def vega_script() -> str:
    """The script; it sets `window.vegaEmbed`."""
    script = read_cached_script()
    if script is None:
        import vl_convert

        script = str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        with suppress(OSError, SdcmapError):  # a home that cannot be written to
            _cache_path().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(_cache_path(), script)
    return script


def read_cached_script() -> str | None:
    """The script as an earlier run kept it; None where there is none, or where somebody else can write to it."""
    with suppress(OSError, RuntimeError):  # the latter: the user has no home
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
Row: TypeAlias = dict[str, Any]  # what is drawn of one thing, by column

# The export menu keeps SVG and PNG; the entries that would open an editor on the network are left out.
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
    """A picture as a Vega-Lite spec. Notebooks show it by themselves; `save` writes it."""

    spec: Spec = field(repr=False)
    title: str = "sdcmap"

    def to_dict(self) -> Spec:
        """The Vega-Lite spec, data included; `altair.Chart.from_dict` reads it."""
        return copy.deepcopy(self.spec)

    def altair(self) -> TopLevelMixin:
        """The same chart as an altair chart, to change or to join with others; needs altair."""
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
        """Write the chart in the format that the ending names: .html, .svg or .png (`scale` times its size)."""
        path = Path(path)
        form = path.suffix.lower()
        if form not in (".html", ".svg", ".png"):
            raise SdcmapError(f"{path.name}: a chart's file ends in .html, .svg or .png.")
        made = self.png(scale=scale) if form == ".png" else (self.svg() if form == ".svg" else self.html()).encode()
        return write_whole(path, made)

    def svg(self) -> str:
        """The chart as SVG."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self._json, allowed_base_urls=[]))

    def png(self, *, scale: float = 2.0) -> bytes:
        """The chart as PNG, `scale` times its size in pixels."""
        import vl_convert

        return bytes(vl_convert.svg_to_png(self.svg(), scale=scale))  # faster than vegalite_to_png

    def html(self) -> str:
        """The chart as one page with tooltips; the JavaScript is inside, nothing is loaded."""
        spec = self._json.replace("<", "\\u003c")  # no text of the data can end the script
        library = vega_script().replace("</script", "<\\/script")
        return PAGE.format(title=html.escape(self.title), library=library, spec=spec, embed=json.dumps(EMBED))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        return {"application/vnd.vegalite.v6+json": self.to_dict(), "image/png": self.png(scale=1.5)}

    @property
    def _json(self) -> str:
        return json.dumps(self.spec, allow_nan=False)


def _name_tables(spec: Any, tables: dict[str, list[Row]]) -> Any:
    """The spec with every table of data replaced by its name; the tables go to `tables`."""
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
