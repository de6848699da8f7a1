"""The wire between the ranks of a job: TCP to rank 0, one JSON object a line, nothing unpickled.

Not JAX's collectives: they wait for ever for a rank that died. A closed connection shows at once which
rank died; a rank that does not wait while the others do is the one that hangs.
"""

from __future__ import annotations

import json
import os
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
TICK_S = 0.5
SEND_TIMEOUT_S = 30.0
HELLO_TIMEOUT_S = 5.0
_CHUNK = 65_536
_HELLO_BYTES = 4096
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class WireError(Exception):
    """The ranks could not be connected; the text says which."""


@dataclass(slots=True)
class Connection:
    """One connection."""

    socket: socket.socket  # connected
    rank: int  # who is at the other end
    name: str  # the same for people: `rank 1 (host, pid 7)`
    open: bool = True  # whether the other end is still there
    _read: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, message: Message) -> None:
        """Send one message; reading shows that the other end is gone."""
        content = json.dumps(message).encode() + b"\n"
        with self._lock, suppress(OSError):
            self.socket.settimeout(SEND_TIMEOUT_S)
            self.socket.sendall(content)

    def receive(self) -> list[Message] | None:
        """Whole messages that have come; ``None`` once the other end is gone."""
        try:
            chunk = self.socket.recv(_CHUNK)
        except TimeoutError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            self.open = False
            return None
        *lines, self._read = (self._read + chunk).split(b"\n")
        try:
            return [json.loads(line) for line in lines]
        except ValueError:  # no rank of ours writes that
            self.open = False
            return None


def name_of(rank: int, host: str, pid: int) -> str:
    """A rank for people."""
    return f"rank {rank} ({host}, pid {pid})"


def own_name(rank: int) -> str:
    """This process for people."""
    return name_of(rank, socket.gethostname(), os.getpid())


class Listener:
    """Where rank 0 lets the others in: a free port and a word that only they know.

    Args:
        coordinator: The host by which the others reach rank 0; on a loopback address no other machine can connect.
    """

    def __init__(self, coordinator: str) -> None:
        self._word = secrets.token_hex(16)
        if coordinator in _LOOPBACK:
            self._server = socket.create_server(("127.0.0.1", 0))
        elif socket.has_dualstack_ipv6():
            self._server = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
        else:
            self._server = socket.create_server(("", 0))

    @property
    def address(self) -> str:
        """What the others have to know."""
        return json.dumps({"port": self._server.getsockname()[1], "word": self._word})

    def let_in(self, count: int, *, deadline: float, clock: Callable[[], float] = time.monotonic) -> list[Connection]:
        """Wait for all other ranks.

        Raises:
            WireError: If one does not come in time, or two say that they are the same.
        """
        lines: dict[int, Connection] = {}
        with self._server, ExitStack() as unless_all_come:
            while len(lines) < count - 1:
                self._server.settimeout(max(0.01, deadline - clock()))
                try:
                    connection, _ = self._server.accept()
                except TimeoutError:
                    absent = ", ".join(str(rank) for rank in range(1, count) if rank not in lines)
                    raise WireError(f"expected {count} ranks, found no rank {absent} in time") from None
                unless_all_come.callback(connection.close)
                hello = self._hello(connection)
                if hello is None:
                    connection.close()  # a stranger, who does not know the word
                    continue
                rank = hello["rank"]
                if rank in lines or not 0 < rank < count:
                    raise WireError(f"expected one each of the ranks 1 to {count - 1}, found another rank {rank}")
                lines[rank] = Connection(connection, rank, name_of(rank, str(hello["host"]), int(hello["pid"])))
            unless_all_come.pop_all()
        me = {"welcome": own_name(0)}
        for line in lines.values():
            line.send(me)
        return [lines[rank] for rank in sorted(lines)]

    def _hello(self, connection: socket.socket) -> Message | None:
        try:
            hello = json.loads(_first_line(connection))
            return hello if hello["word"] == self._word and isinstance(hello["rank"], int) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def enter(coordinator: str, address: str, rank: int, *, timeout_s: float) -> Connection:
    """Connect to rank 0.

    Args:
        coordinator: Its host.
        address: The ``address`` of its ``Listener``.
        rank: Who this is.
        timeout_s: Seconds that it may take until all ranks are there.

    Raises:
        WireError: If it cannot be reached, or does not let this rank in.
    """
    door = json.loads(address)
    host = "127.0.0.1" if coordinator in _LOOPBACK else coordinator
    try:
        with ExitStack() as unless_let_in:
            connection = unless_let_in.enter_context(socket.create_connection((host, door["port"]), timeout=timeout_s))
            hello = {"word": door["word"], "rank": rank, "host": socket.gethostname(), "pid": os.getpid()}
            connection.sendall(json.dumps(hello).encode() + b"\n")
            welcome = json.loads(_first_line(connection, timeout_s))["welcome"]
            unless_let_in.pop_all()
    except (OSError, ValueError, KeyError) as error:
        raise WireError(f"rank 0 at {host}:{door['port']} did not let this rank in: {error or 'no answer'}") from error
    return Connection(connection, 0, str(welcome))


def _first_line(connection: socket.socket, timeout_s: float = HELLO_TIMEOUT_S) -> bytes:
    """The first line, byte by byte: what follows it is left for the reader of messages."""
    connection.settimeout(timeout_s)
    line = b""
    while not line.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(line) > _HELLO_BYTES:
            raise OSError("the connection was closed")
        line += byte
    return line


def listen(
    lines: list[Connection], heard: Callable[[Connection, Message | None], None], tick: Callable[[], None]
) -> None:
    """Start the thread that reads, and that looks at the clock now and again.

    Args:
        lines: The connections.
        heard: Called with each message, and ``None`` once a connection is closed.
        tick: Called about twice a second, until it raises ``StopIteration``.
    """
    selector = selectors.DefaultSelector()
    for line in lines:
        selector.register(line.socket, selectors.EVENT_READ, line)

    def run() -> None:
        with selector, suppress(StopIteration):
            while True:
                for key, _ in selector.select(TICK_S):
                    messages = key.data.receive()
                    if messages is None:
                        selector.unregister(key.fileobj)
                        heard(key.data, None)
                    for message in messages or ():
                        heard(key.data, message)
                tick()

    threading.Thread(target=run, daemon=True, name="jaxgate ranks").start()
