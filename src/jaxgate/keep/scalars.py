"""Metrics of a run as TensorBoard's scalars: one event file for each run, all in one folder."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path


def can_write_scalars() -> bool:
    """Whether TensorBoard, which is an extra, is there to write them."""
    return find_spec("tensorboard") is not None


def write_scalars(folder: Path, step: int, cases: Mapping[str, Mapping[str, float]]) -> None:
    """Add the metrics of a run.

    Args:
        folder: Where the event files are.
        step: Number of the run.
        cases: By case the metrics by name, with their unit at the end: ``run_ns``, ``temp_bytes``.
    """
    from tensorboard.summary import Writer  # noqa: PLC0415 - takes a second

    writer = Writer(str(folder))
    try:
        for case, metrics in sorted(cases.items()):
            for name, value in metrics.items():
                writer.add_scalar(f"{case}/{name}", float(value), step)
    finally:
        writer.close()
