"""Groups of near records for microaggregation."""
