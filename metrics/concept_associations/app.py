"""The page of BADF's concept associations as a Space: a table in, its numbers out."""

if __name__ == "__main__":
    from equivox.metrics.badf.columns import METRIC
    from equivox.metrics.space import page

    page(METRIC).launch()
