"""Stored times on disk: one file for each case, beside the baselines of its hardware and release line.

Layout: ``<root>/<hardware>-jax-<line>/times/<family>/<sentence>.json``. A recording adds sessions and drops none: which of
them count is judged against the baseline of the day.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from jaxgate.ext.times.model import TIMES_SCHEMA, StoredTimes, TimedSession
from jaxgate.keep.baselines import refuse_copy
from jaxgate.keep.strict import CorruptBaselineError, read_strict, write_strict
from jaxgate.model.machine import HardwareKey, folder_name

FOLDER = "times"


def times_beside(path: Path) -> Path:
    """Where the stored times of a baseline lie, whether or not they exist."""
    return path.parents[1] / FOLDER / path.parent.name / path.name


class TimesStore:
    """The stored times of one project, in the folder of its baselines."""

    def __init__(self, root: Path, line: str) -> None:
        self.root = root
        self.line = line

    def path(self, hardware: HardwareKey, case: str) -> Path:
        """Where the times of a case lie, whether or not they exist."""
        return self._folder(hardware) / f"{case}.json"

    def any_of(self, hardware: HardwareKey) -> bool:
        """Whether somebody called this hardware quiet and exclusive, by storing times of it."""
        return self._folder(hardware).is_dir()

    def _folder(self, hardware: HardwareKey) -> Path:
        return self.root / folder_name(hardware.slug, self.line) / FOLDER

    def load(self, hardware: HardwareKey, case: str) -> StoredTimes:
        """Read the times of a case on exactly this hardware. Raises CorruptBaselineError if a file cannot be trusted."""
        path = self.path(hardware, case)
        if not os.path.lexists(path):  # a link to nowhere is not "none"
            return StoredTimes(schema=TIMES_SCHEMA, case=case, hardware=hardware, sessions=())
        found = read_strict(path, StoredTimes, schema=TIMES_SCHEMA)
        if found.case != case:
            refuse_copy(path, case, found.case)
            found = replace(found, case=case)
        if found.hardware != hardware:
            raise CorruptBaselineError(path, f"expected hardware `{hardware}`, found `{found.hardware}`")
        return found

    def add(self, hardware: HardwareKey, case: str, session: TimedSession) -> StoredTimes:
        """Add a session and write the file, whole or not at all; one that cannot be trusted raises, and stays as it is."""
        known = self.load(hardware, case)
        times = StoredTimes(schema=TIMES_SCHEMA, case=case, hardware=hardware, sessions=(*known.sessions, session))
        write_strict(self.path(hardware, case), times)
        return times
