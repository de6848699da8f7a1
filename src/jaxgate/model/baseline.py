"""A baseline: what a case was when somebody accepted it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from jaxgate.model.measurement import MeasuredProgram, Measurement
from jaxgate.model.numbers import Facts, Samples, Strict
from jaxgate.model.program import ProgramRecord

BASELINE_SCHEMA = 5
LATER_KEYS = frozenset(
    {
        "called", "facts.block_bytes", "facts.copied_bytes", "facts.cyclic_arrays", "facts.cyclic_objects",
        "facts.host_reads", "facts.host_waits", "facts.jax_calls", "facts.jitted", "facts.kept_arrays",
        "facts.kernels", "facts.loop_turns", "facts.python_calls", "facts.random_bits", "facts.remade_jits",
        "facts.replicated_bytes", "facts.scattered_bytes", "facts.trace_calls", "facts.trace_equations",
        "facts.transcendentals", "facts.unmatched_names", "fingerprints.devices", "fingerprints.executable", "first",
        "growth", "kernels", "later", "launched_programs", "libraries", "native_code", "phases.dispatch_ns",
        "phases.trace_wait_ns", "steps", "traced", "transferred", "turns",
    }
)  # fmt: skip
"""Keys that files of this schema were written without at first: they may lack them, and are not judged by them then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(Strict):
    """Who can say where these numbers come from."""

    commit: str | None  # the checkout's commit at recording time (parent of the one that adds the file), if any
    dirty: bool  # whether tracked files differed from it
    date: str  # UTC date, `YYYY-MM-DD`
    jaxgate: str  # version of the recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Strict, MeasuredProgram):
    """One accepted case: the content of one file under ``baselines/<hardware>-jax-<line>/<family>/``."""

    schema: int
    case: str  # `family/sentence`
    # pytest node id that recorded it; a baseline whose test is gone is an orphan. Empty where its file was moved to
    # another name since (`git mv`), of which nobody knows whose test that is.
    test: str
    provenance: Provenance
    samples: Samples | None  # `None` where it was recorded without a clock: it knows facts, and no time of a call
    program: ProgramRecord  # what is stored of the program itself, under `programs/<fingerprint>`

    @classmethod
    def of(
        cls, measurement: Measurement, *, case: str, test: str, provenance: Provenance, program: ProgramRecord
    ) -> Baseline:
        """Accept a measurement as it is."""
        kept = {field.name: getattr(measurement, field.name) for field in fields(MeasuredProgram)}
        return cls(schema=BASELINE_SCHEMA, case=case, test=test, provenance=provenance, program=program, **kept)

    def as_measured(self, unknown: Mapping[str, str] | None = None) -> Measurement:
        """What was accepted, as a measurement that can be held against another baseline.

        ``unknown`` are facts that could not be had, each with the reason: a baseline does not keep that.
        """
        kept = {field.name: getattr(self, field.name) for field in fields(MeasuredProgram)}
        return Measurement(**kept, unknown=unknown or {}, compiled_only=self.compiled_only)

    @property
    def compiled_only(self) -> bool:
        """Whether it was not called when it was recorded: then nothing is known that only calls show."""
        return self.facts.traces is None

    @property
    def programs(self) -> tuple[tuple[str, ProgramRecord], ...]:
        """Fingerprint and record of each stored program: the case's own, and those that plain Python launches."""
        launched = ((one.fingerprint, one.program) for one in self.launched_programs if one.program is not None)
        return tuple(
            (structure, about)
            for structure, about in ((self.fingerprints.program, self.program), *launched)
            if about.stored
        )

    def stored_as(self, save: Callable[[str, ProgramRecord], str]) -> Baseline:
        """The baseline with the digests under which its programs are stored.

        ``save`` stores a program and returns its digest.
        """

        def kept(structure: str, about: ProgramRecord) -> ProgramRecord:
            return replace(about, digest=save(structure, about)) if about.stored else about

        launched = (
            one if one.program is None else replace(one, program=kept(one.fingerprint, one.program))
            for one in self.launched_programs
        )
        return replace(self, program=kept(self.fingerprints.program, self.program), launched_programs=tuple(launched))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBaseline:
    """A baseline as found on disk."""

    baseline: Baseline  # what it says
    path: Path  # its file
    borrowed: bool  # whether it was recorded on other hardware of the same platform
    of_other_line: bool = False  # whether another release line of jax recorded it
    recorded: Facts | None = None  # the facts in the file, if those of `baseline` are of its program compiled here

    @property
    def own(self) -> bool:
        """Whether it is the one that a recording here would replace."""
        return not (self.borrowed or self.of_other_line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """The recordings of one case, a launch each."""

    here: tuple[Baseline, ...]  # by this environment, in the order taken
    there: tuple[Baseline, ...]  # by the other one
    why_not: str  # why there are none, where there are none
