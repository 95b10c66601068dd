"""What can be done with a study: open its map, choose, release, report, pair.

The command line, the web interface and R share these functions. An interface only parses the request and shows the result.
"""

from sdcmap.bundle.pairing import choose_pair
from sdcmap.workflow.verbs import (
    choose,
    choose_by_criterion,
    open_map,
    own_choice,
    prepare_release,
    report,
    write_release,
)

__all__ = [
    "choose",
    "choose_by_criterion",
    "choose_pair",
    "open_map",
    "own_choice",
    "prepare_release",
    "report",
    "write_release",
]
