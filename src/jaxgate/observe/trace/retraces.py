"""Who traced or compiled again, and why: one line per function, the root cause first.

The subject's own arguments are compared by us, which also names what JAX explains nothing about: ``pmap``,
shardings and committed devices. Other functions are compared from trace to trace where an earlier one was heard;
else they have JAX's explanation, which may take an entry with another tree or other static values for the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from jaxgate.model.measurement import MAX_NAMED
from jaxgate.observe.arguments.signature import UNKNOWN, ArgumentKey, difference
from jaxgate.observe.source_lines import at
from jaxgate.observe.trace.compile_events import Event, Events
from jaxgate.observe.trace.misses import Kind, Miss

PMAP = "_fun"
"""The name under which every ``pmap`` reports."""

_NUMBERED = re.compile(r"\bargs\[(\d+)\]")

_NEW = "a new function object per call"
_FIRST = "traced for the first time"
_FIRST_OR_NEW = "never traced before (a first call, or a new function object per call)"
_HELPER = "called with a new signature (JAX does not explain its own helpers)"
_PMAP = "called with a new signature, or made anew at each call (JAX does not explain pmap)"
_COMPILED = "another sharding, device or layout (JAX does not say of which argument)"


@dataclass(slots=True, kw_only=True)
class Culprit:
    """What one function did in a block."""

    function: str  # its name, as its events give it
    shown: str  # its name for people
    kind: Kind | None = None  # what JAX said differed; `None` if it explained nothing
    cause: str = _COMPILED  # what differed, in words
    where: str = ""  # the project's line that called it, `file:line`
    defined: str = ""  # where it stands
    traces: int = 0  # how often it was traced
    lowerings: int = 0  # how often it was lowered
    compiles: int = 0  # how often it was asked to be compiled
    cache_hits: int = 0  # how many of these the persistent cache answered
    each: list[tuple[str, str]] = field(default_factory=list)  # cause and line of each miss, in order

    @property
    def key(self) -> tuple[str, str]:
        """What it is known by from step to step: its name, and where it stands or is called."""
        return self.function, self.defined or self.where

    @property
    def word(self) -> str:
        """What happened to it."""
        return "retraced" if self.traces else "recompiled"

    @property
    def misses(self) -> int:
        """How many programs of it were missing from JAX's caches."""
        return max(self.traces, self.lowerings, self.compiles)

    def __str__(self) -> str:
        """``helper: x: float32[3] → float32[4] at model.py:12``."""
        return f"{self.shown}: {self.cause}{at(self.where)}"

    def beyond(self, allowed: int) -> list[str]:
        """One line for each miss beyond the allowed first ones; equal lines once."""
        return list(dict.fromkeys(f"{self.shown}: {cause}{at(where)}" for cause, where in self.each[allowed:]))


