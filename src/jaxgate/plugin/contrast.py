"""The ``contrast`` fixture's object: one training step in several frameworks, compared and timed here and now."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from jaxgate.engine.contrast import run_contrast
from jaxgate.engine.run.session import GateSession
from jaxgate.judge.verdict import judge_invalid
from jaxgate.keep.duel_handoff import read_record, write_record
from jaxgate.keep.machine import HELD
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.numbers import Samples
from jaxgate.model.verdict import Verdict
from jaxgate.model.workloads.contrast import Contrast, ContrastCase, SideLaunch
from jaxgate.observe.contrast.launch import launch_side
from jaxgate.observe.errors import guarded
from jaxgate.observe.machine.virtual_devices import usual_size
from jaxgate.plugin.benchmark_rows import another_row, replay
from jaxgate.plugin.gate_arguments import usage_errors
from jaxgate.plugin.gated_test import GatedTest, nothing_decided
from jaxgate.processes.child import run_child
from jaxgate.processes.pytest_child import child_environment, ended, last_line
from jaxgate.report.results import verdict_properties
from jaxgate.report.text import explain
from jaxgate.settings import CONTRAST_INTO, CONTRAST_SIDE, RunKind


class ContrastGate:
    """Call it in a test with a contrast of the catalogue: ``contrast(case)``."""

    def __init__(self, item: pytest.Item, benchmark: Any, session: GateSession, test: GatedTest) -> None:
        self._item = item
        self._benchmark = benchmark
        self._session = session
        self._test = test

    def __call__(self, case: ContrastCase) -> Verdict:
        """Compare the sides of a case, and time them if they do the same. Nothing is stored, and no baseline is read.

        Raises:
            pytest.skip.Exception: If a framework is not installed, or this run does something else than to judge here.
            pytest.fail.Exception: If the sides do not do the same, or a claim of theirs is broken.
        """
        with usage_errors():
            self._test.begin(None)
            self._test.claim(case.name)
        missing = [name for name in case.needs if find_spec(name) is None]
        if missing:
            self._leave_out(f"`{case.name}` needs {', '.join(missing)}: pip install '{case.needs[missing[0]]}'")
        build = case.sizes[self._session.settings.size or usual_size()]
        if CONTRAST_INTO in os.environ:
            return self._leave_side(case, build())
        settings = self._session.settings
        if settings.kind is not RunKind.JUDGE or settings.target or settings.ranks:
            self._leave_out(f"`{case.name}` compares frameworks here and now; this run does something else")
        problem = self._session.result.add_name(case.name, self._item.nodeid)
        if problem:
            pytest.fail(problem, pytrace=False)
        return self._end(self._judge(case, build))

    def _leave_out(self, why: str) -> NoReturn:
        """Skip the test, and count it as one that has nothing to judge here: it makes no run of other gates incomplete."""
        self._session.result.left_out[self._item.nodeid] = why
        pytest.skip(why)

    def _judge(self, case: ContrastCase, build: Callable[[], Contrast]) -> Verdict:
        try:
            with self._session.progress(case.name) as progress:
                with guarded("building the contrast"):
                    contrast = build()
                return run_contrast(
                    case.name,
                    contrast,
                    instruments=self._session.instruments,
                    launch=self._launched if self._benchmark.enabled else None,
                    progress=progress,
                )
        except InvalidCaseError as error:
            return judge_invalid(case.name, error)

    def _launched(self, side: str) -> SideLaunch:
        """Run one side in a process of its own: this test once more, which then judges nothing.

        Raises:
            InvalidCaseError: If that process came to no figures.
        """
        stage = f"running {side} in a process of its own"
        held = {HELD: os.environ[HELD]} if HELD in os.environ else {}
        with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
            folder, into = Path(name), Path(name) / "side.json"
            command = [sys.executable, "-m", "pytest", self._item.nodeid, "-q", "-rfEs", "--color=no"]
            command += ["-p", "no:cacheprovider", "--no-perf-strict", "--perf-profile=never"]
            command.append(f"--perf-artifacts={folder / 'pages'}")
            # Neither compiler may remember what it compiled: the first step would be that of a second run.
            chosen = {CONTRAST_SIDE: side, CONTRAST_INTO: str(into), "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch")}
            chosen |= {"JAX_ENABLE_COMPILATION_CACHE": "false"}
            environment = {**child_environment(self._session.settings), **held, **chosen}
            done = run_child(command, folder=self._session.project, variables=environment)
            try:
                found = read_record(into)
            except ValueError as error:
                raise InvalidCaseError(stage, str(error)) from None
        if found is None:
            raise InvalidCaseError(stage, ended(done)[-1][1] if ended(done) else last_line(done))
        return found

    def _leave_side(self, case: ContrastCase, contrast: Contrast) -> Verdict:
        """Run one side and write down what it took. Red in any case: nothing was judged."""
        side = os.environ[CONTRAST_SIDE]
        write_record(Path(os.environ[CONTRAST_INTO]), launch_side(contrast.sides[side], case.needs))
        self._test.fail(case.name, f"{case.name}: {CONTRAST_INTO} is set: {side} was run, nothing was judged")
        return nothing_decided(case.name, None, "running one side")

    def _end(self, verdict: Verdict) -> Verdict:
        self._fill_rows(verdict)
        self._session.result.verdicts.append(verdict)
        self._item.user_properties += verdict_properties(verdict)
        self._test.verdicts.append(verdict)
        if verdict.fails:
            self._test.fail(verdict.case, explain(verdict, test=self._item.nodeid))
        return verdict

    def _fill_rows(self, verdict: Verdict) -> None:
        """A row of pytest-benchmark for each side, from its own process."""
        sides = [] if verdict.contrast is None else verdict.contrast.sides
        for number, side in enumerate(sides):
            row = another_row(self._benchmark, side.name) if number else self._benchmark
            row.group = verdict.case
            row.extra_info.update(case=verdict.case, side=side.name, verdict=str(verdict.status))
            if side.launch is not None:
                replay(self._item, row, Samples(bursts_ns=side.launch.step_ns, calls_per_burst=1))
