"""Any other rank than 0: goes where rank 0 goes, and gets the outcome from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxgate.distributed.barrier import LeftError, RankBarrier
from jaxgate.distributed.transport import Connection, Message

SLACK_S = 10.0
"""Beyond the limit before a silent rank 0 is given up: while it can speak, it knows more of who hangs."""


class Follower(RankBarrier):
    """Any other rank."""

    def __init__(self, rank: int, line: Connection, name: str, **options: Any) -> None:
        super().__init__(rank, [line], name, **options)
        self._line = line
        self._reply: Message | None = None

    def meet(
        self,
        what: str,
        value: Any = None,
        decide: Callable[[list[Any]], Any] = lambda _: None,  # noqa: ARG002 - rank 0 does
        *,
        left: Message | None = None,
    ) -> Any:
        """See ``RankBarrier``; ``left`` says why this rank could not go on with the case, if so."""
        with self.changed:
            self._reply = None
        self._line.send({"at": what, "value": value, "left": left})
        with self.changed:
            self.changed.wait_for(lambda: bool(self._reply or self.broken))
            reply = self._reply
        if reply is None:
            self.refuse_broken()
        elif "left" in reply:
            raise LeftError(reply["left"]["stage"], reply["left"]["reason"])
        return None if reply is None else reply["go"]

    def sign(self) -> None:
        """See ``RankBarrier``."""
        self._line.send({"sign": 1})

    def leave(self, text: str) -> None:
        """See ``RankBarrier``."""
        self.take_over()
        self._line.send({"bye": text})
        self.over = True

    def _heard(self, line: Connection, message: Message | None) -> None:
        self.progressed = self._clock()
        if message is None:
            self.break_up(f"{line.name} died while {self.doing}")
        elif "over" in message:
            self.break_up(message["over"])
        elif "where" in message:
            line.send({"here": self.where()})
        elif "beat" not in message:
            with self.changed:
                self._reply = message
                self.changed.notify_all()

    def _tick(self) -> None:
        if self.over or not self._line.open:
            raise StopIteration
        if self._clock() - self.progressed > self.timeout_s + SLACK_S:
            self.break_up(f"{self._line.name} has not been heard of for {self.timeout_s:g} s while {self.doing}")
