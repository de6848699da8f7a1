"""What a run looks at the world with: each instrument can be replaced, as tests do."""

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
from jaxgate.ext.history.stored import StoredRuns, open_history
from jaxgate.ext.opinion.ask import second_opinion
from jaxgate.ext.opinion.model import Opinion
from jaxgate.ext.opinion.process import InterpreterProcess
from jaxgate.ext.profile.capture import Taken, take_profile
from jaxgate.ext.profile.model import OpTable
from jaxgate.ext.profile.worker import read_table
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetProcess
from jaxgate.judge.timing.confirmation import PROCESSES
from jaxgate.keep.git import utc_now, utc_today
from jaxgate.model.duel import Duel, RepeatOutcome
from jaxgate.model.machine import HardwareKey, JaxDefaults
from jaxgate.observe.duel.duel import Contender, Side, prepare, run_duel
from jaxgate.observe.machine.load import MachineState, look
from jaxgate.processes.jax_query import ask_hardware, find_defaults
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
    """Clock, duel, fresh processes, profiles, the look at the machine, today's date, and somebody to ask."""

    # times a program in turn with its baseline's, or with itself, in this process
    run_duel: Callable[..., Duel] = run_duel
    run_reference_duel: Callable[..., Duel] = run_duel  # times a program with its reference
    repeat_duel: Callable[[FreshDuel], RepeatOutcome] = repeat_duel  # runs a duel again in a fresh process
    # gives a process to each side of a duel
    open_sides: Callable[[FreshDuel], AbstractContextManager[tuple[Side, Side]]] = open_sides
    prepare: Callable[..., Contender] = prepare  # compiles a stored program for a duel
    take_profile: Callable[..., Taken] = take_profile  # profiles one side of a red case
    read_table: Callable[..., OpTable | None] = read_table  # reads in a process of its own what was profiled
    record: RecordSelection = record_selection  # records a test in a fresh process of pytest
    # records the selected tests of another revision, or of another environment
    record_other: RecordSelection = record_selection
    look: Callable[..., MachineState] = look  # looks whether the machine is quiet
    # gives the counters of energy, each looked for when it is first asked for
    find_meters: Callable[[], EnergyMeters] = EnergyMeters
    # asks a process of its own what the first device is
    find_hardware: Callable[[Path, Mapping[str, str]], HardwareKey] = ask_hardware
    today: Callable[[], date] = utc_today  # the UTC date
    moment: Callable[[], str] = utc_now  # date and time, UTC
    clock: Callable[[], int] = time.perf_counter_ns  # monotonic nanoseconds
    jax_defaults: Callable[[], JaxDefaults | None] = find_defaults  # asks a process of its own what JAX does by default
    processes: int = PROCESSES  # how many fresh processes must agree before a clock fails a test
    patience_s: float = PATIENCE_S  # seconds after which a stage is printed
    asker: Callable[[], Ask | None] = asker  # gives how to ask somebody about what moved
    open_target: Callable[[Target], TargetCompiler] = TargetProcess  # starts the compiler of hardware that is not there
    # gives StableHLO's reference interpreter, which starts when it is first asked
    open_interpreter: Callable[[], InterpreterProcess] = InterpreterProcess
    # opens what earlier runs stored; gives `None` where nothing is kept
    open_history: Callable[[Settings, Path], StoredRuns | None] = open_history
    second_opinion: Callable[..., Opinion] = second_opinion  # asks the interpreter or a second compile about a result
