"""Everything that meets the format of another project: the Hub and lighteval."""
