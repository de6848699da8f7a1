"""The search for the first bad revision of a case: both sides, what moved between them, then step by step.

Where a fact moved, its figure decides. Where only time did, a program that was met before has the mark that it had then, and
another one is duelled with the good side's. Each step is written down before the next one begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxgate.ext.bisect.judge import is_same_program, moved_facts, quantity_of
from jaxgate.ext.bisect.kept import read_bisection
from jaxgate.ext.bisect.model import RUN_TIME, AskedSide, Bisection, Left, Mark, Probe, Quantity
from jaxgate.ext.bisect.ranges import Range
from jaxgate.ext.bisect.revisions import Compared, NotMeasuredError, Revisions
from jaxgate.ext.bisect.text import describe_quantity, likeness, show_figure
from jaxgate.keep.strict import write_strict
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.outcome import UsageError
from jaxgate.model.verdict import Finding
from jaxgate.model.words import detectable, plural
from jaxgate.report.units import show

TRIES = 2
"""Duels of one revision, where the first does not decide."""
_BY_CLOCK = (Status.SLOWER, Status.FASTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a search found."""

    case: str  # the name of the case
    state: Bisection  # all that was tried
    first_bad: Sequence[str]  # the revision; all that may be it, where others could not be measured
    text: str  # the text of the first bad revision against the good side; empty if there is none


class AlikeError(Exception):
    """There is nothing to search for: the text says in what both sides are alike."""


