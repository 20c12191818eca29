"""Letters of recommendation: does a model praise people more when only the name changes?"""
