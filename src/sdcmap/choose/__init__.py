"""Rules: each chooses one candidate on a map, or to release nothing, and states the reason in words."""

from sdcmap.choose.criterion import GlobalCriterion
from sdcmap.choose.two_axes import IdealPoint, Linear, Threshold
from sdcmap.core.catalog import select_classes
from sdcmap.core.rule import Rule

RULES = select_classes(globals(), Rule)
