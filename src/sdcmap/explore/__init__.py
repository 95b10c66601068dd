"""Before a plan is settled: a first look at a file, every method on one map, a population to try things on."""

from sdcmap.explore import demo as demo
