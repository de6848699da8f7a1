"""What made facts worse: every suspect that can be named, and the one that explains most of it first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from jaxgate.ext.growth.judge import carries_growth
from jaxgate.judge.causes.array_causes import (
    copied_more,
    copies,
    jumps,
    jumps_more,
    repeats_arrays,
    stores_each_step,
    takes_larger_arrays,
)
from jaxgate.judge.causes.call_causes import (
    AROUND,
    arrives,
    calls_more_python,
    compiles_again_at_first,
    donates_less,
    explained,
    keeps_arrays,
    launches,
    makes_cycles,
    needs_variants,
    starts_later,
    waits,
    waits_between,
)
from jaxgate.judge.causes.control_flow import (
    done_at_once,
    one_by_one,
    repeats_routines,
    runs_all_branches,
    takes_more_turns,
    unrolled,
    unrolled_in_part,
)
from jaxgate.judge.causes.growth import BUFFERS, COMPILED, MEMORY, PHASES, RUN, WORK, grown, heaviest, total_elements
from jaxgate.judge.causes.program_causes import (
    exchanges_routines,
    held_back_no_more,
    holds_larger_blocks,
    keeps_more,
    keeps_no_name,
    multiplies_wider,
    recomputes_more,
)
from jaxgate.judge.difference import Difference
from jaxgate.model.baseline import Baseline
from jaxgate.model.machine import COMPILE_OPTIONS
from jaxgate.model.measurement import MAX_FUNCTIONS, MAX_NAMED, Leaf, Measurement
from jaxgate.model.numbers import WIDER_PRODUCTS
from jaxgate.model.verdict import Cause
from jaxgate.model.words import shortlist

_CALLS = frozenset({"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"})

Finder = Callable[[Measurement, Baseline | None], Iterator[Cause]]


def rank_causes(
    now: Measurement, baseline: Baseline | None, red: Collection[str], *, changed: str = ""
) -> tuple[Cause, ...]:
    """Name what made some quantities worse, by the rule in docs/facts.md ("One culprit first").

    ``red`` are facts, phases and ``run_ns`` that got worse, or that a broken claim is about. ``changed`` says how
    today's arguments differ from those of a baseline that cannot be compared.
    """
    found = [cause for finder in _FINDERS for cause in finder(now, baseline)]
    if changed:
        # A first guess, where memory and work moved; of the arguments' own bytes the largest argument says more.
        explains = (COMPILED | WORK | PHASES) - {"argument_bytes"}
        found.insert(0, Cause(text=changed, explains=explains, sure=False))
    shown = [cause for cause in found if cause.explains & set(red)]
    of_the_program = set(red) - AROUND

    def rank(cause: Cause) -> tuple[float, float, bool]:
        weight = 1.0 if cause.sure else 0.5
        return -weight * len(cause.explains & of_the_program), -weight * len(cause.explains & set(red)), not cause.sure

    return tuple(sorted(shown, key=rank))


def _retraced(now: Measurement, _: Baseline | None) -> Iterator[Cause]:
    lines = now.culprits.retraces
    meant = list(dict.fromkeys(line.partition(" re")[0] for line in lines))[: now.expected_traces - 1]  # `step 2`
    lines = tuple(line for line in lines if line.partition(" re")[0] not in meant) or lines
    if lines:
        yield Cause(text=lines[0], explains=_CALLS, sure="cause unknown" not in lines[0])
    elif now.facts.sampled_traces or now.facts.sampled_compiles:
        counts = f"{now.facts.sampled_traces} traces and {now.facts.sampled_compiles} compiles"
        yield Cause(text=f"{counts} while sampling: cause unknown", explains=_CALLS, sure=False)


def _jitted_no_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    if baseline is not None and now.facts.jitted == 0 and baseline.facts.jitted:
        text = "the function is no longer jitted by its own code: the gate jits it, its callers run each operation by itself"
        yield Cause(text=text, explains=frozenset({"jitted"}))


def _made_anew(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    before = None if baseline is None else baseline.facts.remade_jits
    if (now.facts.remade_jits or 0) > (before or 0):
        named = shortlist(now.culprits.remade, MAX_NAMED)
        yield Cause(text=f"jitted anew at each call, and traced: {named}", explains=frozenset({"remade_jits"}))


def _thrown_away(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Work that is traced and not used; where the program grew with it, that grew for a reason of its own."""
    written, kept = (_more(now, baseline, name) for name in ("trace_equations", "stablehlo_ops"))
    if now.culprits.thrown_away and written > 4 * max(0, kept):
        yield Cause(
            text=now.culprits.thrown_away, explains=frozenset({"trace_equations", "trace_calls", "trace_ns"}), root=True
        )


