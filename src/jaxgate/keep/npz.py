"""Arrays in files: NumPy's format, with the types that NumPy alone does not know as bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

if TYPE_CHECKING:
    import numpy as np


def pack(arrays: Sequence[np.ndarray[Any, Any]], about: Mapping[str, Any]) -> bytes:
    """Put arrays and a JSON-able mapping into the bytes of one ``.npz`` file."""
    import numpy as np  # noqa: PLC0415 - what only lists files goes without

    def encoded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if array.dtype.isbuiltin == 1:
            return array
        return np.frombuffer(array.tobytes(), np.uint8).reshape(*array.shape, array.itemsize)

    text = json.dumps({**about, "dtypes": [array.dtype.name for array in arrays]})
    named = {f"array_{i}": encoded(array) for i, array in enumerate(arrays)}
    buffer = BytesIO()
    np.savez(buffer, about=np.array(text), **named)  # type: ignore[arg-type]  # no array is named allow_pickle, which is all else that it takes
    return buffer.getvalue()


def unpack(content: bytes) -> tuple[list[np.ndarray[Any, Any]], dict[str, Any]]:
    """Read what ``pack`` wrote. Nothing is unpickled, and no member may be compressed: a small file cannot fill the memory.

    Raises:
        ValueError: If a member is compressed, which ``pack`` never does.
        Exception: Of almost any kind, if the content is damaged.
    """
    import numpy as np  # noqa: PLC0415 - as above

    def decoded(array: np.ndarray[Any, Any], dtype: str) -> np.ndarray[Any, Any]:
        if array.dtype.name == dtype:
            return array
        import ml_dtypes  # noqa: PLC0415 - only for types that are rare here; comes with jax

        whole: np.ndarray[Any, Any] = np.ascontiguousarray(array).view(getattr(ml_dtypes, dtype))
        return whole.reshape(array.shape[:-1])

    with ZipFile(BytesIO(content)) as archive:
        if any(member.compress_type != ZIP_STORED for member in archive.infolist()):
            raise ValueError("expected members as they are, found a compressed one")
    with np.load(BytesIO(content), allow_pickle=False) as stored:
        about: dict[str, Any] = json.loads(str(stored["about"]))
        return [decoded(stored[f"array_{i}"], dtype) for i, dtype in enumerate(about.pop("dtypes"))], about
