"""Ground floor: arrays in, arrays out. Nothing here knows microdata, plans or files; only jit.py imports numba."""
