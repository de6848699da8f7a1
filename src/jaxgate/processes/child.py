"""One child process, run to its end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """What a process left."""

    status: int  # its exit status; negative for the signal that ended it
    stdout: str  # what it printed
    stderr: str  # what it complained of

    @property
    def last_words(self) -> str:
        """The last line of its complaints; its exit status where it had none."""
        return (self.stderr.strip().splitlines() or [f"exit status {self.status}"])[-1]


def own_program(module: str) -> list[str]:
    """The command of a program of jaxgate's own, which complains only of errors.

    Files of the folder that it starts in are not taken for modules: a project may have a ``types.py``.
    """
    return [sys.executable, "-P", "-W", "ignore", "-m", module]


_STRANGE = ("JAX", "XLA_", "PYTHON", "PYTEST")
"""Beginnings of variables that a stranger does not have."""


def strangers_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that knows nothing of this project: without what sets jax, Python or pytest."""
    return {name: value for name, value in environ.items() if not name.startswith(_STRANGE)}


def run_child(
    command: Sequence[str],
    *,
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
    question: str | None = None,
    timeout_s: float | None = None,
) -> Finished:
    """Run a command and wait for its end.

    ``variables`` are all that it has; this process's by default. ``question`` is its standard input.

    Raises:
        TimeoutError: If it took longer.
        OSError: If it could not be started.
    """
    try:
        done = subprocess.run(
            list(command),
            cwd=folder,
            env=None if variables is None else dict(variables),
            input=question,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{command[0]} took more than {timeout_s} s") from error
    return Finished(status=done.returncode, stdout=done.stdout, stderr=done.stderr)
