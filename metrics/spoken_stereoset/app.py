"""The page of Spoken StereoSet as a Space: it computes the scores of a table."""

if __name__ == "__main__":
    from equivox.metrics.space import page
    from equivox.metrics.spoken_stereoset.columns import METRIC

    page(METRIC).launch()
