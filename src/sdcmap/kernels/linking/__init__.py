"""Links between two files: scores of pairs, the best of them, one-to-one assignment."""
