"""Cores of this process. The plugin imports this first: what a conftest gives up later is known to be given up."""

from __future__ import annotations

import os
from pathlib import Path


def allowed_cores() -> int:
    """Cores that the system lets this process use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and the quota of its control group."""
    cores = allowed_cores()
    return min(cores, _quota() or cores)


def _quota() -> int:
    """Cores whose time its control group may use; zero where there is no limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return max(1, round(int(quota) / int(period)))
    except (OSError, ValueError):  # no such file, or no quota: "max"
        return 0


CORES_AT_START = allowed_cores()
