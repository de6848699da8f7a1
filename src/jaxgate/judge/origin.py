"""Where does a difference come from? Identity of programs, and a truth table over three fingerprints."""

from __future__ import annotations

from collections.abc import Mapping

from jaxgate.judge.arrival import has_changed_arrivals
from jaxgate.judge.launched_programs import why_unknown
from jaxgate.model import (
    COMPILE_OPTIONS,
    CORES,
    MAX_CHANGES_NAMED,
    UNKNOWN_SETTINGS,
    Baseline,
    Decision,
    Measurement,
    Origin,
    Status,
    TimeVerdict,
    in_brackets,
    plural,
    shortlist,
)

OUTSIDE = "options or values that the function's source does not have"
"""As how the test calls ``gate``, what a module makes outside of all functions, or other arguments."""
RELEASES = frozenset({"jax", "jaxlib"})
_COMPILES_NOTHING = frozenset({"flax", "jax", "numpy", "optax", "python"})
"""What of an environment shows in the programs that a compiler is given, or in calls around them, and not in its code."""
OTHER_EXECUTABLE = "the same program compiles to another executable here, and nothing that is known explains it"
OTHER_VALUES = " (input values changed; no operation's work depends on them)"
BOTH_OF_TODAY = "a duel would give both sides today's settings: --perf-against-env NAME=VALUE times both"
"""Why nothing is timed where other hardware recorded a baseline with other settings."""
ONLY_SOURCE = "the test's own source did not change"
"""Where a difference comes from, if no program is known that could be compared."""
_RESULTS = {
    True: "",
    False: "results differ from the baseline's; ",
    None: "results are too large to be compared with the baseline's; ",
}
"""What a duel says of them."""

_TRACED = frozenset(
    {
        "jax_default_matmul_precision", "jax_default_prng_impl", "jax_enable_x64", "jax_numpy_dtype_promotion",
        "jax_threefry_partitionable", "jax_use_simplified_jaxpr_constants",
    }
)  # fmt: skip
"""Settings that act while JAX traces: where the program is the same they had no part in it, and have none later."""


def environment_differences(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    """List what differs between two environments: ``jax 0.10.2 -> 0.12.0``."""
    return tuple(
        f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}"
        for name in sorted(now.keys() | before.keys())
        if now.get(name) != before.get(name)
    )


def tracing_differences(now: Measurement, baseline: Baseline) -> tuple[str, ...]:
    """The same of the settings that act while JAX traces."""
    ours, theirs = (
        {name: env[name] for name in _TRACED & env.keys()} for env in (now.environment, baseline.environment)
    )
    return environment_differences(ours, theirs)


def settings_changed(now: Measurement, baseline: Baseline) -> tuple[str, ...]:
    """Name what somebody set that compiles or runs the program otherwise: flags, variables, settings, usable cores.

    Both sides of a duel would be compiled and run under today's, so no duel shows what it does. A setting of JAX is
    among it only where the program is the same: what it did while tracing stands in the program.
    """
    ours, theirs = now.environment, baseline.environment
    program = now.fingerprints.program == baseline.fingerprints.program
    acts = {COMPILE_OPTIONS, UNKNOWN_SETTINGS, *([CORES] if now.hardware == baseline.hardware else [])}
    return tuple(
        name
        for name in sorted(ours.keys() | theirs.keys())
        if ours.get(name) != theirs.get(name)
        and (name in acts or name.isupper() or (program and name.startswith("jax_") and name not in _TRACED))
    )


def other_compiler(now: Measurement, baseline: Baseline) -> tuple[str, ...]:
    """What differs between the compilers of two environments: equal optimised programs may then have unequal code.

    The text of an optimised program ends where the code generator begins. Seen: the same loop took 1,000 times as long
    from jaxlib 0.11.1 as from 0.11.0 (jax-ml/jax#40101).
    """
    set_by_hand = settings_changed(now, baseline)
    ours, theirs = (
        {
            name: value
            for name, value in environment.items()
            if name not in _COMPILES_NOTHING and name not in set_by_hand and not name.startswith("jax_")
        }
        for environment in (now.environment, baseline.environment)
    )
    return environment_differences(ours, theirs)


def only_settings_changed(now: Measurement, baseline: Baseline) -> bool:
    """Whether only settings differ from the baseline's environment: stored facts are then compared exactly."""
    changed = settings_changed(now, baseline)
    brought = environment_differences(
        {name: value for name, value in now.environment.items() if name not in changed},
        {name: value for name, value in baseline.environment.items() if name not in changed},
    )
    return bool(changed) and not brought and now.hardware == baseline.hardware


