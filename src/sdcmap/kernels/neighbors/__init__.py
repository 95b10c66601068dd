"""Neighbors of released records in an archive."""
