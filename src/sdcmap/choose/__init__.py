"""Choosing: a rule turns a map into one concrete candidate, or into releasing nothing, and says why."""

from sdcmap.choose.choice import Choice
from sdcmap.choose.criterion import GlobalCriterion
from sdcmap.choose.rules import IdealPoint, Linear, Threshold

__all__ = ["Choice", "GlobalCriterion", "IdealPoint", "Linear", "Threshold"]
