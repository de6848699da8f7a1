"""Name the hardware that a program would run on: ``python -m jaxgate.processes.hardware_worker``.

A process of its own, because asking takes the devices, and a process that records sessions must not hold them.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from jaxgate.observe.machine import first_device


def main() -> None:
    """Print the hardware key of one device as JSON, on the last line."""
    sys.stdout.write(json.dumps(asdict(first_device())) + "\n")


if __name__ == "__main__":
    main()
