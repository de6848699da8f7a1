"""Cores and threads of this process. The plugin imports this before any conftest: later changes are the project's doing."""

from __future__ import annotations

import os
import threading
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
_THREADS_AT_START = frozenset(threading.enumerate())


def has_own_threads() -> bool:
    """Whether the project started threads of Python that are still there, such as those of a loader."""
    return any(not one.name.startswith("jaxgate") for one in set(threading.enumerate()) - _THREADS_AT_START)
