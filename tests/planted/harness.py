"""Observe a base program and an edited one, judge the second by the first, read what a person would read."""

from __future__ import annotations

import importlib.util
import re
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import jax

from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.keep.references import ReferenceCache
from jaxgate.model import (
    Baseline,
    InvalidCaseError,
    Phases,
    ProgramRecord,
    Provenance,
    Record,
    Samples,
    Status,
)
from jaxgate.observe.measure import observe
from jaxgate.plugin.explaining import judge_with_buffers
from jaxgate.report.text import explain
from tests.planted.model import PROGRAMS, Fault, Outcome

ALARMS = frozenset(Status) - {Status.SAME, Status.IMPROVED, Status.FASTER, Status.UNDECIDED}

NO_PROGRAM = ProgramRecord(digest=None, donated=(), feeds=None, why_not="not stored: nothing is timed", options={})
NOWHERE = Provenance(commit=None, dirty=False, date="2026-01-01", jaxgate="")
NO_TIME = Samples(bursts_ns=(1,), calls_per_burst=1)  # facts are judged; a baseline has samples none the less


def source_of(program: str) -> str:
    """The text of a base program."""
    return (PROGRAMS / f"{program}.py").read_text()


def edited(fault: Fault) -> str:
    """The program with the fault in it.

    Raises:
        ValueError: If a text to replace does not stand there exactly once.
    """
    source = source_of(fault.program)
    for old, new in fault.edits:
        if source.count(old) != 1:
            raise ValueError(f"{fault.name}: expected {old!r} once in {fault.program}.py, found {source.count(old)}")
        source = source.replace(old, new)
    return source


class Bench:
    """Runs programs out of a temporary folder, each text as a module of its own; bases are observed once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0
        self._bases: dict[str, Record] = {}
        self._store = ReferenceCache(None)

    def plant(self, fault: Fault) -> Outcome:
        """Run one fault."""
        begin = time.perf_counter()
        source = edited(fault)
        verdict = self._judge(fault.program, source)
        moved = tuple(f.name for f in verdict.findings if f.kind == "fact" and f.status is Status.REGRESSED)
        line = first_line(verdict)
        clause = line.split("; ")[0]
        places = tuple(
            f"{fault.program}.py:{number}"
            for number, text in enumerate(source.splitlines(), 1)
            if any(part in text for part in fault.at)
        )
        right_status = str(verdict.status) == fault.status
        caught = right_status and (not fault.moves or bool(fault.moves & set(moved)))
        blamed = caught and names(line, fault.culprit, places)
        return Outcome(
            name=fault.name,
            kind=fault.kind,
            program=fault.program,
            status=str(verdict.status),
            moved=moved,
            line=line,
            caught=caught,
            blamed=blamed,
            first=caught and names(clause, fault.culprit, places),
            why=_why(fault, caught=caught, blamed=blamed, places=places),
            seconds=time.perf_counter() - begin,
        )

    def leave(self, name: str, program: str, source: str) -> Outcome:
        """Run a program that only looks different."""
        begin = time.perf_counter()
        if source == source_of(program):
            raise ValueError(f"{name} leaves {program}.py as it is")
        verdict = self._judge(program, source)
        alarms = [f"{f.status} {f.name}: {f.detail}" for f in verdict.findings if f.status in ALARMS]
        quiet = not alarms and verdict.status not in ALARMS
        return Outcome(
            name=name,
            kind="unchanged",
            program=program,
            status=str(verdict.status),
            moved=tuple(f.name for f in verdict.findings if f.status in ALARMS),
            line="" if quiet else first_line(verdict),
            caught=quiet,
            identical=verdict.time.status is Status.SAME,
            why="; ".join(alarms),
            seconds=time.perf_counter() - begin,
        )

    def _judge(self, program: str, source: str):
        record = self._base(program)
        try:
            observed = self._observe(program, source)
            return judge_with_buffers(lambda now: judge(program, (), now, record, strict=True), observed)
        except InvalidCaseError as error:
            return judge_invalid(program, error)

    def _base(self, program: str) -> Record:
        if program not in self._bases:
            measurement = replace(self._observe(program, source_of(program)).measurement, samples=NO_TIME)
            baseline = Baseline.of(measurement, case=program, test="", provenance=NOWHERE, program=NO_PROGRAM)
            record = Record(baseline=baseline, path=Path("base.json"), borrowed=False)
            verdict = judge(program, (), measurement, record, strict=True)
            if verdict.status in ALARMS:
                raise ValueError(f"{program}.py alarms by itself: {explain(verdict, test='planted')}")
            self._bases[program] = record
        return self._bases[program]

    def _observe(self, program: str, source: str):
        module = self._load(program, source)
        widened = jax.config.jax_enable_x64
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # donation that JAX calls unusable: the facts must say it
                observed = observe(module.build, store=self._store, sampling=False)
            # Phases are those of a busy machine, and no fresh process confirms them here.
            return replace(observed, measurement=replace(observed.measurement, phases=Phases()))
        finally:
            jax.config.update("jax_enable_x64", widened)

    def _load(self, program: str, source: str):
        """Import a text as a fresh module whose lines are the project's."""
        self._count += 1
        file = self._folder / str(self._count) / f"{program}.py"
        file.parent.mkdir(parents=True)
        file.write_text(source)
        name = f"planted_{self._count}_{program}"
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module


def first_line(verdict) -> str:
    """The culprit as printed; where nothing could be compared, what was found."""
    rows = dict(re.findall(r"^  (\w+) +(.*)$", explain(verdict, test="planted"), flags=re.MULTILINE))
    judged = verdict.status is Status.REGRESSED
    line = re.sub(r"; comes from: .*$", "", rows["culprit"]) if judged else rows.get("found", "")
    return re.sub(r"\S*/(\w+\.py)", r"\1", line)  # without the temporary folder


def names(line: str, culprit: str, places: tuple[str, ...]) -> bool:
    """Whether a line says what it must, and names one of the places if there are any."""
    words = re.sub(r"\w+\.py:\d+", "", line)  # the name of a file must not pass for the name of an operation
    said = re.search(culprit, words, flags=re.IGNORECASE) is not None
    return said and (not places or any(re.search(rf"{re.escape(place)}\b", line) for place in places))


def _why(fault: Fault, *, caught: bool, blamed: bool, places: tuple[str, ...]) -> str:
    if not caught:
        facts = f" by {' or '.join(sorted(fault.moves))}" if fault.moves else ""
        return f"expected {fault.status}{facts}"
    if not blamed:
        where = f" at {' or '.join(places)}" if places else ""
        return f"expected the culprit to say /{fault.culprit}/{where}"
    return ""
