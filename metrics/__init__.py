"""Metric families: one folder each, pure functions."""
