"""Integrations with other projects: the Hub and lighteval."""
