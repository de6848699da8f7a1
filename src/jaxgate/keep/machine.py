"""The lock of this machine: processes that only count run side by side, a process that times runs alone.

One lock file for each user keeps two runs in two terminals, or several workers of one run, from disturbing each other's
times. The operating system releases the lock of a process that dies. Each holder writes who it is into a file beside the
lock, so that a process that waits can print it.

The lock's folder has one name in a folder that all users share: another user may have made it first, with links in it
that lead to files of this one.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from filelock import FileLock, ReadWriteLock, Timeout

from jaxgate.keep.files import RefusedFileError, read_json


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where jaxgate keeps what any checkout may need again."""
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "jaxgate"


def lock_folder() -> Path:
    """The folder of locks: among temporary files, or in the user's cache if that name is not this user's alone.

    Raises:
        RefusedFileError: If neither is.
    """
    try:
        return made_private(Path(tempfile.gettempdir()) / f"jaxgate-{os.geteuid()}")
    except OSError as first:
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            return made_private(cache_folder() / f"locks-{os.uname().nodename}")  # several machines may share a home
        except (OSError, RuntimeError) as second:  # RuntimeError: nobody knows where this user is at home
            raise RefusedFileError(f"{first}; {second}") from None


def made_private(folder: Path) -> Path:
    """Make a folder for this user alone, or make sure that it is one; a link is none, wherever it leads.

    Raises:
        RefusedFileError: If it is anything else.
        OSError: If it cannot be made.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about, above = folder.lstat(), folder.parent.stat()
    found = ""
    if not stat.S_ISDIR(about.st_mode):
        found = "a link" if stat.S_ISLNK(about.st_mode) else "a file"
    elif about.st_uid != os.geteuid():
        found = f"one of user {about.st_uid}"
    elif about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = "one that others may write to"
    elif above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        found = f"one that anybody may exchange, as {folder.parent} has no sticky bit"
    if found:
        raise RefusedFileError(f"expected {folder} to be a folder of this user alone, found {found}; remove it")
    return folder


def started(pid: int) -> str | None:
    """When a process was started, as the kernel counts it: another one, or a thread, may have its number later.

    ``None`` once it has ended, and empty where the system does not say.
    """
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        if not Path("/proc/self/stat").exists():
            with suppress(ProcessLookupError):
                os.kill(pid, 0)
                return ""
        return None
    return None if state in "ZX" else rest[18]


HELD = "JAXGATE_MACHINE_HELD"
"""Set while this process has the machine to itself: what it starts then measures in its name, and must not wait."""

RUN = "PYTEST_XDIST_TESTRUNUID"
"""Names a run of several workers in each of them; where it is not set, a process is a run of its own."""

STEP_S = 1.0
_HOLDER = ".holder"

State = Literal["out", "working", "alone"]


class Machine:
    """This process's hold on the machine; the lock lies in the user's folder by default.

    Attributes:
        problem: Why there is no lock, so that other runs may disturb the times of this one; empty if there is one.
        about: What this process does, for those who wait for it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._state: State = "out"
        self.problem = self.about = ""
        self._run = os.environ.get(RUN) or str(os.getpid())
        self._folder = Path()
        self._locks: tuple[FileLock, ReadWriteLock] | None = None
        if os.environ.get(HELD):
            return
        try:
            self._folder = where = lock_folder() if folder is None else made_private(folder)
            # Who waits to be alone holds the turn: those who work cannot keep it out by taking over from each other.
            turn = FileLock(where / "turn.lock", is_singleton=False)
            self._locks = turn, ReadWriteLock(where / "timing.db", is_singleton=False)
        except Exception as error:  # noqa: BLE001 - no such folder, a read-only disk, a filesystem without locks
            self.problem = f"no lock keeps other runs away from the times of this one: {error}"

    def work(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Work beside others that work, once nobody times; ``waiting`` is called if that is not at once."""
        self._enter("working", waiting)

    def alone(self, waiting: Callable[[], None] = lambda: None) -> None:
        """Time, once nobody else works or times; until this process does something else."""
        self._enter("alone", waiting)

    @contextmanager
    def hold(self, say: Callable[[str], None], *, alone: bool = False) -> Iterator[None]:
        """Hold the machine for a while, alone or beside others that work; ``say`` is given one line if that is not at once."""
        (self.alone if alone else self.work)(lambda: say(self.awaited))
        try:
            yield
        finally:
            self.leave()

    @property
    def awaited(self) -> str:
        """Whom this process waits for, as a line."""
        return f"waiting for {self.others() or 'another run'}"

    def leave(self) -> None:
        """Release the machine."""
        state, self._state = self._state, "out"
        if self._locks is None or state == "out":
            return
        if state == "alone":
            os.environ.pop(HELD, None)
        with suppress(OSError):
            self._own_file.unlink()
        self._locks[1].release()

    def others(self) -> str | None:
        """The processes of other runs that hold the machine, as far as known; ``None`` if only this run's processes hold it."""
        found = list(self._who())
        found = [one for one in found if one[2] == "alone"] or found  # it keeps all others out
        foreign = [f"process {pid}{f' ({about})' if about else ''}" for pid, run, _, about in found if run != self._run]
        return None if found and not foreign else ", ".join(foreign)

    def _who(self) -> Iterator[tuple[int, str, str, str]]:
        """The live processes that say that they hold it: number, run, how they hold it, and what they do."""
        for path in sorted(self._folder.glob(f"*{_HOLDER}")):
            with suppress(OSError, ValueError, KeyError, TypeError):  # gone since, or dead, or of another user's making
                said, pid = read_json(path), int(path.stem)
                if (now := started(pid)) is None or now != said.get("started"):
                    path.unlink()  # of one that was killed
                elif path != self._own_file:
                    yield pid, str(said["run"]), str(said["state"]), str(said["about"])

    @property
    def _own_file(self) -> Path:
        return self._folder / f"{os.getpid()}{_HOLDER}"

    def _say(self) -> None:
        with suppress(OSError):
            said = {"run": self._run, "started": started(os.getpid()), "state": self._state, "about": self.about}
            self._own_file.unlink(missing_ok=True)  # of a process that had this number, and died
            with self._own_file.open("x") as file:  # anew: nothing that is there is written through
                file.write(json.dumps(said))  # no disk is waited for between two stages; half a file says nothing

    def _enter(self, state: State, waiting: Callable[[], None]) -> None:
        if self._locks is None or self._state == state:
            return
        self.leave()  # a lock that others read cannot be taken to write
        turn, lock = self._locks
        waited = False

        def take(acquire: Callable[..., object]) -> None:
            """Wait in steps, so that Ctrl-C ends it, and say once that it waits."""
            nonlocal waited
            while True:
                try:
                    acquire(timeout=STEP_S if waited else 0)
                except Timeout:
                    if not waited:
                        waited = True
                        waiting()
                else:
                    return

        take(turn.acquire)
        try:
            take(lock.acquire_write if state == "alone" else lock.acquire_read)
        finally:
            turn.release()
        self._state = state
        self._say()
        if state == "alone":
            os.environ[HELD] = str(os.getpid())


def lock_of(path: Path) -> FileLock:
    """A lock for what a path names, without a file beside it. Raises OSError if this user has no folder for it."""
    return FileLock(lock_folder() / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]}.lock")
