"""Observe a base program and an edited one, judge the second by the first, read what a person would read."""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import jax

from jaxgate.judge.verdict import judge, judge_invalid
from jaxgate.keep.references import ReferenceCache
from jaxgate.model import Baseline, InvalidCaseError, Phases, Record, Status
from jaxgate.observe.measure import observe
from jaxgate.plugin.explaining import judge_with_buffers
from jaxgate.report.text import explain
from tests.mistakes import NO_PROGRAM, NO_TIME, NOWHERE, first_line, names, said
from tests.planted.model import PROGRAMS, Fault, Outcome

ALARMS = frozenset(Status) - {Status.SAME, Status.IMPROVED, Status.FASTER, Status.UNDECIDED}


def source_of(program: str) -> str:
    """The text of a base program."""
    return (PROGRAMS / f"{program}.py").read_text()


def edited(fault: Fault) -> str:
    """The program with the fault in it.

    Raises:
        ValueError: If a text to replace does not stand there exactly once.
    """
    return fault.planted(source_of(fault.program), f"{fault.program}.py")


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
        places = fault.places(source, f"{fault.program}.py")
        fields = said(fault, verdict, places, kinds=("fact",))
        clause = str(fields["line"]).split("; ")[0]
        return Outcome(
            name=fault.name,
            kind=fault.kind,
            program=fault.program,
            first=bool(fields["caught"]) and names(clause, fault.culprit, places),
            seconds=time.perf_counter() - begin,
            **fields,
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
