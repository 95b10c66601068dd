"""Undominated points and regions of global risk."""
