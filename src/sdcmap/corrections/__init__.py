"""Corrections for data users: statistics of a file masked with noise, corrected for the noise."""

from sdcmap.corrections.correction import correct
from sdcmap.corrections.estimates import Corrected

__all__ = ["Corrected", "correct"]
