"""Cells of tables: numbering, counting, uniques, risks and attribute inference."""
