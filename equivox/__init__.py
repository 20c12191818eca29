"""equivox measures what a model does differently when only the person changes.

The nouns, used with these meanings everywhere:

task
    A frozen declaration: corpus, prompt, media, what is compared, what is read out of the answers, how it is scored.
dimension, group
    The demographic column that is compared (gender, accent), and one value of it.
cluster
    The unit that carries the group (a speaker): labels are exchangeable between clusters, not between responses.
stratum
    What is held equal between groups (the sentence).
arm
    A variant of a task for control (audio, text_only, silence, shuffled).
request, response
    One generation asked for, and what came back; a failure is a response too.
annotation, attribute
    The structured reading of one response, and one named field of it.
score
    A number with its evidence: floor, interval, p-values, coverage.
coverage
    requested → generated → answered → parsed → used.
run, manifest
    A directory, and all that is needed to make it again.
"""

__version__ = "0.1.0"
