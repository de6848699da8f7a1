"""A slow-down is repeated in fresh processes before it fails a test.

Two processes of one program have been seen to differ by 30 % on a shared machine, with a tight interval in
each: the process is the unit of noise. The number of repeats is fixed; nobody runs again until it is green.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jaxgate.judge.duel import CONFIRM_COUNT, decide
from jaxgate.judge.verdict import is_red
from jaxgate.keep.jobs import Job, read_duels, write_job
from jaxgate.model import Decision, Finding, Status, TimeVerdict, Verdict
from jaxgate.observe.placing import settings, to_files
from jaxgate.plugin.timing import Rematch

PROCESSES = 2
TIMEOUT_S = 600
MANY = 5
MANY_SHARE = 0.20
"""More slow-downs than this many, and than this share of the cases, accuse the machine and not the cases."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A case that was slower in this process, waiting for the others.

    Attributes:
        verdict: Its verdict so far.
        rematch: The duel to run again.
        row: ``extra_info`` of its row in pytest-benchmark, to be told the outcome.
    """

    verdict: Verdict
    rematch: Rematch
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """What one fresh process found; ``problem`` says why there is nothing."""

    case: Decision | None
    control: Decision | None
    problem: str = ""


def too_many(suspects: int, cases: int) -> bool:
    """Whether so many cases fired at once that the machine is the suspect."""
    return suspects > max(MANY, MANY_SHARE * cases)


def launch(rematch: Rematch) -> Launch:
    """Run a duel again in a fresh process, one at a time."""
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        leaves, kinds = to_files(rematch.leaves)
        about = {
            "kinds": kinds,
            "platform": rematch.platform,
            "contract": rematch.contract,
            "seed": secrets.randbits(32),
            "settings": settings(),
        }
        write_job(folder, Job(now=rematch.now, baseline=rematch.baseline, leaves=leaves, about=about))
        command = [sys.executable, "-m", "jaxgate.cli.duel", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Launch(None, None, f"a fresh process took more than {TIMEOUT_S} s")
        except OSError as error:
            return Launch(None, None, f"a fresh process could not be started: {error}")
        try:
            duels = read_duels(folder)
            case, control = (decide(duels[name], count=CONFIRM_COUNT) for name in ("case", "control"))
        except FileNotFoundError:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            return Launch(None, None, f"a fresh process failed: {last[0]}")
        except (KeyError, ValueError) as error:  # damaged, incomplete, or a duel that means nothing
            return Launch(None, None, f"a fresh process gave nothing usable: {str(error).splitlines()[0]}")
    return Launch(case, control)


def confirm(suspect: Suspect, *, machine: bool) -> Verdict:
    """Repeat a duel and judge the case; one process that disagrees is enough to stop."""
    launches: list[Launch] = []
    while not machine and len(launches) < PROCESSES:
        launches.append(launch(suspect.rematch))
        found = launches[-1].case
        if found is None or found.status is not Status.SLOWER:
            break
    verdict = settle(suspect.verdict, launches, machine=machine)
    suspect.row["verdict"] = str(verdict.status)
    return verdict


def settle(suspect: Verdict, launches: Sequence[Launch], *, machine: bool) -> Verdict:
    """Judge a suspect after its repeats. Pure.

    Args:
        suspect: The first verdict of the case.
        launches: What the fresh processes found; empty if none were started.
        machine: Whether the run as a whole accuses the machine.

    Returns:
        SLOWER if every process agrees; UNDECIDED if one does not; INVALID if the machine is the suspect,
        identical programs differed, or a process could not be run: none of these is green.
    """
    if machine:
        reason = "too many cases got slower at once: the machine is the suspect"
        return _accused(_with(suspect, Status.INVALID, (), reason))
    problem = next((found.problem for found in launches if found.problem), "")
    if problem:
        return _with(suspect, Status.INVALID, (), f"it could not be confirmed: {problem}")
    ratios = tuple(found.case.ratio for found in launches if found.case is not None)
    controls = {found.control.status for found in launches if found.control is not None}
    if controls & {Status.SLOWER, Status.FASTER}:
        word = "slower" if Status.SLOWER in controls else "faster"
        reason = f"a program was {word} than itself in a fresh process: the machine is the suspect"
        return _accused(_with(suspect, Status.INVALID, ratios, reason))
    if not launches or any(found.case is None or found.control is None for found in launches):
        return _with(suspect, Status.INVALID, ratios, "it could not be confirmed: no fresh process says anything")
    if len(launches) == PROCESSES and all(
        found.case is not None and found.case.status is Status.SLOWER for found in launches
    ):
        return _with(suspect, Status.SLOWER, ratios, suspect.time.reason)
    reason = f"it did not come again in fresh process {len(launches)} of {PROCESSES}"
    return _with(suspect, Status.UNDECIDED, ratios, f"{suspect.time.reason}, but {reason}")


def _accused(verdict: Verdict) -> Verdict:
    """The verdict, marked as the machine's fault if nothing else is wrong with the case."""
    others = [finding for finding in verdict.findings if finding.kind != "time"]
    return replace(verdict, accuses_machine=not any(is_red(finding.status, strict=True) for finding in others))


def _with(verdict: Verdict, status: Status, ratios: tuple[float, ...], reason: str) -> Verdict:
    """The verdict with its time settled; other findings keep their say."""
    time = TimeVerdict(status=status, reason=reason, decision=verdict.time.decision, confirmed=ratios)
    findings: list[Finding] = [
        replace(finding, status=status, detail=reason) if finding.kind == "time" else finding
        for finding in verdict.findings
    ]
    order = list(Status)
    findings.sort(key=lambda finding: -order.index(finding.status))
    worst = max(findings[0].status, status, key=order.index)
    fails = worst in (Status.SLOWER, Status.REGRESSED, Status.INVALID)
    return replace(verdict, status=worst, fails=fails, findings=tuple(findings), time=time)
