"""Releases: write a chosen candidate, read it back, check it, and move it into place or raise `Refused`."""

from sdcmap.bundle.checks import Check
from sdcmap.bundle.releasing import Release, release

__all__ = ["Check", "Release", "release"]
