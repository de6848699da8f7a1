"""The hardware that a program would run on, asked of a process that lets the devices go again."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from jaxgate.model import HardwareKey, UsageError
from jaxgate.processes.child import run_child


def ask_hardware(folder: Path | None = None, variables: Mapping[str, str] | None = None) -> HardwareKey:
    """The key of the first device.

    Args:
        folder: Where the process runs.
        variables: Its environment variables; this process's by default.

    Raises:
        UsageError: If JAX finds none; the text is the process's last word.
    """
    command = [sys.executable, "-m", "jaxgate.processes.hardware_worker"]
    done = run_child(command, folder=folder, variables=variables)
    try:
        return HardwareKey(**json.loads((done.stdout.strip().splitlines() or [""])[-1]))
    except (ValueError, TypeError):
        raise UsageError(done.last_words) from None
