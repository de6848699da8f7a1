"""A case as this machine runs it: in its size, on its devices."""

from __future__ import annotations

import pytest

from jaxgate.model import Case, HardwareKey, InvalidCaseError, Size, Target
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.machine import devices_here, usual_size
from jaxgate.settings.variables import CPU_DEVICES


def fit(case: Case, size: Size | None, target: Target | None = None) -> Case:
    """The case as this machine runs it, or compiles it: in the size asked for, or the usual one of its hardware.

    Raises:
        NotOnTargetError: If it needs more devices than the target has, or its size says nothing of a target.
        pytest.skip.Exception: If it needs more than this accelerator machine has.
        pytest.fail.Exception: If it needs more than there are on CPU, where any number can be had.
    """
    platform, count = devices_here()
    if target is not None and case.devices > target.devices:
        raise NotOnTargetError(f"it needs {case.devices} devices, {target} has {target.devices}")
    if case.devices > count:
        text = f"`{case.name}` needs {case.devices} devices, found {count} ({platform})"
        if platform != "cpu":
            pytest.skip(text)
        pytest.fail(
            f"{text}\nexpected perf_cpu_devices = {case.devices} or more in pytest's configuration ({CPU_DEVICES}), "
            "which divides the CPU into virtual devices",
            pytrace=False,
        )
    usual = usual_size()
    chosen = size or usual
    if target is not None and case.target_sizes and chosen not in case.target_sizes:
        others = " or ".join(f"--perf-size={one}" for one in case.target_sizes)
        raise NotOnTargetError(f"in size {chosen} it says nothing of hardware that is not there; {others} does")
    return case.sized(chosen, usual=usual)


def refuse_platform(hardware: HardwareKey) -> None:
    """Refuse a case that ran elsewhere than on the platform that JAX uses here: that one's baselines would pass it.

    Raises:
        InvalidCaseError: If that is another platform.
    """
    wanted, _ = devices_here()
    if hardware.platform != wanted:
        raise InvalidCaseError(
            "looking at the devices",
            f"expected the case to run on {wanted}, which JAX uses here, found {hardware.platform}: an argument is "
            "committed to a device there, or a default device is set",
        )
