"""Rank 0: compares where the ranks are, answers them, and notifies them when one is lost.

Any other rank than 0: goes where rank 0 goes, and gets the outcome from it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from jaxgate.ext.ranks.barrier import ANSWER_S, LeftError, RankBarrier, hanging
from jaxgate.ext.ranks.transport import Connection, Message, connect, own_name

LEAVE_S = 10.0
"""How long it waits for the others to be gone: JAX aborts whoever outlives it."""


class Leader(RankBarrier):
    """Rank 0."""

    def __init__(self, lines: Sequence[Connection], name: str, **options: Any) -> None:
        super().__init__(0, lines, name, **options)
        self._arrived: dict[int, Message] = {}
        self._waiting = False
        self._asked: float | None = None
        self._places: dict[int, str] = {}

    def meet(self, what: str, value: Any = None, decide: Callable[[list[Any]], Any] = lambda _: None) -> Any:
        """See ``RankBarrier``."""
        found = self.gather(what, value)
        answer = decide([message["value"] for message in found])
        self.answer(answer)
        return answer

    def gather(self, what: str, value: Any = None, *, left: Message | None = None, last: bool = False) -> list[Message]:
        """Wait until every rank is here, and answer nobody yet.

        Args:
            what: Where.
            value: What rank 0 brings.
            left: Why rank 0 could not go on with the case, if so.
            last: Whether this is where a rank goes that could not go on.

        Returns:
            What each rank brought, by rank, rank 0 first.

        Raises:
            BrokenRanksError: If the ranks cannot go on together.
            LeftError: If another rank could not go on with the case; only where ``last`` is not set.
        """
        self.sign()
        mine: Message = {"at": what, "value": value, "left": left}
        with self.changed:
            self._waiting = True
            try:
                while True:
                    if self.broken:
                        break
                    gone = [message["left"] for message in [mine, *self._arrived.values()] if message["left"]]
                    if gone:
                        self._send_after(what if last else "", gone[0])
                    if gone and not last:
                        raise LeftError(gone[0]["stage"], gone[0]["reason"])
                    elsewhere = next((r for r, message in self._arrived.items() if message["at"] != what), None)
                    if elsewhere is not None:
                        there = self._arrived[elsewhere]["at"]
                        text = f"the ranks are not at the same place: {self.name} is at {what}, {self._name(elsewhere)} at {there}"
                        self.break_up(text)
                        break
                    if len(self._arrived) == len(self.lines):
                        return [mine, *(self._arrived[line.rank] for line in self.lines)]
                    self.changed.wait(1.0)
            finally:
                self._waiting = False
        self.refuse_broken()
        raise AssertionError("unreachable: a broken job raises")  # pragma: no cover

    def answer(self, value: Any) -> None:
        """Answer all who came to the last meeting."""
        with self.changed:
            self._arrived.clear()
        for line in self.lines:
            line.send({"go": value})
        self.alone = False
        self.sign()

    def sign(self) -> None:
        """See ``RankBarrier``."""
        with self.changed:
            self.progressed, self._asked = self._clock(), None

    def wait_for_others(self) -> None:
        """Wait until the others are gone, if they go."""
        end = self._clock() + LEAVE_S
        while self._clock() < end and any(line.open for line in self.lines):
            time.sleep(0.05)

    def leave(self, text: str) -> None:
        """See ``RankBarrier``."""
        self.take_over()
        self.break_up(f"{self.name} {text}")

    def _send_after(self, where: str, left: Message) -> None:
        """Send those who still go on after the one that could not."""
        notice = {**left, "induced": True}
        for line in self.lines:
            message = self._arrived.get(line.rank)
            if message is not None and not message["left"] and message["at"] != where:
                del self._arrived[line.rank]
                line.send({"left": notice})

    def _name(self, rank: int) -> str:
        return next((line.name for line in self.lines if line.rank == rank), self.name)

    def _heard(self, line: Connection, message: Message | None) -> None:
        if message is None:
            self.break_up(f"{line.name} died while {self.doing}")
        elif "bye" in message:
            self.break_up(f"{line.name} {message['bye']} while {self.doing}")
        elif "gone" in message:
            line.open = False
        elif "here" in message:
            self._places[line.rank] = message["here"]
        elif "beat" not in message:
            self.sign()
            if "at" in message:
                with self.changed:
                    self._arrived[line.rank] = message
                    self.changed.notify_all()

    def _tick(self) -> None:
        if self.over or (self.broken and not any(line.open for line in self.lines)):
            raise StopIteration
        for line in self.lines:
            line.send({"beat": 1})
        now = self._clock()
        if self.alone or self.broken or now - self.progressed < self.timeout_s:
            return
        late = [line for line in self.lines if line.rank not in self._arrived]
        if self._asked is None:
            self._asked, self._places = now, {}
            for line in late:
                line.send({"where": 1})
        elif all(line.rank in self._places for line in late) or now - self._asked > ANSWER_S:
            places = [(self.name, self.where())] * (not self._waiting)
            places += [(line.name, self._places.get(line.rank, "")) for line in late]
            self.break_up(hanging(places, self.timeout_s, self.doing))

    def _pass_on(self, text: str) -> None:
        for line in self.lines:
            line.send({"over": text})


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

    def wait_for_others(self) -> None:
        """See ``RankBarrier``."""
        self._line.send({"gone": 1})

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
        self._line.send({"beat": 1})
        if self._clock() - self.progressed > self.timeout_s + SLACK_S:
            self.break_up(f"{self._line.name} has not been heard of for {self.timeout_s:g} s while {self.doing}")


def enter(
    coordinator: str | None, count: int | None, process: int | None, *, limit_s: float, timeout_s: float
) -> RankBarrier:
    """Join a job, and hear who the others are; nobody listens yet.

    Args:
        coordinator: See ``job.join``.
        count: See ``job.join``.
        process: See ``job.join``.
        limit_s: Seconds until all must be there.
        timeout_s: Seconds without progress after which a rank hangs.

    Raises:
        NotJoinedError: If the job could not be joined.
        WireError: If another rank does not say who it is.
    """
    from jaxgate.ext.ranks.job import join  # noqa: PLC0415 - imports JAX

    end = time.monotonic() + limit_s
    job = join(coordinator, count, process, timeout_s=limit_s)
    found = job.membership
    lines = connect(job, found.process, found.count, wait_s=end - time.monotonic())
    name = own_name(found.process)
    if found.process == 0:
        return Leader(lines, name, timeout_s=timeout_s)
    follower = Follower(found.process, lines[0], name, timeout_s=timeout_s)
    follower.count = found.count
    return follower
