"""The data user's side: statistics of a noise-masked file with the noise taken off."""

from sdcmap.corrections.correction import correct
from sdcmap.corrections.estimates import Corrected

__all__ = ["Corrected", "correct"]
