"""The experiments of the seed papers, written as a user would write them: a plan, a sweep, a map, a table."""
