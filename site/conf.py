"""Configuration of Sphinx, which builds the site from docs/ (`make site`). The pages are also readable as Markdown."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from sdcmap import __version__

project = "sdcmap"
version = release = __version__
copyright = "the authors of sdcmap, Apache-2.0"

extensions = ["myst_nb", "mathml", "pages"]
source_suffix = {".md": "myst-nb"}
exclude_patterns = ["sample-reports/*.html", "**/.ipynb_checkpoints"]
nitpicky = True

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# Notebooks run at every build in a temporary folder; a cell that fails ends the build.
nb_execution_mode = "force"
nb_execution_timeout = 180
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "image/svg+xml", 10), ("html", "image/png", 20), ("html", "text/html", 30)]

suppress_warnings = ["mystnb.unknown_mime_type"]  # charts also return their specification; the picture is shown

# Show tables of cells without column types and shape, and do not truncate texts.
os.environ |= {
    "POLARS_FMT_TABLE_HIDE_COLUMN_DATA_TYPES": "1",
    "POLARS_FMT_TABLE_HIDE_DATAFRAME_SHAPE_INFORMATION": "1",
    "POLARS_FMT_STR_LEN": "100",
}

# Kernels write no history and no log messages.
os.environ["IPYTHONDIR"] = tempfile.mkdtemp(prefix="sdcmap-site-")
profile = Path(os.environ["IPYTHONDIR"], "profile_default")
profile.mkdir()
profile.joinpath("ipython_kernel_config.py").write_text(
    "c = get_config()\nc.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n", encoding="utf-8"
)
logging.getLogger("traitlets").setLevel(logging.WARNING)

html_theme = "furo"  # light and dark, fits phones, loads no font and no script from other hosts
html_title = f"sdcmap {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
templates_path: list[str] = []
