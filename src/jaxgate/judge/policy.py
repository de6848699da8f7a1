"""Which way each fact and each phase is worse, and by how much it may move before it gates."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from jaxgate.model import Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPolicy:
    """How one fact gates.

    A fact is worse when it lies beyond ``baseline * (1 ± relative) ± absolute``.

    Attributes:
        name: Field of ``Facts`` or ``Phases``.
        better: Which way is better.
        relative: Share of the baseline that it may move.
        absolute: Units that it may move besides.
        why: Why it gates, and why this tolerance.
    """

    name: str
    better: Literal["lower", "higher"]
    relative: float = 0.0
    absolute: int = 0
    why: str

    def worst_allowed(self, baseline: int) -> float:
        """The worst value that still passes."""
        sign = 1 if self.better == "lower" else -1
        return baseline + sign * (self.relative * baseline + self.absolute)

    def best_expected(self, baseline: int) -> float:
        """The best value that still counts as the same."""
        sign = -1 if self.better == "lower" else 1
        return baseline + sign * (self.relative * baseline + self.absolute)

    def is_worse(self, now: int, baseline: int) -> bool:
        """Whether today's value is beyond what is allowed."""
        limit = self.worst_allowed(baseline)
        return now > limit if self.better == "lower" else now < limit

    def is_better(self, now: int, baseline: int) -> bool:
        """Whether today's value is a win worth a tighter baseline."""
        limit = self.best_expected(baseline)
        return now < limit if self.better == "lower" else now > limit


POLICIES: tuple[FactPolicy, ...] = (
    FactPolicy(name="traces", better="lower", why="a retrace costs seconds and usually comes every step"),
    FactPolicy(name="compiles", better="lower", why="a recompile costs seconds, also without a retrace"),
    FactPolicy(name="sampled_traces", better="lower", why="the steady state must not trace"),
    FactPolicy(name="sampled_compiles", better="lower", why="the steady state must not compile"),
    FactPolicy(name="donated_bytes", better="higher", why="donation that is no longer asked for doubles the state"),
    FactPolicy(name="aliased_bytes", better="higher", why="donation that is asked for and lost doubles the state"),
    FactPolicy(
        name="constant_bytes", better="lower", absolute=1024, why="captured arrays are compiled in; small tables may be"
    ),
    FactPolicy(name="host_callbacks", better="lower", why="each one stops the device until Python has answered"),
    FactPolicy(name="launches", better="lower", why="each program costs Python and the runtime tens of µs to launch"),
    FactPolicy(name="host_transfers", better="lower", why="each one copies from the host, every call"),
    FactPolicy(name="matmul_flops", better="lower", why="work as written, loops counted, duplicates and dead code not"),
    FactPolicy(
        name="stablehlo_ops",
        better="lower",
        relative=0.5,
        absolute=20,
        why="drives trace, lowering and compile time; moves by some per cent between JAX releases",
    ),
    FactPolicy(name="argument_bytes", better="lower", relative=0.01, why="what has to be on the device before a call"),
    FactPolicy(name="output_bytes", better="lower", relative=0.01, absolute=64, why="what stays on it after a call"),
    FactPolicy(
        name="temp_bytes",
        better="lower",
        relative=0.05,
        absolute=4096,
        why="what a call needs besides; fusion moves it",
    ),
    FactPolicy(
        name="xla_flops",
        better="lower",
        relative=0.01,
        absolute=64,
        why="work after optimisation; a loop's body counts once; elementwise lowering moves it by 0.1 %",
    ),
    FactPolicy(
        name="xla_bytes", better="lower", relative=0.10, absolute=4096, why="traffic by the cost model; fusion moves it"
    ),
)

_ONCE = "measured once in a process of its own, and caches of the system move it"

PHASE_POLICIES: tuple[FactPolicy, ...] = (
    *(
        FactPolicy(name=name, better="lower", relative=0.15, absolute=20_000_000, why=_ONCE)
        for name in ("trace_ns", "lower_ns", "compile_ns", "first_call_ns")
    ),
    FactPolicy(
        name="host_ns", better="lower", relative=0.30, absolute=20_000, why="Python's part of a call; tens of µs matter"
    ),
)
"""How phases are held against those of another environment, in nanoseconds."""

BY_NAME = {policy.name: policy for policy in POLICIES}

if set(BY_NAME) != {field.name for field in fields(Facts)}:  # pragma: no cover - a fact without a policy never ships
    raise RuntimeError("every fact needs exactly one policy")
