"""The page of GENRES as a Space: it computes the metrics of a table."""

if __name__ == "__main__":
    from equivox.metrics.genres.columns import METRIC
    from equivox.metrics.space import page

    page(METRIC).launch()
