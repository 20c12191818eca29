"""The page of nTVD as a Space: it computes the nTVD of a table."""

if __name__ == "__main__":
    from equivox.metrics.ntvd.columns import METRIC
    from equivox.metrics.space import page

    page(METRIC).launch()
