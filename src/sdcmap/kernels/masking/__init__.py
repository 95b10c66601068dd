"""What masking methods do to arrays: noise, swaps, transitions, suppression."""
