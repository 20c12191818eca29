"""What the simulated models of GENRES plant, as `equivox.metrics.genres.simulated` describes it."""

PLANTED = {
    "M1": -100.0, "M2": 0.2, "M3": 2.0, "M4": 100.0, "M5": -3.0, "M6": -100.0, "M7": 1.0, "M8": -1.0,
}  # fmt: skip
"""Male minus female at a shift of 1, in each metric's unit; a smaller shift gives a proportional value."""
