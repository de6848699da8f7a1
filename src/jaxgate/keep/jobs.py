"""A duel on disk, for a fresh process: two programs, their arguments, and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from jaxgate.keep.arrays import pack, unpack
from jaxgate.keep.atomic import write_atomic
from jaxgate.model import Duel, ProgramRecord, StoredProgram

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a duel needs, and nothing of the process that asks for it.

    Attributes:
        now: Today's program.
        baseline: The other program.
        leaves: The arguments, flattened, on the host.
        about: JSON-able: how to put the arguments on the device, the platform, the seed, JAX settings.
    """

    now: StoredProgram
    baseline: StoredProgram
    leaves: Sequence[np.ndarray[Any, Any]]
    about: Mapping[str, Any]


def write_job(folder: Path, job: Job) -> None:
    """Write a job into a folder of its own."""
    records = TypeAdapter(ProgramRecord)
    about = dict(job.about)
    for name, program in (("now", job.now), ("baseline", job.baseline)):
        write_atomic(folder / f"{name}.export", program.content)
        about[name] = records.dump_python(program.record, mode="json")
    write_atomic(folder / "job.npz", pack(job.leaves, about))


def read_job(folder: Path) -> Job:
    """Read a job back."""
    leaves, about = unpack((folder / "job.npz").read_bytes())
    records = TypeAdapter(ProgramRecord)
    now, baseline = (
        StoredProgram(
            record=records.validate_json(json.dumps(about.pop(name))), content=(folder / f"{name}.export").read_bytes()
        )
        for name in ("now", "baseline")
    )
    return Job(now=now, baseline=baseline, leaves=leaves, about=about)


def write_duels(folder: Path, duels: Mapping[str, Duel]) -> None:
    """Write what came of a job: raw times by name."""
    content = TypeAdapter(dict[str, Duel]).dump_json(dict(duels))
    write_atomic(folder / "duels.json", content)


def read_duels(folder: Path) -> dict[str, Duel]:
    """Read what came of a job.

    Raises:
        FileNotFoundError: If the process that should have written it did not come to an end.
    """
    return TypeAdapter(dict[str, Duel]).validate_json((folder / "duels.json").read_bytes())
