"""The version of equivox."""

__version__ = "0.3.0"
