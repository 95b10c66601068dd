"""From a plan to scores: candidates made and scored by an engine, each number stored once."""
