"""The seed papers' experiments, one file each, as a user would write them: a plan, a sweep, a map, a table."""
