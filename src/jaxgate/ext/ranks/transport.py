"""Messages between the ranks of a job, on JAX's coordination service: texts that are put on a board, and read once.

Not JAX's collectives: they wait for ever for a rank that died. Each rank says twice a second that it lives; one whose
process is gone from this machine, or of another one that is silent, is lost; one that does not wait while the others do is the one that hangs.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxgate.keep.machine import started

Message = dict[str, Any]
TICK_S = 0.5
SILENT_S = 60.0
"""A rank whose process cannot be seen is lost once it says nothing for so long: a thread of its own speaks for it, unless one
call within JAX keeps all of Python waiting."""


class WireError(Exception):
    """The ranks could not be connected; the text says which."""


class Board(Protocol):
    """What every rank can write on and read from."""

    def put(self, name: str, text: str) -> None:
        """Write something, once; where the board is gone nothing happens."""

    def take(self, name: str, wait_s: float) -> str | None:
        """Read what somebody wrote, or will write within some seconds, and wipe it out; ``None`` if nobody does."""


@dataclass(slots=True)
class Connection:
    """What one rank and another one write to each other."""

    board: Board
    own: int  # rank of this end
    rank: int  # who is at the other end
    name: str  # the same for people: `rank 1 (host, pid 7)`
    lives: Callable[[], bool] | None = None  # whether its process does; `None` where it cannot be seen
    open: bool = True  # whether the other end is still there
    host: str = ""  # its machine
    heard: float = field(default_factory=time.monotonic)  # when it was heard of last
    _sent: int = 0
    _read: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: Message) -> None:
        """Send one message; reading shows that the other end is gone."""
        with self._lock:
            self.board.put(f"{self.own}-{self.rank}/{self._sent}", json.dumps(message))
            self._sent += 1

    def receive(self) -> Message | None:
        """The next message, if it comes within a tick."""
        text = self.board.take(f"{self.rank}-{self.own}/{self._read}", TICK_S)
        if text is None:
            self.open = time.monotonic() - self.heard < SILENT_S if self.lives is None else self.lives()
            return None
        self._read, self.heard = self._read + 1, time.monotonic()
        message: Message = json.loads(text)
        return message


def name_of(rank: int, host: str, pid: int) -> str:
    """A rank for people."""
    return f"rank {rank} ({host}, pid {pid})"


def own_name(rank: int) -> str:
    """This process for people."""
    return name_of(rank, socket.gethostname(), os.getpid())


def connect(board: Board, rank: int, count: int, *, wait_s: float) -> list[Connection]:
    """Say who this is, and hear who the others are: rank 0 from all of them, another one from rank 0.

    Raises:
        WireError: If one does not say so in time.
    """
    end = time.monotonic() + wait_s
    others = range(1, count) if rank == 0 else [0]
    for other in others:
        board.put(f"hello/{rank}-{other}", json.dumps({"host": socket.gethostname(), "pid": os.getpid()}))
    found = {other: board.take(f"hello/{other}-{rank}", max(0.01, end - time.monotonic())) for other in others}
    absent = [str(other) for other, text in found.items() if text is None]
    if absent:
        raise WireError(f"expected {count} ranks, found no rank {', '.join(absent)} in time")
    lines = []
    for other, text in found.items():
        host, pid = (json.loads(text or "")[part] for part in ("host", "pid"))
        lines.append(Connection(board, rank, other, name_of(other, host, pid), watch(host, pid), host=host))
    return lines


def watch(host: str, pid: int) -> Callable[[], bool] | None:
    """What says whether a process lives; ``None`` where it cannot be seen from here: on another machine, or within a container."""
    began = started(pid) if host == socket.gethostname() else None
    return None if began is None else lambda: started(pid) == began


def listen(
    lines: list[Connection], heard: Callable[[Connection, Message | None], None], tick: Callable[[], None]
) -> list[threading.Thread]:
    """Start a thread for each connection that reads, and one that looks at the clock.

    Args:
        lines: The connections.
        heard: Called with each message, and ``None`` once a connection is closed.
        tick: Called about twice a second, until it raises ``StopIteration``, which ends all of them.
    """
    over = threading.Event()

    def read(line: Connection) -> None:
        while line.open and not over.is_set():
            message = line.receive()
            if message is not None or not line.open:
                heard(line, message)

    def look() -> None:
        with suppress(StopIteration):
            while True:
                over.wait(TICK_S)
                tick()
        over.set()

    threads = [threading.Thread(target=read, args=(line,), daemon=True, name="jaxgate ranks") for line in lines]
    threads.append(threading.Thread(target=look, daemon=True, name="jaxgate ranks"))
    for thread in threads:
        thread.start()
    return threads
