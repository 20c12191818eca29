"""A run: plan, generate, annotate, score; its store, its manifest and run files."""
