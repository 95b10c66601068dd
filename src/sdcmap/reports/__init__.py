"""The report for the board: one HTML file that says what was done, what was found and what was chosen."""
