"""The parts of the evaluation, each in a process of its own: what it runs, and what has to hold."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci.evaluation.elsewhere import elsewhere
from ci.evaluation.looking import look
from ci.evaluation.result import REPOSITORY, Requirement, Result
from ci.evaluation.rules import RULES, alarms
from jaxgate.observe.machine.virtual_devices import give_cpu_devices
from tests.faults import catalogue, programs
from tests.faults.model import Outcome
from tests.faults.programs import PROGRAMS
from tests.faults.runner import DEVICES, Bench, run

AGAIN = 3
"""How often each unchanged program is looked at again."""
POWER_CASES = "rnn-forward-over-32 or lstm-forward or per-example-loss"
POWER_DUELS = 21
SURELY = 0.20
"""A slow-down of this size must be seen in nearly every duel, smaller ones are for the page."""
MOSTLY, RARELY = 0.9, 0.05
OF_THE_PROGRAM = frozenset({"stablehlo_ops", "temp_bytes", "matmul_flops"})
"""Facts that no identical program can move."""


def planted(*, quick: bool) -> Result:
    """Plant every mistake in the small programs and in the catalogue, and leave unchanged programs alone."""
    begin = time.perf_counter()
    mistakes = itertools.chain(programs.FAULTS, *catalogue.FAULTS.values())
    faults = programs.FAULTS[::6] if quick else tuple(mistakes)
    controls = tuple(programs.controls(quick=True))[:: 6 if quick else 1]
    other_data = tuple(programs.other_data())[:: 6 if quick else 1]
    score = run(faults, (*controls, *other_data))
    small = [outcome for fault, outcome in zip(faults, score.faults, strict=True) if not fault.file]
    rows = {
        "small": _share(small, "caught"),
        "small_blamed": _share(small, "blamed"),
        "all": _share(score.faults, "caught"),
        "all_blamed": _share(score.faults, "blamed"),
        "unchanged": _share(score.unchanged[: len(controls)], "caught"),
        "other_data": _share(score.unchanged[len(controls) :], "caught"),
        "identical": _share(score.unchanged, "identical"),
        "seconds_a_program": sum(each.seconds for each in (*small, *score.unchanged)) / len((*small, *score.unchanged)),
    }
    return Result(
        part="planted",
        requirements=of_planted(score.faults, score.unchanged),
        rows=rows,
        seconds=time.perf_counter() - begin,
    )


def of_planted(faults: Sequence[Outcome], controls: Sequence[Outcome]) -> tuple[Requirement, ...]:
    """What must hold of planted mistakes, and of programs that only look different."""
    other_programs = [each for each in faults if set(each.moved) & OF_THE_PROGRAM]
    return (
        _counted("planted mistakes are red for a fact that they move", [each.caught for each in faults]),
        _counted("red ones name the planted cause in their first clause", [each.blamed for each in faults]),
        _counted(
            "mistakes that change the program are not called the same program",
            [not each.identical for each in other_programs],
        ),
        _counted(
            "programs that only look different, or have other data, do not alarm", [each.caught for each in controls]
        ),
    )


def peers(*, quick: bool) -> Result:
    """Decide on the same small programs by the rules of others: mistakes, programs that look different, the same again."""
    begin = time.perf_counter()
    faults = programs.FAULTS[::6] if quick else programs.FAULTS
    controls = tuple(programs.controls(quick=True))[:: 6 if quick else 1]
    other_data = tuple(programs.other_data())[:: 6 if quick else 1]
    give_cpu_devices(DEVICES, alone=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        before = {name: look(bench, file, name, file.read_text()) for name, file in PROGRAMS.items()}

        def said(case: str, path: Path, source: str, *, harmless: bool) -> dict[str, bool]:
            return alarms(before[case], look(bench, path, case, source), harmless=harmless)

        red = [said(each.case, each.path, each.planted(), harmless=False) for each in faults]
        look_different, other = (
            [said(each.case, each.path, each.source, harmless=True) for each in group]
            for group in (controls, other_data)
        )
        again = list(PROGRAMS.items()) * AGAIN
        same = [said(name, file, file.read_text(), harmless=True) for name, file in again]
    took = time.perf_counter() - begin
    looks = sum(map(len, (before, red, look_different, other, same)))
    rows = {
        rule: {
            "caught": [sum(each[rule] for each in red), len(red)],
            **{
                name: [sum(each[rule] for each in group), len(group)]
                for name, group in (("look_different", look_different), ("other_data", other), ("same", same))
            },
        }
        for rule in RULES
    }
    requirement = Requirement(
        what=f"{len(before)} programs ran before the change and after it under all {len(RULES)} rules",
        held=bool(red and same),
    )
    return Result(
        part="peers", requirements=(requirement,), rows={"rules": rows, "seconds_a_program": took / looks}, seconds=took
    )


def unchanged(*, quick: bool) -> Result:
    """Gate the catalogue, times too, against the committed baselines: nothing changed, so nothing may be red."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = _pytest("perf", f"--perf-artifacts={folder}", *(["-k", "scan and 32"] if quick else []))
        results = json.loads((Path(folder) / "results.json").read_text())
    counts = Counter(case["status"] for case in results["cases"])
    red = [case["case"] for case in results["cases"] if case["fails"]]
    requirement = Requirement(
        what=f"{len(red)} of {sum(counts.values())} unchanged cases of the catalogue are red (pytest ended with {done})",
        held=not red and done == 0 and bool(counts),
    )
    return Result(
        part="unchanged",
        requirements=(requirement,),
        rows={"statuses": dict(counts)},
        seconds=time.perf_counter() - begin,
    )


