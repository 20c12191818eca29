"""Integrations with other projects: the Hub, lighteval, inspect_ai and Every Eval Ever."""
