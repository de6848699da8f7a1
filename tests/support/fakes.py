"""Every clock, machine and fresh process of jaxgate that a golden run replaces: the one file that names its modules.

What a test says through here survives any move of a module; only the names in this file follow it.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import os
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest
from support.energy import no_meters
from support.factories import CALL_NS, steady
from support.lines import line_here

import jaxgate
from jaxgate.engine.duels.duel_processes import FreshDuel
from jaxgate.engine.instruments import Instruments
from jaxgate.ext.profile.model import OpRow, OpTable
from jaxgate.ext.profile.programs import Profiled
from jaxgate.judge.claims import decide_claim
from jaxgate.judge.policy import STORED_PHASE_POLICIES
from jaxgate.judge.timing.duel import decide
from jaxgate.model.duel import DUEL_BURST_NS, Duel, RepeatOutcome
from jaxgate.model.machine import folder_name
from jaxgate.model.numbers import Phases, Samples
from jaxgate.observe.execute import samples
from jaxgate.observe.machine import load
from jaxgate.observe.machine.environment import first_device, read_environment
from jaxgate.observe.machine.load import MachineState
from jaxgate.plugin.stash import INSTRUMENTS
from jaxgate.processes.live_worker import WorkerError
from jaxgate.processes.pytest_child import Selection

TODAY = dt.date(2026, 11, 21)
QUIET = MachineState(cores=2, load=0.1, busy_cores=0.0, steal=0.0, clock=None)
BUSY = MachineState(cores=2, load=1.9, busy_cores=1.9, steal=0.05, clock=None)
CRASHED = RepeatOutcome(problem="a fresh process failed: exit status -9")
QUICK, SLOW = (Phases(trace_ns=n, lower_ns=n, compile_ns=n, first_call_ns=n, host_ns=n) for n in (1, 10))

KNOWN_BREAK = "from jaxgate import KnownBreak"
"""How a project imports what ``jaxgate`` itself does not give."""


def import_everything() -> None:
    """Import all of jaxgate: pytester forgets what its runs import, and a patched module must be there before."""
    for found in pkgutil.walk_packages(jaxgate.__path__, "jaxgate."):
        importlib.import_module(found.name)


def duel(ratio: float, pairs: int = 20, *, traces: int = 0) -> Duel:
    """A duel without noise, of calls that take 10 ms in the baseline."""
    return steady(ratio, pairs, traces=traces)


def judge_phases_by(patch: pytest.MonkeyPatch, *policies: Any) -> None:
    """Judge stored phases by these policies; by none, as a machine that runs two suites compiles 100 ms more slowly."""
    patch.setattr("jaxgate.judge.timing.phases.STORED_PHASE_POLICIES", policies)


def shorten_duels(patch: pytest.MonkeyPatch) -> None:
    """Let real duels, and samples of calls, take a twentieth of their time, where nothing is asked of what they find."""
    patch.setitem(DUEL_BURST_NS, "cpu", DUEL_BURST_NS["cpu"] // 20)
    patch.setattr(samples, "SAMPLE_BURST_NS", samples.SAMPLE_BURST_NS // 20)
    patch.setattr(load, "ROUNDS", 1)


def operation_table(_folder: Path, sides: Sequence[Profiled], _notes: list[str], **_: object) -> OpTable:
    """What profiles say on a machine that does nothing else: today's side sorts, and the other one does not."""
    row = OpRow(name="sort", line="test_model.py:6", now_ns=700.0, other_ns=0.0)
    others = {"folded": 2, "folded_now_ns": 300.0, "folded_other_ns": 300.0}
    other = sides[1].side if len(sides) > 1 else ""
    return OpTable(other=other, rows=(row,), now_ns=1000.0, other_ns=300.0, floor_ns=10.0, **others)


def device_kind() -> str:
    """What this machine calls its device; it is in texts."""
    return first_device().device_kind


def hardware_slug() -> str:
    """What this machine is called where its devices are meant, not its baselines."""
    return first_device().slug


def folder_here() -> str:
    """The folder of this machine's baselines."""
    return folder_name(hardware_slug(), line_here())


