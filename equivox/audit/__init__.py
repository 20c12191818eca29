"""Checking an annotator against people: blind sheets out, labels back, and what its errors do to a score."""
