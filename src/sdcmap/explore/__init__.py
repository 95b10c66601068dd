"""Explore before planning: a first look at a file, every method on one map, and a demo population."""

from sdcmap.explore import demo as demo
