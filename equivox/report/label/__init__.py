"""People label answers in the browser: one answer a screen, saved at once, without sight of each other."""
