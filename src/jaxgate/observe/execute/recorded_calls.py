"""The device programs that plain Python starts, recorded where JAX binds them: each with its arguments and its number of calls.

Under ``jax_debug_key_reuse`` JAX gives no call the fast path that leaves Python out: each one, of a jitted function or of
an eager operation, arrives at the primitive with its program and its arguments. The setting is part of what JAX caches
by, so that what was compiled before stays as it was. ``tests/observe/execute/test_recorded_calls.py`` fails if a release
goes another way.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.observe.jax_extend import jax_extend
from jaxgate.observe.trace.misses import RECORDING


@dataclass(slots=True, kw_only=True)
class RecordedProgram:
    """A device program, with the arguments of its first call."""

    name: str  # of the function that it was traced from
    # of the first call, on the device, as they were before it: those that it may consume are copies
    arguments: tuple[Any, ...]
    # the program as a jitted function of its arguments, in order, with its options, shardings and donation
    function: Callable[..., tuple[Any, ...]]
    count: int = 0  # how often it was called
    parameters: Mapping[str, Any] = field(repr=False)  # what JAX bound its primitive with, whose identity stands for it


Before = Callable[[Mapping[str, Any], Sequence[Any]], None]


class RecordedCalls:
    """What was called while a recording ran, in any thread.

    ``before`` is called before each call, with what JAX binds it with and its arguments.
    """

    def __init__(self, before: Before | None = None) -> None:
        self._before = before
        self._by_key: dict[tuple[Any, ...], RecordedProgram] = {}
        self._lock = threading.Lock()

    @property
    def programs(self) -> tuple[RecordedProgram, ...]:
        """The programs that were called since the last ``restart``, each once, in the order of their first calls."""
        return tuple(program for program in self._by_key.values() if program.count)

    def restart(self) -> None:
        """Count from zero; what was compiled is kept."""
        for program in self._by_key.values():
            program.count = 0

    def call(self, parameters: Mapping[str, Any], arguments: Sequence[Any]) -> list[Any]:
        """Count a call and make it: by the function that is kept, so that it is compiled once for both."""
        if self._before is not None:
            self._before(parameters, arguments)
        key = (
            id(parameters["jaxpr"]),  # JAX caches it by the types of its arguments; it is kept below
            *(parameters[name] for name in ("donated_invars", "compiler_options_kvs", "keep_unused")),
            *(one.sharding if getattr(one, "committed", False) else None for one in arguments),
        )
        with self._lock:
            program = self._by_key.get(key)
            if program is None:
                program = self._by_key[key] = _program(parameters, arguments)
            program.count += 1
        return list(program.function(*arguments))


def _program(parameters: Mapping[str, Any], arguments: Sequence[Any]) -> RecordedProgram:
    call = jax_extend().core.jaxpr_as_fun(parameters["jaxpr"])
    donated = tuple(place for place, given in enumerate(parameters["donated_invars"]) if given)

    def flat(*given: Any) -> tuple[Any, ...]:
        return tuple(call(*given))

    flat.__name__ = flat.__qualname__ = parameters["name"]
    return RecordedProgram(
        name=parameters["name"],
        arguments=tuple(
            jnp.copy(one) if place in donated and isinstance(one, jax.Array) else one
            for place, one in enumerate(arguments)
        ),
        function=jax.jit(
            flat,
            donate_argnums=donated,
            keep_unused=parameters["keep_unused"],
            in_shardings=parameters["in_shardings"] or None,
            out_shardings=parameters["out_shardings"],
            compiler_options=dict(parameters["compiler_options_kvs"]) or None,
        ),
        parameters=parameters,
    )


Forced = Callable[[], AbstractContextManager[None]]
"""Makes each call arrive at the primitive."""


@contextmanager
def recorded_calls(forced: Forced | None = None, before: Before | None = None) -> Iterator[RecordedCalls]:
    """Record what the block calls, in all threads. Programs that were compiled ahead of time are not seen.

    ``forced`` is another way to make calls arrive, for functions that use a random key twice: these do not trace where
    keys are checked.
    """
    calls, busy, jit_p = RecordedCalls(before), threading.local(), _primitive()
    impl: Callable[..., Any] = jit_p.impl

    def note(*arguments: Any, **parameters: Any) -> Any:
        if getattr(busy, "on", False):  # the call itself, as it is made here, and copies for it
            return impl(*arguments, **parameters)
        busy.on = True
        try:
            return calls.call(parameters, arguments)
        finally:
            busy.on = False

    jit_p.def_impl(note)
    try:
        with (forced or _no_fast_path)():
            yield calls
    finally:
        jit_p.def_impl(impl)


@cache
def _primitive() -> Any:
    """What JAX binds each call of a jitted function with."""
    # Frames of this file stand between the project's and those of JAX.
    jax_extend().source_info_util.register_exclusion(__file__)
    return jax_extend().core.primitives.jit_p


@contextmanager
def _no_fast_path() -> Iterator[None]:
    """Let each call arrive at the primitive; a call itself is made without the check that the setting asks for."""
    jit_p = _primitive()
    bind = jit_p.bind
    before = getattr(jax.config, RECORDING)

    def unchecked(*arguments: Any, **parameters: Any) -> Any:
        with jax.debug_key_reuse(False):
            return bind(*arguments, **parameters)

    jit_p.bind = unchecked
    jax.config.update(RECORDING, True)  # its context manager is of one thread
    try:
        yield
    finally:
        jax.config.update(RECORDING, before)
        del jit_p.bind
