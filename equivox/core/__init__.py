"""What every room speaks of: tasks, requests, responses, annotations, scores, coverage, errors. No input or output."""
