"""Plain frozen data that the rooms of jaxgate hand to each other. No JAX, no files, no pytest."""

from jaxgate.model.allocator import AllocatorFigures, AllocatorPeak, PeakRecord
from jaxgate.model.baseline import BASELINE_SCHEMA, Baseline, Provenance, Record
from jaxgate.model.bursts import ACCELERATOR_BURST_NS, BURSTS, DUEL_BURST_NS, LONG_CALL_NS
from jaxgate.model.calibration import CALIBRATION_SCHEMA, Calibration, CaseCalibration, Plant
from jaxgate.model.chips import peak_flops, utilisation
from jaxgate.model.claim import RIVALS, Claim, KnownBreak, at_least, at_most, equal
from jaxgate.model.claim_keywords import split_claims
from jaxgate.model.collection import Collection
from jaxgate.model.cost import Cost, Prediction
from jaxgate.model.decision import Decision
from jaxgate.model.duel import BrokenDuelError, Duel, ReferenceDuel
from jaxgate.model.floors import FLOORS_SCHEMA, NoiseFloor, NoiseFloors
from jaxgate.model.inventory import Inventory, KeptCase, LogEntry, StoredFile
from jaxgate.model.launches import Launches
from jaxgate.model.measurement import (
    EACH_TURN,
    MAX_NAMED,
    SHARED_CORES,
    Culprits,
    ExhaustedError,
    Fingerprints,
    HardwareKey,
    InvalidCaseError,
    Leaf,
    Measured,
    Measurement,
    ReferenceFacts,
)
from jaxgate.model.numbers import Contract, Facts, Phases, Samples
from jaxgate.model.outcome import GateExit, Outcome
from jaxgate.model.plural import plural, shortlist
from jaxgate.model.policy import FactPolicy
from jaxgate.model.profile import Capture, Communication, Operation, OpRow, OpTable, OpTimes, Side, Span, StepTimes
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.model.repeat import RepeatOutcome
from jaxgate.model.review import Review
from jaxgate.model.scaling import Point, Scaling
from jaxgate.model.settings import LAUNCHES, ArtifactSettings, ProfileWhen, RankSettings, RunKind, Settings, Update
from jaxgate.model.share import Share
from jaxgate.model.status import Status
from jaxgate.model.store_changes import StoreChanges
from jaxgate.model.stored import TIMES_SCHEMA, StoredTimes, TimedSession
from jaxgate.model.usage import UsageError
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict, Verdict
from jaxgate.model.waiver import TIME, Waiver
from jaxgate.model.workload import Amount, Batch, Case, Computation, Fits, Rival, Size, Tolerance, cases

__all__ = [
    "ACCELERATOR_BURST_NS",
    "BASELINE_SCHEMA",
    "BURSTS",
    "CALIBRATION_SCHEMA",
    "DUEL_BURST_NS",
    "EACH_TURN",
    "FLOORS_SCHEMA",
    "LAUNCHES",
    "LONG_CALL_NS",
    "MAX_NAMED",
    "RIVALS",
    "SHARED_CORES",
    "TIME",
    "TIMES_SCHEMA",
    "AllocatorFigures",
    "AllocatorPeak",
    "Amount",
    "ArtifactSettings",
    "Baseline",
    "Batch",
    "BrokenDuelError",
    "Calibration",
    "Capture",
    "Case",
    "CaseCalibration",
    "Cause",
    "Claim",
    "Collection",
    "Communication",
    "Computation",
    "Contract",
    "Cost",
    "Culprits",
    "Decision",
    "Duel",
    "ExhaustedError",
    "FactPolicy",
    "Facts",
    "Finding",
    "Fingerprints",
    "Fits",
    "GateExit",
    "HardwareKey",
    "InvalidCaseError",
    "Inventory",
    "KeptCase",
    "KnownBreak",
    "Launches",
    "Leaf",
    "LogEntry",
    "Measured",
    "Measurement",
    "NoiseFloor",
    "NoiseFloors",
    "OpRow",
    "OpTable",
    "OpTimes",
    "Operation",
    "Origin",
    "Outcome",
    "PeakRecord",
    "Phases",
    "Plant",
    "Point",
    "Prediction",
    "ProfileWhen",
    "ProgramRecord",
    "Provenance",
    "RankSettings",
    "Record",
    "ReferenceDuel",
    "ReferenceFacts",
    "RepeatOutcome",
    "Review",
    "Rival",
    "RunKind",
    "Samples",
    "Scaling",
    "Settings",
    "Share",
    "Side",
    "Size",
    "Span",
    "Status",
    "StepTimes",
    "StoreChanges",
    "StoredFile",
    "StoredProgram",
    "StoredTimes",
    "TimeVerdict",
    "TimedSession",
    "Tolerance",
    "Update",
    "UsageError",
    "Verdict",
    "Waiver",
    "at_least",
    "at_most",
    "cases",
    "equal",
    "peak_flops",
    "plural",
    "shortlist",
    "split_claims",
    "utilisation",
]
