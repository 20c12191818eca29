"""Annotation of the profiles and narratives of GENRES."""
