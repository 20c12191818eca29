"""How the stories of BADF are annotated."""
