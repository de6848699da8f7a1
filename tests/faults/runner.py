"""Observe a program and an edited one, judge the second by the first; all of them over two processes, or one at a time."""

from __future__ import annotations

import importlib.util
import itertools
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import jax

from jaxgate.engine.judge_case import judge_with_buffers
from jaxgate.ext.profile.evidence import MAX_PROFILED
from jaxgate.ext.targets.interface import TargetCompiler
from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetProcess
from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.keep.cache import ReferenceCache
from jaxgate.model.baseline import Baseline, Provenance, StoredBaseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError, Measurement
from jaxgate.model.numbers import Phases, Samples
from jaxgate.model.program import ProgramRecord
from jaxgate.model.verdict import Verdict
from jaxgate.model.workload import Case
from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Tools
from jaxgate.report.text import explain
from tests.faults.model import REPOSITORY, Control, Fault, Outcome, Score
from tests.faults.scoring import ALARMS, of_fault, of_slowdown, of_unchanged
from tests.support.corpora import compiled_quickly
from tests.support.in_process import share_contexts
from tests.support.processes import outside_variables
from tests.support.projects import SETTINGS

DEVICES = 8
NEEDS_CALLS = "NEEDS CALLS"
"""The status of what a target cannot be asked for."""
NO_PROGRAM = ProgramRecord(digest=None, donated=(), feeds=None, why_not="not stored: nothing is timed", options={})
NOWHERE = Provenance(commit=None, dirty=False, date="2026-01-01", jaxgate="")
NO_TIME = Samples(bursts_ns=(1,), calls_per_burst=1)  # facts are judged; a baseline has samples none the less

_COUNT = itertools.count(1)
"""Of this process: no two modules may share a name."""

_bench: Bench
"""Of a worker process."""


