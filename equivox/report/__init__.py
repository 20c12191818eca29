"""Presentation of scores that were computed elsewhere."""
