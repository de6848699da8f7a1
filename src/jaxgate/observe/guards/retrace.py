"""A guard for anybody's code, without a baseline: no retrace here; other errors of the block pass through untouched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from types import FunctionType, TracebackType
from typing import Any

import jax

from jaxgate.model import MAX_NAMED, plural
from jaxgate.observe.trace import PMAP, Blame, Culprit, Events, record


class RetraceError(AssertionError):
    """Something was traced or compiled in a block that forbids it."""


_ACTIVE: list[tuple[str, ...]] = []
"""What each block counts that has begun and not ended, in any thread; no name for everything."""


class no_retrace:  # noqa: N801 - reads like the function that it is to its user
    """Forbid traces and backend compiles in a block: ``with jaxgate.no_retrace(step): step(state, batch)``.

    Raises ``RetraceError`` at the end of the block, with one line for each function: what differed from the
    calls before (by argument path, with both shapes and dtypes), and the line of the project that called.

    With nothing named everything counts, in every thread: also JAX's own helpers that are called eagerly
    (``jnp.ones`` of a new shape is a program of its own). With functions named only those count, wherever
    they are traced: by themselves or inside another jitted function. They are known by their names, so that
    another jitted function of the same name counts too, and every ``pmap`` is one to JAX. Three kinds are not seen
    inside another jitted function, where JAX reports nothing of them: ``pmap``, a jitted ``jax.custom_vjp`` or
    ``jax.custom_jvp``, and functions of JAX itself; name the outer function, or none.

    A program that the persistent cache answers counts: it was traced, and the cache may be empty tomorrow.
    Causes, and functions that are traced inside others, are known for the thread of the block alone. What a
    function was called with before the block is JAX's own account: of several earlier calls it may pick another
    than you would.
    What was traced before the block is no retrace. With ``allow`` a block begins with empty caches of the functions
    that it counts, so that each program in it counts, whatever ran before.
    Blocks may be nested; each counts everything inside of it. One with ``allow`` leaves the caches as they are where an
    outer block counts on them: what that had traced by then is not among the programs of the inner one.
    Use each guard once.

    Args:
        functions: Jitted functions (``jax.jit``, ``nnx.jit``, ``eqx.filter_jit``, ``pmap``); all if none is given.
        allow: How many programs each function may trace or compile: 1 where the first call is in the block.

    Raises:
        TypeError: If a function is none that JAX would name in its events: it could never be seen.
        ValueError: If ``allow`` is negative.
    """

    def __init__(self, *functions: Callable[..., Any], allow: int = 0) -> None:
        if allow < 0:
            raise ValueError(f"expected allow to be 0 or more, found {allow}")
        self._functions = functions
        self._names = tuple(_jitted_name(function) for function in functions)
        self._allow = allow
        self._stack = ExitStack()
        self._events: Events | None = None

    def __enter__(self) -> None:
        """Begin to listen, with nothing in the caches that is to be counted."""
        if self._allow:
            self._forget()
        self._events = self._stack.enter_context(record(explain=True))
        _ACTIVE.append(self._names)
        self._stack.callback(_ACTIVE.remove, self._names)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Judge what was heard.

        Raises:
            RetraceError: If a function missed more often than allowed.
        """
        __tracebackhide__ = True
        self._stack.close()
        if kind is not None or self._events is None:
            return
        culprits = Blame(complete=False, inner=self._names).culprits(self._events)
        guilty = [one for one in culprits if not self._names or one.function in self._names]
        missed = Counter[str]()
        for culprit in guilty:
            missed[culprit.function] += culprit.misses
        guilty = [culprit for culprit in guilty if missed[culprit.function] > self._allow]
        if guilty:
            raise RetraceError(_retrace_text(guilty, self._names, self._allow))

    def _forget(self) -> None:
        """Empty the caches of the functions; all of JAX's, where one cannot be emptied alone or none is named.

        Nothing is emptied that an outer block counts: the outer one would be red for what this one forgot.
        """
        clears = [clear for function in self._functions if callable(clear := getattr(function, "clear_cache", None))]
        alone = bool(clears) and len(clears) == len(self._functions)
        if all(alone and names and not {*names} & {*self._names} for names in _ACTIVE):
            for clear in clears if alone else [jax.clear_caches]:
                clear()


def _jitted_name(function: Callable[..., Any]) -> str:
    """The name of a function in JAX's events.

    Raises:
        TypeError: If it has none.
    """
    name = getattr(function, "__name__", None)
    if callable(function) and callable(getattr(function, "lower", None)):
        if isinstance(function, FunctionType):  # pmap gives a plain function with what jit has
            return PMAP
        if name:  # jax.jit, nnx.jit, eqx.filter_jit: all keep the name of what they are put around
            return str(name)
    raise TypeError(
        f"no_retrace expects functions that are jitted, found {name or type(function).__name__}: JAX would never name "
        "it; pass the function that jax.jit returned, or name none, and everything counts"
    )


def _retrace_text(guilty: list[Culprit], names: tuple[str, ...], allow: int) -> str:
    """A headline, and what it was of each function; where some were allowed, of each program beyond these."""
    traces = sum(culprit.traces for culprit in guilty)
    compiles = sum(culprit.compiles for culprit in guilty)
    hits = sum(culprit.cache_hits for culprit in guilty)
    who = ", ".join("pmap" if name == PMAP else name for name in names)
    expected = "no trace and no compile" + (f" of {who}" if who else "")
    if allow:
        expected = f"at most {plural(allow, 'program')} of {who or 'each function'}"
    found = f"{plural(traces, 'trace')} and {plural(compiles, 'compile')}"
    found += f" ({hits} of them out of the persistent cache)" if hits else ""
    lines = _beyond(guilty, allow)
    more = [f"and {len(lines) - MAX_NAMED} more"] if len(lines) > MAX_NAMED else []
    return "\n  ".join([f"expected {expected}, found {found}:", *lines[:MAX_NAMED], *more])


def _beyond(guilty: list[Culprit], allow: int) -> list[str]:
    """A line for each miss that was not allowed: the first ones of each function were."""
    left = Counter({culprit.function: allow for culprit in guilty})
    lines: list[str] = []
    for culprit in guilty:
        allowed = left[culprit.function]
        lines += culprit.beyond(allowed) if allow else [str(culprit)]
        left[culprit.function] = max(0, allowed - culprit.misses)
    return lines
