"""A slow-down, or a broken claim about run time, is repeated in fresh processes before it fails a test.

Two processes of one program have been seen to differ by 30 % on a shared machine, with a tight interval in
each: the process is the unit of noise. The number of repeats is fixed; nobody runs again until it is green.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxgate.judge.duel import CONFIRM_COUNT, decide
from jaxgate.judge.order import ALWAYS_FAIL, is_red, severest, worst_first
from jaxgate.judge.run_claims import breaks, decide_claim
from jaxgate.keep.jobs import Job, read_duels, write_job
from jaxgate.model import Claim, Decision, Duel, Finding, Status, TimeVerdict, Verdict
from jaxgate.observe.failures import describe
from jaxgate.observe.placing import settings, to_files
from jaxgate.plugin.again import PhaseRepeat
from jaxgate.plugin.timing import Rematch

if TYPE_CHECKING:
    from jaxgate.plugin.stored import Repeat

PROCESSES = 2
TIMEOUT_S = 600
MANY = 5
MANY_SHARE = 0.20
"""More slow-downs than this many, and than this share of the cases, accuse the machine and not the cases."""


Capturing = Callable[[Verdict, Callable[[str], None]], Verdict]
"""Profiles a case whose verdict is final, telling what is being done; gives the verdict with what was captured."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A case that only the clock of this process makes red, waiting for others.

    Attributes:
        verdict: Its verdict so far.
        rematches: The duels to run again: with the baseline's program, or with the reference for a claim; or the
            measurement that stored times found slow.
        row: ``extra_info`` of its row in pytest-benchmark, to be told the outcome.
        strict: Whether a missing or stale baseline fails it too.
        capture: Profiles the case once it is confirmed.
    """

    verdict: Verdict
    rematches: Sequence[Rematch | Repeat | PhaseRepeat]
    row: dict[str, Any]
    strict: bool = False
    capture: Capturing = lambda verdict, _: verdict


@dataclass(frozen=True, slots=True)
class Launch:
    """What one fresh process found; ``problem`` says why there is nothing, ``blames_machine`` whose fault that is.

    A measurement held against stored times has no control (``has_control``): there is no second side to swap.
    """

    case: Decision | None
    control: Decision | None
    problem: str = ""
    has_control: bool = True
    blames_machine: bool = False


def duelled(suspect: Suspect) -> bool:
    """Whether a duel made it a suspect: only these can say together that the machine moved under them."""
    return any(isinstance(rematch, Rematch) for rematch in suspect.rematches)


def too_many(suspects: int, cases: int) -> bool:
    """Whether so many cases fired at once that the machine is the suspect."""
    return suspects > max(MANY, MANY_SHARE * cases)


def accuses(verdict: Verdict, claim: Claim | None) -> bool:
    """Whether a duel made a case red: that of a claim, or that with the baseline's program."""
    return any(_is_about(finding, claim) and finding.status in ALWAYS_FAIL for finding in verdict.findings)


