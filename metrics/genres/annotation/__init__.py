"""How the profiles and narratives of GENRES are annotated."""
