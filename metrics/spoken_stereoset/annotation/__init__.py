"""Annotation of the choices in Spoken StereoSet."""
