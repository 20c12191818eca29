"""The page of BADF's concept associations as a Space: a table in, its numbers out."""

if __name__ == "__main__":
    from equivox.hub.space import page
    from equivox.metrics.badf.columns import METRIC

    page(METRIC).launch()
