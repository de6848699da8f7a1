"""Which way each fact and each phase is worse, and by how much it may move before it gates."""

from __future__ import annotations

from dataclasses import fields
from functools import partial

from jaxgate.model.numbers import ARRIVAL_FACTS, Facts
from jaxgate.model.policy import FactPolicy

_PROGRAMS = "programs (not plain Python around them)"
_DEVICES = "programs on several devices, virtual ones too"
_HOST = "plain Python around programs (`eager=True`)"

_ADDED_UP = "programs; of plain Python those that it launches, added up and one by one"
_MOST = "programs; of plain Python the most of those that it launches, and one by one"
_SINGLE = "programs; of plain Python those that it launches, one by one"

_RELEASE = ("jax", "jaxlib", "python")

_rule = FactPolicy  # name, share of the baseline that it may move, amount that it may move besides
_program, _added_up, _single = (partial(_rule, where=where) for where in (_PROGRAMS, _ADDED_UP, _SINGLE))

POLICIES: tuple[FactPolicy, ...] = (
    _rule("traces", why="a retrace costs seconds and usually comes every step"),
    _rule("lowerings", why="a program built anew, even where its trace was cached"),
    _rule("compiles", why="a recompile costs seconds, also without a retrace"),
    _rule("sampled_traces", why="the steady state must not trace"),
    _rule("sampled_compiles", why="the steady state must not compile"),
    _rule("jitted", better="higher", why="the gate jits a plain function, its callers run it operation by operation"),
    _rule("remade_jits", where="plain functions that the gate jits",
          why="whoever calls the function traces them each time"),
    _rule("launches", where=_HOST, why="each costs tens of µs of Python and of the runtime"),
    _rule("host_transfers", where=_HOST, why="what each call sends to the device again, or stops to read back"),
    _rule("kept_arrays", where=_HOST, unsteady=True,
          why="arrays that each step leaves behind, until memory is full: a list that grows, a cache that is not emptied"),
    _single("donated_bytes", better="higher", why="donation that is no longer asked for doubles the state"),
    _rule("cyclic_objects", 0.25, 10, within=("jax", "python"), unsteady=True,
          where=f"{_HOST}, in the versions of JAX and Python that recorded the baseline",
          why="Python objects in reference cycles that each step makes: the collector stops the loop to find them"),
    _rule("cyclic_arrays", where=_HOST, unsteady=True,
          why="arrays in such cycles: they take memory until the collector comes, which does not know how much"),
    _rule("collectives", where=_DEVICES,
          why="each waits for all devices; asked for by the program, or added by the partitioner"),
    _rule("collective_bytes", 0.01, 64, where=_DEVICES,
          why="what one device hands over; the figure that does not depend on how transfers are combined"),
    _program("lost_bytes", why="donated and not reused: held twice, in silence"),
    _added_up("aliased_bytes", better="higher", why="donation that is asked for and lost doubles the state"),
    _added_up("constant_bytes", absolute=1024, why="captured arrays are compiled in; small tables may be"),
    _added_up("host_callbacks", why="each one stops the device until Python has answered"),
    _added_up("matmul_flops", why="work as written, loops counted, duplicates and dead code not"),
    _program("loop_turns", 0.10, 1,
             why="a solver that takes more turns; rounding moves them a little, other values of the arguments may double them"),
    _added_up("widened_bytes", absolute=1024,
              why="bfloat16 that becomes float32, or float32 float64, in memory and time; scalars may"),
    _added_up("random_bits", why="each is dozens of integer operations, and dropout draws one for each element"),
    _added_up("block_bytes", 0.10,
              why="what a kernel of Pallas holds at once in VMEM, SMEM or shared memory: too much does not compile, or "
                  "keeps others waiting"),
    _added_up("unmatched_names",
              why="a policy of jax.checkpoint that keeps a name which no array has keeps nothing for it, in silence"),
    _added_up("trace_equations", 0.5, 50,
              why="what tracing writes, dead equations too: they cost time to trace, and leave nothing in the program"),
    _program("trace_calls", 0.25, 2000, within=_RELEASE, unsteady=True,
             why="what Python calls while it traces: a few µs each, in each process; also what leaves no equation behind"),
    _added_up("stablehlo_ops", 0.5, 20,
              why="drives trace, lowering and compile time; moves by some per cent between JAX releases"),
    _single("argument_bytes", 0.01, why="what has to be on the device before a call"),
    _rule("replicated_bytes", 0.01, 1024, where=_DEVICES,
          why="of the arguments, beyond an even share: what a device holds because others hold it too"),
    _single("output_bytes", 0.01, 64, why="what stays on it after a call"),
    _rule("temp_bytes", 0.05, 4096, where=_MOST, why="what a call needs besides; fusion moves it"),
    _rule("code_bytes", 0.25, 65_536, where="GPU and TPU programs; the CPU's compiler does not report it",
          why="generated code lies in device memory too; unrolling multiplies it, scheduling moves it"),
    _added_up("xla_flops", 0.01, 64,
              why="work after optimisation; a loop's body counts once; elementwise lowering moves it by 0.1 %"),
    _added_up("xla_bytes", 0.10, 4096, why="traffic by the cost model; fusion moves it"),
    _added_up("transcendentals", 0.01, 64,
              why="`exp`, `tanh`, `sin` and the like, one a number, not among the FLOPs; a loop's body counts once"),
    _added_up("kernels", 0.25, 20, unsteady=True,
              why="what a device starts one after the other in the optimised program, turns of loops counted"),
    _added_up("copied_bytes", 0.10, 1_000_000, unsteady=True,
              why="arrays that the optimised program copies or transposes and does nothing else with, turns of loops counted"),
    _added_up("scattered_bytes", 0.10, 100_000, unsteady=True,
              why="what gathers and scatters of the optimised program touch one element at a time, far apart in memory"),
    _rule("host_reads", unsteady=True,
          where="plain Python around programs on CPU; elsewhere reads are among `host_transfers`",
          why="`x.item()` and `np.asarray(x)` wait for the device, though they move nothing on CPU"),
    _rule("host_waits", where="plain Python around programs", unsteady=True,
          why="`block_until_ready` leaves the device without work until the next launch, as do `time.sleep` and a thread "
              "that is started or joined"),
    _rule("python_calls", 0.25, 50, unsteady=True,
          why="functions called and turns of loops in a warm call, outside of JAX; 50 of them take a few µs"),
    _rule("jax_calls", 0.25, 50, within=_RELEASE, unsteady=True,
          where="the versions of JAX and Python that recorded the baseline",
          why="the same inside of JAX: none where a jitted function takes its fast path"),
    _rule("largest_batch", 0.05, better="higher", where="cases that ask for it (`max_batch=`)",
          why="what memory is saved for; may move as much as temp_bytes may"),
)  # fmt: skip