def place(now: Measurement, baseline: Baseline) -> Origin:
    """Say what changed since the baseline, and what the rest of the differences must come from."""
    source = _same(now.fingerprints.source, baseline.fingerprints.source)
    program = now.fingerprints.program == baseline.fingerprints.program
    inputs = now.fingerprints.inputs == baseline.fingerprints.inputs
    settings = (now.fingerprints.options, baseline.fingerprints.options)
    # Where the programs of plain Python are unknown, their options stand in its source, or come from outside of it.
    options = True if now.eager and None in settings else _same(*settings)
    arrivals = not has_changed_arrivals(now, baseline)
    devices = has_same_devices(now, baseline)
    native = now.native_code == baseline.native_code
    environment = environment_differences(now.environment, baseline.environment)
    called = None in (now.facts.python_calls, baseline.facts.python_calls) or now.called == baseline.called
    if now.hardware != baseline.hardware:
        environment = (f"hardware {baseline.hardware.slug} → {now.hardware.slug}", *environment)

    executable = not has_other_executable(now, baseline)
    differences = tuple(
        f"{what} {'unknown' if same is None else 'changed'}"
        for what, same in (
            ("program", program),
            ("source", source),
            ("compiler options", options),
            ("input values", inputs),
            ("Python's calls", called),
            ("arrival of arguments", arrivals),
            ("device assignment", devices),
            ("native code", native),
            ("executable", executable),
        )
        if not same
    )
    separate = ""
    if source is True and options is True:
        if not environment:
            known = not now.eager or bool(now.launched_programs and baseline.launched_programs)
            unseen = "nothing changed" if known else ONLY_SOURCE
            unseen = unseen if called and native else "code outside the subject's source"
            unseen = unseen if executable else "environment"
            where = unseen if program and inputs and arrivals and devices else OUTSIDE
        elif program:
            where = "environment"
        elif any(line.split(" ", 1)[0] in RELEASES for line in environment):
            where = "JAX tracing and lowering"
        else:
            where = "environment"
    elif not environment and source is True:
        where = OUTSIDE  # options that the source does not spell out
    elif not environment:
        where = "code"
    else:
        where = "not separable here"
        versions = " ".join(f"{name}=={baseline.environment.get(name, '?')}" for name in ("jax", "jaxlib"))
        released = any(line.split(" ", 1)[0] in RELEASES for line in environment)
        how = f"pip install {versions}" if released else "undo " + ", ".join(environment[:3])
        separate = f"run again with the baseline's environment: {how}"
    return Origin(place=where, differences=(*differences, *environment), separate=separate)


def takes_same_arguments(now: Measurement, baseline: Baseline) -> bool:
    """Whether the baseline's program can be fed with today's arguments: their types, in order; names do not count."""
    return [leaf.aval for leaf in now.signature] == [leaf.aval for leaf in baseline.signature]


def inputs_matter(now: Measurement, baseline: Baseline) -> bool:
    """Whether input values changed and may change the work: not if the program is the same and none of its operations depends on them."""
    ours, theirs = now.fingerprints, baseline.fingerprints
    independent = ours.program == theirs.program and now.depends_on_values == ()
    return ours.inputs != theirs.inputs and not independent


def has_same_devices(now: Measurement, baseline: Baseline) -> bool:
    """Whether the program is laid out on its devices in the baseline's order, as far as that is known."""
    ours, theirs = now.fingerprints.devices, baseline.fingerprints.devices
    return None in (ours, theirs) or ours == theirs


def has_other_executable(now: Measurement, baseline: Baseline) -> bool:
    """Whether the compiler made something else of what is the same in all that is known.

    The source must be the same, too: the order of independent lines, to which the fingerprint of the program is blind,
    reaches the executable.
    """
    ours, theirs = now.fingerprints, baseline.fingerprints
    if None in (ours.executable, theirs.executable) or ours.executable == theirs.executable:
        return False
    return _same(ours.source, theirs.source) is True and not _changed(now, baseline)


def may_share_executable(now: Measurement, baseline: Baseline) -> bool:
    """Whether programs of one executable would also take the same time: with the same inputs, options and devices.

    Some options leave no trace in the optimised program (seen: the backend's optimisation level on CPU), as the order of
    its devices does, and argument values may decide how often a loop runs.
    """
    ours, theirs = now.fingerprints, baseline.fingerprints
    fed_alike = ours.inputs == theirs.inputs and ours.options is not None and ours.options == theirs.options
    return fed_alike and has_same_devices(now, baseline)


