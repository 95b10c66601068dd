"""Arithmetic of masking methods: noise, rounding, intervals and rare values."""
