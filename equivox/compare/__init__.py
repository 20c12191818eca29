"""Runs side by side: paired tests, ranks, agreement, labels from people, the power of a design."""
