"""Shared types: tasks, requests, responses, annotations, scores, coverage, errors. No input or output happens here."""
