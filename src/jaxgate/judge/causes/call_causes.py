"""What made a call dearer around its program: how arguments arrive, what plain Python starts, Python in each call."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from jaxgate.judge.causes.growth import Change, and_more, at, grown, more_of, regressed
from jaxgate.model.baseline import Baseline
from jaxgate.model.launched import Pair, changed_programs
from jaxgate.model.measurement import (
    ELSEWHERE,
    MAX_FUNCTIONS,
    MAX_NAMED,
    WAITS,
    Argument,
    MeasuredProgram,
    Measurement,
    is_wait,
)
from jaxgate.model.numbers import ARRIVAL_FACTS, FIRST_PROGRAMS, LATER_PROGRAMS, MORE_VARIANTS
from jaxgate.model.verdict import Cause, Finding
from jaxgate.model.words import shortlist

AROUND = frozenset(
    {"python_calls", "jax_calls", "host_reads", "host_waits", "trace_calls", "dispatch_ns", *ARRIVAL_FACTS}
)
"""What happens around the program: it follows where the program changed, and is the cause where nothing else is red."""
_SUMMED = frozenset(
    {
        "matmul_flops", "xla_flops", "xla_bytes", "transcendentals", "stablehlo_ops", "widened_bytes", "collectives",
        "collective_bytes",
    }
)  # fmt: skip
"""What is added up over launches: more of the same programs is more of it."""
CALLS = frozenset({"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"})
"""What calls trace and compile."""
_LAUNCHED = frozenset({"launches", "host_ns", "run_ns"})
_JOINS = frozenset({"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
"""Programs that put arrays together."""
_BUILTINS = frozenset(vars(builtins))
"""Python's own functions, which others call."""
_MINOR = 20
"""A function that grew by less than this part of what the first one did explains nothing."""


def retraced(change: Change) -> Iterator[Cause]:
    """The first trace that was not meant, as it was explained."""
    lines, facts = change.now.culprits.retraces, change.now.facts
    steps = list(dict.fromkeys(line.partition(" re")[0] for line in lines))  # `step 2`
    meant = steps[: change.now.expected_traces - 1]
    lines = tuple(line for line in lines if line.partition(" re")[0] not in meant) or lines
    if lines:
        yield Cause(text=lines[0], explains=CALLS, sure="cause unknown" not in lines[0])
    elif facts.sampled_traces or facts.sampled_compiles:
        counts = f"{facts.sampled_traces} traces and {facts.sampled_compiles} compiles"
        yield Cause(text=f"{counts} while sampling: cause unknown", explains=CALLS, sure=False)


def traces_more(change: Change) -> str:
    """Functions that tracing calls more often; of one that a full list leaves out nobody knows how often it was called."""
    ours, theirs = change.now.traced, change.before.traced
    if not theirs or change.growth("trace_calls") <= 0:
        return ""
    known = ours.keys() if len(theirs) < MAX_FUNCTIONS else ours.keys() & theirs.keys()
    after, before = ({name: side.get(name, 0) for name in sorted(known)} for side in (ours, theirs))
    text = grown(after, before, change.now.culprits.lines)
    return text and f"tracing calls {text}"


def arrives(change: Change) -> str:
    """The argument whose transfer at every call grew most, before and after; the others are counted."""
    grew = [
        (leaf.sent_bytes - old.sent_bytes, leaf, old)
        for leaf, old in zip(change.now.signature, change.before.signature, strict=False)
        if leaf.sent_bytes is not None and old.sent_bytes is not None and leaf.sent_bytes > old.sent_bytes
    ]
    if not grew:
        return ""
    _, leaf, old = max(grew, key=itemgetter(0))
    text = f"{leaf.path}: {old.arrival} then, {leaf.arrival} now: {leaf.sent_bytes:,} bytes are {_verb(leaf)}"
    return f"{text} at every call{and_more(grew)}"


def _verb(leaf: Argument) -> str:
    arrival = leaf.arrival or ""
    if arrival.endswith(ELSEWHERE):
        return "moved"
    given, taken = arrival.rpartition(" ")[2], leaf.aval.partition("[")[0]
    return "sent" if given == taken else "converted and sent"


