"""What is measured: facts (deterministic), phases (outside the steady state) and samples (time).

``None`` always means "this backend does not report it", never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from statistics import median
from typing import Any, ClassVar, Literal

Contract = Literal["throughput", "latency"]
"""What the time of a call means. ``throughput``: calls in a row, the whole output of the last one waited for
(throughput; a device may overlap them with their launches). ``latency``: each call waited for (latency)."""


class Strict:
    """Stored data that is read back strictly: an unknown, missing or mistyped key is an error."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts(Strict):
    """The deterministic numbers of one program and of a few calls of it.

    The last word of each name is its unit: bytes, flops, or a count.
    ``judge.policy`` says for each one which way is worse and by how much it may move.
    """

    # What the calls showed (subject only: a reference is not threaded).
    traces: int | None = None
    lowerings: int | None = None
    compiles: int | None = None
    sampled_traces: int | None = None
    sampled_compiles: int | None = None
    # Who jits the function: 1 where its own code does, 0 where the gate does, or where plain Python is called as it is.
    jitted: int | None = None
    # Functions that a plain one jits anew at each call of its own, so that it traces them each time.
    remade_jits: int | None = None
    # What the program asks for, before any backend has seen it.
    donated_bytes: int | None = None
    constant_bytes: int | None = None
    host_callbacks: int | None = None
    matmul_flops: int | None = None
    widened_bytes: int | None = None
    # The most that one of its kernels holds at once, in the fast memory of a core.
    block_bytes: int | None = None
    # Random bits that it draws; names that a policy of ``jax.checkpoint`` says and no array has.
    random_bits: int | None = None
    unmatched_names: int | None = None
    # Equations that tracing wrote, those that nothing needs too, so that no compiler sees them.
    trace_equations: int | None = None
    # Functions that Python calls while tracing once more, JAX's own too.
    trace_calls: int | None = None
    stablehlo_ops: int | None = None
    # What the arguments decide: turns of loops whose length the program does not say.
    loop_turns: int | None = None
    # What both ask for: of several devices the compiler adds its own communication.
    collectives: int | None = None
    collective_bytes: int | None = None
    # What the backend's compiler made of it; all bytes are those of one device.
    aliased_bytes: int | None = None
    lost_bytes: int | None = None
    argument_bytes: int | None = None
    replicated_bytes: int | None = None
    output_bytes: int | None = None
    temp_bytes: int | None = None
    code_bytes: int | None = None
    xla_flops: int | None = None
    xla_bytes: int | None = None
    transcendentals: int | None = None
    # Of its optimised program, loops counted by their turns: what a device starts in a call, what of it only copies, and
    # what gathers and scatters read or write one element here, one there.
    kernels: int | None = None
    copied_bytes: int | None = None
    scattered_bytes: int | None = None
    # What plain Python around device programs does in one warm call (``eager=True``): programs that it starts, arrays
    # and numbers that it puts on devices or fetches, arrays whose memory it reads, waits for what is not done.
    launches: int | None = None
    host_transfers: int | None = None
    host_reads: int | None = None
    host_waits: int | None = None
    # What each step of it leaves behind: arrays that something holds, objects in reference cycles and arrays among them.
    kept_arrays: int | None = None
    cyclic_objects: int | None = None
    cyclic_arrays: int | None = None
    # What Python does in one warm call, of either kind: functions called and turns of loops, and those inside of JAX.
    python_calls: int | None = None
    jax_calls: int | None = None
    # Of a case that asks for it (``max_batch=``): the largest batch within its budget of memory, found by compiling.
    largest_batch: int | None = None

    @property
    def state_bytes(self) -> int | None:
        """Device memory that is held between calls: arguments and outputs, aliased bytes once."""
        if self.argument_bytes is None or self.output_bytes is None or self.aliased_bytes is None:
            return None
        return self.argument_bytes + self.output_bytes - self.aliased_bytes

    @property
    def peak_bytes(self) -> int | None:
        """Device memory that one call needs: state and temporaries, by one formula on every backend.

        No backend needs more. Where a compiler shares temporaries with outputs, the real peak is lower.
        """
        if self.state_bytes is None or self.temp_bytes is None:
            return None
        return self.state_bytes + self.temp_bytes


