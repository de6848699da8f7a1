"""A red case explains itself: both programs profiled and written down, after its verdict and never while timing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from jaxgate.engine.duels.baseline_duel import Opponent
from jaxgate.engine.instruments import Instruments
from jaxgate.engine.run.progress import PROFILING
from jaxgate.ext.profile.capture import session_name, side_folder
from jaxgate.ext.profile.model import Capture, OpTable, RankTimes
from jaxgate.ext.profile.programs import Profiled, demands_of, reference, stored, texts_of, today
from jaxgate.ext.profile.scalars import can_write_scalars, write_scalars
from jaxgate.judge.timing.rates import roofline
from jaxgate.keep.artifacts import Artifacts, ForeignFolderError
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.strict import adapter_of
from jaxgate.model.baseline import StoredBaseline
from jaxgate.model.decision import Status
from jaxgate.model.measurement import Measurement
from jaxgate.model.program import StoredProgram
from jaxgate.model.verdict import Verdict
from jaxgate.model.words import plural
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.errors import describe
from jaxgate.observe.observation import Observation
from jaxgate.observe.program.export import NotReplayableError
from jaxgate.report.case_page import report
from jaxgate.report.printable import json_text
from jaxgate.settings import ArtifactSettings

LONGEST_REFERENCE_NS = 2_000_000_000
"""A reference that takes longer to compile is not profiled: a red case must not cost more than a few seconds."""
_RETRACES = frozenset({"traces", "lowerings", "compiles", "sampled_traces", "sampled_compiles"})
MAX_PROFILED = 8
"""Cases of a run that is not asked for all: a broken machine fails them all, and a few say it."""
_SCALARS = (
    "run_ns", "trace_ns", "compile_ns", "traces", "peak_bytes", "temp_bytes", "xla_flops", "collective_bytes",
    "stablehlo_ops",
)  # fmt: skip


VERDICT_SCHEMA = 2
"""Of ``verdict.json``; changes where a key goes or means something else."""


def verdict_json(verdict: Verdict) -> str:
    """The verdict as JSON, with the number of its schema."""
    ranked_by = {"causes": {"__all__": {"root", "amount"}}}  # their order says it
    content = adapter_of(Verdict).dump_python(verdict, mode="json", exclude=ranked_by)
    return json_text({"schema": VERDICT_SCHEMA, **content})


class EvidenceCollector:
    """What the cases of one run leave behind.

    ``settings`` are ``None`` where this process only measures for another one. A run that records all cases has no
    ``bundles``, and keeps those of the last run: they show what is accepted.
    """

    def __init__(
        self,
        settings: ArtifactSettings | None,
        root: Path,
        programs: ProgramStore,
        *,
        instruments: Instruments,
        bundles: bool = True,
    ) -> None:
        self._settings = settings
        self._root = root
        self._programs = programs
        self._instruments = instruments
        self._bundles = bundles
        self.scalars: dict[str, dict[str, float]] = {}
        self.taken: list[str] = []  # cases that have a bundle, in order
        self.profiled = 0
        self.left: list[str] = []  # cases that were not profiled because enough were
        self.pages: list[str] = []  # files about the run as a whole
        self.problems: list[str] = []  # why there are no bundles, or no scalars of this run
        self.artifacts = Artifacts(root) if settings is None else Artifacts(settings.folder, settings.run)
        self._writes = settings is not None
        if settings is not None:
            try:
                self.artifacts.begin() if bundles else self.artifacts.join()
            except (ForeignFolderError, OSError) as error:
                self.problems.append(str(error))
                self._writes = False

    def note(self, case: str, row: Mapping[str, Any], run_ns: float | None) -> None:
        """Remember a case's metrics for the scalars of this run."""
        numbers = {**row, "run_ns": run_ns}
        self.scalars[case] = {name: value for name in _SCALARS if (value := numbers.get(name)) is not None}

    def add(
        self,
        scalars: Mapping[str, Mapping[str, float]],
        *,
        taken: Sequence[str],
        left: Sequence[str],
        problems: Sequence[str],
        profiled: int,
    ) -> None:
        """Count what another process of this run left in the same folder."""
        self.scalars |= {case: dict(numbers) for case, numbers in scalars.items()}
        self.taken += taken
        self.left += left
        self.problems += [problem for problem in problems if problem not in self.problems]
        self.profiled += profiled

    def finish(self) -> None:
        """Write the scalars of this run, where TensorBoard is installed to do it."""
        if not self._writes or not self._bundles or not self.scalars or not can_write_scalars():
            return
        try:
            write_scalars(self.artifacts.history, self.artifacts.number(), self.scalars)
        except Exception as error:  # noqa: BLE001 - TensorBoard's writer, a full disk: the run was judged all the same
            self.problems.append(f"the scalars of this run could not be written: {describe(error)}")

    @property
    def writes_pages(self) -> bool:
        """Whether files about the run as a whole are written: not by a process that measures for another one."""
        return self._settings is not None and self._writes

    def write_page(self, name: str, text: str) -> None:
        """Write a file about the run as a whole, where bundles may be written."""
        if not self.writes_pages:
            return
        try:
            self.artifacts.write_page(name, text)
            self.pages.append(name)
        except OSError as error:
            self.problems.append(f"{name} could not be written: {describe(error)}")

    def wants(self, verdict: Verdict) -> bool:
        """Whether a case is to leave a bundle."""
        if self._settings is None or not self._writes or not self._bundles or verdict.baseline.recorded:
            return False
        return verdict.fails or self._settings.when == "always"

    def why_not_profiled(self, verdict: Verdict) -> str:
        """Why a case is not to be profiled; empty if it is. It is asked again once nothing else runs."""
        if self._settings is None or self._settings.when == "never":
            return "not profiled: --perf-profile=never"
        if self._settings.when != "always" and self.artifacts.claims(_kind(verdict)) >= MAX_PROFILED:
            cases = plural(MAX_PROFILED, "case was", "cases were")
            return f"not profiled: {cases} already; --perf-profile=always profiles all"
        return ""

    def take(
        self,
        verdict: Verdict,
        observed: Observation | None,
        record: StoredBaseline | None,
        *,
        explain: Callable[[Verdict], str],
        opponent: Opponent | None = None,
        now: Measurement | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Verdict:
        """Profile both sides and write the bundle; nothing that goes wrong here changes the verdict.

        ``observed`` is ``None`` if the case is not to be run again, or could not be observed; ``opponent`` is the baseline's
        program, if it was compiled for a duel. The verdict comes back with what was captured.
        """
        if not self.wants(verdict):
            return verdict
        capture, texts = Capture(folder=""), dict[str, str]()
        begin = time.perf_counter()
        try:
            folder = self.artifacts.bundle(verdict.case)
            capture = Capture(folder=os.path.relpath(folder, self._root))
            if not self.why_not_profiled(verdict):
                progress(PROFILING)  # alone: no other process counts meanwhile
                begin = time.perf_counter()
            why_not = self.why_not_profiled(verdict)
            never = self._settings is None or self._settings.when == "never"
            if why_not and not (never or now is None):
                self.left.append(verdict.case)
            if observed is None or verdict.status is Status.RESOURCE_EXHAUSTED or why_not:
                capture = replace(capture, notes=(why_not or "not profiled: there is no call to repeat",))
            else:
                with observed.together.calling(PROFILING):
                    capture, texts = self._profile(capture, verdict, observed, record, opponent)
            verdict = _with(verdict, replace(capture, seconds=time.perf_counter() - begin))
            texts["verdict.json"] = verdict_json(verdict)
            logdir = os.path.relpath(self.artifacts.root, self._root)
            texts["report.md"] = report(verdict, now, record, explain(verdict), sorted(texts), logdir=logdir)
            for name, text in texts.items():
                self.artifacts.write(verdict.case, name, text)
        except Exception as error:  # noqa: BLE001 - a full disk, another release: the verdict stands
            what = "the bundle is incomplete" if capture.folder else "no bundle was written"
            notes = (*capture.notes, f"{what}: {describe(error)}")
            return _with(verdict, replace(capture, notes=notes, incomplete=True))
        self.taken.append(verdict.case)
        return verdict

    def _profile(
        self,
        capture: Capture,
        verdict: Verdict,
        observed: Observation,
        record: StoredBaseline | None,
        opponent: Opponent | None,
    ) -> tuple[Capture, dict[str, str]]:
        cold = any(f.name.split(" ")[0] in _RETRACES and f.status is Status.REGRESSED for f in verdict.findings)
        notes: list[str] = []
        sides = self._sides(observed, record, opponent, notes, cold=cold)
        profiled, table, ranks = self._taken(verdict.case, capture.folder, observed, sides, notes)
        if profiled and profiled[0].side == "now":
            self.artifacts.claim(_kind(verdict), verdict.case)
            self.profiled += 1
        texts: dict[str, str] = {}
        try:
            texts = texts_of(observed, sides)
        except Exception as error:  # noqa: BLE001 - the profiles are there all the same
            notes.append(f"the programs could not be written: {describe(error)}")
        try:
            hardware = observed.measurement.hardware
            least = {side: roofline(asked, hardware) for side, asked in demands_of(observed, sides).items()}
            capture = replace(capture, rooflines={side: found for side, found in least.items() if found is not None})
        except Exception as error:  # noqa: BLE001 - profiles are there
            notes.append(f"the least time of a call is unknown: {describe(error)}")
        names = tuple(side.side for side in profiled)
        return replace(capture, table=table, ranks=ranks, notes=tuple(notes), sides=names), texts

    def follow(
        self, case: str, observed: Observation, record: StoredBaseline | None, opponent: Opponent | None
    ) -> None:
        """Profile a case with rank 0, which has its verdict and writes its bundle.

        Raises:
            Exception: Of any kind, if a side cannot be profiled here.
        """
        sides = self._sides(observed, record, opponent, [], cold=False)
        self._taken(case, "", observed, sides, [])

    def _sides(
        self,
        observed: Observation,
        record: StoredBaseline | None,
        opponent: Opponent | None,
        notes: list[str],
        *,
        cold: bool,
    ) -> list[Profiled]:
        """Both sides, ready to be stepped; as many on each rank."""
        (again,) = observed.together.first("whether its steps compile", (cold,))
        sides: list[Profiled] = []
        preparations: tuple[tuple[str, Callable[[], list[Profiled]]], ...] = (
            ("today's side", lambda: [today(observed, cold=bool(again))]),
            ("the other side", lambda: self._other(observed, record, opponent, notes)),
        )
        for name, prepare in preparations:
            try:
                sides += prepare()
            except Exception as error:  # noqa: BLE001 - the rest of the bundle is there all the same
                notes.append(f"{name} was not profiled: {describe(error)}")
        found = observed.together.each("sides to profile", [side.side for side in sides])
        return sides if all(names == found[0] for names in found) else []

    def _taken(
        self, case: str, bundle: str, observed: Observation, sides: Sequence[Profiled], notes: list[str]
    ) -> tuple[list[Profiled], OpTable | None, tuple[RankTimes, ...]]:
        """Profile sides into rank 0's bundle; gives the profiled ones, their table, and a step of each rank."""
        together, now = observed.together, observed.measurement
        folder = self._root / together.each("the bundle", bundle)[0]
        profiled: list[Profiled] = []
        if now.compiled_only:
            notes.append(f"not profiled: {now.why_not_called}")
        for side in [] if now.compiled_only else sides:
            where = folder / side_folder(side.side)
            taken = self._instruments.take_profile(side, where, session_name(case, side.side), together=together)
            notes += [f"{side.side}: {note}" for note in (taken.note, taken.why_not) if note]
            profiled += [] if taken.why_not else [side]
        if not profiled or profiled[0].side != "now":
            return profiled, None, ()
        one_device = 1 < now.processes == now.hardware.devices
        table = self._instruments.read_table(folder, profiled, notes, one_device=one_device)
        if together is ALONE:
            return profiled, table, ()
        row = None
        if table is not None:
            moving, where = table.communication, table.waits_in
            row = asdict(RankTimes(rank=together.name, step_ns=table.now_ns, communication=moving, waits_in=where))
        found = [one for one in together.each("where its time goes", row) if one is not None]
        return profiled, table, tuple(map(adapter_of(RankTimes).validate_python, found))

    def _other(
        self, observed: Observation, record: StoredBaseline | None, opponent: Opponent | None, notes: list[str]
    ) -> list[Profiled]:
        """The baseline's program if it is not today's; else the reference."""
        now = observed.measurement
        if record is not None and record.baseline.program.stored and observed.lowered is not None:
            about, theirs = record.baseline.program, record.baseline.fingerprints
            content = self._programs.load(theirs.program, about.digest)
            ours = now.fingerprints
            if (theirs.program, theirs.options) == (ours.program, ours.options):
                notes.append("the baseline's program is today's: compared with the reference")
            elif content is not None:
                before = StoredProgram(record=about, content=content)
                contender = opponent[1] if opponent is not None and opponent[0] == before else None
                try:
                    return [stored(before, observed, contender)]
                except NotReplayableError as error:
                    notes.append(f"the baseline's program was not profiled: {error}")
        known = now.reference
        if known is not None and (known.phases.compile_ns or 0) > LONGEST_REFERENCE_NS:
            notes.append("the reference was not profiled: it takes too long to compile")
            return []
        found = reference(observed)
        if found is None:
            notes.append("there is nothing to compare it with: no other program of the baseline, no reference")
        return [] if found is None else [found]


def _with(verdict: Verdict, capture: Capture) -> Verdict:
    return replace(verdict, evidence=replace(verdict.evidence, capture=capture))


def _kind(verdict: Verdict) -> str:
    """Green cases take no room from red ones."""
    return "red" if verdict.fails else "green"
