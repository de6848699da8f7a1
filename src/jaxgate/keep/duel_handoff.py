"""What goes to a fresh process and comes back: a duel with its programs and arguments, a side of a contrast."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.keep.atomic import write_atomic
from jaxgate.keep.npz import pack, unpack
from jaxgate.keep.strict import adapter_of
from jaxgate.keep.untrusted import ARRAYS_BYTES, OWN_BYTES, read_bytes
from jaxgate.model import Duel, Match, ProgramRecord, SideLaunch, StoredProgram

if TYPE_CHECKING:
    import numpy as np


RESULTS_BYTES = ARRAYS_BYTES
"""The results of a program that go from one process to another: as much as is remembered of a reference's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a duel needs, and nothing of the process that asks for it.

    Attributes:
        matches: Its programs in pairs, with their arguments on the host.
        about: JSON-able: how to put the arguments on the device, the platform, the seed, JAX's settings and its defaults.
    """

    matches: Sequence[Match]
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


def write_record(path: Path, record: SideLaunch) -> None:
    """Write what a fresh process has found out."""
    write_atomic(path, adapter_of(SideLaunch).dump_json(record))


def read_record(path: Path) -> SideLaunch | None:
    """Read it; ``None`` if the process did not come to write it.

    Raises:
        ValueError: If the file is not what ``write_record`` writes.
    """
    return adapter_of(SideLaunch).validate_json(read_bytes(path)) if path.exists() else None
