"""The device programs of a warm call of plain Python, each lowered and compiled by itself: what they are, and what they cost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax

from jaxgate.model.launched import CALL_FACTS, LaunchedProgram, call_facts
from jaxgate.model.measurement import MAX_NAMED, InvalidCaseError
from jaxgate.model.words import plural, shortlist
from jaxgate.observe.arguments.feeder import Call, on_device
from jaxgate.observe.arguments.lockstep import Lockstep, is_spread
from jaxgate.observe.compat import under_a_named_axis
from jaxgate.observe.errors import describe, guarded
from jaxgate.observe.execute.dispatches import Launched
from jaxgate.observe.execute.recorded_calls import Forced, RecordedCalls, RecordedProgram, recorded_calls
from jaxgate.observe.execute.subjects import EagerSubject
from jaxgate.observe.program.communication import Communication, read_communication
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stablehlo import value_dependent
from jaxgate.observe.trace.stages import Program, compile_program, device_assignment, devices_of


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerProgram:
    """One program, compiled for the arguments of its first call."""

    call: Call  # these arguments, on the device; those that it consumes are copies
    count: int  # how often a call of the subject calls it
    program: Program  # its executable, with what was read from it
    communication: Communication  # what it sends between devices

    @property
    def described(self) -> LaunchedProgram:
        """What is kept of it."""
        lowered = self.program.lowered
        return LaunchedProgram(
            name=lowered.name,
            count=self.count,
            fingerprint=lowered.fingerprint,
            options=lowered.options_text,
            devices=device_assignment(lowered.stage),
            arguments=tuple(leaf.aval for leaf in lowered.signature),
            facts=self.facts,
        )

    @property
    def facts(self) -> dict[str, int]:
        """Facts of one call of it, by name, as far as they are known."""
        found = self.communication
        facts = replace(self.program.facts, collectives=found.count, collective_bytes=found.nbytes)
        return {name: value for name, value in asdict(facts).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerPrograms:
    """The programs of a warm call; none, and why, where they are not all known."""

    programs: tuple[EagerProgram, ...] = ()
    why_not: str = ""

    @property
    def described(self) -> tuple[LaunchedProgram, ...]:
        """What is kept of each."""
        return tuple(one.described for one in self.programs)

    @property
    def unknown(self) -> dict[str, str]:
        """The facts that are unknown if not all programs are known, each with the reason."""
        return dict.fromkeys(CALL_FACTS, self.why_not) if self.why_not else {}

    @property
    def facts(self) -> dict[str, int | None]:
        """Facts of a call of the subject."""
        return call_facts(self.described)

    def histogram(self, read: Callable[[EagerProgram], Mapping[str, int]], *, calls: bool = True) -> dict[str, int]:
        """Add up what is counted by label in each program, for each call of it or once."""
        total = Counter[str]()
        for one in self.programs:
            total.update({label: count * (one.count if calls else 1) for label, count in read(one).items()})
        return dict(sorted(total.items()))

    @property
    def operations(self) -> dict[str, int]:
        """StableHLO operations of all programs."""
        return self.histogram(lambda one: one.program.structure.operations, calls=False)

    @property
    def options(self) -> str | None:
        """The compiler options of all programs that have some; ``None`` if those of one are not known."""
        found = {one.program.lowered.name: one.program.lowered.options_text for one in self.programs}
        if not found or None in found.values():
            return None
        return "; ".join(f"{name}: {text}" for name, text in sorted(found.items()) if text)

    @property
    def lines(self) -> dict[str, str]:
        """What is counted by label, to the source line of one."""
        found: dict[str, str] = {}
        for one in self.programs:
            program = one.program
            found |= {
                **program.structure.lines,
                **one.communication.lines,
                **program.work.lines,
                **program.kernels.lines,
            }
        return found

    @property
    def depends_on_values(self) -> tuple[str, ...] | None:
        """Operations whose work may depend on values."""
        if self.why_not:
            return None
        modules = (one.program.lowered.stage.compiler_ir("stablehlo") for one in self.programs)
        return tuple(sorted({name for module in modules for name in value_dependent(module)}))

    @property
    def only_raises(self) -> bool:
        """Whether the Python that the programs call does nothing but raise."""
        calling = [one.program for one in self.programs if one.program.structure.host_callbacks]
        return bool(calling) and all(one.work.only_raises(one.structure.host_callbacks) for one in calling)


def find_programs(subject: EagerSubject, launched: Launched, tools: Tools) -> EagerPrograms:
    """Record a warm call, and compile each of its programs by itself.

    The recording must agree with ``launched``, where there is a profile.

    Raises:
        InvalidCaseError: If the call fails.
    """
    tools.progress("recording its programs")
    with guarded(f"recording a call of the {subject.role}"):
        try:
            calls = _record(subject)
        except jax.errors.KeyReuseError:
            calls = _record(subject, under_a_named_axis)
    problem = _unlike(calls.programs, launched)
    tools.progress("compiling its programs")
    found: list[EagerProgram] = []
    try:
        found = _merged(_compiled(one, tools) for one in calls.programs if not problem)
    except InvalidCaseError as error:
        problem = f"a program that it launches could not be compiled by itself: {describe(error)}"
    if tools.together.anyone("a program could not be recorded", bool(problem)):
        return EagerPrograms(why_not=problem or "another rank could not record a program")
    return EagerPrograms(programs=tuple(found))


def compare_launches(subject: EagerSubject, together: Lockstep) -> None:
    """Call plain Python once; each program over several ranks must be every rank's next one, before it runs.

    Raises:
        InvalidCaseError: If ranks differ in what they launch, with the first operation that differs; or if the call fails.
    """
    numbers = itertools.count(1)

    def meet(text: str) -> None:
        together.same(f"program {next(numbers)} that it launches over several ranks", lambda: text)

    def before(parameters: Mapping[str, Any], arguments: Sequence[Any]) -> None:
        if any(map(is_spread, arguments)):
            meet(str(parameters["jaxpr"]))

    with guarded(f"comparing what ranks launch in the {subject.role}"), recorded_calls(before=before):
        subject.call(subject.fresh())
    meet("no further program")


def _record(subject: EagerSubject, forced: Forced | None = None) -> RecordedCalls:
    with recorded_calls(forced) as calls:
        subject.call(subject.fresh())  # it traces anew, which runs operations of its own
        call = subject.fresh()
        calls.restart()
        subject.call(call)
    return calls


def _unlike(programs: tuple[RecordedProgram, ...], launched: Launched) -> str:
    """Why the recorded programs are not those that a call launches; empty if they are, or no profile shows it."""
    if launched.programs is None:
        return ""
    recorded, seen = (
        sum(one.count for one in programs),
        sum(launched.programs.values()),
    )  # a profile may name them otherwise
    if recorded == seen:
        return ""
    return (
        f"a call launches {shortlist([f'{name} ({count} ×)' for name, count in launched.programs.items()], MAX_NAMED)}, "
        f"and {recorded} of {plural(seen, 'launch', 'launches')} could be recorded: those of what was compiled ahead of "
        "time cannot be; call the jitted function itself"
    )


def _compiled(recorded: RecordedProgram, tools: Tools) -> EagerProgram:
    call = on_device(recorded.arguments, {})
    clocks = tools.clocks
    role = f"program {recorded.name}"
    lowered = lower(recorded.function, *call, role=role, clock=clocks.thread, asleep=clocks.asleep, cold=False)
    program = compile_program(lowered, clocks=clocks, lines=True)
    return EagerProgram(
        call=call,
        count=recorded.count,
        program=program,
        communication=read_communication(program, devices_of(program.executable)),
    )


def _merged(programs: Iterable[EagerProgram]) -> list[EagerProgram]:
    """Each program once, with all calls of it: functions that are written twice may give one program."""
    found: dict[object, EagerProgram] = {}
    for one in programs:
        key = one.described.identity
        found[key] = replace(found[key], count=found[key].count + one.count) if key in found else one
    return list(found.values())