class Blame:
    """Reads blocks of events in their order, and remembers which functions were new.

    If the blocks are ``complete``, they began before anything was called: what is new at the second under the same name
    and line is a new object rather than a first call. ``inner`` functions get an entry of their own where they were
    traced within another one.
    """

    def __init__(self, *, complete: bool, inner: Collection[str] = ()) -> None:
        self._complete = complete
        self._inner = inner
        self._new: set[tuple[str, str]] = set()
        self._calls: dict[tuple[str, str], list[tuple[ArgumentKey, ...]]] = {}

    def culprits(self, events: Events) -> list[Culprit]:
        """Sum up a block by function, in the order in which they first missed; what follows from others is last."""
        found: list[Culprit] = []
        within: set[str] = set()
        for event in events.log:
            if event.within:
                within.add(event.function)
            if event.phase == "trace":
                self._traced(found, event)
                continue
            culprit = next((one for one in reversed(found) if one.function == event.function), None)
            if culprit is None:
                culprit = Culprit(function=event.function, shown=_shown(event.function), where=event.where)
                found.append(culprit)
            culprit.lowerings += event.phase == "lower"
            culprit.compiles += event.phase == "compile"
            culprit.cache_hits += event.phase == "hit"
            if culprit.misses > len(culprit.each):
                culprit.each.append((_COMPILED, event.where))
        return sorted(found, key=lambda culprit: culprit.function in within and culprit.kind is None)

    def _traced(self, found: list[Culprit], event: Event) -> None:
        own = [miss for miss in event.misses if miss.function == event.function]
        roots = own or list(event.misses)
        root = roots[0] if roots else None
        self._count(found, event.function, root, event.where)
        inner = [miss for miss in event.misses if miss.function in self._inner and miss.function != event.function]
        for miss in {(miss.function, miss.defined): miss for miss in reversed(inner)}.values():
            self._count(found, miss.function, miss, miss.where)  # once: it is part of one program
        for miss in event.misses:
            if miss.call:
                self._calls.setdefault((miss.function, miss.defined), []).append(miss.call)
            if miss.kind == "new":
                self._new.add((miss.function, miss.defined))

    def _count(self, found: list[Culprit], function: str, miss: Miss | None, where: str) -> None:
        defined = miss.defined if miss else ""
        kind, cause = (miss.kind, self._cause(miss)) if miss else (None, _PMAP if function == PMAP else _HELPER)
        line = (miss.where if miss else "") or where
        same = (one for one in found if (one.function, one.defined) == (function, defined))
        culprit = next((one for one in same if miss or one.where == where), None)
        if culprit is None:
            shown = _shown(function, miss)
            culprit = Culprit(function=function, shown=shown, kind=kind, cause=cause, where=line, defined=defined)
            found.append(culprit)
        culprit.traces += 1
        culprit.each.append((cause, line))
        if culprit.traces > 1 and kind == culprit.kind == "new":
            culprit.cause = _NEW

    def _cause(self, miss: Miss) -> str:
        if miss.kind != "new":
            own = "" if miss.kind == "config" else self._compared(miss)
            return own or miss.cause or UNKNOWN
        if (miss.function, miss.defined) in self._new:
            return _NEW
        return _FIRST if self._complete else _FIRST_OR_NEW

    def _compared(self, miss: Miss) -> str:
        """What differs from the nearest of the function's traces here, the latest where several are as near."""
        traced = self._calls.get((miss.function, miss.defined), [])
        if not traced or not miss.call:
            return ""
        return difference(min(reversed(traced), key=lambda call: len({*call} ^ {*miss.call})), miss.call)


def _shown(function: str, miss: Miss | None = None) -> str:
    if miss is not None and miss.function != function:
        return f"{miss.function} in {function}"  # JAX's own function traced the user's: scan, cond, grad
    return "pmap" if function == PMAP else function


def retrace_lines(
    step: str,
    culprits: Sequence[Culprit],
    *,
    subject: str,
    before: Sequence[ArgumentKey],
    after: Sequence[ArgumentKey],
    names: Sequence[str] = (),
) -> list[str]:
    """Describe a step that traced or compiled, the root cause first; beyond ``MAX_NAMED`` lines the rest is counted.

    The subject's arguments come first where they changed, unless everything that missed has another reason (a new
    function object, a setting): then they are not to blame. Data on the host may have another length at every call, and
    be filled up before it is sent: where nothing else changed, what a function was called with comes first.

    ``before`` and ``after`` are the subject's arguments in two steps; ``subject`` is empty for plain Python.
    """
    own = difference(before, after)
    lines: list[str] = []
    last: list[str] = []
    main = next((culprit for culprit in culprits if subject and culprit.function == subject), None)
    if main is not None:
        cause = _NUMBERED.sub(lambda found: [*names, found[0]][min(int(found[1]), len(names))], _own_cause(main, own))
        lines.append(f"{step} {main.word}: {cause}")
    elif own and (moved := [culprit for culprit in culprits if culprit.kind not in ("new", "config")]):
        then, now = ([seen for seen in call if seen.sharding] for call in (before, after))
        explained = moved[0].kind is not None and then == now
        (last if explained else lines).append(f"{step} {moved[0].word}: {own}")
    lines += [f"{step} {culprit.word}: {culprit}" for culprit in culprits if culprit is not main] + last
    more = len(lines) - MAX_NAMED
    return lines[:MAX_NAMED] + ([f"{step}: and {more} more functions"] if more > 0 else [])


def _own_cause(culprit: Culprit, own: str) -> str:
    if culprit.kind == "config":
        return culprit.cause + (f"; {own}" if own else "")
    understood = culprit.kind not in (None, "new")  # the subject is one object: where it is new, JAX had forgotten it
    return own or (culprit.cause if understood else UNKNOWN)
