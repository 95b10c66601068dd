"""The experiments of the seed papers, written as a user would write them: a plan, a sweep, a map, a table.

`sdcmap.papers.run("duncan2001", "my.csv", on="income")` runs the analysis of a paper on a file of your own.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
