"""Speed and memory, measured side by side in one run and printed; never asserted."""
