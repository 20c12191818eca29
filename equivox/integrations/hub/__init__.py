"""The Hub: data sets, runs, and submissions of results."""
