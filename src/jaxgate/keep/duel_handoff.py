"""What goes to a fresh process and comes back: a duel with its programs and arguments.

Arrays are in NumPy's format; types that NumPy alone does not know go as bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZIP_STORED, ZipFile

from jaxgate.keep.files import ARRAYS_BYTES, OWN_BYTES, read_bytes, write_atomic
from jaxgate.keep.strict import adapter_of
from jaxgate.model.duel import Duel
from jaxgate.model.program import Match, ProgramRecord, StoredProgram

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


RESULTS_BYTES = ARRAYS_BYTES
"""The results of a program that go from one process to another: as much as is remembered of a reference's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a duel needs, and nothing of the process that asks for it."""

    matches: Sequence[Match]  # its programs in pairs, with their arguments on the host
    # JSON-able: how to put the arguments on the device, the platform, the seed, JAX's settings and its defaults
    about: Mapping[str, Any]


def write_job(folder: Path, job: Job) -> None:
    """Write a job into a folder of its own."""
    records = adapter_of(ProgramRecord)
    matches = []
    for number, match in enumerate(job.matches):
        entry: dict[str, Any] = {"leaves": len(match.leaves), "calls": match.calls}
        for side, program in (("now", match.now), ("baseline", match.baseline)):
            write_atomic(folder / f"{side}-{number}.export", program.content)
            entry[side] = records.dump_python(program.record, mode="json")
        matches.append(entry)
    leaves = [leaf for match in job.matches for leaf in match.leaves]
    write_atomic(folder / "job.npz", pack(leaves, {**job.about, "matches": matches}))


def read_job(folder: Path) -> Job:
    """Read a job back."""
    found, about = unpack(read_bytes(folder / "job.npz", OWN_BYTES))
    leaves, records = iter(found), adapter_of(ProgramRecord)

    def program(number: int, side: str, entry: Mapping[str, Any]) -> StoredProgram:
        content = read_bytes(folder / f"{side}-{number}.export", OWN_BYTES)
        return StoredProgram(record=records.validate_json(json.dumps(entry[side])), content=content)

    matches = [
        Match(
            now=program(number, "now", entry),
            baseline=program(number, "baseline", entry),
            leaves=list(islice(leaves, entry["leaves"])),
            calls=(entry["calls"][0], entry["calls"][1]),
        )
        for number, entry in enumerate(about.pop("matches"))
    ]
    return Job(matches=matches, about=about)


def write_results(path: Path, results: Sequence[np.ndarray[Any, Any]]) -> None:
    """Write what a program gave."""
    write_atomic(path, pack(results, {}))


def take_results(path: Path) -> list[np.ndarray[Any, Any]]:
    """Read what a program gave, and remove it: the folder may lie in memory."""
    results, _ = unpack(read_bytes(path, OWN_BYTES))
    path.unlink()
    return results


def write_duels(folder: Path, duels: Mapping[str, Duel]) -> None:
    """Write what came of a job: raw times by name."""
    content = adapter_of(dict[str, Duel]).dump_json(dict(duels))
    write_atomic(folder / "duels.json", content)


def read_duels(folder: Path) -> dict[str, Duel]:
    """Read what came of a job.

    Raises:
        FileNotFoundError: If the process that should have written it did not come to an end.
    """
    return adapter_of(dict[str, Duel]).validate_json(read_bytes(folder / "duels.json"))
