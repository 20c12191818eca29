"""Comparison of runs: paired tests, ranks, agreement, labels from people, the power of a design."""