def launch(rematch: Rematch | Repeat) -> Launch:
    """Run a duel, or a measurement, again in a fresh process, one at a time."""
    if not isinstance(rematch, Rematch):
        return rematch.launch()
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        folder = Path(name)
        try:
            _write(rematch, folder)
        except Exception as error:  # noqa: BLE001 - deleted arrays, a full disk: the other suspects are repeated
            return Launch(None, None, f"it could not be handed to a fresh process: {describe(error)}")
        command = [sys.executable, "-m", "jaxgate.cli.duel", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return Launch(None, None, f"a fresh process took more than {TIMEOUT_S} s")
        except OSError as error:
            return Launch(None, None, f"a fresh process could not be started: {error}")
        try:
            duels = read_duels(folder)
            case = _decide(rematch, duels["case"])
            control = decide(duels["control"], count=CONFIRM_COUNT, own_margin=rematch.own_margin)
        except FileNotFoundError:
            last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
            return Launch(None, None, f"a fresh process failed: {last[0]}")
        except (KeyError, ValueError) as error:  # damaged, incomplete, or a duel that means nothing
            return Launch(None, None, f"a fresh process gave nothing usable: {str(error).splitlines()[0]}")
    return Launch(case, control)


def _write(rematch: Rematch, folder: Path) -> None:
    leaves, kinds = to_files(rematch.leaves)
    about = {
        "kinds": kinds,
        "platform": rematch.platform,
        "contract": rematch.contract,
        "seed": secrets.randbits(32),
        "settings": settings(),
    }
    write_job(folder, Job(now=rematch.now, baseline=rematch.baseline, leaves=leaves, about=about))


def confirm(suspect: Suspect, *, machine: bool) -> Verdict:
    """Repeat a duel and judge the case; one process that disagrees is enough to stop."""
    verdict = suspect.verdict
    for rematch in suspect.rematches:
        if isinstance(rematch, PhaseRepeat):
            verdict = rematch.settle(verdict, processes=PROCESSES, strict=suspect.strict)
            continue
        launches: list[Launch] = []
        by_run = machine and isinstance(rematch, Rematch)  # stored times look at the machine themselves
        while not by_run and len(launches) < PROCESSES:
            launches.append(launch(rematch))
            found = launches[-1].case
            if found is None or found.status is not _accusation(rematch.claim):
                break
        verdict = settle(verdict, launches, machine=by_run, claim=rematch.claim, strict=suspect.strict)
    suspect.row["verdict"] = str(verdict.status)
    return verdict


def settle(
    suspect: Verdict, launches: Sequence[Launch], *, machine: bool, claim: Claim | None = None, strict: bool = False
) -> Verdict:
    """Judge a suspect after the repeats of one duel. Pure.

    Args:
        suspect: The verdict of the case so far.
        launches: What the fresh processes found; empty if none were started.
        machine: Whether the run as a whole accuses the machine.
        claim: The claim that the duel decides; ``None`` for a slow-down against the baseline's program.
        strict: Whether a missing or stale baseline fails too.

    Returns:
        SLOWER if every process agrees, REGRESSED for a claim; UNDECIDED if one does not; INVALID if the machine
        is the suspect, identical programs differed, or a process could not be run: none of these is green.
    """
    settled = partial(_with, suspect, claim=claim, strict=strict)
    if machine:
        reason = "too many cases got slower at once: the machine is the suspect"
        return settled(Status.INVALID, (), reason, by_machine=True)
    lost = next((found for found in launches if found.problem), None)
    if lost is not None:
        reason = f"it could not be confirmed: {lost.problem}"
        return settled(Status.INVALID, (), reason, by_machine=lost.blames_machine)
    ratios = tuple(found.case.ratio for found in launches if found.case is not None)
    controls = {found.control.status for found in launches if found.control is not None}
    if controls & {Status.SLOWER, Status.FASTER}:
        word = "slower" if Status.SLOWER in controls else "faster"
        reason = f"a program was {word} than itself in a fresh process: the machine is the suspect"
        return settled(Status.INVALID, ratios, reason, by_machine=True)
    if not launches or any(found.case is None or (found.has_control and found.control is None) for found in launches):
        return settled(Status.INVALID, ratios, "it could not be confirmed: no fresh process says anything")
    first = _first_reason(suspect, claim)
    if len(launches) == PROCESSES and all(
        found.case is not None and found.case.status is _accusation(claim) for found in launches
    ):
        return settled(Status.SLOWER if claim is None else Status.REGRESSED, ratios, first)
    reason = f"it did not come again in fresh process {len(launches)} of {PROCESSES}"
    return settled(Status.UNDECIDED, ratios, f"{first}, but {reason}")


def _accusation(claim: Claim | None) -> Status:
    """What a repeat must find to confirm."""
    return Status.SLOWER if claim is None else breaks(claim)


def _decide(rematch: Rematch, duel: Duel) -> Decision:
    if rematch.claim is not None:
        return decide_claim(rematch.claim, duel, count=CONFIRM_COUNT)
    return decide(duel, count=CONFIRM_COUNT, own_margin=rematch.own_margin)


def _is_about(finding: Finding, claim: Claim | None) -> bool:
    if claim is None:
        return finding.kind == "time"
    return finding.decision is not None and finding.name == str(claim)


def _first_reason(suspect: Verdict, claim: Claim | None) -> str:
    if claim is None:
        return suspect.time.reason
    return next(f.decision.reason for f in suspect.findings if f.decision is not None and f.name == str(claim))


def _with(
    verdict: Verdict,
    status: Status,
    ratios: tuple[float, ...],
    reason: str,
    *,
    claim: Claim | None,
    strict: bool,
    by_machine: bool = False,
) -> Verdict:
    """The verdict with its time, or one claim, settled; other findings keep their say."""
    time = verdict.time
    if claim is None:
        time = TimeVerdict(status=status, reason=reason, decision=time.decision, confirmed=ratios)
    findings: list[Finding] = []
    for finding in verdict.findings:
        if not _is_about(finding, claim):
            findings.append(finding)
        elif finding.decision is None:
            findings.append(replace(finding, status=status, detail=reason, blames_machine=by_machine))
        else:
            decision = replace(finding.decision, reason=reason)
            settled = replace(finding, status=status, decision=decision, confirmed=ratios)
            findings.append(replace(settled, blames_machine=by_machine))
    red = [finding for finding in findings if is_red(finding.status, strict=strict)]
    worst = severest((*(finding.status for finding in findings), time.status))
    return replace(
        verdict,
        status=worst,
        fails=is_red(worst, strict=strict),
        findings=worst_first(findings),
        time=time,
        accuses_machine=bool(red) and all(finding.blames_machine for finding in red),
    )
