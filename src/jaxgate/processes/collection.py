"""The tests of a project, as pytest collects them in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jaxgate.model import UsageError
from jaxgate.processes.child import Finished, run_child

_COLLECTED = (0, 5)
"""pytest's exit codes: some tests, none."""


def collect_tests(
    project: Path,
    paths: Sequence[str],
    environ: Mapping[str, str],
    run: Callable[..., Finished] = run_child,
) -> list[str]:
    """Node ids of all tests.

    Args:
        project: Root folder of the tests.
        paths: What to collect, relative to it; what pytest takes by itself without any.
        environ: The environment of the process.
        run: Runs the command in a process.

    Raises:
        UsageError: If pytest collects with errors; the text is its last word.
    """
    command = [sys.executable, "-m", "pytest", *paths, "--collect-only", "-q", "--color=no", "-p", "no:cacheprovider"]
    done = run(command, folder=project, variables=environ)
    if done.status not in _COLLECTED:
        raise UsageError(
            f"the tests cannot be collected: {(done.stdout.strip().splitlines() or [done.last_words])[-1]}"
        )
    return [line for line in done.stdout.splitlines() if "::" in line]
