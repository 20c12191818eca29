"""Calibration models: tiny models that were taught a known bias, and run through a whole real installation.

A simulated model (`simulated:planted`) is the teacher: it knows the group of each request. The student is a tiny
model of a real architecture. It gets what a real model gets, the media and the prompt, and learns to answer as the
teacher does; so its bias is known, and it has to hear the person to show it. `recipe` names a student, `training`
makes it, `direct` asks it without any engine, `checking` runs it on the engine to be proved and compares, `verdicts`
says where a chain goes wrong.
"""
