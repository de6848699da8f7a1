"""What made a call dearer around its program: how arguments arrive, what plain Python starts, Python in each call."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from jaxgate.judge.causes.growth import at, counted, grown, more_of
from jaxgate.judge.policy import BY_NAME
from jaxgate.model.baseline import Baseline
from jaxgate.model.decision import Status
from jaxgate.model.launched import changed_programs
from jaxgate.model.measurement import ELSEWHERE, MAX_NAMED, WAITS, Argument, MeasuredProgram, Measurement, is_wait
from jaxgate.model.numbers import ARRIVAL_FACTS, FIRST_PROGRAMS, LATER_PROGRAMS, MORE_VARIANTS
from jaxgate.model.verdict import Cause, Finding
from jaxgate.model.words import shortlist


def describe_arrivals(now: Measurement, baseline: Baseline) -> str:
    """Name the argument whose transfer grew most, before and after, and count the others; empty if none grew."""
    worse = [
        (leaf, before)
        for leaf, before in zip(now.signature, baseline.signature, strict=False)
        if leaf.sent_bytes is not None and before.sent_bytes is not None and leaf.sent_bytes > before.sent_bytes
    ]
    if not worse:
        return ""
    leaf, before = max(worse, key=lambda pair: (pair[0].sent_bytes or 0) - (pair[1].sent_bytes or 0))
    more = f"; and {len(worse) - 1} more" if len(worse) > 1 else ""
    text = f"{leaf.path}: {before.arrival} then, {leaf.arrival} now: {leaf.sent_bytes:,} bytes are {_verb(leaf)}"
    return f"{text} at every call{more}"


def _verb(leaf: Argument) -> str:
    arrival = leaf.arrival or ""
    if arrival.endswith(ELSEWHERE):
        return "moved"
    given, taken = arrival.rpartition(" ")[2], leaf.aval.partition("[")[0]
    return "sent" if given == taken else "converted and sent"


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
_JOINS = frozenset({"concatenate", "stack", "hstack", "vstack", "dstack", "column_stack"})
"""Programs that put arrays together."""
_BUILTINS = frozenset(vars(builtins))
"""Python's own functions, which others call."""
_MINOR = 20
"""A function that grew by less than this part of what the first one did explains nothing."""


