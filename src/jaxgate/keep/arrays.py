"""Arrays in files: NumPy's format, with the types that NumPy alone does not know as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def pack(arrays: Sequence[np.ndarray[Any, Any]], about: Mapping[str, Any]) -> bytes:
    """Put arrays and a JSON-able mapping into the bytes of one ``.npz`` file."""
    import numpy as np  # noqa: PLC0415 - what only lists files goes without

    text = json.dumps({**about, "dtypes": [array.dtype.name for array in arrays]})
    named = {f"array_{i}": _encode(array) for i, array in enumerate(arrays)}
    buffer = BytesIO()
    np.savez(buffer, about=np.array(text), **named)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpack(content: bytes) -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
    """Take arrays and mapping out again. Nothing is unpickled.

    Raises:
        Exception: Of almost any kind, if the content is damaged.
    """
    import numpy as np  # noqa: PLC0415

    with np.load(BytesIO(content), allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(str(stored["about"]))
        dtypes = about.pop("dtypes")
        return [_decode(stored[f"array_{i}"], dtype) for i, dtype in enumerate(dtypes)], about


def _encode(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    import numpy as np  # noqa: PLC0415

    if array.dtype.isbuiltin == 1:
        return array
    return np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.itemsize)


def _decode(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
    if array.dtype.name == dtype:
        return array
    import ml_dtypes  # noqa: PLC0415 - only for types that are rare here; comes with jax
    import numpy as np  # noqa: PLC0415

    decoded: np.ndarray[Any, Any] = np.ascontiguousarray(array).view(getattr(ml_dtypes, dtype))
    return decoded.reshape(array.shape[:-1])
