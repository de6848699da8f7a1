"""What is stored: the baselines of a project, their programs, and what is known about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jaxgate.model.machine import folder_name
from jaxgate.model.waiver import Waiver


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One recording, as its log has it: the day, the folder, the cases that were created or refreshed, the reason."""

    date: str
    folder: str
    cases: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file by its path relative to the baselines, and its size."""

    path: str
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCase:
    """One stored baseline."""

    hardware: str  # slug of its hardware
    line: str  # the release line of the jax that recorded it
    case: str  # `family/sentence`
    date: str  # the UTC day of its recording, as the file has it
    commit: str  # the checkout that it was recorded from, `+changes` if files differed; empty if there was none
    environment: Mapping[str, str]  # what it was recorded with
    why_no_program: str  # why its program is not stored; empty if it is
    has_program: bool  # whether the program that it names is there and whole; true where it names none
    by: str = ""  # who committed its file last; empty where git does not know
    why: str = ""  # the reason, from the log; empty where the log does not name it

    @property
    def folder(self) -> str:
        """Where it lies."""
        return folder_name(self.hardware, self.line)

    @property
    def family(self) -> str:
        """The first word of its name."""
        return self.case.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Everything under one folder of baselines."""

    cases: tuple[KeptCase, ...]  # the readable baselines, by hardware and name
    unreadable: tuple[tuple[str, str], ...]  # files that cannot be trusted, each with the reason
    programs: tuple[StoredFile, ...]  # all stored programs
    # stored programs that no baseline names; `None` while a file is unreadable, whose program is unknown
    unreferenced: tuple[StoredFile, ...] | None
    waivers: tuple[Waiver, ...]  # waivers in force
    waiver_problem: str = ""  # why the waivers could not be read; empty if they could
    elsewhere: int | None = None  # programs in a store beside git; `None` where there is no such store

    @property
    def sound(self) -> bool:
        """Whether every file can be used for what it is there for."""
        programs = all(case.has_program for case in self.cases)
        return bool(self.cases) and programs and not self.unreadable and not self.waiver_problem


@dataclass(frozen=True, slots=True)
class StoreChanges:
    """What a run leaves in the folder of the baselines."""

    # programs that it removed, with their bytes: the baselines that named them were refreshed
    removed: tuple[tuple[Path, int], ...] = ()
    why_kept: str = ""  # why none could be removed; empty if nothing stood in the way
    needs_commit: tuple[str, ...] = ()  # files that git does not have yet, relative to the project
