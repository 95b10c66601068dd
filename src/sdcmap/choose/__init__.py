"""Choosing: a rule turns a map into one concrete candidate, or into releasing nothing, and says why."""

from sdcmap.choose.criterion import GlobalCriterion
from sdcmap.choose.two_axes import IdealPoint, Linear, Threshold
from sdcmap.core.catalog import select_classes
from sdcmap.core.rule import Rule

RULES = select_classes(globals(), Rule)
