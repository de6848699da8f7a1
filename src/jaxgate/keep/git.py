"""git, asked about a checkout."""

from __future__ import annotations

import subprocess
from pathlib import Path

TIMEOUT_S = 20.0


def run_git(folder: Path, *arguments: str, timeout_s: float | None = TIMEOUT_S) -> str | None:
    """What git answers, without white space around it; ``None`` if it refuses, is not there, or takes too long.

    Args:
        folder: A folder inside the checkout.
        arguments: The command.
        timeout_s: Seconds that it may take; ``None`` for any number, where it writes a whole checkout.
    """
    command = ["git", "-C", str(folder), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
