"""Comparison of runs: paired tests, ranks, agreement, the gate, published tables."""
