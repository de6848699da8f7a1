"""Whether a result may be another one than when it was accepted, because the compiler made something else."""

from __future__ import annotations

from jaxgate.judge.origin import environment_differences, has_other_executable, has_same_devices
from jaxgate.model import Baseline, Measurement


def is_compiled_anew(now: Measurement, baseline: Baseline) -> bool:
    """Whether today's executable may differ from the one of the baseline: then its results are worth a second opinion."""
    ours, theirs = now.fingerprints, baseline.fingerprints
    if ours.executable is not None and ours.executable == theirs.executable and ours.options == theirs.options:
        return False
    return (
        (ours.program, ours.options, now.hardware) != (theirs.program, theirs.options, baseline.hardware)
        or not has_same_devices(now, baseline)
        or has_other_executable(now, baseline)
        or bool(environment_differences(now.environment, baseline.environment))
    )
