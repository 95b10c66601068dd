"""Numerical kernels: arrays in, arrays out. They know no microdata, plans or files; only jit.py imports numba."""
