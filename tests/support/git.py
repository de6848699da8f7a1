"""git in a scratch folder, blind to the settings of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SETTINGS = {"init.defaultBranch": "main", "user.name": "A", "user.email": "a@example.org", "commit.gpgsign": "false"}


def git(folder: Path, *arguments: str) -> str:
    """What git answers, without white space around it; the test fails with git's words if it refuses."""
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *settings, *arguments],
        cwd=folder,
        env=environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def commit(folder: Path, message: str = "all") -> str:
    """Commit everything, in a new repository where there is none; gives the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD")
