"""What ``jaxgate repro`` takes on its command line; the rest is loaded once it is asked for."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate repro``."""
    reproducing = command(
        "repro",
        _repro,
        help="write one file that shows anybody what changed in a case, without anything of yours in it",
        description="Record a case as it is now, and write both programs, today's and the baseline's, into one Python file "
        "that needs jax and NumPy only: no names, no paths, no data. Exit codes: 0 written, 1 a program cannot be had or "
        "cannot be given away, 2 the file does not run here.",
    )
    reproducing.add_argument("case", metavar="CASE", help="its name, as the line in the terminal says it")
    reproducing.add_argument("--output", default=None, metavar="FILE", help="default: repro-CASE.py, in this folder")
    reproducing.add_argument("--issue", action="store_true", help="print the text of a bug report around the file")
    reproducing.add_argument("--baselines", default=None, metavar="DIR", help="folder of the baselines")
    reproducing.add_argument(
        "--reduce",
        action="store_true",
        help="write the smallest part of the programs that still shows it; verified step by step",
    )
    reproducing.add_argument(
        "--budget",
        type=_positive,
        default=300.0,
        metavar="SECONDS",
        help="time for that (default: 300); Ctrl-C ends it, too",
    )
    reproducing.add_argument(
        "--python", default=None, metavar="PYTHON", help="interpreter of another environment: what today's program does there "
        "is what it is held against; it needs jax and NumPy only"
    )  # fmt: skip
    reproducing.add_argument(
        "--about", default="", metavar="WHAT", help="what is to be shown: a fact such as temp_bytes, results or time; by "
        "default whatever is worst"
    )  # fmt: skip
    reproducing.add_argument(
        "--at-least", type=_positive, default=None, metavar="RATIO", help="how much worse a fact must stay (default: the "
        "square root of its ratio now)"
    )  # fmt: skip


def _repro(known: argparse.Namespace) -> int:
    from jaxgate.ext.repro.run import repro  # noqa: PLC0415 - the rooms that it needs take a while

    return repro(known)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number above 0, found {text!r}")
    return number
