"""``jaxgate doctor`` on the command line; the rest is loaded once it is asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from jaxgate.cli.console import unknown


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate doctor``."""
    command(
        "doctor",
        _doctor,
        help="say what can be gated here and what cannot, each with the next command",
        description="Look at packages, devices, settings, the clock, the load, git and baselines. Exit code 1 if "
        "something keeps a gate from judging here. Settings that a conftest makes are not seen.",
    )


def _doctor(_: argparse.Namespace, rest: list[str]) -> int:
    from jaxgate.ext.doctor.run import doctor  # noqa: PLC0415 - loads what `jaxgate --help` does without

    return unknown("doctor", rest) or doctor()
