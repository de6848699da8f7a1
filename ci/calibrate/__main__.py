"""Measure how often the gate is wrong on this machine, and how far identical programs of each case are apart.

Usage: python -m ci.calibrate [--duels N] [--into DIR] [pytest arguments ...]

Each case runs against itself, and against itself with extra work. Prints the rates, writes ``calibration.json`` and
``calibration.md``, and keeps the noise of each case as its margin in later runs of this checkout. 299 duels without a
false alarm, over all cases, bound the rate at 1 %. Without a path among the arguments the folder ``perf`` is run.
"""

from __future__ import annotations

import os
import sys

from jaxgate.cli.pytest_arguments import suite


def main(arguments: list[str]) -> None:
    """Become pytest, so that its exit code, its output and Ctrl-C are its own."""
    if {"-h", "--help"} & {*arguments}:
        print(__doc__)
        return
    own = ["-p", "ci.calibrate.plugin", "--benchmark-disable"]
    sys.stdout.flush()
    command = [sys.executable, "-m", "pytest", *own, *suite(arguments), *arguments]
    os.execv(sys.executable, command)  # noqa: S606 - a fixed command line, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
