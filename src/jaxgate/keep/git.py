"""git, asked about a checkout."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import takewhile
from pathlib import Path

TIMEOUT_S = 20.0
COMMIT = re.compile(r"[0-9a-f]{4,64}")
"""A commit by four or more characters of its id."""
_NO_CODE = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "log.showSignature=false",
)
"""Settings that keep git from running what a checkout brings along: embedded repositories, monitors, hooks, verifiers."""


def git_command(folder: Path, *arguments: str) -> list[str]:
    """A command line of git that runs nothing of the checkout.

    Args:
        folder: A folder inside the checkout.
        arguments: The command.
    """
    settings = [part for setting in _NO_CODE for part in ("-c", setting)]
    return ["git", *settings, "-C", str(folder), *arguments]


def run_git(folder: Path, *arguments: str, timeout_s: float | None = TIMEOUT_S) -> str | None:
    """What git answers, without white space around it; ``None`` if it refuses, is not there, or takes too long.

    A pull request decides what lies in the checkout, so git runs nothing of it, and is not asked inside a folder that
    looks like a repository of its own.

    Args:
        folder: A folder inside the checkout.
        arguments: The command.
        timeout_s: Seconds that it may take; ``None`` for any number, where it writes a whole checkout.
    """
    if _in_embedded_repository(folder):
        return None
    command = git_command(folder, *arguments)
    try:
        answer = subprocess.run(command, capture_output=True, check=False, timeout=timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(answer.stdout).strip() if answer.returncode == 0 else None  # names of files are bytes


def _in_embedded_repository(folder: Path) -> bool:
    """Whether git would take committed files for a repository; git before 2.38 does not know the setting against it."""
    below_top = takewhile(lambda one: not (one / ".git").exists(), (folder.resolve(), *folder.resolve().parents))
    return any((one / "HEAD").is_file() and (one / "objects").is_dir() and (one / "refs").is_dir() for one in below_top)
