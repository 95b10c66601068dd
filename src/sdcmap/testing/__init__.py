"""The laws every method and measure obeys; authors of plug-ins run them too.

    from sdcmap import testing
    testing.check_method(MyMethod(on="income"), data)
    testing.check_measure(MyMeasure(), data)

Each check collects every law that is broken and raises LawBroken with all of them.
"""

from sdcmap.testing.laws import LawBroken
from sdcmap.testing.measures import check_measure
from sdcmap.testing.methods import check_method

__all__ = ["LawBroken", "check_measure", "check_method"]
