"""Measurements and baselines for tests of the pure rooms; every argument replaces one field."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from jaxgate.model import (
    Baseline,
    Facts,
    Fingerprints,
    HardwareKey,
    Leaf,
    Measurement,
    Phases,
    ProgramRecord,
    Provenance,
    ReferenceFacts,
    Samples,
    StoredBaseline,
    TimedSession,
)

HARDWARE = HardwareKey(platform="cpu", device_kind="AMD EPYC", devices=1)
OTHER_CPU = HardwareKey(platform="cpu", device_kind="Intel Xeon", devices=1)
ENVIRONMENT = {"jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11"}
FINGERPRINTS = Fingerprints(source="s0", program="p0", options="", inputs="i0")
SIGNATURE = (
    Leaf(path="state['w']", aval="float32[64,64]", nbytes=16384, donated=True),
    Leaf(path="batch", aval="float32[8,64]", nbytes=2048, donated=False),
)
FACTS = Facts(
    traces=1,
    lowerings=1,
    compiles=1,
    sampled_traces=0,
    sampled_compiles=0,
    donated_bytes=16384,
    constant_bytes=0,
    host_callbacks=0,
    launches=3,
    host_transfers=1,
    largest_batch=512,
    matmul_flops=1_000_000,
    widened_bytes=0,
    stablehlo_ops=40,
    collectives=0,
    collective_bytes=0,
    aliased_bytes=16384,
    lost_bytes=0,
    argument_bytes=18432,
    output_bytes=16388,
    temp_bytes=20_000,
    code_bytes=10_000,
    xla_flops=1_100_000,
    xla_bytes=100_000,
)
PHASES = Phases(trace_ns=10_000_000, lower_ns=5_000_000, compile_ns=50_000_000, first_call_ns=1_000_000)
SAMPLES = Samples(bursts_ns=(2_000, 2_200, 1_900), calls_per_burst=2)
PROVENANCE = Provenance(commit="0123456789abcdef", dirty=False, date="2026-11-20", jaxgate="0.1.0")
PROGRAM = ProgramRecord(digest="0" * 64, donated=(0,), feeds=(0, None), why_not="")
CASE = "scan/rnn"
TEST = "perf/test_scan.py::test_scan[rnn]"


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
        baseline=baseline(**changes), path=Path("baselines/cpu-amd-epyc-1/scan/rnn.json"), borrowed=borrowed
    )


def session(run_ns=1_000_000.0, *, date="2026-11-20", **changes):
    """One session of the healthy baseline."""
    whole = TimedSession(
        provenance=replace(PROVENANCE, date=date),
        run_ns=run_ns,
        contract="pipelined",
        fingerprints=FINGERPRINTS,
        environment=ENVIRONMENT,
        machine="load 0.1 of 2 cores",
        objections=(),
    )
    return replace(whole, **changes)
