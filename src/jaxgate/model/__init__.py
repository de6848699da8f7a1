"""Plain frozen data that the rooms of jaxgate hand to each other. No JAX, no files, no pytest."""

from jaxgate.model.baseline import Baseline, Provenance, Record
from jaxgate.model.chips import peak_flops, utilisation
from jaxgate.model.claim import RIVALS, Claim, KnownBreak, at_least, at_most, equal
from jaxgate.model.decision import Decision
from jaxgate.model.duel import BrokenDuelError, Duel, ReferenceDuel
from jaxgate.model.launches import Launches
from jaxgate.model.measurement import (
    EACH_TURN,
    Culprits,
    ExhaustedError,
    Fingerprints,
    HardwareKey,
    InvalidCaseError,
    Leaf,
    Measurement,
    ReferenceFacts,
)
from jaxgate.model.numbers import Contract, Facts, Phases, Samples
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.model.status import Status
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict, Verdict
from jaxgate.model.waiver import Waiver
from jaxgate.model.workload import Amount, Batch, Case, Computation, Fits, Rival, Size, Tolerance, cases

__all__ = [
    "EACH_TURN",
    "RIVALS",
    "Amount",
    "Baseline",
    "Batch",
    "BrokenDuelError",
    "Case",
    "Cause",
    "Claim",
    "Computation",
    "Contract",
    "Culprits",
    "Decision",
    "Duel",
    "ExhaustedError",
    "Facts",
    "Finding",
    "Fingerprints",
    "Fits",
    "HardwareKey",
    "InvalidCaseError",
    "KnownBreak",
    "Launches",
    "Leaf",
    "Measurement",
    "Origin",
    "Phases",
    "ProgramRecord",
    "Provenance",
    "Record",
    "ReferenceDuel",
    "ReferenceFacts",
    "Rival",
    "Samples",
    "Size",
    "Status",
    "StoredProgram",
    "TimeVerdict",
    "Tolerance",
    "Verdict",
    "Waiver",
    "at_least",
    "at_most",
    "cases",
    "equal",
    "peak_flops",
    "utilisation",
]
