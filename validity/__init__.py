"""How right the statistics are, by simulation: levels, coverage, errors; printed, never asserted."""
