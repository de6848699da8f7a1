"""What is remembered of references between runs. It may be deleted at any time: that costs time only."""

from __future__ import annotations

import contextlib
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from jaxgate.keep.atomic import write_atomic

MAX_AGE_FILES = 256
"""Entries kept; the oldest go first. A reference that changes leaves its old entry behind."""


class ReferenceCache:
    """A folder with one ``.npz`` file per reference: its arrays, and its numbers as JSON text beside them.

    Without a folder (pytest's cache is switched off) nothing is remembered.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def load(self, key: str) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]] | None:
        """Give back what was saved under a key; ``None`` if there is nothing or it cannot be read."""
        if self.folder is None:
            return None
        try:
            content = (self.folder / f"{key}.npz").read_bytes()  # NumPy leaves a file that it cannot read open
            with np.load(BytesIO(content), allow_pickle=False) as stored:
                numbers = json.loads(str(stored["numbers"]))
                dtypes = numbers.pop("dtypes")
                outputs = [_decode(stored[f"output_{i}"], dtype) for i, dtype in enumerate(dtypes)]
        except Exception:  # noqa: BLE001 - a damaged entry raises almost anything; it costs time only
            return None
        return numbers, outputs

    def save(self, key: str, facts: dict[str, Any], outputs: list[np.ndarray[Any, Any]]) -> None:
        """Keep numbers and arrays under a key, and forget the oldest entries beyond a limit."""
        if self.folder is None:
            return
        numbers = json.dumps({**facts, "dtypes": [array.dtype.name for array in outputs]})
        arrays = {f"output_{i}": _encode(array) for i, array in enumerate(outputs)}
        buffer = BytesIO()
        np.savez(buffer, numbers=np.array(numbers), **arrays)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):  # a full or read-only disk costs time only
            write_atomic(self.folder / f"{key}.npz", buffer.getvalue())
            for path in sorted(self.folder.glob("*.npz"), key=_written)[:-MAX_AGE_FILES]:
                path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0  # another run has just forgotten it


def _encode(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Types that NumPy alone does not know (bfloat16, float8, int4) travel as bytes."""
    return (
        array
        if array.dtype.isbuiltin == 1
        else np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.itemsize)
    )


def _decode(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if array.dtype.name == dtype:
        return array
    import ml_dtypes  # noqa: PLC0415 - only for types that are rare here; comes with jax

    decoded: np.ndarray[Any, Any] = (
        np.ascontiguousarray(array).view(getattr(ml_dtypes, dtype)).reshape(array.shape[:-1])
    )
    return decoded