def launches(change: Change) -> Iterator[Cause]:
    """Programs that plain Python starts, and what it moves between host and devices.

    Arrays that are moved one by one are put together by a program that was not there before: it follows from the moves.
    """
    more = change.more("launched")
    joins = change.compared and bool(more) and more.keys() <= _JOINS
    found = []
    if text := change.grown("launched"):
        gone = [theirs for ours, theirs in _changed(change) if theirs and not ours]
        explains = _LAUNCHED | (_SUMMED if _none_changed(change) else frozenset())
        if any(one.facts.get("donated_bytes") for one in gone):
            explains |= {"donated_bytes", "aliased_bytes"}  # with the program that was given them
        found.append(Cause(text=f"programs started in a call: {text}", explains=explains))
    if text := _moves(change):
        follows = _follows(change) if joins else frozenset()
        text = f"moved between host and device in each call: {text}"
        found.append(Cause(text=text, explains=follows | {"host_transfers", "host_ns"}))
    yield from reversed(found) if joins else found


def _changed(change: Change) -> list[Pair]:
    return changed_programs(change.now.launched_programs, change.before.launched_programs)


def _none_changed(change: Change) -> bool:
    """Whether programs are new or gone, and none is another one: sums over launches follow from these."""
    return change.compared and not any(ours and theirs for ours, theirs in _changed(change))


def _follows(change: Change) -> frozenset[str]:
    """What programs that something else starts make worse; sums only if it is known which programs there were."""
    return _LAUNCHED | (_SUMMED if change.before.launched_programs and _none_changed(change) else frozenset())


def _moves(change: Change) -> str:
    """What is moved for more than before; all of it where nothing is."""
    moved, before = change.now.transferred, change.before.transferred
    more = change.more("transferred") or moved
    most = sorted(more, key=lambda name: (-more[name], name))[:MAX_NAMED]
    lines = change.now.culprits.transfer_lines
    return "; ".join(
        f"{moved[name]} for {name}{f' ({before[name]} before)' if before.get(name) else ''}{at(name, lines)}"
        for name in most
    )


def donates_less(change: Change) -> Iterator[Cause]:
    """Programs that plain Python starts and that give up fewer buffers than before."""
    explains = frozenset({"donated_bytes", "aliased_bytes", "temp_bytes", "output_bytes"})
    for ours, theirs in _changed(change):
        if ours and theirs and (less := theirs.facts.get("donated_bytes", 0) - ours.facts.get("donated_bytes", 0)) > 0:
            text = f"no longer donated: {less:,} bytes of the arguments of {ours.name}{change.at(ours.name)}"
            yield Cause(text=text, explains=explains)


def calls_more_python(change: Change) -> Iterator[Cause]:
    """Functions that are called more often than before; a few more calls than allowed are no cause of a slower call."""
    called, before, lines = change.now.called, change.before.called, change.now.culprits.lines
    more = change.more("called")
    most = [name for name in more if more[name] * _MINOR > max(more.values())]
    most = [name for name in most if name not in _BUILTINS] or most  # whoever calls them says more
    ours, theirs = ({name: side.get(name, 0) for name in most} for side in (called, before))
    text = grown(ours, theirs if change.compared else None, lines)
    names = frozenset({"python_calls", "jax_calls"})
    worse = any(change.growth(name) > 0 and change.is_worse(name) for name in names)
    if text and (worse or not change.compared):
        explains = names | {"run_ns", "host_ns", "dispatch_ns"} if change.compared else names
        yield Cause(text=f"Python in each call: {text}", explains=explains)
    elif called:  # as many calls, and one of them takes longer
        text = text or grown(called, None, lines)
        yield Cause(text=f"Python in each call: {text}", explains=frozenset({"dispatch_ns"}), sure=False)


def waits(change: Change) -> str:
    """Calls of ``block_until_ready`` between launches, and of what lets Python stand still."""
    ours = {name: count for name, count in change.now.called.items() if is_wait(name)}
    theirs = {name: change.before.called.get(name, 0) for name in ours}
    device = " for the device" if all(name.rpartition(".")[2] in WAITS for name in ours) else ""
    return f"waits{device} in each call: {grown(ours, theirs, change.now.culprits.lines)}"


