"""Cells of tables: coding, counting, uniques and what a table tells."""