def _traces_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Functions that tracing calls more often; of one that a full list leaves out nobody knows how often it was called."""
    if baseline is not None and baseline.traced and _more(now, baseline, "trace_calls") > 0:
        known = now.traced if len(baseline.traced) < MAX_FUNCTIONS else now.traced.keys() & baseline.traced.keys()
        ours, before = ({name: side.traced.get(name, 0) for name in sorted(known)} for side in (now, baseline))
        text = grown(ours, before, now.culprits.lines)
        if text:
            yield Cause(text=f"tracing calls {text}", explains=frozenset({"trace_calls", "trace_ns"}))


def _more(now: Measurement, baseline: Baseline | None, fact: str) -> int:
    """By how much a fact grew; 0 where one side does not know it."""
    values = [getattr(side.facts, fact) for side in (now, baseline) if side is not None]
    return 0 if None in values or baseline is None else values[0] - values[1]


def _not_donated(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    explains = frozenset({"donated_bytes", "aliased_bytes"}) | MEMORY
    if baseline is not None:
        pairs = zip(now.signature, baseline.signature, strict=False)
        gone = [leaf for leaf, before in pairs if before.donated and not leaf.donated]
        if gone:
            yield Cause(text=f"no longer donated: {_leaves(gone)}", explains=explains)
    elif not any(leaf.donated for leaf in now.signature):
        yield Cause(text="nothing is donated", explains=explains)


def _donation_lost(now: Measurement, _: Baseline | None) -> Iterator[Cause]:
    lost = now.culprits.lost
    if lost:
        more = f"; and {len(lost) - 1} more" if len(lost) > 1 else ""
        explains = frozenset({"lost_bytes", "aliased_bytes"}) | MEMORY
        yield Cause(text=f"donated, but not reused: {lost[0]}{more}", explains=explains)


def _calls_python(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    before = 0 if baseline is None else baseline.facts.host_callbacks or 0
    if (now.facts.host_callbacks or 0) > before:
        named = "; ".join(now.culprits.callbacks[:MAX_NAMED]) or "a queue or a call that the tracer does not name"
        explains = WORK | {
            "host_callbacks",
            "output_bytes",
            "state_bytes",
            "jax_calls",
            "python_calls",
            "host_ns",
            "dispatch_ns",
        }
        yield Cause(text=f"the program calls Python: {named}", explains=explains)


def _captures(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    before = 0 if baseline is None else baseline.facts.constant_bytes or 0
    if (now.facts.constant_bytes or 0) > before and now.culprits.constants:
        text = "; ".join(now.culprits.constants[:MAX_NAMED])
        yield Cause(text=text, explains=BUFFERS | {"constant_bytes", "compile_ns"})


def _placed(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Arrays of the same shape that take more of each device: they are no longer spread over as many."""
    if baseline is None:
        return
    moved = WORK | {"state_bytes", "collectives", "collective_bytes", "output_bytes"}
    yield from _spread_less(now.signature, baseline.signature, moved | {"argument_bytes", "replicated_bytes"})
    # What comes back otherwise than it was given is not reused, and is another argument to the next step.
    yield from _spread_less(now.results, baseline.results, moved | _CALLS | {"lost_bytes", "aliased_bytes"})


def _spread_less(now: Sequence[Leaf], before: Sequence[Leaf], explains: frozenset[str]) -> Iterator[Cause]:
    if [leaf.aval for leaf in now] != [leaf.aval for leaf in before]:
        return
    pairs = [(leaf, old) for leaf, old in zip(now, before, strict=True) if leaf.nbytes > old.nbytes]
    if pairs:
        leaf, old = max(pairs, key=lambda pair: pair[0].nbytes - pair[1].nbytes)
        more = f"; and {len(pairs) - 1} more" if len(pairs) > 1 else ""
        text = f"{leaf.path} takes {leaf.nbytes:,} bytes of each device, {old.nbytes:,} before: sharded less{more}"
        yield Cause(text=text, explains=explains)


