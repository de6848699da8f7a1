"""What one part of the evaluation found: rows for the page, and what had to hold. Kept as JSON, so that a run can go on."""

from __future__ import annotations

import datetime as dt
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from jaxgate.keep.files import write_atomic
from jaxgate.keep.git import read_provenance

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "build" / "evaluation" / f"py{sys.version_info[0]}{sys.version_info[1]}"
VERSIONS = ("jax", "jaxlib", "pytest-benchmark", "scipy")


def surroundings() -> dict[str, str]:
    """What a figure depends on: the commit, with ``+changes`` where files differ from it, versions, and the machine."""
    made = read_provenance(REPOSITORY)
    commit = (made.commit or "no commit")[:10] + ("+changes" if made.dirty else "")
    return {
        "commit": commit,
        "python": platform.python_version(),
        **{name: version(name) for name in VERSIONS},
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Something that had to be so."""

    what: str  # as a sentence, with the figure that was seen
    held: bool  # whether it was


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a part found."""

    part: str  # its name
    requirements: tuple[Requirement, ...]  # what had to hold; at least one
    rows: Mapping[str, Any]  # figures for the page, by name
    seconds: float  # what it took
    # commit, versions and machine: a result of others is not used again
    of: Mapping[str, str] = field(default_factory=surroundings)
    date: str = field(default_factory=lambda: dt.datetime.now(tz=dt.UTC).date().isoformat())  # when it ended, UTC

    @property
    def held(self) -> bool:
        """Whether all requirements hold; never without one."""
        return bool(self.requirements) and all(requirement.held for requirement in self.requirements)

    def write(self, folder: Path = FOLDER) -> None:
        """Write the result to a file."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / f"{self.part}.json", _ADAPTER.dump_json(self, indent=1) + b"\n")


_ADAPTER = TypeAdapter(Result)


def read(part: str, folder: Path = FOLDER, *, of: Mapping[str, str] | None = None) -> Result | None:
    """What was kept of a part; ``None`` if there is nothing, or it is of another commit, machine or version."""
    file = folder / f"{part}.json"
    if not file.exists():
        return None
    found = _ADAPTER.validate_json(file.read_bytes())
    return None if of is not None and found.of != of else found
