"""Whether a result may be another one than when it was accepted, because the compiler made something else."""

from __future__ import annotations

from jaxgate.judge.difference import Difference


def is_compiled_anew(difference: Difference) -> bool:
    """Whether today's executable may differ from the one of the baseline: then its results are worth a second opinion."""
    ours, theirs = difference.now.fingerprints, difference.baseline.fingerprints
    if ours.executable is not None and ours.executable == theirs.executable and ours.options == theirs.options:
        return False
    same = (
        difference.program,
        ours.options == theirs.options,
        difference.hardware,
        difference.devices,
        difference.executable,
        not difference.environment,
    )
    return not all(same)