def waits_between(change: Change) -> str:
    """Plain Python around the same programs takes longer, though it calls no more of Python."""
    known = change.now.eager and change.now.launched_programs and change.difference.same_program
    if not known or change.rose("python_calls"):
        return ""
    return (
        "Python around the same programs takes longer and calls no more functions: it waits, or C code in it does more"
    )


def keeps_arrays(change: Change) -> Iterator[Cause]:
    """Arrays that each step leaves behind: they add up, and lead over the few programs that make them."""
    kept, before = change.fact("kept_arrays")
    if change.now.culprits.kept and kept > before:
        makers = change.compared and 0 < sum(change.more("launched").values()) <= 2 * (kept - before)
        text = f"each step leaves arrays behind: {change.now.culprits.kept}"
        yield Cause(text=text, explains=frozenset({"kept_arrays"}) | (_follows(change) if makers else frozenset()))


def compare_compiles(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where plain Python compiles what the baseline's did not: in a later step, or for as many launches."""
    change = Change(now, baseline)
    later = dict.fromkeys(_later(change), 1)
    yield from _red(
        LATER_PROGRAMS, [*later], later, {}, "that a later step starts, of which the first three show nothing"
    )
    ours, theirs = _variants(now), _variants(baseline)
    which = "of the same function that the launches of a call need"
    yield from _red(MORE_VARIANTS, _more_variants(change), ours, theirs, which)


def compare_first(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where the first call compiles a function more often; what each step shows says more, and comes first."""
    more = _more_at_first(Change(now, baseline))
    which = "of the same function that the first call compiles"
    yield from _red(FIRST_PROGRAMS, more, now.first, baseline.first, which)


def _red(
    name: str, found: Sequence[str], ours: Mapping[str, int], theirs: Mapping[str, int], which: str
) -> Iterator[Finding]:
    if found:
        today, before = (sum(side.get(one, 0) for one in found) for side in (ours, theirs))
        yield regressed(name, today, before, f"programs {which}")


def _variants(side: MeasuredProgram) -> Counter[str]:
    return Counter(one.name for one in side.launched_programs)


def _more_variants(change: Change) -> list[str]:
    """Launches, of which there are no more, that need more programs: each is traced and compiled by itself."""
    more = _more(_variants(change.now), _variants(change.before))
    return [name for name in more if change.now.launched.get(name, 0) <= change.before.launched.get(name, 0)]


def _more_at_first(change: Change) -> list[str]:
    """Functions that both first calls compile; releases of JAX differ in what they compile by the way."""
    sides = (change.now.environment, change.before.environment)
    same = all(sides[0].get(one) == sides[1].get(one) for one in ("jax", "jaxlib"))
    return _more(change.now.first, change.before.first) if same else []


def _more(ours: Mapping[str, int], theirs: Mapping[str, int]) -> list[str]:
    """What both have and today's has more of, the most first."""
    more = more_of(ours, theirs)
    return sorted(more.keys() & theirs.keys(), key=lambda name: (-more[name], name))


def _later(change: Change) -> dict[str, int]:
    """What a step starts for the first time that the baseline's steps, which went as far, did not."""
    before = change.before
    return {name: step for name, step in change.now.later.items() if step <= before.steps and name not in before.later}


def needs_variants(change: Change) -> str:
    """Functions of which each call compiles more programs than before: other static arguments, other shapes."""
    named = change.listed(_more_variants(change), _variants(change.now), _variants(change.before))
    return named and f"a program for each value of a static argument, or each shape: {named}"


def compiles_again_at_first(change: Change) -> str:
    """A function that is compiled ahead for other arguments than it is called with, or for two kinds of them."""
    named = change.listed(_more_at_first(change), change.now.first, change.before.first)
    return named and f"the first call compiles more programs of a function: {named}"


def starts_later(change: Change) -> str:
    """A program that comes at every so many steps."""
    found = [f"{name}{change.at(name)} in step {step}" for name, step in _later(change).items()]
    return f"a later step starts a program: {shortlist(found, MAX_NAMED)}" if found else ""