class Bench:
    """Runs edited texts out of a folder, each as a module of its own; a case without a mistake is observed once.

    Args:
        folder: For the edited texts, and for what is remembered of references and executables.
        target: Compiles all of them, if it is not the compiler of this machine.
    """

    def __init__(self, folder: Path, target: TargetCompiler | None = None) -> None:
        self._folder = folder
        self._target = target
        self._bases: dict[tuple[Path, str], StoredBaseline] = {}
        self._outcomes: dict[Fault, Outcome] = {}
        self._store = ReferenceCache(folder / "references")

    def plant(self, fault: Fault) -> Outcome:
        """Run one fault, once."""
        if fault not in self._outcomes:
            begin = time.perf_counter()
            source = fault.planted()
            verdict = self._judge(fault.path, fault.case, source, remembered=False)
            outcome = of_fault(fault, verdict, fault.places(source))
            self._outcomes[fault] = replace(outcome, seconds=time.perf_counter() - begin)
        return self._outcomes[fault]

    def sides(self, fault: Fault) -> tuple[Observation, Observation]:
        """Observe a program without its mistake and with it."""
        sources = (fault.path.read_text(), fault.planted())
        cases = [self.case(fault.path, fault.case, source) for source in sources]
        return self._observe(cases[0], remembered=False), self._observe(cases[1], remembered=False)

    def leave(self, control: Control) -> Outcome:
        """Run a program that only looks different."""
        begin = time.perf_counter()
        if control.source == control.path.read_text():
            raise ValueError(f"{control.name} leaves {control.path.name} as it is")
        verdict = self._judge(control.path, control.case, control.source, remembered=True)
        return replace(of_unchanged(control.name, control.case, verdict), seconds=time.perf_counter() - begin)

    def _judge(self, path: Path, name: str, source: str, *, remembered: bool):
        record = self._base(path, name, remembered=remembered)
        case = self.case(path, name, source)
        try:
            observed = self._observe(case, remembered=remembered)
        except InvalidCaseError as error:
            return judge_invalid(case.name, error)
        return judge_with_buffers(lambda now: _judged(case, observed, now, record), observed)

    def _base(self, path: Path, name: str, *, remembered: bool) -> StoredBaseline:
        if (path, name) not in self._bases:
            case = self.case(path, name, path.read_text())
            observed = self._observe(case, remembered=remembered)
            measurement = replace(observed.measurement, samples=NO_TIME)
            baseline = Baseline.of(measurement, case=case.name, test="", provenance=NOWHERE, program=NO_PROGRAM)
            record = StoredBaseline(baseline=baseline, path=Path("base.json"), borrowed=False)
            verdict = _judged(case, observed, measurement, record)
            if verdict.status in ALARMS - {Status.EXPECTED}:  # a claim may be known to break on a release of JAX
                raise ValueError(f"{case.name} alarms before anything is planted: {explain(verdict, test='planted')}")
            self._bases[path, name] = record
        return self._bases[path, name]

    def _observe(self, case: Case, *, remembered: bool):
        """Look at a case; its executable is remembered where many that look different are to be the same."""
        widened = jax.config.jax_enable_x64
        try:
            with warnings.catch_warnings(), compiled_quickly(self._folder / "executables" if remembered else None):
                warnings.simplefilter("ignore")  # donation that JAX calls unusable: the facts must say it
                observed = observe(case.build, Tools(store=self._store, sampling=False, target=self._target))
        finally:
            jax.config.update("jax_enable_x64", widened)
        # Phases are those of a busy machine, and no fresh process confirms them here.
        return replace(observed, measurement=replace(observed.measurement, phases=Phases()))

    def case(self, path: Path, name: str, source: str) -> Case:
        """Pick the case out of a text: of a file of the catalogue, or of a small program, which is one."""
        module = self._imported(path, source)
        if not hasattr(module, "CASES"):
            return Case(family="programs", sentence=name, build=module.build)
        found = [case for case in module.CASES if case.sentence == name]
        if len(found) != 1:
            raise ValueError(f"expected one case {name!r} in {path.name}, found {len(found)}")
        return found[0]

    def _imported(self, path: Path, source: str):
        """Import a text as a fresh module whose lines are the project's; a module of a family with all of that."""
        count = next(_COUNT)
        in_family = path.parent.parent == REPOSITORY / "workloads"
        name = f"planted_{count}_{path.stem}"
        folder = self._folder / str(count)
        folder.mkdir()
        for part in sorted(path.parent.glob("*.py")) if in_family else [path]:
            text = source if part == path else part.read_text()
            own = re.sub(rf"\bworkloads\.{path.parent.name}\b", name, text) if in_family else text
            (folder / part.name).write_text(own)
        spec = importlib.util.spec_from_file_location(
            name,
            folder / ("__init__.py" if in_family else path.name),
            submodule_search_locations=[str(folder)] if in_family else None,
        )
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def _judged(case: Case, observed: Observation, now: Measurement, record: StoredBaseline) -> Verdict:
    # Nothing is timed here: neither phases nor claims about them mean anything.
    claims = tuple(c for c in observed.claims if not c.needs_duel and not c.quantity.endswith("_ns"))
    return judge(case.name, claims, now, record, strict=True, tolerances=case.tolerances)


def run_slowdowns(faults: Sequence[Fault], folder: Path) -> tuple[list[Outcome], str]:
    """Profile every slow-down by a real run, in processes of their own with four devices.

    Args:
        faults: Slow-downs, all of one file.
        folder: Empty, for the project.

    Returns:
        What the first culprit row of each is, and all that the run printed.
    """
    (folder / "pyproject.toml").write_text(f'{SETTINGS}perf_cpu_devices = "4"\n')
    test = folder / "test_programs.py"
    source = faults[0].path.read_text()
    # Not to wait for whoever else measures: no time is judged.
    environment = outside_variables(JAXGATE_MACHINE_HELD="faults", JAXGATE_OPINION="0", JAXGATE_HISTORY="none")

    def gate(text: str, *options: str) -> subprocess.CompletedProcess[str]:
        test.write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=400
        )

    recorded = gate(source, "--perf-update")
    if recorded.returncode:
        raise ValueError(recorded.stdout)
    for fault in faults:
        source = fault.planted(source)
    environment["JAXGATE_PROFILE"] = "always" if len(faults) > MAX_PROFILED else "failing"
    out = gate(source).stdout
    texts = re.split(r"^_+ test_(\w+) _+$", out, flags=re.MULTILINE)[1:]
    said = dict(zip(texts[::2], texts[1::2], strict=True))
    return [of_slowdown(fault, said.get(fault.case, ""), fault.places(source, test.name)) for fault in faults], out


