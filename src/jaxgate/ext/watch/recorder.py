"""Which programs this process makes, test by test, from the events that JAX sends while it traces and compiles."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Self

import jax

from jaxgate.ext.watch.model import IMPORT, Made, Seen
from jaxgate.observe.compat import newest_executable
from jaxgate.observe.machine.environment import fingerprint, hardware_key
from jaxgate.observe.program.executable_fingerprint import ELIDED, canonical
from jaxgate.observe.trace.compile_events import Event, record
from jaxgate.observe.trace.misses import Miss, listen_to_misses
from jaxgate.observe.trace.stages import said_facts

_JAX = ("jax/", "jaxlib/")
_NEW = "a new function object"
_LAYOUT = re.compile(r"entry_computation_layout=\{\((.*)\)->")
_FACTS = ("argument_bytes", "output_bytes", "temp_bytes", "xla_flops", "xla_bytes", "transcendentals")
"""Of which more is worse."""

_unknown = count()
"""Programs without a text are all different."""


@dataclass(frozen=True, slots=True)
class Program:
    """What an executable says of itself."""

    digest: str = ""
    arguments: str = ""  # types of its parameters
    facts: Mapping[str, int] = field(default_factory=dict)
    call: Any = None  # what `look` gave


_NONE = Program()


class Recorder:
    """Records while it is open.

    ``shorten`` puts the text of many arguments on one line. ``look`` is called after each compile, within the call that
    asked for it.
    """

    def __init__(self, shorten: Callable[[str], str], look: Callable[[], Any] | None = None) -> None:
        self.seen = Seen()  # up to the last test that ended; `end` completes it
        self.calls: list[tuple[Mapping[str, int], Any]] = []  # what `look` gave, with the facts of that program
        self._shorten, self._look = shorten, look
        self._stack = ExitStack()
        self._traced: dict[str, tuple[Miss | None, float]] = {}  # what was traced and not compiled yet
        self._known: set[tuple[str, str]] = set()

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._events = self._stack.enter_context(record(explain=True, at_compile=self._read))
        self._stack.enter_context(listen_to_misses(self._hear))
        own = jax.clear_caches

        def clear_caches() -> None:
            self.seen.cleared += 1
            own()

        jax.clear_caches = clear_caches
        self._stack.callback(setattr, jax, "clear_caches", own)
        return self

    def __exit__(self, *_: object) -> None:
        """Listen no more."""
        self._stack.close()

    def test(self, name: str, seconds: float, *, keep: bool = True) -> None:
        """Say that what was made since the last time is this test's; ``keep`` if it is wanted.

        Of a repeated test the attempt counts that made more: the later one finds what the first one compiled.
        """
        made = [one for event in self._events.log if (one := self._take(name, event)) is not None]
        made += [
            self._made(name, function, miss, traced_s=traced_s) for function, (miss, traced_s) in self._traced.items()
        ]
        if name in self.seen.tests:
            others = [one for one in self.seen.made if one.test != name]
            keep = keep and len(made) > len(self.seen.made) - len(others)
            self.seen.made = others if keep else self.seen.made
        if keep:
            found = [event.found for event in self._events.log if event.found is not None]
            self.calls += [(one.facts, one.call) for one in found if one.call is not None]
        self._traced.clear()
        self._events.log.clear()
        if keep:
            self.seen.made += made
        if keep and name != IMPORT:
            self.seen.tests[name] = self.seen.tests.get(name, 0.0) + seconds

    def end(self) -> Seen:
        """What was seen, with where that was."""
        self.seen.jax, self.seen.jit_is_off = jax.__version__, bool(jax.config.jax_disable_jit)
        self.seen.hardware = hardware_key(jax.devices()[0], jax.device_count()).slug
        return self.seen

    def _read(self) -> Program:
        program = _newest()
        with suppress(Exception):  # what a test is given may answer to nothing
            return program if self._look is None else replace(program, call=self._look())
        return program

    def _hear(self, miss: Miss) -> None:
        """Each function of the project is heard of before it is compiled, also where no event of its own follows."""
        if miss.defined and not miss.defined.startswith(_JAX):
            self.seen.project.add(miss.function)

    def _take(self, test: str, event: Event) -> Made | None:
        """The program of a compile; what came before it is remembered."""
        name = event.function
        miss, traced_s = self._traced.get(name, (None, 0.0))
        if event.phase == "trace":
            miss = next((miss for miss in event.misses if miss.function == name), None)
        if event.phase in ("trace", "lower"):
            self._traced[name] = miss, traced_s + event.seconds
        if event.phase != "compile":
            return None
        self._traced.pop(name, None)
        return self._made(test, name, miss, event.found, traced_s=traced_s, compiled_s=event.seconds, where=event.where)

    def _made(
        self,
        test: str,
        function: str,
        miss: Miss | None,
        program: Program = _NONE,
        *,
        traced_s: float,
        compiled_s: float = 0.0,
        where: str = "",
    ) -> Made:
        cause = ""
        if miss is not None:
            again = (miss.function, miss.defined) in self._known
            self._known.add((miss.function, miss.defined))
            cause = miss.cause or (_NEW if again and miss.kind == "new" else "")
            where = miss.where or where
        return Made(
            test=test,
            function=function,
            arguments=self._shorten(program.arguments),
            program=program.digest,
            facts=program.facts,
            traced_s=traced_s,
            compiled_s=compiled_s,
            where=where,
            cause=cause,
        )


def _newest() -> Program:
    """The program that was just compiled, and what its compiler says of it."""
    executable = newest_executable()
    memory, cost, text = None, {}, ""
    with suppress(Exception):  # a backend may have none of these
        text = executable.hlo_modules()[0].to_string()
        memory, cost = executable.get_compiled_memory_stats(), executable.cost_analysis()
    said = said_facts(memory, cost[0] if isinstance(cost, list) else cost)
    facts = {name: value for name in _FACTS if (value := said[name]) is not None}
    return Program(digest_of(text) or f"unknown {next(_unknown)}", parameters_of(text), facts)


def digest_of(text: str) -> str:
    """What a program does, without names and lines of who traced it first; empty if unknown."""
    if not text or ELIDED in text:
        return ""
    with suppress(ValueError):
        return fingerprint(*canonical(text))
    return ""


def parameters_of(text: str) -> str:
    """Types of a program's parameters, from the first line of its text: ``f32[64,64], s32[]``."""
    found = _LAYOUT.search(text.partition("\n")[0])
    return re.sub(r"\{[^{}]*\}|/\*[^*]*\*/", "", found[1]) if found else ""
