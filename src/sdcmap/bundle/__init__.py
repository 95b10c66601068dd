"""Releases: a chosen candidate checked, written, read back, scored and put in place, or `Refused` with every reason."""

from sdcmap.bundle.checks import Check
from sdcmap.bundle.releasing import Release, release

__all__ = ["Check", "Release", "release"]
