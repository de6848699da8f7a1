"""Rank 0 and its followers in threads of one process, with a board and a clock of the test's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from jaxgate.ext.ranks.barrier import BrokenRanksError
from jaxgate.ext.ranks.leader import Follower, Leader
from jaxgate.ext.ranks.transport import Connection

NAMES = {0: "rank 0 (a, pid 10)", 1: "rank 1 (b, pid 11)", 2: "rank 2 (c, pid 12)"}
LEFT = {"stage": "tracing", "reason": "no", "largest": None, "induced": False}


class Board:
    """JAX's coordination service, as far as ranks use it."""

    def __init__(self):
        self.texts, self.changed = {}, threading.Condition()

    def put(self, name, text):
        """Once each."""
        with self.changed:
            assert name not in self.texts
            self.texts[name] = text
            self.changed.notify_all()

    def take(self, name, wait_s):
        """Wait for it, and wipe it out."""
        with self.changed:
            self.changed.wait_for(lambda: name in self.texts, wait_s)
            return self.texts.pop(name, None)


class Ranks:
    """Rank 0 and its followers, each meeting in a thread of its own."""

    def __init__(self, count=2, *, start=True):
        self.now, self.dead, board = 0.0, set(), Board()

        def line(own, other):
            return Connection(board, own, other, NAMES[other], lambda: other not in self.dead)

        options = {"timeout_s": 60.0, "clock": lambda: self.now}
        self.lead = Leader([line(0, rank) for rank in range(1, count)], NAMES[0], **options)
        self.others = [Follower(rank, line(rank, 0), NAMES[rank], **options) for rank in range(1, count)]
        self.pool = ThreadPoolExecutor(8)
        for station in [self.lead, *self.others]:
            station.doing = "`scan/rnn` ran"
            if start:
                station.start()

    def later(self, function, *args, **kwargs):
        """Call it in another thread."""
        return self.pool.submit(function, *args, **kwargs)

    def close(self):
        """End all threads."""
        for station in [self.lead, *self.others]:
            station.stop()
        self.pool.shutdown()


def error_of(future, kind=BrokenRanksError):
    """The text of the error that a meeting ended with."""
    with pytest.raises(kind) as caught:
        future.result(timeout=60)
    return caught.value.reason
