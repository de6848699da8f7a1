"""A case measured again in a fresh process of the same tests; and the phases that were red, judged by it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import pytest

from jaxgate.judge.order import is_red, severest
from jaxgate.judge.phases import settle_phases
from jaxgate.keep.baselines import BaselineStore, CorruptBaselineError
from jaxgate.model import Baseline, HardwareKey, Measurement, Phases, Status, Verdict
from jaxgate.plugin.recording import AS_MEASURED, Selection, Side, clean_environment, record

_UNCACHED = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
"""What this process compiled the next one would find in a persistent cache: nothing of it could be confirmed."""


def measure_again(
    project: Path, test: str, case: str, hardware: HardwareKey, variables: Mapping[str, str] = MappingProxyType({})
) -> Baseline | str:
    """Run a test in a fresh process.

    Args:
        project: Root folder of the tests.
        test: pytest node id.
        case: Name of the case.
        hardware: Where it must run.
        variables: Environment variables of the process, beside those of this one.

    Returns:
        What it would record, or why there is nothing.
    """
    with tempfile.TemporaryDirectory(prefix="jaxgate-") as name:
        into = Path(name)
        side = Side(project, {**clean_environment(), **variables, AS_MEASURED: "1"}, "measuring again")
        try:
            failed = record(side, Selection((test,), "", ""), into)
            found = BaselineStore(into).load(hardware, case)
        except (pytest.UsageError, CorruptBaselineError, OSError) as error:
            return f"a fresh process failed: {error}"
    return failed.get(test, "a fresh process recorded nothing") if found is None else found.baseline


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRepeat:
    """What it takes to measure the phases of a case again.

    Attributes:
        project: Root folder of the tests.
        test: pytest node id.
        now: What this process saw.
        before: The baseline's phases.
    """

    project: Path
    test: str
    now: Measurement
    before: Phases

    def settle(self, verdict: Verdict, *, processes: int, strict: bool) -> Verdict:
        """Judge a case whose phases are red after fresh processes measured them, one at a time."""
        launches: list[Phases | str] = []
        while len(launches) < processes:
            launches.append(self._launch(verdict.case))
            findings = settle_phases(verdict.findings, self.before, launches, wanted=processes)
            if not any(f.kind == "phase" and f.status in (Status.REGRESSED, Status.INVALID) for f in findings):
                break  # none of them came again
            if isinstance(launches[-1], str):
                break
        status = severest((*(finding.status for finding in findings), verdict.time.status))
        red = [finding for finding in findings if is_red(finding.status, strict=strict)]
        return replace(
            verdict,
            status=status,
            fails=is_red(status, strict=strict),
            findings=findings,
            accuses_machine=bool(red) and all(finding.blames_machine for finding in red),
        )

    def _launch(self, case: str) -> Phases | str:
        """The phases in a fresh process that compiles the same program in the same environment; or why there are none."""
        found = measure_again(self.project, self.test, case, self.now.hardware, _UNCACHED)
        if isinstance(found, str):
            return found
        ours, theirs = self.now, found
        same = (ours.fingerprints.program, ours.fingerprints.options, ours.environment) == (
            theirs.fingerprints.program,
            theirs.fingerprints.options,
            theirs.environment,
        )
        return theirs.phases if same else "a fresh process ran another program, or in another environment"