ARRIVAL_POLICIES: tuple[FactPolicy, ...] = (
    _program("sent_bytes", 0.10, 1_000_000,
             why="what each call sends from the host or moves between devices for its arguments; 1 MB takes some 100 µs"),
    _program("sent_arguments", 0.10, 16,
             why="arguments that each call sends from the host: 3 µs each beside their bytes, so that 16 more take 50 µs"),
    _program("moved_arrays", absolute=1,
             why="arguments on other devices than the program takes them from: 0.1 ms each beside their bytes; one number may"),
)  # fmt: skip
"""How what arguments need to arrive is held against the baseline: sums over the signature."""

_COMPILING = ("trace_ns", "lower_ns", "compile_ns", "first_call_ns")
_BETWEEN = "anywhere; not on CPU for `host_ns` of programs"
_STORED = "the hardware that recorded the baseline; confirmed in two fresh processes"
_ANOTHER_DAY = "a number from another day; the least of several processes differs by up to 46 % on a busy machine"
_ONCE = "measured once in a process of its own, and caches of the system move it"

PHASE_POLICIES: tuple[FactPolicy, ...] = (
    *(_rule(name, 0.15, 20_000_000, where=_BETWEEN, why=_ONCE) for name in _COMPILING),
    _rule("host_ns", 0.30, 20_000, where=_BETWEEN, why="Python's part of a call; tens of µs matter"),
)  # fmt: skip
"""How phases are held against those of another environment, in nanoseconds."""

STORED_PHASE_POLICIES: tuple[FactPolicy, ...] = (
    *(_rule(name, 0.75, 100_000_000, where=_STORED, why=_ANOTHER_DAY) for name in _COMPILING),
    _rule("trace_wait_ns", 0.75, 1_000_000_000,
          where=f"the share is one of all of the tracing, run and waited for; {_STORED}",
          why="a traced function that sleeps, starts a program or waits for a disk: `trace_ns` is what its thread has run"),
    _rule("host_ns", 1.0, 100_000, where=_STORED, why="Python's part of a call"),
    _rule("dispatch_ns", 1.0, 50_000, within=_RELEASE, unsteady=True,
          where=f"jitted functions whose calls take less than 5 ms, within one release of JAX and Python; {_STORED}",
          why="what a call takes beyond its own executable: trees that are flattened, static arguments that are hashed"),
)  # fmt: skip
"""How phases are held against the baseline's, in nanoseconds: wide, scaled by the yardstick, confirmed."""

BY_NAME = {policy.name: policy for policy in POLICIES}

if {policy.name for policy in ARRIVAL_POLICIES} != set(ARRIVAL_FACTS) or set(BY_NAME) != {
    field.name for field in fields(Facts)
}:  # pragma: no cover - a fact without a policy never ships
    raise RuntimeError("every fact needs exactly one policy")
