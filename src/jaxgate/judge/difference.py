"""What differs between a measurement and what it is held against: asked for everywhere, found out once.

``same_…`` is ``None`` where that is unknown. ``changed_…`` and the texts are empty where nothing differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from jaxgate.judge.launched_programs import why_unknown
from jaxgate.model.machine import COMPILE_OPTIONS, CORES, CORES_GIVEN_UP, UNKNOWN_SETTINGS
from jaxgate.model.measurement import BRANCHES, LOOP, MAX_NAMED, MeasuredProgram, Measurement
from jaxgate.model.verdict import Origin
from jaxgate.model.words import MAX_CHANGES_NAMED, in_brackets, shortlist

OUTSIDE = "options or values that the function's source does not have"
"""Such as how the test calls ``gate``, what a module makes outside of all functions, or other arguments."""
NO_SOURCE = "its source did not: a value from outside, or the order of a set"
"""Why a program changed alone: it depends on the process, or on values that no source spells out."""
ONLY_SOURCE = "the test's own source did not change"
"""Where a difference comes from, if no program is known that could be compared."""
OTHER_EXECUTABLE = "the same program compiles to another executable here, and nothing that is known explains it"
RELEASES = frozenset({"jax", "jaxlib"})
_TRACED = frozenset(
    {
        "jax_default_matmul_precision", "jax_default_prng_impl", "jax_enable_x64", "jax_numpy_dtype_promotion",
        "jax_threefry_partitionable", "jax_use_simplified_jaxpr_constants",
    }
)  # fmt: skip
"""Settings that act only while JAX traces: where the program is the same they changed nothing."""
_OF_CALLS = ("launches", "host_transfers", "host_reads", "host_waits", "kept_arrays", "cyclic_objects", "cyclic_arrays")
"""Facts of calls of plain Python: they change only with its code or its arguments."""
_COMPILES_NOTHING = frozenset({"flax", "jax", "numpy", "optax", "python", CORES})
"""Entries of an environment that show in the programs given to a compiler, or in the calls, and not in its code."""


def calls_python(now: Measurement) -> str:
    """Which Python a program calls, whose code is in no fingerprint; empty if it calls none that does more than raise."""
    if not now.facts.host_callbacks or now.only_raises:
        return ""
    named = now.culprits.callbacks
    return (
        f"the program calls Python{f' ({shortlist(named, MAX_NAMED)})' if named else ''}, which no fingerprint covers"
    )


def environment_differences(now: Mapping[str, str], before: Mapping[str, str]) -> tuple[str, ...]:
    """List what differs between two environments: ``jax 0.10.2 -> 0.12.0``."""
    return tuple(
        f"{name} {before.get(name, 'absent')} → {now.get(name, 'absent')}"
        for name in sorted(now.keys() | before.keys())
        if now.get(name) != before.get(name)
    )


@dataclass(frozen=True)
class Difference:
    """What differs between today's measurement and a baseline."""

    now: Measurement  # Today's measurement
    baseline: MeasuredProgram  # what it is held against

    @cached_property
    def same_source(self) -> bool | None:
        """Whether the subject's source is the same."""
        return _same(self.now.fingerprints.source, self.baseline.fingerprints.source)

    @cached_property
    def same_program(self) -> bool:
        """Whether the program that the compiler is given is the same."""
        return self.now.fingerprints.program == self.baseline.fingerprints.program

    @cached_property
    def same_options(self) -> bool | None:
        """Whether the compiler's options are the same."""
        return _same(self.now.fingerprints.options, self.baseline.fingerprints.options)

    @cached_property
    def same_inputs(self) -> bool:
        """Whether the values of the arguments are the same."""
        return self.now.fingerprints.inputs == self.baseline.fingerprints.inputs

    @cached_property
    def same_work(self) -> bool:
        """True if argument values cannot change the amount of work: nothing depends on them, or only loops turning as often."""
        return self.same_inputs or (self.same_program and (self.now.depends_on_values == () or self.same_turns))

    @cached_property
    def same_turns(self) -> bool:
        """True if only loops and branches depend on argument values, and they run as often as they did."""
        counted = {name.partition(" ")[0] for name in self.now.turns}
        seen = {*([LOOP] if "while" in counted else []), *(BRANCHES if "cond" in counted else [])}
        only_these = seen.issuperset(self.now.depends_on_values or ("unknown",))
        return only_these and self.now.turns == self.baseline.turns

    @cached_property
    def same_devices(self) -> bool:
        """Whether the program is laid out on its devices in the same order, as far as that is known."""
        return _same(self.now.fingerprints.devices, self.baseline.fingerprints.devices) is not False

    @cached_property
    def same_hardware(self) -> bool:
        """Whether it is hardware of the same name."""
        return self.now.hardware == self.baseline.hardware

    @cached_property
    def same_cores(self) -> bool:
        """Whether as many cores may be used: with fewer it is another machine, and stored times do not apply."""
        return self.now.environment.get(CORES) == self.baseline.environment.get(CORES)

    @cached_property
    def same_native_code(self) -> bool:
        """Whether the libraries whose code the program calls are the same."""
        return self.now.native_code == self.baseline.native_code

    @cached_property
    def same_arguments(self) -> bool:
        """Whether the baseline's program takes today's arguments: their types, in order; names do not count."""
        return [leaf.aval for leaf in self.now.signature] == [leaf.aval for leaf in self.baseline.signature]

    @cached_property
    def same_arrivals(self) -> bool:
        """Whether arguments are given in the same way, as far as that is known."""
        pairs = zip(self.now.signature, self.baseline.signature, strict=False)
        return all(_same(leaf.arrival, before.arrival) is not False for leaf, before in pairs)

    @cached_property
    def same_calls(self) -> bool:
        """Whether a call calls the same functions of Python, as far as that was counted."""
        counts = (self.now.facts.python_calls, self.baseline.facts.python_calls)
        return None in counts or self.now.called == self.baseline.called

    @cached_property
    def changed_environment(self) -> tuple[str, ...]:
        """What differs between the environments, one line each."""
        return environment_differences(self.now.environment, self.baseline.environment)

    @cached_property
    def changed_libraries(self) -> tuple[str, ...]:
        """Packages that the program comes from and that have another version, one line each."""
        now, before = self.now.libraries, self.baseline.libraries
        both = now.keys() & before.keys()
        return environment_differences({name: now[name] for name in both}, {name: before[name] for name in both})

    @cached_property
    def changed_settings(self) -> tuple[str, ...]:
        """Names of what somebody set that compiles or runs the program otherwise: flags, variables, JAX's settings, cores.

        Both sides of a duel would be compiled and run under today's, so no duel shows what they do. A setting of JAX is
        among them only where the program is the same: what it did while tracing stands in the program.
        """
        acts = {COMPILE_OPTIONS, UNKNOWN_SETTINGS, CORES_GIVEN_UP}
        return tuple(
            name
            for name in self._changed_names
            if name in acts or name.isupper() or (self.same_program and name.startswith("jax_") and name not in _TRACED)
        )

    @cached_property
    def only_settings(self) -> bool:
        """Whether only settings differ between the environments: stored facts are then compared exactly."""
        return (
            bool(self.changed_settings)
            and set(self.changed_settings) == set(self._changed_names)
            and self.same_hardware
        )

    @cached_property
    def changed_tracing_settings(self) -> tuple[str, ...]:
        """What differs of the settings that act while JAX traces, one line each."""
        return self._lines(_TRACED.intersection(self._changed_names))

    @cached_property
    def changed_compiler(self) -> tuple[str, ...]:
        """What differs between the compilers, one line each: equal optimised programs may then have unequal code.

        The text of an optimised program ends where the code generator begins. Seen: the same loop took 1,000 times as
        long from jaxlib 0.11.1 as from 0.11.0 (jax-ml/jax#40101).
        """
        names = set(self._changed_names) - set(self.changed_settings) - _COMPILES_NOTHING
        return self._lines(name for name in names if not name.startswith("jax_"))

    @cached_property
    def executable_is_explained(self) -> bool:
        """False only if the executable differs although nothing known does, source included.

        The source counts because the order of independent lines, to which the program's fingerprint is blind, reaches
        the executable.
        """
        same = _same(self.now.fingerprints.executable, self.baseline.fingerprints.executable)
        return same is not False or self.same_source is not True or bool(self._changes)

    @cached_property
    def times_as_executable(self) -> bool:
        """Whether programs of one executable would also take the same time: with the same inputs, options and devices.

        Some options leave no trace in the optimised program (seen: the backend's optimisation level on CPU), as the order of
        its devices does, and argument values may decide how often a loop runs.
        """
        return self.same_inputs and self.same_options is True and self.same_devices

    @cached_property
    def uncovered(self) -> str:
        """What the program runs that no fingerprint covers, on whatever machine."""
        now = self.now
        if now.eager and (why := why_unknown(now, self.baseline)):
            return why
        if now.facts.host_callbacks is None:
            return "it is unknown whether the program calls Python"
        if python := calls_python(now):
            return python
        theirs = self.baseline.native_code
        unknown = [target for target, library in now.native_code.items() if not (library and theirs.get(target))]
        if unknown:
            return f"the program calls {shortlist(unknown, MAX_CHANGES_NAMED)}, native code that no fingerprint covers"
        return ""

    @cached_property
    def why_not_identical(self) -> str:
        """Why time cannot be judged by identity; empty if it can.

        Input values count only where the work may depend on them. Of plain Python each program that it launches must be
        identical; its calls are facts of their own.
        """
        if self.uncovered:
            return self.uncovered
        if self.same_options is None:
            return "compiler options are unknown, so programs cannot be called identical"
        return self._changes or ("" if self.executable_is_explained else OTHER_EXECUTABLE)

    @cached_property
    def origin(self) -> Origin:
        """What changed since the baseline, and what the rest of the differences must come from."""
        environment = self.changed_environment
        if not self.same_hardware:
            environment = (f"hardware {self.baseline.hardware.slug} → {self.now.hardware.slug}", *environment)
        # Where the programs of plain Python are unknown, their options stand in its source, or come from outside of it.
        options = True if self.now.eager and self.same_options is None else self.same_options
        differences = tuple(
            f"{what} {'unknown' if same is None else 'changed'}"
            for what, same in (
                ("program", self.same_program),
                ("source", self.same_source),
                ("compiler options", options),
                ("input values", self.same_inputs),
                ("Python's calls", self.same_calls),
                ("arrival of arguments", self.same_arrivals),
                ("device assignment", self.same_devices),
                ("native code", self.same_native_code),
                ("executable", self.executable_is_explained),
            )
            if not same
        )
        place = self._place(environment, options=options)
        separate = self._how_to_separate(environment) if place == "not separable here" else ""
        return Origin(place=place, differences=(*differences, *environment), separate=separate)

    def _place(self, environment: tuple[str, ...], *, options: bool | None) -> str:
        if self.same_source is not True:
            return "not separable here" if environment else "code"
        if options is not True:
            return "not separable here" if environment else OUTSIDE  # the source does not spell its options out
        if environment:
            return "JAX tracing and lowering" if not self.same_program and _has_release(environment) else "environment"
        if not self.same_program and self.changed_libraries:
            return ", ".join(self.changed_libraries)
        if not (self.same_program and self.same_inputs and self.same_arrivals and self.same_devices):
            return OUTSIDE
        if not self.executable_is_explained:
            return "environment"
        if not (self.same_calls and self.same_native_code):
            return "code outside the subject's source"
        if any(_same(*(getattr(one.facts, name) for one in (self.now, self.baseline))) is False for name in _OF_CALLS):
            return OUTSIDE
        known = not self.now.eager or bool(self.now.launched_programs and self.baseline.launched_programs)
        return "nothing changed" if known else ONLY_SOURCE

    def _how_to_separate(self, environment: tuple[str, ...]) -> str:
        versions = " ".join(f"{name}=={self.baseline.environment.get(name, '?')}" for name in sorted(RELEASES))
        how = f"pip install {versions}" if _has_release(environment) else "undo " + ", ".join(environment[:3])
        return f"run again with the baseline's environment: {how}"

    @cached_property
    def _changed_names(self) -> tuple[str, ...]:
        """Names of what differs between the environments."""
        ours, theirs = self.now.environment, self.baseline.environment
        return tuple(name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name))

    def _lines(self, names: Iterable[str]) -> tuple[str, ...]:
        """What differs of these names, one line each."""
        wanted = set(names)
        sides = (self.now.environment, self.baseline.environment)
        now, before = ({name: side[name] for name in wanted & side.keys()} for side in sides)
        return environment_differences(now, before)

    @property
    def unexplained(self) -> bool:
        """True if the program changed though its source, its arguments and all around it are the same."""
        around = (
            self.now.fingerprints.options == self.baseline.fingerprints.options,
            self.same_work,
            self.same_devices,
            self.same_native_code,
            self.same_hardware,
        )
        return (
            not self.same_program
            and self.same_source is True
            and all(around)
            and not (self.changed_environment or self.changed_libraries)
        )

    @cached_property
    def _changes(self) -> str:
        """What differs of all that identity needs."""
        before = self.baseline.native_code
        libraries = (
            library_name(one) for target, one in self.now.native_code.items() if one and one != before.get(target)
        )
        changed = [
            name
            for name, same in (
                ("program", self.same_program),
                ("compiler options", self.now.fingerprints.options == self.baseline.fingerprints.options),
                ("inputs", self.same_work),
                ("device assignment", self.same_devices),
                ("native code", self.same_native_code),
                ("environment", not self.changed_environment),
                ("hardware", self.same_hardware),
            )
            if not same
        ]
        why = (*libraries, *self.changed_environment, *([NO_SOURCE] if self.unexplained else []))
        return f"{' and '.join(changed)} changed{in_brackets(why)}" if changed else ""


def library_name(library: str) -> str:
    """The name in a text of a library and its hash."""
    return library.rpartition(" ")[0]


def _has_release(environment: tuple[str, ...]) -> bool:
    return any(line.split(" ", 1)[0] in RELEASES for line in environment)


def _same(now: str | int | None, before: str | int | None) -> bool | None:
    return None if now is None or before is None else now == before
