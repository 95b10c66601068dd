"""Attacks that link records: the attacks, cost models, pair search, assignment, and the worst of all attacks."""