class Search:
    """One search, for a ``fact``, or for the first that moved where it is empty.

    Each revision is compared with the side that is ``asked``. ``copied`` lets today's tests lie over each revision; ``None``
    does so where the good side lacks the test.
    """

    def __init__(
        self,
        within: Range,
        revisions: Revisions,
        file: Path,
        *,
        fact: str,
        asked: AskedSide,
        copied: bool | None,
        begin: Callable[[str], None],
        end: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fact, self._asked = fact, asked
        self._range, self._revisions, self._file = within, revisions, file
        self._begin, self._end, self._clock = begin, end, clock
        self.state = read_bisection(file) or Bisection(copied=copied)

    def run(self) -> Answer:
        """Search until the first bad revision is known, or nothing is left to try.

        Raises:
            UsageError: If one of the sides cannot be measured.
            AlikeError: If both are alike.
        """
        good, bad = self._side(self._range.good, Mark.GOOD), self._side(self._range.bad, Mark.BAD)
        quantity = self.state.quantity or self._find_quantity(good, bad)
        while (left := self._range.left([(one.revision, one.mark) for one in self.state.probes])).following is not None:
            self._step(left.following, left, quantity)
        return Answer(
            case=good.case,
            state=self.state,
            first_bad=left.first_bad,
            text=self._text(left.first_bad[0], quantity) if len(left.first_bad) == 1 else "",
        )

    def _note(self, state: Bisection) -> None:
        self.state = state
        write_strict(self._file, state)

    def _side(self, revision: str, mark: Mark) -> Baseline:
        """Measure one end of the range; today's tests are tried where the good side has none of its own."""
        self._begin(f"{mark:<4}  {self._range.short(revision)}  {self._range.title(revision)}")
        begin = self._clock()
        problem = ""
        for copied in (False, True) if self.state.copied is None else (self.state.copied,):
            self._revisions.copied = copied
            try:
                found = self._revisions.measure(revision)
            except NotMeasuredError as error:
                problem = str(error)
            else:
                self._note(replace(self.state, copied=copied))
                self._end(f"measured{' with the tests of today' * copied}, {self._clock() - begin:.1f} s")
                return found
        self._end("not measured")
        raise UsageError(f"the {mark} side, {self._range.short(revision)}, cannot be measured: {problem}")

    def _find_quantity(self, good: Baseline, bad: Baseline) -> Quantity:
        """Find what moved between the sides: a fact that is worse; else the time of a call; else a fact that is better."""
        self._begin("what differs between the two sides")
        facts = self._compared(timed=False)
        moved = moved_facts(facts.findings)
        wanted = [finding for finding in moved if self._fact in ("", finding.name)]
        chosen: Finding | None = next(iter(wanted), None)
        worse = chosen is not None and chosen.status is Status.REGRESSED
        timed = None
        if not worse and self._fact in ("", RUN_TIME) and (chosen is None or self._range.unit == "commit"):
            timed = self._compared(timed=True)
        if timed is not None and (timed.time is Status.SLOWER or (timed.time is Status.FASTER and chosen is None)):
            ratio, gain = timed.ratio or 1.0, timed.time is Status.FASTER
            quantity = Quantity(name=RUN_TIME, good=1.0, bad=ratio, good_tolerance=0.0, bad_tolerance=0.0, gain=gain)
            text = timed.text
        elif chosen is not None:
            quantity, text = quantity_of(chosen), facts.text
        else:
            self._end("nothing that can be searched for")
            raise AlikeError(self._alike(good, bad, facts, timed))
        others = tuple(finding.name for finding in moved if finding.name != quantity.name)
        self._note(replace(self.state, quantity=quantity, others=others, text=text))
        self._end(describe_quantity(quantity))
        return quantity

    def _compared(self, *, timed: bool) -> Compared:
        try:
            if timed:
                return self._duelled(self._range.bad)
            return self._revisions.compare(self._range.bad, timed=False)
        except NotMeasuredError as error:
            self._end("not compared")
            raise UsageError(f"the two sides cannot be compared: {error}") from None

    def _alike(self, good: Baseline, bad: Baseline, facts: Compared, timed: Compared | None) -> str:
        open_ = [one for one in facts.findings if one.status in (Status.INVALID, Status.STALE_BASELINE)]
        if open_:
            return f"the two sides cannot be compared: {open_[0].name}: {open_[0].detail}"
        if (fact := self._fact) and fact != RUN_TIME:
            figures = [getattr(side if hasattr(side, fact) else side.facts, fact) for side in (good, bad)]
            return f"{fact} is the same on both sides: {show(fact, figures[0])} and {show(fact, figures[1])}"
        time_ = "" if timed is None else f"; time is {timed.time}: {timed.reason}"
        if timed is not None and timed.time is Status.UNDECIDED:
            time_ += ". Try again when the machine is quieter: both sides stay recorded"
        return f"no fact is worse or better on the bad side than on the good one{time_}"

    def _step(self, revision: str, left: Left, quantity: Quantity) -> None:
        number, of_them = len(self.state.probes) + 1, plural(len(left.first_bad), self._range.unit)
        self._begin(
            f"step {number}, about {plural(left.steps, 'step')} left for {of_them}: "
            f"{self._range.short(revision)} {self._range.title(revision)}"
        )
        begin = self._clock()
        try:
            measured = self._revisions.measure(revision)
            self._refuse_other(measured)
            probe = self._timed(measured, revision) if quantity.clocked else self._counted(measured, revision, quantity)
        except NotMeasuredError as error:
            probe = Probe(revision=revision, mark=Mark.SKIPPED, figure=None, why=f"not measured: {error}")
        self._note(replace(self.state, probes=(*self.state.probes, probe)))
        figure = "" if probe.figure is None else f" {show_figure(quantity, probe.figure)},"
        self._end(f"{probe.mark}:{figure} {probe.why}, {self._clock() - begin:.1f} s")

    def _counted(self, measured: Baseline, revision: str, quantity: Quantity) -> Probe:
        """Let the figure of a fact decide."""
        figure = getattr(measured if hasattr(measured, quantity.name) else measured.facts, quantity.name)
        if figure is None:
            raise NotMeasuredError(f"{quantity.name} is not known there")
        mark = quantity.mark(figure, self._asked)
        return Probe(revision=revision, mark=mark, figure=float(figure), why=likeness(quantity, figure))

    def _timed(self, measured: Baseline, revision: str) -> Probe:
        """Let a program that was met before decide, else a duel with the good side's."""
        if known := self._met(measured):
            return replace(known, revision=revision, why=f"same program as {self._range.short(known.revision)}")
        found = self._duelled(revision)
        assert self.state.quantity is not None
        searched = Status.FASTER if self.state.quantity.gain else Status.SLOWER
        half = (self.state.quantity.bad - 1) / 2
        seen = found.sees is not None and found.sees <= half and (found.ratio or 1.0) < 1 + half
        if found.time is Status.UNDECIDED and seen:  # half of what is searched for would have shown
            why = f"not as slow as the bad side: {detectable(found.sees or 0.0)}"
            return Probe(revision=revision, mark=Mark.GOOD, figure=found.ratio, why=why)
        if found.time not in (Status.SAME, *_BY_CLOCK):
            raise NotMeasuredError(f"its time is {found.time}: {found.reason}")
        mark = Mark.BAD if found.time is searched else Mark.GOOD
        return Probe(revision=revision, mark=mark, figure=found.ratio, why=f"{found.time} by a duel", text=found.text)

    def _duelled(self, revision: str) -> Compared:
        """Hold a revision against the good side with the clock; again where that does not decide."""
        for _ in range(TRIES):
            found = self._revisions.compare(revision, timed=True)
            if found.time is not Status.UNDECIDED:
                break
        return found

    def _met(self, measured: Baseline) -> Probe | None:
        quantity = self.state.quantity
        assert quantity is not None
        ends = (
            Probe(revision=self._range.good, mark=Mark.GOOD, figure=quantity.good, why=""),
            Probe(revision=self._range.bad, mark=Mark.BAD, figure=quantity.bad, why="", text=self.state.text),
        )
        for probe in (*ends, *self.state.probes):
            known = self._revisions.known(probe.revision)
            if probe.mark is not Mark.SKIPPED and known is not None and is_same_program(measured, known):
                return probe
        return None

    def _refuse_other(self, measured: Baseline) -> None:
        good = self._revisions.known(self._range.good)
        assert good is not None
        if measured.hardware != good.hardware:
            raise NotMeasuredError(f"it ran on {measured.hardware.slug}, the good side on {good.hardware.slug}")
        if [leaf.aval for leaf in measured.signature] != [leaf.aval for leaf in good.signature]:
            raise NotMeasuredError("the test gives other arguments there; --tests today gives today's")

    def _text(self, revision: str, quantity: Quantity) -> str:
        """The text of a revision against the good side."""
        if revision == self._range.bad:
            return self.state.text
        probe = next(probe for probe in self.state.probes if probe.revision == revision)
        if quantity.clocked and probe.text:
            return probe.text
        self._begin(f"the verdict of {self._range.short(revision)} against the good side")
        try:
            found = self._revisions.compare(revision, timed=quantity.clocked)
        except NotMeasuredError as error:
            self._end(f"not compared: {error}")
            return ""
        self._end("")
        return found.text
