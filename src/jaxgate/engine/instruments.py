"""What a run looks at the world with. A test gives its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from jaxgate.engine.duels.duel_processes import FreshDuel, open_sides, repeat_duel
from jaxgate.engine.run.progress import PATIENCE_S
from jaxgate.ext.energy.counters import EnergyMeters
from jaxgate.ext.history.budget import PastPoints
from jaxgate.ext.history.stored import open_history
from jaxgate.ext.opinion.ask import Interpreter, second_opinion
from jaxgate.ext.opinion.model import Opinion
from jaxgate.ext.opinion.process import InterpreterProcess
from jaxgate.ext.profile.capture import Taken, take_profile
from jaxgate.ext.profile.model import OpTable
from jaxgate.ext.profile.worker import read_table
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetProcess
from jaxgate.ext.times.sessions import find_hardware
from jaxgate.judge.timing.confirmation import PROCESSES
from jaxgate.keep.git import utc_now, utc_today
from jaxgate.model.duel import Duel, RepeatOutcome
from jaxgate.model.machine import HardwareKey, JaxDefaults
from jaxgate.observe.duel.duel import Contender, Side, prepare, run_duel
from jaxgate.observe.machine.load import MachineState, look
from jaxgate.processes.defaults_query import find_defaults
from jaxgate.processes.pytest_child import RecordSelection, record_selection
from jaxgate.settings import Settings

Ask = Callable[[str], str]


def asker() -> Ask | None:
    """How to ask somebody; ``None`` where nobody is there."""
    if sys.stdin is None or sys.stdin.closed or not sys.stdin.isatty():
        return None
    return input


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """Clock, duel, fresh processes, profiles, the look at the machine, today's date, and somebody to ask.

    Attributes:
        run_duel: Times a program in turn with its baseline's, or with itself, in this process.
        run_reference_duel: Times it with its reference.
        repeat_duel: Does it in a fresh process.
        open_sides: Gives a process to each side of a duel.
        prepare: Compiles a stored program for a duel.
        take_profile: Profiles one side of a red case.
        read_table: Reads in a process of its own what was profiled.
        record: Records a test in a fresh process of pytest.
        record_other: Records the selected tests of another revision, or of another environment.
        look: Looks whether the machine is quiet.
        find_meters: Gives the counters of energy, each looked for when it is first asked for.
        find_hardware: Asks a process of its own what the first device is.
        today: The UTC date.
        moment: Date and time, UTC.
        clock: Monotonic nanoseconds.
        jax_defaults: Asks a process of its own what JAX does by default.
        processes: How many fresh processes must agree before a clock fails a test.
        patience_s: Seconds after which a stage is printed.
        asker: Gives how to ask somebody about what moved.
        open_target: Starts the compiler of hardware that is not there.
        open_interpreter: Gives StableHLO's reference interpreter, which starts when it is first asked.
        open_history: Opens what earlier runs stored; gives ``None`` where nothing is kept.
        second_opinion: Asks it, or a second compile, about a result.
    """

    run_duel: Callable[..., Duel] = run_duel
    run_reference_duel: Callable[..., Duel] = run_duel
    repeat_duel: Callable[[FreshDuel], RepeatOutcome] = repeat_duel
    open_sides: Callable[[FreshDuel], AbstractContextManager[tuple[Side, Side]]] = open_sides
    prepare: Callable[..., Contender] = prepare
    take_profile: Callable[..., Taken] = take_profile
    read_table: Callable[..., OpTable | None] = read_table
    record: RecordSelection = record_selection
    record_other: RecordSelection = record_selection
    look: Callable[..., MachineState] = look
    find_meters: Callable[[], EnergyMeters] = EnergyMeters
    find_hardware: Callable[[Path, Mapping[str, str]], HardwareKey] = find_hardware
    today: Callable[[], date] = utc_today
    moment: Callable[[], str] = utc_now
    clock: Callable[[], int] = time.perf_counter_ns
    jax_defaults: Callable[[], JaxDefaults | None] = find_defaults
    processes: int = PROCESSES
    patience_s: float = PATIENCE_S
    asker: Callable[[], Ask | None] = asker
    open_target: Callable[[Target], TargetCompiler] = TargetProcess
    open_interpreter: Callable[[], Interpreter] = InterpreterProcess
    open_history: Callable[[Settings, Path], PastPoints | None] = open_history
    second_opinion: Callable[..., Opinion] = second_opinion
