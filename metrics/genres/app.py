"""The page of GENRES as a Space: a table in, its numbers out."""

if __name__ == "__main__":
    from equivox.hub.space import page
    from equivox.metrics.genres.columns import METRIC

    page(METRIC).launch()