def power(*plugin: str, quick: bool) -> Result:
    """Let cases duel with themselves, and with themselves and extra work of a known size.

    Raises:
        RuntimeError: If pytest fails: then nothing was measured.
    """
    begin = time.perf_counter()
    duels, cases = (7, "rnn-forward-over-32") if quick else (POWER_DUELS, POWER_CASES)
    with tempfile.TemporaryDirectory() as folder:
        asked = (
            "-p",
            "ci.calibrate.plugin",
            f"--duels={duels}",
            f"--into={folder}",
            "-k",
            cases,
            "-p",
            "no:cacheprovider",
        )
        if status := _pytest("perf", *plugin, *asked):
            raise RuntimeError(f"expected a calibration, found exit status {status} of pytest")
        found = json.loads((Path(folder) / "calibration.json").read_text())
    rows = found["cases"]
    false = [sum(row["alarms"] for row in rows), sum(len(row["ratios"]) for row in rows)]
    seen: dict[float, list[int]] = {}
    for plant in itertools.chain.from_iterable(row["plants"] for row in rows):
        slower, of = seen.get(plant["share"], (0, 0))
        seen[plant["share"]] = [slower + plant["slower"], of + len(plant["ratios"])]
    return Result(
        part="power",
        requirements=of_power(false, seen[SURELY]),
        rows={"false": false, "seen": {f"{share:.0%}": pair for share, pair in seen.items()}},
        seconds=time.perf_counter() - begin,
    )


def of_power(false: Sequence[int], seen: Sequence[int]) -> tuple[Requirement, ...]:
    """What must hold of duels: how many alarm, of how many of identical programs; how many see much extra work, of how many."""
    return (
        Requirement(
            what=f"{false[0]} of {false[1]} duels of a program with itself alarm at first sight",
            held=false[1] > 0 and false[0] <= RARELY * false[1],
        ),
        Requirement(
            what=f"{seen[0]} of {seen[1]} duels see {SURELY:.0%} of extra work",
            held=seen[1] > 0 and seen[0] >= MOSTLY * seen[1],
        ),
    )


def attacks(*, quick: bool) -> Result:
    """Carry out the known attacks on a verdict, from outside."""
    begin = time.perf_counter()
    command = [sys.executable, "ci/attacks", *(["-k", "1"] if quick else [])]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    found = re.search(
        r"^(\d+) attacks: (\d+) held, (\d+) FOOLED, (\d+) could not run$", done.stdout, flags=re.MULTILINE
    )
    number, held = (int(found[1]), int(found[2])) if found else (0, 0)
    requirement = Requirement(
        what=f"{held} of {number} attacks are held", held=done.returncode == 0 and 0 < number == held
    )
    return Result(
        part="attacks", requirements=(requirement,), rows={"held": [held, number]}, seconds=time.perf_counter() - begin
    )


PARTS: Mapping[str, Callable[..., Result]] = {
    "planted": planted,
    "peers": peers,
    "elsewhere": elsewhere,
    "unchanged": unchanged,
    "power": power,
    "attacks": attacks,
}


def _counted(what: str, outcomes: list[bool]) -> Requirement:
    return Requirement(what=f"{sum(outcomes)} of {len(outcomes)} {what}", held=bool(outcomes) and all(outcomes))


def _share(outcomes: Any, name: str) -> list[int]:
    return [sum(getattr(each, name) for each in outcomes), len(outcomes)]


def _pytest(*arguments: str) -> int:
    """Run pytest as somebody at a terminal would; what it prints goes there, too."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, stdout=sys.stderr, check=False).returncode