CALLED_FACTS = (
    "traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles", "python_calls", "jax_calls",
    "loop_turns",
)  # fmt: skip
"""What only calls of a jitted subject show."""
STEADY_FACTS = ("sampled_traces", "sampled_compiles")
"""What calls after the first ones trace and compile."""
COUNTED_FACTS = ("xla_flops", "xla_bytes", "transcendentals")
"""What a compiler counts in the optimised program; calls of libraries are opaque to it."""
ARRIVAL_FACTS = ("sent_bytes", "sent_arguments", "moved_arrays")
"""Sums over the arguments of a program, which gate as ``Facts`` do."""
FACT_NAMES = frozenset(field.name for field in fields(Facts)) | frozenset(ARRIVAL_FACTS)
WIDER_PRODUCTS = "wider_products"
"""How many matrix products are of wider numbers than the baseline's: a comparison, no fact of one side."""
MORE_VARIANTS = "program_variants"
"""How many more programs the launches of functions need than in the baseline, launched as often: a comparison, too."""
LATER_PROGRAMS = "later_programs"
"""How many programs a later step starts for the first time that the baseline's did not: a comparison, too."""
FIRST_PROGRAMS = "first_programs"
"""How many programs of a function the first call compiles beyond those of the baseline's: a comparison, too."""
COMPARISONS = frozenset({WIDER_PRODUCTS, MORE_VARIANTS, LATER_PROGRAMS, FIRST_PROGRAMS})
"""What a waiver may name besides facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases(Strict):
    """Wall time outside the steady state, in nanoseconds; the first five are measured once.

    ``host_ns`` is the median time until a call that nobody waits for returns: what Python and the runtime need
    to launch it. ``None`` where the backend may run programs inline (CPU): it would be the program's own time.
    ``dispatch_ns`` is Python's part of a call alone: what it takes beyond its own executable, both waited for in turn.
    ``trace_ns`` is what the tracing thread has run, and ``trace_wait_ns`` what it waited meanwhile for anything but a core.
    ``yardstick_ns`` is no phase: fixed work in plain Python, a measure of how fast the machine was.

    Of a subject on the host ``host_ns`` is the median time of the whole warm call, waited for, on any backend; its
    ``first_call_ns`` holds all tracing, lowering and compiling, and the first four are unknown.
    """

    trace_ns: int | None = None
    trace_wait_ns: int | None = None
    lower_ns: int | None = None
    compile_ns: int | None = None
    first_call_ns: int | None = None
    host_ns: int | None = None
    dispatch_ns: int | None = None
    yardstick_ns: int | None = None

    def slower_than(self, before: Phases) -> float:
        """How many times slower plain Python ran than before; never below 1, and 1 where it is not known."""
        if not self.yardstick_ns or not before.yardstick_ns:
            return 1.0
        return max(1.0, self.yardstick_ns / before.yardstick_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples(Strict):
    """Raw times of bursts of calls."""

    bursts_ns: tuple[int, ...]  # wall time of each burst, in the order taken
    calls_per_burst: int  # calls in one burst; 1 where the contract is `latency`
    contract: Contract = "throughput"  # what the time of a call means

    def __post_init__(self) -> None:
        """Refuse samples that have no time of a call."""
        if not self.bursts_ns or min(self.bursts_ns) < 0 or self.calls_per_burst < 1:
            raise ValueError("samples need at least one burst, none negative, of at least one call")
        if self.contract == "latency" and self.calls_per_burst != 1:
            raise ValueError("samples of a latency are single calls")

    @property
    def run_ns(self) -> float:
        """Median time of one call."""
        return median(self.bursts_ns) / self.calls_per_burst

    @property
    def mean_ns(self) -> float:
        """Average time of one call."""
        return sum(self.bursts_ns) / len(self.bursts_ns) / self.calls_per_burst

    def percentile_ns(self, percent: int) -> int | None:
        """A percentile of single calls, by nearest rank; ``None`` if there are none or too few for it.

        99 needs 100 calls, 50 needs two.
        """
        if self.contract != "latency" or len(self.bursts_ns) * (100 - percent) < 100:  # noqa: PLR2004 - per cent
            return None
        return sorted(self.bursts_ns)[ceil(len(self.bursts_ns) * percent / 100) - 1]
