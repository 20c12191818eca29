"""What is written to disk line by line, so that a kill loses nothing."""