class Lab:
    """What every clock says, until a test says otherwise: nothing is slower, the machine is quiet, it is a fixed day.

    Attributes:
        finds: What the duel with the baseline finds, and that with the reference; an exception is raised.
        processes: Ratios that fresh processes find, one after the other and again; or whole outcomes.
        control: The ratio of a program to itself in a fresh process.
        phases: What fresh processes say of phases, one after the other; or why they say nothing.
        looks: What looks at the machine see, one after the other; quiet once they are used up.
        fresh_ns: Times of a call in fresh processes that record, one after the other.
        call_ns: Time of a call in this process.
        dispatch_ns: Python's part of one.
        no_sides: Why a side of a duel cannot have a process of its own; empty if it can.
        results: What each of two such processes gives; ``None`` if it is too large.
        breaks: What a fresh process that records does to each baseline.
        accepted: The baselines that a fresh process records again.
        duelled: The opponents of the duels that were run, in order.
        apart: The duels that had a process for each side.
        launched: The duels that were handed to fresh processes.
        recorded: What fresh processes were asked to record.
        looked: How the machine was looked at.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self.finds: dict[str, Duel | Exception] = {"baseline": duel(1.0), "reference": duel(1.0)}
        self.processes: list[float | RepeatOutcome] = [1.3]
        self.control = 1.0
        self.phases: list[Phases | str] = []
        self.looks: list[MachineState] = []
        self.fresh_ns: list[int] = []
        self.call_ns = CALL_NS
        self.dispatch_ns = 1_000
        self.no_sides = "no process of its own is to be had"
        self.results: dict[str, list[np.ndarray[Any, Any]] | None] = {"now": [np.ones(2)], "baseline": [np.ones(2)]}
        self.breaks: Callable[[dict[str, Any]], object] = lambda content: content
        self.accepted = folder / "baselines"
        self.environment = read_environment
        self.duelled: list[str] = []
        self.apart: list[FreshDuel] = []
        self.launched: list[FreshDuel] = []
        self.recorded: list[Selection] = []
        self.looked: list[dict[str, bool]] = []
        self.instruments: dict[str, Any] = {
            "run_duel": self._duel("baseline"),
            "run_reference_duel": self._duel("reference"),
            "repeat_duel": self._fresh_duel,
            "open_sides": self._open_sides,
            "record": self._record,
            "look": self._look,
            "find_meters": no_meters,
            "find_hardware": lambda _project, _environ: first_device(),
            "today": lambda: TODAY,
            "patience_s": 1e6,  # a busy machine tells of stages that take long
        }
        for module in ("jaxgate.keep.git", "jaxgate.cli.baselines"):
            monkeypatch.setattr(f"{module}.utc_today", lambda: TODAY)
        monkeypatch.setattr("jaxgate.observe.measure_calls.sample", self._sample)
        monkeypatch.setattr("jaxgate.observe.measure.dispatch_time", self._dispatch_time)
        monkeypatch.setattr("jaxgate.observe.observation.read_yardstick", lambda _clock: 1_000_000)

    def change_environment(self) -> None:
        """From now on a flag is set."""
        self.environment = lambda device: read_environment(device) | {"XLA_FLAGS": "--xla_new"}
        self._patch.setattr("jaxgate.observe.observation.read_environment", self.environment)

    def judge_phases(self) -> None:
        """Let a phase be red that took more than its baseline, however little that is."""
        judge_phases_by(self._patch, *(replace(policy, absolute=0) for policy in STORED_PHASE_POLICIES))

    def answer(self, *answers: str | type[BaseException]) -> list[str]:
        """Give these answers in the place of somebody at a terminal; gives back what will have been asked."""
        left, asked = list(answers), []

        def ask(prompt: str) -> str:
            asked.append(prompt)
            answer = left.pop(0)
            if isinstance(answer, type):
                raise answer
            print(f"{prompt}{answer}")  # noqa: T201 - where a terminal would show both
            return answer

        self.instruments["asker"] = lambda: ask
        return asked

    def _duel(self, opponent: str) -> Callable[..., Duel]:
        def run_duel(*_: object, settled: Callable[[Duel], bool], **__: object) -> Duel:
            self.duelled.append(opponent)
            found = self.finds[opponent]
            if isinstance(found, Exception):
                raise found
            settled(found)
            return found

        return run_duel

    @contextmanager
    def _open_sides(self, apart: FreshDuel) -> Iterator[list[object]]:
        if self.no_sides:
            raise WorkerError(self.no_sides)
        self.apart.append(apart)
        yield [SimpleNamespace(results=partial(self.results.get, side)) for side in ("now", "baseline")]

    def _fresh_duel(self, again: FreshDuel) -> RepeatOutcome:
        found = self.processes[len(self.launched) % len(self.processes)]
        self.launched.append(again)
        if isinstance(found, RepeatOutcome):
            return found
        fought, control = duel(found, 60), decide(duel(self.control, 60))
        return RepeatOutcome(decide(fought) if again.claim is None else decide_claim(again.claim, fought), control)

    def _look(self, _platform: str, **how: bool) -> MachineState:
        self.looked.append(how)
        return self.looks.pop(0) if self.looks else QUIET

    def _sample(self, *_: object, **__: object) -> samples.Sampled:
        return samples.Sampled(samples=Samples(bursts_ns=(self.call_ns,) * 3, calls_per_burst=1))

    def _dispatch_time(self, *_: object, **__: object) -> int:
        return self.dispatch_ns

    def _record(self, _side: object, chosen: Selection, into: Path) -> dict[str, str]:
        """What a fresh process would have recorded: the accepted baselines in today's environment, with the next time."""
        self.recorded.append(chosen)
        run_ns = self.fresh_ns.pop(0) if self.fresh_ns else self.call_ns
        for path in sorted((self.accepted / folder_here()).glob("*/*.json")):
            content = json.loads(path.read_text())
            content["environment"] = self.environment(jax.devices()[0])
            content["samples"] = {"bursts_ns": [run_ns] * 3, "calls_per_burst": 1, "contract": "throughput"}
            phases = self.phases.pop(0) if self.phases else None
            if isinstance(phases, str):
                return dict.fromkeys(chosen.paths, phases)
            if phases is not None:
                content["phases"] = asdict(phases)
            self.breaks(content)
            copy = into / path.relative_to(self.accepted)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(content))
        return {}


def fix_clocks(config: pytest.Config) -> Lab:
    """Fix the clocks of a run until it ends, from the ``conftest.py`` of its project."""
    judge_no_phases(config)
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    lab = Lab(Path.cwd(), patch)
    config.stash[INSTRUMENTS] = Instruments(**lab.instruments)
    return lab


def judge_no_phases(config: pytest.Config) -> None:
    """Judge no stored phase until a run ends, from its ``conftest.py``: in its workers, too."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    judge_phases_by(patch)


def have_short_duels(config: pytest.Config) -> None:
    """Shorten the duels of a run until it ends, from its ``conftest.py``: in its workers, too."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    shorten_duels(patch)


def in_a_process_of_its_own(config: pytest.Config, parent: int) -> None:
    """Fix the clocks of a process that a golden run starts, from the project's ``conftest.py``."""
    if os.getpid() != parent:
        fix_clocks(config)
