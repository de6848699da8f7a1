"""Measurements and baselines for tests of the pure rooms; every argument replaces one field."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from math import exp
from pathlib import Path
from typing import Any

from jaxgate.ext.times.model import TimedSession
from jaxgate.model.baseline import Baseline, Provenance, StoredBaseline
from jaxgate.model.decision import Decision, Status
from jaxgate.model.duel import Duel
from jaxgate.model.launched import LaunchedProgram
from jaxgate.model.machine import HardwareKey
from jaxgate.model.measurement import Argument, Fingerprints, Measurement, ReferenceFacts
from jaxgate.model.numbers import Facts, Phases, Samples
from jaxgate.model.program import ProgramRecord
from jaxgate.model.verdict import TimeVerdict, Verdict

HARDWARE = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=1)
OTHER_CPU = HardwareKey(platform="cpu", device_kind="Intel Xeon", devices=1)
LINE = "0.10"
ENVIRONMENT = {"jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11"}
FINGERPRINTS = Fingerprints(source="s0", program="0" * 32, options="", inputs="i0")


def argument(path="batch", aval="float32[8,64]", nbytes=2048, *, donated=False, arrival="device array", sent_bytes=0):
    """An argument in place."""
    return Argument(path=path, aval=aval, nbytes=nbytes, donated=donated, arrival=arrival, sent_bytes=sent_bytes)


SIGNATURE = (argument("state['w']", "float32[64,64]", 16384, donated=True), argument("batch", "float32[8,64]", 2048))
FACTS = Facts(
    traces=1, lowerings=1, compiles=1, sampled_traces=0, sampled_compiles=0, jitted=1, remade_jits=0,
    trace_equations=12, trace_calls=2_000, loop_turns=0, kept_arrays=0, cyclic_objects=0, cyclic_arrays=0,
    donated_bytes=16384, constant_bytes=0, host_callbacks=0, launches=3, host_transfers=1, host_reads=1, host_waits=1,
    python_calls=40, jax_calls=0, largest_batch=512, matmul_flops=1_000_000, widened_bytes=0, random_bits=0,
    unmatched_names=0, replicated_bytes=0, stablehlo_ops=40, collectives=0, collective_bytes=0, aliased_bytes=16384,
    lost_bytes=0, argument_bytes=18432, output_bytes=16388, temp_bytes=20_000, code_bytes=10_000, xla_flops=1_100_000,
    xla_bytes=100_000, transcendentals=1_000, kernels=12, copied_bytes=4_096, scattered_bytes=0, block_bytes=0,
)  # fmt: skip
PHASES = Phases(trace_ns=10_000_000, lower_ns=5_000_000, compile_ns=50_000_000, first_call_ns=1_000_000)
SAMPLES = Samples(bursts_ns=(2_000, 2_200, 1_900), calls_per_burst=2)
PROVENANCE = Provenance(commit="0123456789abcdef", dirty=False, date="2026-11-20", jaxgate="0.1.0")
PROGRAM = ProgramRecord(digest="0" * 64, donated=(0,), feeds=(0, None), why_not="")
CASE = "scan/rnn"
TEST = "perf/test_scan.py::test_scan[rnn]"
CALL_NS = 10_000_000


def measurement(*, facts: dict[str, Any] | None = None, **changes: Any) -> Measurement:
    """A measurement of a small healthy case; ``facts`` replaces single facts."""
    whole = Measurement(
        hardware=HARDWARE,
        environment=ENVIRONMENT,
        fingerprints=FINGERPRINTS,
        signature=SIGNATURE,
        facts=replace(FACTS, **(facts or {})),
        phases=PHASES,
        operations={"stablehlo.dot_general 8x64xf32": 3, "stablehlo.add 8x64xf32": 37},
        matmuls={"float32[8,64] x float32[64,64]": 3},
        samples=SAMPLES,
    )
    return replace(whole, **changes)


def launched_program(**changes: Any) -> LaunchedProgram:
    """A small program that plain Python launches once in a call."""
    whole = LaunchedProgram(
        name="step",
        count=1,
        fingerprint="0" * 32,
        options="",
        devices=None,
        arguments=("float32[8,64]",),
        facts={"xla_flops": 1_000, "temp_bytes": 4_096},
    )
    return replace(whole, **changes)


def reference(*, facts: dict[str, Any] | None = None, phases: dict[str, Any] | None = None) -> ReferenceFacts:
    """What is known of a reference: nothing about calls, otherwise like the subject."""
    silent = {"traces": None, "lowerings": None, "compiles": None, "sampled_traces": None, "sampled_compiles": None}
    return ReferenceFacts(
        facts=replace(FACTS, **silent, **(facts or {})), phases=replace(PHASES, **(phases or {})), cached=False
    )


def baseline(*, case: str = CASE, test: str = TEST, **changes: Any) -> Baseline:
    """A baseline recorded from the healthy measurement; changes go to the measurement where it has the field."""
    known = {field.name for field in fields(Measurement)} | {"facts"}
    for_measurement = {name: value for name, value in changes.items() if name in known}
    for_baseline = {name: value for name, value in changes.items() if name not in known}
    recorded = Baseline.of(measurement(**for_measurement), case=case, test=test, provenance=PROVENANCE, program=PROGRAM)
    return replace(recorded, **for_baseline)


def record(*, borrowed: bool = False, **changes: Any) -> StoredBaseline:
    """A baseline as found on disk."""
    return StoredBaseline(
        baseline=baseline(**changes), path=Path("baselines/cpu-amd-epyc-1-jax-0.10/scan/rnn.json"), borrowed=borrowed
    )


def session(run_ns=1_000_000.0, *, date="2026-11-20", **changes):
    """One session of the healthy baseline."""
    whole = TimedSession(
        provenance=replace(PROVENANCE, date=date),
        run_ns=run_ns,
        contract="throughput",
        fingerprints=FINGERPRINTS,
        environment=ENVIRONMENT,
        machine="load 0.1 of 2 cores",
    )
    return replace(whole, **changes)


def duel(now, baseline=None, *, calls=1, seed=0, traces=0):
    """A duel of half-rounds of one burst each; the baseline takes 10 ms every time."""
    before = [CALL_NS] * len(now) if baseline is None else baseline
    return Duel(
        now_ns=tuple((time,) for time in now),
        baseline_ns=tuple((time,) for time in before),
        calls_per_burst=calls,
        seed=seed,
        traces=traces,
    )


def steady(ratio, pairs=60, *, traces=0):
    """A duel without noise."""
    return duel([round(CALL_NS * ratio)] * pairs, traces=traces)


def normal(seed, ratio, sd, pairs=60):
    """A duel whose log ratios are normal around ln(ratio): each side has its half of the variance."""
    draw = random.Random(seed)
    sides = ([round(CALL_NS * by * exp(draw.gauss(0, sd / 2**0.5))) for _ in range(pairs)] for by in (ratio, 1.0))
    return duel(*sides, seed=seed)


def mirrored(told):
    """The same duel with its sides exchanged."""
    return replace(told, now_ns=told.baseline_ns, baseline_ns=told.now_ns)


def decision(status=Status.SLOWER, **changes):
    """What a duel decided: 2.5 µs against 2 µs."""
    whole = Decision(
        status=status,
        ratio=1.25,
        low=1.2,
        high=1.3,
        pairs=20,
        margin=0.03,
        sees=0.07,
        threshold=0.1,
        now_ns=2500.0,
        baseline_ns=2000.0,
        reason="20 of 20 pairs were more than 3.0% slower",
    )
    return replace(whole, **changes)


def verdict(status=Status.SAME, *findings, **changes):
    """A verdict made by hand, of an identical program; fields of its parts by their own names: ``recorded="created"``."""
    whole = Verdict(
        case=CASE,
        hardware=HARDWARE,
        status=status,
        fails=status in (Status.REGRESSED, Status.SLOWER, Status.INVALID),
        findings=findings,
        time=TimeVerdict(status=Status.SAME, reason="identical program"),
    )
    return changed_verdict(whole, **changes)


def changed_verdict(whole, **changes):
    """The same verdict with other fields, its own or those of its parts."""
    for part in ("cost", "baseline", "evidence"):
        names = {field.name for field in fields(getattr(whole, part))}
        own = {name: changes.pop(name) for name in names & changes.keys()}
        whole = replace(whole, **{part: replace(getattr(whole, part), **own)})
    return replace(whole, **changes)
