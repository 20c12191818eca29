"""Showing scores: what was computed elsewhere, formatted."""
