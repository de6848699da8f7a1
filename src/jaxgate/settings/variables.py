"""Environment variables by which one process of jaxgate describes another to it."""

from __future__ import annotations

AS_MEASURED = "JAXGATE_AS_MEASURED"
"""Set for a process whose recording is only compared with: it records also what breaks a claim."""

OTHER_SIDE = "JAXGATE_OTHER_SIDE"
"""Set for every process that records for another one: nothing of it is to be committed, and it leaves no pages."""

CONTRAST_INTO = "JAXGATE_CONTRAST_INTO"
"""Set for a process that runs one side of a contrast: the file into which it writes what that took."""

CONTRAST_SIDE = "JAXGATE_CONTRAST_SIDE"
"""Set beside it: which side."""

NOT_FROM = "JAXGATE_NOT_FROM"
"""Set for the recording of another revision: the checkout that none of its modules may come from."""

ONLY_FROM = "JAXGATE_ONLY_FROM"
"""Likewise: the checkout of that revision; what it has must not come out of an installed copy."""

NAMED_LIKE, NAMESAKES = "JAXGATE_NAMED_LIKE", "JAXGATE_NAMESAKES"
"""Set for every process that records for another one, so that both name cases alike: the baselines of that one, and the test
files that share a name."""

SIZE, CPU_DEVICES, TIME_LIMIT = "JAXGATE_SIZE", "JAXGATE_CPU_DEVICES", "JAXGATE_TIME_LIMIT"
TARGET = "JAXGATE_TARGET"
"""Options that the processes which a run starts read, too: they must run the same workloads."""

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Set by GitHub's runner: the file of the job's summary, to which every run adds its page."""

NOTES_INTO = "JAXGATE_NOTES_INTO"
"""Set for a process that records one side of ``jaxgate upgrade``: the file to which it adds what becomes of each test."""

RESULTS_INTO = "JAXGATE_RESULTS_INTO"
"""Set by ``jaxgate gate``, ``upgrade`` and ``bisect``: a file of its own for the results, with texts, wherever the bundles go."""
