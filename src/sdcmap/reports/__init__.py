"""The report for the review board: one HTML file with the decision, the tests, the results and what was not tested."""
