"""What made facts worse: every suspect that can be named, and the one that explains most of it first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from jaxgate.ext.growth.judge import carries_growth
from jaxgate.judge.causes import array_causes as arrays
from jaxgate.judge.causes import call_causes as calls
from jaxgate.judge.causes import control_flow as flow
from jaxgate.judge.causes import program_causes as programs
from jaxgate.judge.causes.growth import (
    ARITHMETIC,
    BUFFERS,
    COMPILED,
    MEMORY,
    PHASES,
    RUN,
    WORK,
    Change,
    and_more,
    heaviest,
)
from jaxgate.model.baseline import Baseline
from jaxgate.model.measurement import MAX_NAMED, Culprits, Measurement
from jaxgate.model.numbers import ARRIVAL_FACTS, FIRST_PROGRAMS, LATER_PROGRAMS, MORE_VARIANTS, WIDER_PRODUCTS
from jaxgate.model.verdict import Cause
from jaxgate.model.words import shortlist


def rank_causes(
    now: Measurement, baseline: Baseline | None, red: Collection[str], *, changed: str = ""
) -> tuple[Cause, ...]:
    """Name what made some quantities worse, by the rule in docs/facts.md ("One culprit first").

    ``red`` are facts, phases and ``run_ns`` that got worse, or that a broken claim is about. ``changed`` says how
    today's arguments differ from those of a baseline that cannot be compared.
    """
    change = Change(now, baseline)
    found = [cause for finder in _FINDERS for cause in finder(change)] if red else []
    if changed:
        # A first guess, where memory and work moved; of the arguments' own bytes the largest argument says more.
        explains = (COMPILED | WORK | PHASES) - {"argument_bytes"}
        found.insert(0, Cause(text=changed, explains=explains, sure=False))
    shown = [cause for cause in found if cause.explains & set(red)]
    of_the_program = set(red) - calls.AROUND

    def rank(cause: Cause) -> tuple[float, float, bool]:
        weight = 1.0 if cause.sure else 0.5
        return -weight * len(cause.explains & of_the_program), -weight * len(cause.explains & set(red)), not cause.sure

    return tuple(sorted(shown, key=rank))


@dataclass(frozen=True, slots=True)
class _Row:
    """A suspect of the table below: what happened, in words, and what follows from it."""

    tell: Callable[[Change], str]  # what happened; empty if it did not
    explains: AbstractSet[str]  # quantities that it can have made worse
    rose: tuple[str, ...] = ()  # facts of which one must be more than before
    sure: bool = True  # whether it is seen, and not guessed from what else there is
    root: bool = False  # whether the program is built otherwise
    alone: bool = False  # whether it is told without a baseline, too
    # all that it explains then, where that is less: nothing is known to have grown
    counted: AbstractSet[str] = frozenset()

    def __call__(self, change: Change) -> Iterator[Cause]:
        """The cause, if there is one."""
        happened = (self.alone or change.compared) and (not self.rose or change.rose(*self.rose))
        if happened and (text := self.tell(change)):
            explains = self.explains if change.compared else self.counted or self.explains
            yield Cause(text=text, explains=frozenset(explains), sure=self.sure, root=self.root)


def _said(words: str, culprits: Callable[[Culprits], str]) -> Callable[[Change], str]:
    """What the measurement says itself, after some words; empty if it says nothing."""

    def tell(change: Change) -> str:
        said = culprits(change.now.culprits)
        return said and f"{words}{said}"

    return tell


def _some(items: Sequence[str]) -> str:
    return "; ".join(items[:MAX_NAMED])


_MOVED = WORK | {"state_bytes", "collectives", "collective_bytes", "output_bytes"}
_MULTIPLIED = RUN | {"matmul_flops"}
_CYCLES = ("cyclic_objects", "cyclic_arrays")
_UNJITTED = (
    "the function is no longer jitted by its own code: the gate jits it, its callers run each operation by itself"
)
_NO_NAME = "no array has the name that a policy of jax.checkpoint says"
_UNNAMED = "a queue or a call that the tracer does not name"


def _jitted_no_more(change: Change) -> str:
    return _UNJITTED if change.now.facts.jitted == 0 and change.before.facts.jitted else ""


def _thrown_away(change: Change) -> str:
    """Work that is traced and not used; where the program grew with it, that grew for a reason of its own."""
    in_vain = change.growth("trace_equations") > 4 * max(0, change.growth("stablehlo_ops"))
    return change.now.culprits.thrown_away if in_vain else ""


def _draws_more(change: Change) -> str:
    """Arrays of random bits; those of the baseline are not known one by one."""
    drawn = change.now.culprits.drawn if change.growth("random_bits") > 0 else ()
    return f"more random bits are drawn, now {shortlist(drawn, MAX_NAMED)}" if drawn else ""


def _operates(change: Change) -> str:
    return change.grown("operations") if change.compared else heaviest(change.now.operations, change.now.culprits.lines)


_FINDERS: tuple[Callable[[Change], Iterable[Cause]], ...] = (
    calls.retraced,
    _Row(_jitted_no_more, {"jitted"}),
    _Row(
        lambda change: f"jitted anew at each call, and traced: {shortlist(change.now.culprits.remade, MAX_NAMED)}",
        {"remade_jits"}, ("remade_jits",), alone=True,
    ),
    _Row(_thrown_away, {"trace_equations", "trace_calls", "trace_ns"}, root=True),
    lambda change: carries_growth(change.now, change.baseline),
    _Row(calls.traces_more, {"trace_calls", "trace_ns"}),
    _Row(arrays.not_donated, MEMORY | {"donated_bytes", "aliased_bytes"}, alone=True),
    _Row(
        _said("donated, but not reused: ", lambda seen: f"{seen.lost[0]}{and_more(seen.lost)}" if seen.lost else ""),
        MEMORY | {"lost_bytes", "aliased_bytes"}, alone=True,
    ),
    _Row(
        _said("the program calls Python: ", lambda seen: _some(seen.callbacks) or _UNNAMED),
        WORK | {"host_callbacks", "output_bytes", "state_bytes", "jax_calls", "python_calls", "host_ns", "dispatch_ns"},
        ("host_callbacks",), alone=True,
    ),
    _Row(
        _said("", lambda seen: _some(seen.constants)),
        BUFFERS | {"constant_bytes", "compile_ns"}, ("constant_bytes",), alone=True,
    ),
    _Row(
        lambda change: arrays.spread_less(change.now.signature, change.before.signature),
        _MOVED | {"argument_bytes", "replicated_bytes"},
    ),
    # what comes back otherwise than it was given is not reused, and is another argument to the next step
    _Row(
        lambda change: arrays.spread_less(change.now.results, change.before.results),
        _MOVED | calls.CALLS | {"lost_bytes", "aliased_bytes"},
    ),
    _Row(calls.needs_variants, {MORE_VARIANTS, "trace_equations", "stablehlo_ops"}, root=True),
    calls.keeps_arrays,
    calls.launches,
    _Row(calls.waits, {"host_waits", "host_ns", "python_calls", "run_ns"}, ("host_waits",)),
    calls.donates_less,
    _Row(calls.arrives, {*ARRIVAL_FACTS, "jax_calls", "dispatch_ns"}),
    programs.sends,
    _Row(
        programs.traced_otherwise,
        COMPILED | WORK | PHASES | {"widened_bytes", "matmul_flops", "constant_bytes", WIDER_PRODUCTS}, root=True,
    ),
    flow.goes_on_for_a_batch,
    _Row(flow.runs_all_branches, flow.OF_BRANCHES, root=True),
    _Row(flow.takes_more_turns, RUN | {"loop_turns"}, root=True),
    _Row(flow.unrolled, WORK | PHASES | {"widened_bytes"}, root=True),
    flow.unrolled_in_part,
    programs.exchanges_routines,
    # the cost model counts what a loop keeps
    _Row(programs.keeps_more, BUFFERS | {"xla_flops", "output_bytes", "kernels"}, root=True),
    _Row(programs.recomputes_more, WORK | PHASES | {"matmul_flops"}, root=True),
    _Row(programs.held_back_no_more, BUFFERS | {"largest_batch", "kernels"}, root=True),
    _Row(arrays.stores_each_step, RUN, root=True),
    _Row(
        arrays.gives_programs_more,
        _MULTIPLIED | {"output_bytes", "state_bytes", "collective_bytes", "widened_bytes", "aliased_bytes", "host_ns"},
        root=True,
    ),
    _Row(arrays.multiplies_larger, _MULTIPLIED, root=True),
    _Row(arrays.jumps, {"scattered_bytes"}),
    _Row(arrays.repeats_arrays, BUFFERS | {"run_ns", "kernels"}, root=True),
    _Row(flow.done_at_once, BUFFERS | ARITHMETIC, sure=False),
    flow.one_by_one,
    _Row(programs.multiplies, WORK | {"matmul_flops", "compile_ns"}, alone=True, counted={"matmul_flops"}),
    _Row(_draws_more, WORK),
    _Row(
        lambda change: f"a kernel holds more at once: {change.now.culprits.blocks}",
        WORK | {"block_bytes"}, ("block_bytes",),
    ),
    _Row(
        lambda change: f"{_NO_NAME}: {', '.join(map(repr, change.now.culprits.unmatched[:MAX_NAMED]))}",
        WORK | {"unmatched_names", "matmul_flops"}, ("unmatched_names",), root=True,
    ),
    _Row(
        programs.widens,
        RUN | {"widened_bytes", "output_bytes", WIDER_PRODUCTS}, alone=True, counted={"widened_bytes"},
    ),
    programs.multiplies_wider,
    _Row(arrays.returns_more, BUFFERS | {"output_bytes", "state_bytes"}),
    # what is read back comes before calls: NumPy, which gets it, calls Python, too
    _Row(_said("read back in each call: ", lambda seen: _some(seen.reads)), {"host_reads", "host_ns"}, alone=True),
    calls.calls_more_python,
    _Row(calls.starts_later, {LATER_PROGRAMS}),
    _Row(calls.compiles_again_at_first, {FIRST_PROGRAMS, "first_call_ns"}),
    _Row(
        _said("each step makes reference cycles, which only the collector frees: ", lambda seen: seen.cycles),
        {*_CYCLES}, _CYCLES, alone=True,
    ),
    _Row(calls.waits_between, {"host_ns", "dispatch_ns", "first_call_ns"}, sure=False),
    _Row(programs.same_program, COMPILED | PHASES | {"run_ns"}),
    arrays.copies,
    _Row(flow.repeats_routines, WORK, root=True),
    _Row(arrays.takes_most, {"argument_bytes"}, sure=False, alone=True),
    _Row(_operates, WORK | PHASES | {"output_bytes", "argument_bytes", "state_bytes"}, sure=False, alone=True),
    _Row(
        _said("largest buffer: ", lambda seen: "".join(seen.allocations[:1])),
        {"temp_bytes", "peak_bytes"}, sure=False, alone=True,
    ),
)  # fmt: skip
"""In the order in which one follows from another."""
