"""Neighbours of released records in an archive."""
