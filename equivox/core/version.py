"""The version of equivox."""

__version__ = "0.2.0"
