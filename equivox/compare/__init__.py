"""Comparison of runs: paired tests, ranks, agreement, impact ratios, the gate, published tables."""
