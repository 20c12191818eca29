"""The page of BADF's concept associations as a Space: it computes the associations of a table."""

if __name__ == "__main__":
    from equivox.metrics.badf.columns import METRIC
    from equivox.metrics.space import page

    page(METRIC).launch()