def differs(now: Measurement, baseline: Baseline) -> str:
    """Say why time cannot be judged by identity; empty if it can.

    Identity needs the same program structure, compiler options, device assignment, environment and hardware, the same
    input values where its work may depend on them, the same libraries where it calls native code, and a program that calls
    no Python. For plain Python this must hold for each program that it launches; its calls are facts of their own.
    """
    if uncovered := _uncovered(now, baseline):
        return uncovered
    if now.fingerprints.options is None or baseline.fingerprints.options is None:
        return "compiler options are unknown, so programs cannot be called identical"
    if changed := _changed(now, baseline):
        return changed
    return OTHER_EXECUTABLE if has_other_executable(now, baseline) else ""


def _uncovered(now: Measurement, baseline: Baseline) -> str:
    """What runs and is in no fingerprint, on whatever machine; empty if nothing is."""
    if now.eager and (why := why_unknown(now, baseline)):
        return why
    if now.facts.host_callbacks is None:
        return "it is unknown whether the program calls Python"
    if now.facts.host_callbacks and not now.only_raises:
        return "the program calls Python, which no fingerprint covers"
    theirs = baseline.native_code
    unknown = [target for target, library in now.native_code.items() if not (library and theirs.get(target))]
    if unknown:
        return f"the program calls {shortlist(unknown, MAX_CHANGES_NAMED)}, native code that no fingerprint covers"
    return ""


def _changed(now: Measurement, baseline: Baseline) -> str:
    environment = environment_differences(now.environment, baseline.environment)
    before = baseline.native_code
    libraries = (_name_of(one) for target, one in now.native_code.items() if one and one != before.get(target))
    changed = [
        name
        for name, same in (
            ("program", now.fingerprints.program == baseline.fingerprints.program),
            ("compiler options", now.fingerprints.options == baseline.fingerprints.options),
            ("inputs", not inputs_matter(now, baseline)),
            ("device assignment", has_same_devices(now, baseline)),
            ("native code", now.native_code == baseline.native_code),
            ("environment", not environment),
            ("hardware", now.hardware == baseline.hardware),
        )
        if not same
    ]
    return f"{' and '.join(changed)} changed{in_brackets((*libraries, *environment))}" if changed else ""


def _name_of(library: str) -> str:
    """Of a library and its hash."""
    return library.rpartition(" ")[0]


def judge_time(
    now: Measurement,
    baseline: Baseline,
    decision: Decision | None,
    no_duel: str,
    *,
    same_executable: bool = False,
) -> TimeVerdict:
    """Judge time: by identity of programs or executables where no clock is needed, else by the duel that was run."""
    difference = differs(now, baseline)
    if not difference:
        values = now.fingerprints.inputs != baseline.fingerprints.inputs
        libraries = sorted({_name_of(library) for library in now.native_code.values()})
        native = (
            f"; {shortlist(libraries, MAX_CHANGES_NAMED)} as before, what it calls in others is not seen"
            if libraries
            else ""
        )
        what = "identical program" if not now.eager else plural(len(now.launched_programs), "identical program")
        between = _between(now, baseline) if now.eager else ""
        checks = "; its error checks call Python (EQX_ON_ERROR=nan leaves them out)" if now.only_raises else ""
        reason = f"{what}{OTHER_VALUES if values else ''}{native}{checks}{between}"
        return TimeVerdict(status=Status.SAME, reason=reason)
    if same_executable and decision is None and not settings_changed(now, baseline):  # a stored time speaks of both
        from_other = " from another compiler" if other_compiler(now, baseline) else ""
        reason = f"the same executable as the baseline's{from_other} ({difference})"
        return TimeVerdict(status=Status.SAME, reason=reason)
    if decision is None:
        no_duel = BOTH_OF_TODAY if same_executable else no_duel
        anywhere = now.hardware.is_virtual or now.compiled_only or now.only_raises or bool(_uncovered(now, baseline))
        return TimeVerdict(status=Status.UNDECIDED, reason=f"{difference} and {no_duel}", anywhere=anywhere)
    return TimeVerdict(status=decision.status, reason=_reason(decision, difference), decision=decision)


def _between(now: Measurement, baseline: Baseline) -> str:
    """A note that the source of the Python between programs changed, which only its calls and its clock judge; else empty."""
    if _same(now.fingerprints.source, baseline.fingerprints.source):
        return ""
    return "; source changed: the Python between them is judged by its calls and host_ns"


def _reason(decision: Decision, difference: str) -> str:
    return f"{_RESULTS[decision.agrees]}{decision.reason} ({difference})"


def _same(now: str | None, before: str | None) -> bool | None:
    return None if now is None or before is None else now == before
