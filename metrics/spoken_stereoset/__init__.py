"""Spoken StereoSet (arXiv 2408.07665): which continuation does a model choose for a voice?"""
