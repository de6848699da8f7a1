"""A red case explains itself: both programs profiled and written down, after its verdict and never while timing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.scalars import write_scalars
from jaxgate.model import Record, Status, StoredProgram, Verdict
from jaxgate.model.profile import Capture
from jaxgate.observe.duelling import Contender
from jaxgate.observe.exporting import NotReplayableError
from jaxgate.observe.failures import describe
from jaxgate.observe.observed import Observed
from jaxgate.observe.profiling import session_name, side_folder, take_profile
from jaxgate.observe.sides import Profiled, reference, stored, today
from jaxgate.observe.texts import texts_of
from jaxgate.plugin.artifacts import ArtifactSettings
from jaxgate.plugin.reading import read_table
from jaxgate.report.bundle import report, verdict_json

LONGEST_REFERENCE_NS = 2_000_000_000
"""A reference that takes longer to compile is not profiled: a red case must not cost more than a few seconds."""
_RETRACES = frozenset({"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"})
_SCALARS = (
    "run_ns", "trace_ns", "compile_ns", "traces", "peak_bytes", "temp_bytes", "xla_flops", "collective_bytes",
    "stablehlo_ops",
)  # fmt: skip


class Captures:
    """What the failing cases of one run leave behind.

    Args:
        settings: What the user asked for; ``None`` where this process only measures for another one.
        root: The project, which paths are shown relative to.
        programs: Where the baselines' programs are.
        opponent: Gives the last baseline's program that was compiled for a duel, if there is one.

    Attributes:
        taken: Cases that have a bundle, in order.
        left: Cases that were not profiled because enough were.
        problem: Why there are no bundles at all.
    """

    def __init__(
        self,
        settings: ArtifactSettings | None,
        root: Path,
        programs: ProgramStore,
        opponent: Callable[[], tuple[StoredProgram, Contender] | None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._opponent = opponent
        self._root = root
        self._programs = programs
        self._scalars: dict[str, dict[str, float]] = {}
        self.taken: list[str] = []
        self.left: list[str] = []
        self.problem = ""
        self._why_not = ""
        self.artifacts = Artifacts(root if settings is None else settings.folder)
        if settings is not None:
            try:
                self.artifacts.begin()
            except (ForeignFolderError, OSError) as error:
                self.problem = str(error)

    def note(self, case: str, row: Mapping[str, Any], run_ns: float | None) -> None:
        """Remember a case's metrics for the scalars of this run."""
        numbers = {"run_ns": run_ns, **row}
        self._scalars[case] = {name: value for name in _SCALARS if (value := numbers.get(name)) is not None}

    def finish(self) -> None:
        """Write the scalars of this run."""
        if self._settings is None or self.problem or not self._scalars:
            return
        try:
            write_scalars(self.artifacts.history, self.artifacts.number(), self._scalars)
        except Exception as error:  # noqa: BLE001 - TensorBoard's writer, a full disk: the run was judged all the same
            self.problem = f"the scalars of this run could not be written: {describe(error)}"

    def wants(self, verdict: Verdict) -> bool:
        """Whether a case is to leave a bundle."""
        if self._settings is None or self.problem or verdict.recorded:
            return False
        return verdict.fails or self._settings.when == "always"

    def take(
        self,
        verdict: Verdict,
        observed: Observed | None,
        record: Record | None,
        *,
        explain: Callable[[Verdict], str],
        progress: Callable[[str], None] = lambda _: None,
    ) -> Verdict:
        """Profile both sides and write the bundle; nothing that goes wrong here changes the verdict.

        Args:
            verdict: The final verdict.
            observed: The case; ``None`` if it could not be observed.
            record: Its baseline, if it has one.
            explain: Gives the failure text of a verdict.
            progress: Told what is being done.

        Returns:
            The verdict with what was captured.
        """
        if not self.wants(verdict):
            return verdict
        try:
            return self._take(verdict, observed, record, explain, progress)
        except Exception as error:  # noqa: BLE001 - a full disk, another release: the verdict stands
            return replace(verdict, capture=Capture(folder="", notes=(f"no bundle was written: {describe(error)}",)))

    def _take(
        self,
        verdict: Verdict,
        observed: Observed | None,
        record: Record | None,
        explain: Callable[[Verdict], str],
        progress: Callable[[str], None],
    ) -> Verdict:
        begin = time.perf_counter()
        case = verdict.case
        folder = self.artifacts.bundle(case)
        capture = Capture(folder=os.path.relpath(folder, self._root))
        self.taken.append(case)
        texts: dict[str, str] = {}
        if observed is None or verdict.status is Status.RESOURCE_EXHAUSTED:
            capture = replace(capture, notes=("not profiled: it could not be measured",))
        elif not self._may_profile(case):
            capture = replace(capture, notes=(self._why_not,))
        else:
            progress("profiling both sides")
            capture, texts = self._profile(capture, verdict, observed, record)
        verdict = replace(verdict, capture=replace(capture, seconds=time.perf_counter() - begin))
        now = None if observed is None else observed.measurement
        texts["verdict.json"] = verdict_json(verdict)
        texts["report.md"] = report(verdict, now, record, explain(verdict), sorted(texts))
        for name, text in texts.items():
            self.artifacts.write(case, name, text)
        return verdict

    def _may_profile(self, case: str) -> bool:
        settings = self._settings
        if settings is None or settings.when == "never":
            self._why_not = "not profiled: --perf-profile=never"
            return False
        if len(self.taken) - len(self.left) > settings.captures:
            self.left.append(case)
            self._why_not = f"not profiled: {settings.captures} cases were already (--perf-captures)"
            return False
        return True

    def _profile(
        self, capture: Capture, verdict: Verdict, observed: Observed, record: Record | None
    ) -> tuple[Capture, dict[str, str]]:
        cold = any(f.name.split(" ")[0] in _RETRACES and f.status is Status.REGRESSED for f in verdict.findings)
        sides = [today(observed, cold=cold)]
        notes: list[str] = []
        try:
            sides += self._other(observed, record, notes)
        except Exception as error:  # noqa: BLE001 - today's program is profiled all the same
            notes.append(f"the other side was not profiled: {describe(error)}")
        profiled: list[Profiled] = []
        for side in sides:
            where = self.artifacts.bundle(verdict.case) / side_folder(side.side)
            taken = take_profile(side, where, session_name(verdict.case, side.side))
            notes += [f"{side.side}: {note}" for note in (taken.note, taken.why_not) if note]
            profiled += [] if taken.why_not else [side]
        table = None
        if profiled and profiled[0].side == "now":
            table = read_table(self.artifacts.bundle(verdict.case), profiled, notes)
        names = tuple(side.side for side in profiled)
        texts = {}
        try:
            texts = texts_of(observed, sides)
        except Exception as error:  # noqa: BLE001 - the profiles are there all the same
            notes.append(f"the programs were not written down: {describe(error)}")
        return replace(capture, table=table, notes=tuple(notes), sides=names), texts

    def _other(self, observed: Observed, record: Record | None, notes: list[str]) -> list[Profiled]:
        """The baseline's program where it is another one; else the reference."""
        now = observed.measurement
        if record is not None and record.baseline.program.stored and observed.lowered is not None:
            about, fingerprint = record.baseline.program, record.baseline.fingerprints.program
            content = self._programs.load(fingerprint, about.digest)
            if fingerprint == now.fingerprints.program:
                notes.append("the baseline's program is today's: held against the reference")
            elif content is not None:
                before = StoredProgram(record=about, content=content)
                fought = self._opponent()
                contender = fought[1] if fought is not None and fought[0] == before else None
                try:
                    return [stored(before, observed, contender)]
                except NotReplayableError as error:
                    notes.append(f"the baseline's program was not profiled: {error}")
        known = now.reference
        slow = known is not None and (known.phases.compile_ns or 0) > LONGEST_REFERENCE_NS
        if slow:
            notes.append("the reference was not profiled: it takes too long to compile")
            return []
        found = reference(observed)
        if found is None:
            notes.append("there is nothing to hold it against: no other program of the baseline, no reference")
        return [] if found is None else [found]
