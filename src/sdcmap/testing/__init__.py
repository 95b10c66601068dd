"""The laws that every method and measure obeys. Authors of plug-ins can run them too.

    from sdcmap import testing
    testing.check_method(MyMethod(on="income"), data)
    testing.check_measure(MyMeasure(), data)

Each check collects all violations and raises LawBroken with them.
"""

from sdcmap.testing.laws import LawBroken
from sdcmap.testing.measures import check_measure
from sdcmap.testing.methods import check_method

__all__ = ["LawBroken", "check_measure", "check_method"]
