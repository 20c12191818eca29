"""Annotation of the stories of BADF."""
