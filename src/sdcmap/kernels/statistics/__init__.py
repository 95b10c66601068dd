"""Moments, regressions, trees, order statistics and distances of numbers."""
