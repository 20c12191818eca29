"""The page of nTVD as a Space: a table in, its numbers out."""

if __name__ == "__main__":
    from equivox.metrics.ntvd.columns import METRIC
    from equivox.metrics.space import page

    page(METRIC).launch()