class Workers:
    """Processes with eight devices and a bench each, whatever this one has: the devices are chosen before JAX starts.

    Args:
        folder: For what the benches write.
        count: How many.
        target: What they compile for, each by a compiler of its own; empty for the CPU.
    """

    def __init__(self, folder: Path, count: int = 1, target: str = "") -> None:
        context = multiprocessing.get_context("spawn")
        self.pool = ProcessPoolExecutor(count, mp_context=context, initializer=_begin, initargs=(folder, target))

    def plant(self, fault: Fault) -> Outcome:
        """Run one fault, in the same process as all others if there is one."""
        return self.pool.submit(_run, fault).result()

    def leave(self, control: Control) -> Outcome:
        """Run a program that only looks different."""
        return self.pool.submit(_run, control).result()


def run(
    faults: Iterable[Fault], controls: Iterable[Control] = (), slowdowns: Sequence[Fault] = (), target: str = ""
) -> Score:
    """Run faults and unchanged programs, what shares a program or a family in one of two processes; then slow-downs.

    On a target those are left out that only calls show.
    """
    begin = time.perf_counter()
    tried = [*faults, *controls]
    left = [each for each in tried if target and isinstance(each, Fault) and each.needs_calls]
    jobs: dict[str, list[Fault | Control]] = {}
    order = [each for each in tried if each not in left]
    for each in order:
        shared = each.kind if isinstance(each, Fault) and each.file else each.case
        jobs.setdefault(shared, []).append(each)
    with tempfile.TemporaryDirectory() as folder:
        workers = Workers(Path(folder), count=2, target=target)
        with workers.pool:
            longest = sorted(jobs.values(), key=len, reverse=True)
            found = dict(itertools.chain.from_iterable(workers.pool.map(_job, longest)))
        profiled = run_slowdowns(slowdowns, Path(folder)) if slowdowns else ((), "")
    outcomes = [found[each] for each in order if found[each].status != NEEDS_CALLS]
    return Score(
        faults=(*(outcome for outcome in outcomes if outcome.kind != "unchanged"), *profiled[0]),
        unchanged=tuple(outcome for outcome in outcomes if outcome.kind == "unchanged"),
        seconds=time.perf_counter() - begin,
        versions=f"jax {jax.__version__}, Python {sys.version.split()[0]}",
        target=target,
        left=len(tried) - len(outcomes),
    )


def _begin(folder: Path, target: str) -> None:
    """Give this process its devices and its bench; what the programs print is nobody's."""
    global _bench  # noqa: PLW0603 - of a worker process, there is no other place
    jax.config.update("jax_num_cpu_devices", DEVICES)
    share_contexts()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _bench = Bench(Path(tempfile.mkdtemp(dir=folder)), TargetProcess(Target.parse(target)) if target else None)


def _run(tried: Fault | Control) -> Outcome:
    return _bench.plant(tried) if isinstance(tried, Fault) else _bench.leave(tried)


def _job(job: list[Fault | Control]) -> list[tuple[Fault | Control, Outcome]]:
    return [(tried, _outcome(tried)) for tried in job]


def _outcome(tried: Fault | Control) -> Outcome:
    """What breaks is an outcome, too, so that the others are still run."""
    try:
        return _run(tried)
    except NotOnTargetError:
        return Outcome(name=tried.name, kind="", case=tried.case, status=NEEDS_CALLS)
    except Exception as error:  # noqa: BLE001 - told as its outcome
        kind = tried.kind if isinstance(tried, Fault) else "unchanged"
        why = f"{type(error).__name__}: {error}"
        return Outcome(name=tried.name, kind=kind, case=tried.case, status="BROKEN", why=why)