def _sends(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    text = grown(now.collectives, None if baseline is None else baseline.collectives, now.culprits.lines)
    if text:
        moves, sent = BUFFERS | {"transcendentals", "run_ns", "trace_calls"}, ("collectives", "collective_bytes")
        # As many that send as much were only put together otherwise, which follows from something else.
        more = baseline is None or any(
            (getattr(now.facts, name) or 0) > (getattr(baseline.facts, name) or 0) for name in sent
        )
        yield Cause(text=text, explains=explained(baseline, set(sent), moves), sure=more)


def _multiplies(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    if baseline is None or (now.facts.matmul_flops or 0) > (baseline.facts.matmul_flops or 0):
        text = grown(now.matmuls, None if baseline is None else baseline.matmuls, now.culprits.lines)
        if text:
            yield Cause(text=text, explains=explained(baseline, {"matmul_flops"}, WORK | {"compile_ns"}))


def _widens(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    text = grown(now.widened, None if baseline is None else baseline.widened, now.culprits.lines)
    before = {} if baseline is None else baseline.widened
    if text and total_elements(now.widened) > total_elements(before):  # not the same, cut into more pieces
        moves = RUN | {"output_bytes", WIDER_PRODUCTS}
        yield Cause(text=f"wider floats: {text}", explains=explained(baseline, {"widened_bytes"}, moves))


def _draws_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Arrays of random bits; those of the baseline are not known one by one."""
    if _more(now, baseline, "random_bits") > 0 and now.culprits.drawn:
        text = f"more random bits are drawn, now {shortlist(now.culprits.drawn, MAX_NAMED)}"
        yield Cause(text=text, explains=WORK)


def _returns_more(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    if baseline is None:
        return
    before = {leaf.path: leaf for leaf in baseline.results}
    if len(now.results) == len(before) == 1:  # a single array may be named anew
        before = {now.results[0].path: baseline.results[0]}
    larger = [leaf for leaf in now.results if leaf.nbytes > (before[leaf.path].nbytes if leaf.path in before else 0)]
    if larger and sum(leaf.nbytes for leaf in now.results) > sum(leaf.nbytes for leaf in baseline.results):
        leaf = max(larger, key=lambda leaf: leaf.nbytes)
        was = f"{before[leaf.path].aval} before" if leaf.path in before else "new"
        more = f"; and {len(larger) - 1} more" if len(larger) > 1 else ""
        text = f"more is returned: {leaf.path} is {leaf.aval} ({leaf.nbytes:,} bytes), {was}{more}"
        yield Cause(text=text, explains=BUFFERS | {"output_bytes", "state_bytes"})


def _traced_otherwise(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same source, another program, and settings that act while JAX traces: no line of the project did it."""
    difference = None if baseline is None else Difference(now, baseline)
    if difference is not None and not difference.program and difference.tracing_settings and difference.source:
        text = f"traced under other settings: {shortlist(difference.tracing_settings, MAX_NAMED)}"
        explains = COMPILED | WORK | PHASES | {"widened_bytes", "matmul_flops", "constant_bytes", WIDER_PRODUCTS}
        yield Cause(text=text, explains=explains, root=True)


def _takes_most(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The largest argument, where there is nothing to compare with; other arguments have no baseline either."""
    if baseline is None and now.signature:
        leaf = max(now.signature, key=lambda leaf: leaf.nbytes)
        text = f"largest argument: {leaf.path} is {leaf.aval} ({leaf.nbytes:,} bytes)"
        yield Cause(text=text, explains=frozenset({"argument_bytes"}), sure=False)


def _same_program(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """The same program, compiled to something else: not the code."""
    if baseline is None or not (difference := Difference(now, baseline)).program:
        return
    if now.eager and not (now.launched_programs and baseline.launched_programs):  # then names alone are compared
        return
    ours, theirs = now.fingerprints.options, baseline.fingerprints.options
    if difference.options is False:
        text = f"the same program, other compiler options: {theirs or 'none'} → {ours or 'none'}"
        yield Cause(text=text, explains=COMPILED | PHASES | {"run_ns"})
    elif difference.only_settings:
        changed = difference.environment
        named = [line for line in changed if not line.startswith(f"{COMPILE_OPTIONS} ")] or changed
        text = f"the same program under other settings: {shortlist(named, MAX_NAMED)}"
        yield Cause(text=text, explains=COMPILED | PHASES | {"run_ns"})
    elif difference.environment:
        made = (
            jumps_more(now, baseline)
            or copied_more(now, baseline)
            or grown(now.kernels, baseline.kernels or now.kernels, {})
        )
        text = f"the same program in another environment: the compiler makes something else of it{made and ': '}{made}"
        yield Cause(text=text, explains=COMPILED | PHASES | {"run_ns"})


def _holds(now: Measurement, _: Baseline | None) -> Iterator[Cause]:
    if now.culprits.allocations:
        text = f"largest buffer: {now.culprits.allocations[0]}"
        yield Cause(text=text, explains=frozenset({"temp_bytes", "peak_bytes"}), sure=False)


def _operates(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    text = (
        heaviest(now.operations, now.culprits.lines)
        if baseline is None
        else grown(now.operations, baseline.operations, now.culprits.lines)
    )
    if text:
        explains = WORK | PHASES | {"output_bytes", "argument_bytes", "state_bytes"}
        yield Cause(text=text, explains=explains, sure=False)


_FINDERS: tuple[Finder, ...] = (
    _retraced, _jitted_no_more, _made_anew, _thrown_away, carries_growth, _traces_more, _not_donated, _donation_lost,
    _calls_python, _captures, _placed, needs_variants, keeps_arrays, launches, waits, donates_less, arrives, _sends,
    _traced_otherwise, runs_all_branches, takes_more_turns, unrolled, unrolled_in_part, exchanges_routines,
    keeps_more, recomputes_more, held_back_no_more, stores_each_step, takes_larger_arrays, jumps, repeats_arrays,
    done_at_once, one_by_one, _multiplies, _draws_more, holds_larger_blocks, keeps_no_name, _widens,
    multiplies_wider, _returns_more, calls_more_python, starts_later, compiles_again_at_first,
    makes_cycles, waits_between, _same_program, copies, repeats_routines, _takes_most, _operates, _holds,
)  # fmt: skip
"""In the order in which one follows from another."""


def _leaves(leaves: Sequence[Leaf]) -> str:
    named = shortlist([leaf.path for leaf in leaves], MAX_NAMED)
    return f"{named} ({sum(leaf.nbytes for leaf in leaves):,} bytes)"
