"""Python in a process of its own: what must be chosen before JAX starts, or must not be there yet."""

from __future__ import annotations

import os
import subprocess
import sys


def python(*arguments: object) -> str:
    """What a fresh Python prints, on the CPU; the test fails with its errors if it fails."""
    command = [sys.executable, *map(str, arguments)]
    environ = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