def arrives(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Arguments that JAX converts, sends or moves at every call."""
    text = "" if baseline is None else describe_arrivals(now, baseline)
    if text:
        yield Cause(text=text, explains=frozenset({*ARRIVAL_FACTS, "jax_calls", "dispatch_ns"}))


def launches(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Programs that plain Python starts, and what it moves between host and devices.

    Arrays that are moved one by one are put together by a program that was not there before: it follows from the moves.
    """
    found = []
    if text := grown(now.launched, None if baseline is None else baseline.launched, now.culprits.lines):
        explains = frozenset({"launches", "host_ns", "run_ns"})
        pairs = () if baseline is None else changed_programs(now.launched_programs, baseline.launched_programs)
        if _none_changed(now, baseline):
            explains |= _SUMMED
        if any(theirs and theirs.facts.get("donated_bytes") and not ours for ours, theirs in pairs):
            explains |= {"donated_bytes", "aliased_bytes"}  # with the program that was given them
        found.append(Cause(text=f"programs started in a call: {text}", explains=explains))
    if text := _moves(now, baseline):
        more = {} if baseline is None else more_of(now.launched, baseline.launched)
        joined = _follows(now, baseline) if baseline and more and set(more) <= _JOINS else frozenset()
        explains = joined | {"host_transfers", "host_ns"}
        moves = Cause(text=f"moved between host and device in each call: {text}", explains=explains)
        found.insert(0 if joined else len(found), moves)
    yield from found


def _none_changed(now: Measurement, baseline: Baseline | None) -> bool:
    """Whether programs are new or gone, and none is another one: sums over launches follow from these."""
    return baseline is not None and not any(
        ours and theirs for ours, theirs in changed_programs(now.launched_programs, baseline.launched_programs)
    )


def _follows(now: Measurement, baseline: Baseline) -> frozenset[str]:
    """What programs that something else starts make worse; sums only if it is known which programs there were."""
    summed = bool(baseline.launched_programs) and _none_changed(now, baseline)
    return frozenset({"launches", "host_ns", "run_ns"}) | (_SUMMED if summed else frozenset())


def donates_less(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Programs that plain Python starts and that give up fewer buffers than before."""
    pairs = () if baseline is None else changed_programs(now.launched_programs, baseline.launched_programs)
    for ours, theirs in pairs:
        if ours is None or theirs is None:
            continue
        less = theirs.facts.get("donated_bytes", 0) - ours.facts.get("donated_bytes", 0)
        if less > 0:
            text = (
                f"no longer donated: {less:,} bytes of the arguments of {ours.name}{at(ours.name, now.culprits.lines)}"
            )
            yield Cause(text=text, explains=frozenset({"donated_bytes", "aliased_bytes", "temp_bytes", "output_bytes"}))


def _moves(now: Measurement, baseline: Baseline | None) -> str:
    """What is moved for more than before; all of it where nothing is, or nothing is known of before."""
    before = {} if baseline is None else baseline.transferred
    more = more_of(now.transferred, before)
    most = sorted(more or now.transferred, key=lambda name: (-(more or now.transferred)[name], name))
    return "; ".join(
        f"{now.transferred[name]} for {name}{f' ({before[name]} before)' if before.get(name) else ''}"
        f"{at(name, now.culprits.transfer_lines)}"
        for name in most[:MAX_NAMED]
    )


def calls_more_python(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Functions that are called more often than before; a few more calls than allowed are no cause of a slower call.

    What is read back comes first: NumPy, which gets it, calls Python, too.
    """
    if now.culprits.reads:
        text = f"read back in each call: {'; '.join(now.culprits.reads[:MAX_NAMED])}"
        yield Cause(text=text, explains=frozenset({"host_reads", "host_ns"}))
    names, facts = ("python_calls", "jax_calls"), None if baseline is None else baseline.facts
    pairs = {name: (getattr(now.facts, name), getattr(facts, name, None)) for name in names}
    worse = any(BY_NAME[name].is_worse(*(n or 0 for n in pair)) for name, pair in pairs.items() if None not in pair)
    before = None if baseline is None else baseline.called
    more = more_of(now.called, before or {})
    most = {name: now.called[name] for name in more if more[name] * _MINOR > max(more.values())}
    most = {name: most[name] for name in most if name not in _BUILTINS} or most  # whoever calls them says more
    text = grown(most, before and {name: before.get(name, 0) for name in most}, now.culprits.lines)
    if text and (worse or baseline is None):
        explains = explained(baseline, set(names), {"run_ns", "host_ns", "dispatch_ns"})
        yield Cause(text=f"Python in each call: {text}", explains=explains)
    elif now.called:  # as many calls, and one of them takes longer
        text = text or grown(now.called, None, now.culprits.lines)
        yield Cause(text=f"Python in each call: {text}", explains=frozenset({"dispatch_ns"}), sure=False)


def waits(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Calls of ``block_until_ready`` between launches, and of what lets Python stand still."""
    if baseline is not None and (now.facts.host_waits or 0) > (baseline.facts.host_waits or 0):
        ours = {name: count for name, count in now.called.items() if is_wait(name)}
        text = grown(ours, {name: baseline.called.get(name, 0) for name in ours}, now.culprits.lines)
        explains = frozenset({"host_waits", "host_ns", "python_calls", "run_ns"})
        device = all(name.rpartition(".")[2] in WAITS for name in ours)
        yield Cause(text=f"waits{' for the device' if device else ''} in each call: {text}", explains=explains)


def compare_compiles(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where plain Python compiles what the baseline's did not: in a later step, or for as many launches."""
    later = dict.fromkeys(_later(now, baseline), 1)
    yield from _red(
        LATER_PROGRAMS, [*later], later, {}, "that a later step starts, of which the first three show nothing"
    )
    ours, theirs = (_variants(side) for side in (now, baseline))
    needed = _more_variants(now, baseline)
    yield from _red(MORE_VARIANTS, needed, ours, theirs, "of the same function that the launches of a call need")


def compare_first(now: Measurement, baseline: Baseline) -> Iterator[Finding]:
    """Red where the first call compiles a function more often; what each step shows says more, and comes first."""
    more = _more_at_first(now, baseline)
    yield from _red(
        FIRST_PROGRAMS, more, now.first, baseline.first, "of the same function that the first call compiles"
    )


def _red(
    name: str, found: Sequence[str], ours: Mapping[str, int], theirs: Mapping[str, int], which: str
) -> Iterator[Finding]:
    if found:
        today, before = (sum(side.get(one, 0) for one in found) for side in (ours, theirs))
        yield Finding(
            kind="fact", name=name, status=Status.REGRESSED,
            now=today, against=before, allowed=before, detail=f"programs {which}",
        )  # fmt: skip


def _variants(side: MeasuredProgram) -> Counter[str]:
    return Counter(one.name for one in side.launched_programs)


def _more_variants(now: Measurement, baseline: Baseline) -> list[str]:
    """Launches, of which there are no more, that need more programs: each is traced and compiled by itself."""
    more = _more(_variants(now), _variants(baseline))
    return [name for name in more if now.launched.get(name, 0) <= baseline.launched.get(name, 0)]


def _more_at_first(now: Measurement, baseline: Baseline) -> list[str]:
    """Functions that both first calls compile; releases of JAX differ in what they compile by the way."""
    same = all(now.environment.get(one) == baseline.environment.get(one) for one in ("jax", "jaxlib"))
    return _more(now.first, baseline.first) if same else []


def _more(ours: Mapping[str, int], theirs: Mapping[str, int]) -> list[str]:
    """What both have and today's has more of, the most first."""
    more = more_of(ours, theirs)
    return sorted(more.keys() & theirs.keys(), key=lambda name: (-more[name], name))


def needs_variants(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Functions of which each call compiles more programs than before: other static arguments, other shapes."""
    if baseline is not None and (found := _more_variants(now, baseline)):
        ours, theirs = (_variants(side) for side in (now, baseline))
        named = shortlist([counted(name, ours, theirs, now.culprits.lines) for name in found], MAX_NAMED)
        text = f"a program for each value of a static argument, or each shape: {named}"
        yield Cause(text=text, explains=frozenset({MORE_VARIANTS, "trace_equations", "stablehlo_ops"}), root=True)


def compiles_again_at_first(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A function that is compiled ahead for other arguments than it is called with, or for two kinds of them."""
    if baseline is not None and (found := _more_at_first(now, baseline)):
        named = shortlist([counted(name, now.first, baseline.first, now.culprits.lines) for name in found], MAX_NAMED)
        text = f"the first call compiles more programs of a function: {named}"
        yield Cause(text=text, explains=frozenset({FIRST_PROGRAMS, "first_call_ns"}))


def explained(baseline: Baseline | None, counted: AbstractSet[str], moves: AbstractSet[str]) -> frozenset[str]:
    """What a count explains: its own facts, and what follows where it is known to have grown."""
    return frozenset(counted if baseline is None else counted | moves)


def _later(now: Measurement, baseline: Baseline) -> dict[str, int]:
    return {name: step for name, step in now.later.items() if step <= baseline.steps and name not in baseline.later}


def starts_later(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """A program that comes at every so many steps."""
    found = {} if baseline is None else _later(now, baseline)
    if found:
        named = shortlist(
            [f"{name}{at(name, now.culprits.lines)} in step {step}" for name, step in found.items()], MAX_NAMED
        )
        yield Cause(text=f"a later step starts a program: {named}", explains=frozenset({LATER_PROGRAMS}))


def keeps_arrays(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Arrays that each step leaves behind: they add up, and lead over the few programs that make them."""
    kept, before = (0 if side is None else side.facts.kept_arrays or 0 for side in (now, baseline))
    if now.culprits.kept and kept > before:
        more = {} if baseline is None else more_of(now.launched, baseline.launched)
        makers = _follows(now, baseline) if baseline and 0 < sum(more.values()) <= 2 * (kept - before) else frozenset()
        text = f"each step leaves arrays behind: {now.culprits.kept}"
        yield Cause(text=text, explains=frozenset({"kept_arrays"}) | makers)


def makes_cycles(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Reference cycles that each step makes."""
    names = frozenset({"cyclic_objects", "cyclic_arrays"})
    before = (
        dict.fromkeys(names, 0) if baseline is None else {name: getattr(baseline.facts, name) or 0 for name in names}
    )
    if now.culprits.cycles and any((getattr(now.facts, name) or 0) > before[name] for name in names):
        text = f"each step makes reference cycles, which only the collector frees: {now.culprits.cycles}"
        yield Cause(text=text, explains=names)


def waits_between(now: Measurement, baseline: Baseline | None) -> Iterator[Cause]:
    """Plain Python around the same programs takes longer, though it calls no more of Python."""
    if baseline is None or not now.eager or not now.launched_programs:
        return
    calls, before = (side.facts.python_calls or 0 for side in (now, baseline))
    if now.fingerprints.program == baseline.fingerprints.program and calls <= before:
        text = "Python around the same programs takes longer and calls no more functions: it waits, or C code in it does more"
        yield Cause(text=text, explains=frozenset({"host_ns", "dispatch_ns", "first_call_ns"}), sure=False)
