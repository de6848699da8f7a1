"""Every clock, machine and fresh process of jaxgate that a golden run replaces: the one file that names its modules.

What a test says through here survives any move of a module; only the names in this file follow it.
"""

from __future__ import annotations

import datetime as dt
import importlib
import json
import os
import pkgutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import pytest
from support.factories import CALL_NS, steady

import jaxgate
from jaxgate.engine.instruments import Instruments
from jaxgate.judge import STORED_PHASE_POLICIES, decide, decide_claim
from jaxgate.model import Duel, Phases, RepeatOutcome, Samples
from jaxgate.observe.duel import NotPlantableError
from jaxgate.observe.execute import Sampled
from jaxgate.observe.machine import MachineState, first_device, read_environment

TODAY = dt.date(2026, 11, 21)
QUIET = MachineState(cores=2, load=0.1, busy_cores=0.0, steal=0.0, clock=None)
BUSY = MachineState(cores=2, load=1.9, busy_cores=1.9, steal=0.05, clock=None)
CRASHED = RepeatOutcome(problem="a fresh process failed: exit status -9")
QUICK, SLOW = (Phases(trace_ns=n, lower_ns=n, compile_ns=n, first_call_ns=n, host_ns=n) for n in (1, 10))

KNOWN_BREAK = "from jaxgate.model import KnownBreak"
"""How a project imports what ``jaxgate`` itself does not give."""

_TODAYS = ("jaxgate.keep.provenance", "jaxgate.cli.baselines")
_PHASES = "jaxgate.judge.phases.STORED_PHASE_POLICIES"


def import_everything() -> None:
    """Import all of jaxgate: pytester forgets what its runs import, and a patched module must be there before."""
    for found in pkgutil.walk_packages(jaxgate.__path__, "jaxgate."):
        importlib.import_module(found.name)


def duel(ratio: float, pairs: int = 20) -> Duel:
    """A duel without noise, of calls that take 10 ms in the baseline."""
    return steady(ratio, pairs)


def device_kind() -> str:
    """What this machine calls its device; it is in texts."""
    return first_device().device_kind


def hardware_slug() -> str:
    """The folder of this machine's baselines."""
    return first_device().slug


environment_here = read_environment


class Lab:
    """What every clock says, until a test says otherwise: nothing is slower, the machine is quiet, it is a fixed day.

    Attributes:
        finds: What the duel with the baseline finds; one for each kind of opponent.
        processes: Ratios that fresh processes find, one after the other and again; or whole outcomes.
        control: The ratio of a program to itself in a fresh process.
        phases: What fresh processes say of phases, one after the other.
        looks: What looks at the machine see, one after the other; quiet once they are used up.
        fresh_ns: Times of a call in fresh processes that record, one after the other.
        call_ns: Time of a call in this process.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, monkeypatch
        self.finds = {"baseline": duel(1.0), "reference": duel(1.0)}
        self.processes: list[float | RepeatOutcome] = [1.3]
        self.control = 1.0
        self.phases: list[Phases] = []
        self.looks: list[MachineState] = []
        self.fresh_ns: list[int] = []
        self.call_ns = CALL_NS
        self._launched = 0
        self.identical: Duel | None = None
        for module in _TODAYS:
            monkeypatch.setattr(f"{module}.utc_today", lambda: TODAY)
        monkeypatch.setattr("jaxgate.engine.progress.PATIENCE_S", 1e6)  # a busy machine tells of stages that take long
        monkeypatch.setattr("jaxgate.observe.measure.sample", self._sample)

    @property
    def instruments(self) -> dict[str, Any]:
        """What a run is to look at the world with."""
        return {
            "run_duel": self._duel("baseline"),
            "run_reference_duel": self._duel("reference"),
            "repeat_duel": self._fresh_duel,
            "record": self._record,
            "look": self._look,
            "find_hardware": lambda _project: first_device(),
            "today": lambda: TODAY,
        }

    def change_environment(self) -> None:
        """From now on a flag is set."""
        for module in ("jaxgate.observe.measure", __name__):
            self._patch.setattr(
                f"{module}.read_environment", lambda device: environment_here(device) | {"XLA_FLAGS": "--xla_new"}
            )

    def judge_phases(self) -> None:
        """Let a phase be red that took more than its baseline, however little that is."""
        self._patch.setattr(_PHASES, tuple(replace(policy, absolute=0) for policy in STORED_PHASE_POLICIES))

    def answer(self, *answers: str) -> None:
        """Give these answers in the place of somebody at a terminal."""
        left = list(answers)
        self._patch.setattr("jaxgate.plugin.modes.review.asker", lambda: lambda prompt: self._told(prompt, left.pop(0)))

    def calibrate(self, ratio: float) -> None:
        """Let identical programs differ by a ratio, and let nothing be planted."""

        def no_planter(*_: object) -> None:
            raise NotPlantableError("not asked for")

        self.identical = duel(ratio)
        self._patch.setattr("jaxgate.engine.calibration.prepare_planter", no_planter)

    def _told(self, prompt: str, answer: str) -> str:
        print(f"{prompt}{answer}")  # noqa: T201 - where a terminal would show both
        return answer

    def _duel(self, kind: str) -> Callable[..., Duel]:
        def run_duel(*_: object, settled: Callable[[Duel], bool], **__: object) -> Duel:
            found = self.finds[kind] if self.identical is None else self.identical
            settled(found)
            return found

        return run_duel

    def _fresh_duel(self, again: Any) -> RepeatOutcome:
        found = self.processes[self._launched % len(self.processes)]
        self._launched += 1
        if isinstance(found, RepeatOutcome):
            return found
        fought, control = duel(found, 60), decide(duel(self.control, 60))
        return RepeatOutcome(decide(fought) if again.claim is None else decide_claim(again.claim, fought), control)

    def _look(self, _platform: str, **_: object) -> MachineState:
        return self.looks.pop(0) if self.looks else QUIET

    def _sample(self, *_: object, **__: object) -> Sampled:
        return Sampled(Samples(bursts_ns=(self.call_ns,) * 3, calls_per_burst=1), 0, 0)

    def _record(self, _side: object, chosen: Any, into: Path) -> dict[str, str]:
        """What a fresh process would have recorded: the accepted baselines in today's environment, with the next time."""
        run_ns = self.fresh_ns.pop(0) if self.fresh_ns else self.call_ns
        for path in sorted((self._folder / "baselines" / hardware_slug()).glob("*/*.json")):
            content = json.loads(path.read_text())
            content["environment"] = read_environment(jax.devices()[0])
            content["samples"] = {"bursts_ns": [run_ns] * 3, "calls_per_burst": 1, "contract": "pipelined"}
            if self.phases:
                content["phases"] = asdict(self.phases.pop(0))
            copy = into / path.relative_to(self._folder / "baselines")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(json.dumps(content))
        return {}


def in_a_process_of_its_own(parent: int) -> None:
    """Fix the clocks of a process that a golden run starts, from the project's ``conftest.py``."""
    if os.getpid() == parent:
        return
    patch = pytest.MonkeyPatch()
    patch.setattr(_PHASES, ())
    given = Instruments(**Lab(Path.cwd(), patch).instruments)
    patch.setattr("jaxgate.engine.session.Instruments", lambda: given)
