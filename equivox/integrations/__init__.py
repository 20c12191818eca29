"""Integrations with other projects: the Hub, lighteval and Every Eval Ever."""
