"""The data user's side: statistics of a noise-masked file with the noise taken off."""

from sdcmap.correct.correcting import correct
from sdcmap.correct.result import Corrected

__all__ = ["Corrected", "correct"]
