"""The page of nTVD as a Space: a table in, its numbers out."""

if __name__ == "__main__":
    from equivox.hub.space import page
    from equivox.metrics.ntvd.columns import METRIC

    page(METRIC).launch()
