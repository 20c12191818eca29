"""Spoken StereoSet: the continuation that a model chooses for a voice (arXiv 2408.07665; 2604.17248, section 3.4)."""

from __future__ import annotations

from equivox.metrics.spoken_stereoset.annotation.rules import Choice, read_choice
from equivox.metrics.spoken_stereoset.annotation.scheme import CHOICE, ChoiceScheme
from equivox.metrics.spoken_stereoset.metric import METRIC
from equivox.metrics.spoken_stereoset.simulated import SimulatedChoices
from equivox.metrics.spoken_stereoset.tally import Tally

__all__ = ["CHOICE", "METRIC", "Choice", "ChoiceScheme", "SimulatedChoices", "Tally", "read_choice"]
