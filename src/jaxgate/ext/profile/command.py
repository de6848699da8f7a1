"""What ``jaxgate tensorboard`` takes on its command line; the rest is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from jaxgate.cli.console import unknown


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate tensorboard``."""
    board = command(
        "tensorboard",
        _tensorboard,
        help="open the profiles of the last run in TensorBoard, with a link to the trace of each side of each case",
        description="Print links to the traces of the cases that the last run profiled, then start TensorBoard on this "
        "machine only. Exit code 1 if there is no profile, 2 if TensorBoard is not installed or the port is taken.",
    )
    board.add_argument(
        "--logdir", default="perf-artifacts", metavar="DIR", help="folder of the bundles (default: perf-artifacts)"
    )
    board.add_argument("--port", type=int, default=None, help="default: 6006, or any free one")
    board.add_argument("--links", action="store_true", help="print the links and start nothing; so does --json")


def _tensorboard(known: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.ext.profile.tensorboard import open_tensorboard  # noqa: PLC0415 - loads what `jaxgate --help` does without

    chosen = Path(known.logdir), known.port
    return unknown("tensorboard", rest) or open_tensorboard(*chosen, links_only=known.links or known.json)
