"""Name the hardware that a program would run on: ``python -m jaxgate.processes.hardware_query``.

A process of its own, because asking takes the devices, and a process that records sessions must not hold them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from jaxgate.model.machine import HardwareKey
from jaxgate.model.outcome import UsageError
from jaxgate.processes.child import own_program, run_child


def ask_hardware(folder: Path | None = None, variables: Mapping[str, str] | None = None) -> HardwareKey:
    """The key of the first device.

    Args:
        folder: Where the process runs.
        variables: Its environment variables; this process's by default.

    Raises:
        UsageError: If JAX finds none; the text is the process's last word.
    """
    command = own_program("jaxgate.processes.hardware_query")
    done = run_child(command, folder=folder, variables=variables)
    try:
        return HardwareKey(**json.loads((done.stdout.strip().splitlines() or [""])[-1]))
    except (ValueError, TypeError):
        raise UsageError(done.last_words) from None


def main() -> None:
    """Print the hardware key of one device as JSON, on the last line."""
    from jaxgate.observe.machine.environment import first_device  # noqa: PLC0415 - imports JAX, which those who ask do without

    sys.stdout.write(json.dumps(asdict(first_device())) + "\n")


if __name__ == "__main__":
    main()
