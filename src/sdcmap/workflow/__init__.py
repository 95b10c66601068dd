"""The verbs on a study: open its map, choose, release, report, pair.

Each is decided here once, for the command line, the workbench, R and the report; an interface only parses what was asked
and prints what comes back.
"""

from sdcmap.bundle.pairing import choose_pair
from sdcmap.workflow.verbs import choose, open_map, own_choice, prepare_release, report

__all__ = ["choose", "choose_pair", "open_map", "own_choice", "prepare_release", "report"]
