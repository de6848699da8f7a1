"""The same programs on another machine: recorded on this one, looked at again on one with fewer cores.

A process that has one core of this machine stands for the other one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ci.evaluation.looking import look
from ci.evaluation.result import Requirement, Result
from ci.evaluation.rules import RULES, Look, alarms
from jaxgate.model.machine import folder_name, split_folder_name
from jaxgate.observe.machine.virtual_devices import give_cpu_devices
from tests.faults.programs import PROGRAMS
from tests.faults.runner import DEVICES, Bench
from tests.support.processes import outside_variables

SETTINGS = f'[tool.pytest]\npythonpath = ["."]\nperf_cpu_devices = "{DEVICES}"\n'
OTHER = {"device_kind": "another machine", "slug": "cpu-another-machine"}


def elsewhere(*, quick: bool) -> Result:
    """Gate the small programs with baselines of another machine, and decide on them by the rules of others."""
    begin = time.perf_counter()
    programs = dict(list(PROGRAMS.items())[:: 9 if quick else 1])
    before = _looks(programs)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, programs)
        run_pytest(folder, "--perf-update", expected=0)
        lend(folder / "baselines")
        with one_core():
            after = _looks(programs)
            cases = run_pytest(folder)
    said = [alarms(before[name], after[name], harmless=True) for name in programs]
    rows = {
        "jaxgate": [_count_red(cases), len(cases)],
        "rules": {rule: [sum(each[rule] for each in said), len(said)] for rule in RULES},
    }
    requirements = (of_elsewhere(cases, len(programs)),)
    return Result(part="elsewhere", requirements=requirements, rows=rows, seconds=time.perf_counter() - begin)


def of_elsewhere(cases: Sequence[Mapping[str, Any]], programs: int) -> Requirement:
    """What must hold of programs that are judged by baselines of another machine: all were, and none is red."""
    red, judged = _count_red(cases), sum(OTHER["slug"] in case["baseline"] for case in cases)
    undecided = sum(case["status"] == "UNDECIDED" for case in cases)
    return Requirement(
        what=f"{red} of {judged} unchanged programs are red by a baseline of another machine, {undecided} UNDECIDED",
        held=not red and judged == len(cases) == programs > 0,
    )


def _count_red(cases: Sequence[Mapping[str, Any]]) -> int:
    return sum(bool(case["fails"]) for case in cases)


@contextmanager
def one_core() -> Iterator[None]:
    """Processes that are started here have one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _looks(programs: Mapping[str, Path]) -> dict[str, Look]:
    """What users of other tools see of the programs, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_look_at, dict(programs)).result()


def _look_at(programs: Mapping[str, Path]) -> dict[str, Look]:
    give_cpu_devices(DEVICES, alone=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        return {name: look(bench, file, name, file.read_text()) for name, file in programs.items()}


def write_project(folder: Path, programs: Mapping[str, Path]) -> None:
    """Write a project whose cases are the programs."""
    (folder / "pyproject.toml").write_text(SETTINGS)
    for file in programs.values():
        shutil.copy(file, folder)
    cases = "".join(f'    Case(family="programs", sentence="{name}", build={name}.build),\n' for name in programs)
    (folder / "test_programs.py").write_text(
        f"import {', '.join(programs)}\n"
        "from jaxgate.model.workload import Case\n"
        "from jaxgate.plugin import catalogue\n\n"
        f"CASES = [\n{cases}]\n\n\n"
        "@catalogue(CASES)\n"
        "def test_programs(case, gate):\n"
        "    gate(case)\n"
    )


def lend(baselines: Path) -> None:
    """Let the baselines be those of other hardware.

    Raises:
        RuntimeError: If there are none.
    """
    own = [path for path in baselines.iterdir() if (path / "programs").is_dir() and path.name.startswith("cpu-")]
    if not own:
        raise RuntimeError(f"expected recorded baselines, found {[path.name for path in baselines.iterdir()]}")
    for folder in own:
        slug, line = split_folder_name(folder.name) or (folder.name, "")
        other = folder.rename(baselines / folder_name(f"{OTHER['slug']}-{slug.rpartition('-')[2]}", line))
        for file in other.rglob("*.json"):
            content: dict[str, Any] = json.loads(file.read_text())
            content["hardware"]["device_kind"] = OTHER["device_kind"]
            file.write_text(json.dumps(content))


def run_pytest(folder: Path, *arguments: str, expected: int | None = None) -> list[dict[str, Any]]:
    """Run pytest there, as somebody at a terminal would; gives the cases of ``results.json``.

    Raises:
        RuntimeError: If it ends otherwise than expected.
    """
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, env=outside_variables(), stdout=sys.stderr, check=False)
    if expected is not None and done.returncode != expected:
        raise RuntimeError(f"expected exit status {expected} of pytest, found {done.returncode}")
    cases: list[dict[str, Any]] = json.loads((folder / "perf-artifacts/results.json").read_text())["cases"]
    return cases
