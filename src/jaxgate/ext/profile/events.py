"""Metrics of a run as TensorBoard's scalars: one event file for each run, all in one folder."""

from __future__ import annotations

import tempfile
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

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        writer = Writer(aside)
        try:
            for case, metrics in sorted(cases.items()):
                for name, value in metrics.items():
                    writer.add_scalar(f"{case}/{name}", float(value), step)
        finally:
            writer.close()
        for file in Path(aside).iterdir():  # named by second and process: two runs of one process may share them
            file.replace(folder / f"{file.name}.{step}")
