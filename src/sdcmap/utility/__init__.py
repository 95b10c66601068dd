"""Utility measures, one file each."""

from sdcmap.utility.hellinger import Hellinger
from sdcmap.utility.il1s import IL1s
from sdcmap.utility.mean_precision import MeanPrecision

UTILITIES = (Hellinger, IL1s, MeanPrecision)
