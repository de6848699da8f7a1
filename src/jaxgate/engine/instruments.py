"""What a run looks at the world with. A test gives its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from jaxgate.engine.fresh_process import FreshDuel, repeat_duel
from jaxgate.judge import PROCESSES
from jaxgate.keep import utc_today
from jaxgate.model import Duel, HardwareKey, RepeatOutcome
from jaxgate.observe.duel import run_duel
from jaxgate.observe.machine import MachineState, look
from jaxgate.processes.pytest_child import Selection, Side, record_selection
from jaxgate.processes.time_sessions import find_hardware

RecordSelection = Callable[[Side, Selection, Path], dict[str, str]]
"""Records the selected tests into a folder, in another process; gives what failed there, by test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruments:
    """Clock, duel, fresh processes, the look at the machine, and today's date.

    Attributes:
        run_duel: Times a program in turn with its baseline's, or with itself, in this process.
        run_reference_duel: Times it with its reference.
        repeat_duel: Does it in a fresh process.
        record: Records a test in a fresh process of pytest.
        look: Looks whether the machine is quiet.
        find_hardware: Asks a process of its own what the first device is.
        today: The UTC date.
        clock: Monotonic nanoseconds.
        processes: How many fresh processes must agree before a clock fails a test.
    """

    run_duel: Callable[..., Duel] = run_duel
    run_reference_duel: Callable[..., Duel] = run_duel
    repeat_duel: Callable[[FreshDuel], RepeatOutcome] = repeat_duel
    record: RecordSelection = record_selection
    look: Callable[..., MachineState] = look
    find_hardware: Callable[[Path], HardwareKey] = find_hardware
    today: Callable[[], date] = utc_today
    clock: Callable[[], int] = time.perf_counter_ns
    processes: int = PROCESSES
