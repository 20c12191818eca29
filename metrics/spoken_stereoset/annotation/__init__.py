"""How the choices of Spoken StereoSet are annotated."""
