"""From a plan to scores: candidates are made and scored by an engine, and each number is stored once."""
