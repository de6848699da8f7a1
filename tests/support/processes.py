"""Python in a process of its own: what must be chosen before JAX starts, or must not be there yet."""

from __future__ import annotations

import os
import subprocess
import sys

OF_RUNS = ("PYTEST", "JAXGATE", "CI")
"""How variables begin by which one run of pytest would reach into another."""


def outside_variables(**more: str) -> dict[str, str]:
    """The environment variables of a process that somebody at a terminal would start, and some more."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OF_RUNS)} | more


def python(*arguments: object) -> str:
    """What a fresh Python prints, on the CPU; the test fails with its errors if it fails."""
    command = [sys.executable, *map(str, arguments)]
    environ = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
