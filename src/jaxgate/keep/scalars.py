"""Metrics of a run as TensorBoard's scalars: one event file for each run, all in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def write_scalars(folder: Path, step: int, cases: Mapping[str, Mapping[str, float]]) -> bool:
    """Add the metrics of a run.

    Args:
        folder: Where the event files are.
        step: Number of the run.
        cases: By case the metrics by name, with their unit at the end: ``run_ns``, ``temp_bytes``.

    Returns:
        Whether they were written: TensorBoard is an extra, and does it.
    """
    if find_spec("tensorboard") is None:
        return False
    from tensorboard.summary import Writer  # noqa: PLC0415 - takes a second

    writer = Writer(str(folder))
    try:
        for case, metrics in sorted(cases.items()):
            for name, value in metrics.items():
                writer.add_scalar(f"{case}/{name}", float(value), step)
    finally:
        writer.close()
    return True
