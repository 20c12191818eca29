"""GENRES: two characters of one narrative compared, male minus female (arXiv 2506.23101)."""
