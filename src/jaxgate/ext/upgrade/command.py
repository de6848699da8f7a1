"""What ``jaxgate upgrade`` takes on its command line; the rest is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jaxgate.cli.pytest_arguments import SUITE


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate upgrade``."""
    upgrading = command(
        "upgrade",
        _upgrade,
        pytest=True,
        usage="jaxgate upgrade [-h] [REQUIREMENT ...] [NAME=VALUE ...] [--python PYTHON] [pytest arguments ...]",
        help="run the suite in another environment, too, and answer: may I upgrade?",
        description="Record the facts of the suite here and in another environment, time what differs in fresh processes, "
        "and group what is worse, better or cannot run there; write perf-artifacts/upgrade.md for the pull request. The "
        "other environment is this one with requirements (jax==0.12.0.1), an XLA option, a JAX setting or a variable "
        "(NAME=VALUE), or the one of an interpreter. Exit codes: 0 yes, 1 something is worse or cannot run, 2 it is not "
        f"known. All other arguments are pytest's; without a path among them the folder {SUITE}/ is run, if there is one.",
    )
    upgrading.add_argument(
        "--python",
        default="",
        metavar="PYTHON",
        help="the interpreter of an environment; with requirements the one that makes it (python3.12)",
    )


def _upgrade(known: argparse.Namespace) -> int:
    from jaxgate.ext.upgrade.run import upgrade  # noqa: PLC0415 - loads what `jaxgate --help` does without

    return upgrade(known.rest, known.python)
