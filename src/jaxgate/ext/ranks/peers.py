"""Who the ranks of a job are, and the board that they write on: JAX's coordination service."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxgate.keep.machine import started

if TYPE_CHECKING:
    from jaxgate.ext.ranks.job import Job

Message = dict[str, Any]
SILENT_S = 60.0
"""A rank whose process cannot be seen is lost once it says nothing for so long: a thread of its own speaks for it, unless one
call within JAX keeps all of Python waiting."""


class AbsentRankError(Exception):
    """A rank did not come; the text says which."""


@dataclass(slots=True)
class Peer:
    """Another rank, as this one knows it."""

    name: str  # for people: `rank 1 (host, pid 7)`
    host: str = ""  # its machine
    lives: Callable[[], bool] | None = None  # whether its process does; `None` where it cannot be seen
    open: bool = True  # whether it is still there
    heard: float = 0.0  # when it was heard of last
    state: Message = field(default_factory=dict)  # what it said of itself

    def is_lost(self, now: float) -> bool:
        """Whether a rank's process is gone, or, where that cannot be seen, silent for too long."""
        return now - self.heard > SILENT_S if self.lives is None else not self.lives()


def hanging(places: Sequence[tuple[str, str]], timeout_s: float, doing: str) -> str:
    """Say which ranks hang, and where each is; no place means that it does not answer."""
    each = [f"{name} {f'is at {place}' if place else 'does not answer'}" for name, place in places]
    hang = "hangs" if len(places) == 1 else "hang"
    names = " and ".join(name for name, _ in places)
    return f"{names} {hang}: no progress for {timeout_s:g} s while {doing} (the last number of --perf-distributed); {'; '.join(each)}"


def name_of(rank: int, host: str, pid: int) -> str:
    """A rank for people."""
    return f"rank {rank} ({host}, pid {pid})"


def own_name(rank: int) -> str:
    """The name of this process."""
    return name_of(rank, socket.gethostname(), os.getpid())


def greet(board: Job, rank: int, count: int, *, wait_s: float) -> dict[int, Peer]:
    """Say who this is, and hear who the others are: rank 0 all of them, another one rank 0.

    Raises:
        AbsentRankError: If one does not say so in time.
    """
    end = time.monotonic() + wait_s
    board.put(f"hello/{rank}", json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
    others = range(1, count) if rank == 0 else [0]
    found = {other: board.take(f"hello/{other}", max(0.01, end - time.monotonic())) for other in others}
    absent = [str(other) for other, text in found.items() if text is None]
    if absent:
        raise AbsentRankError(f"expected {count} ranks, found no rank {', '.join(absent)} in time")
    about = {other: json.loads(text or "") for other, text in found.items()}
    return {
        other: Peer(name_of(other, **one), one["host"], watch(one["host"], one["pid"])) for other, one in about.items()
    }


def watch(host: str, pid: int) -> Callable[[], bool] | None:
    """A function that says whether a process lives; ``None`` on another machine, or within a container."""
    began = started(pid) if host == socket.gethostname() else None
    return None if began is None else lambda: started(pid) == began


def first_other(found: Sequence[Sequence[str]]) -> int:
    """The first place at which not all lists have the same; behind the shortest where only their lengths differ."""
    return next((at for at, items in enumerate(zip(*found, strict=False)) if len(set(items)) > 1), min(map(len, found)))
