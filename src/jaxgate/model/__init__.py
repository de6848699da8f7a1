"""Plain frozen data that the rooms of jaxgate hand to each other. No JAX, no files, no pytest."""

from jaxgate.model.bisection import (
    BISECTION_SCHEMA,
    RUN_TIME,
    AskedSide,
    Bisection,
    Left,
    Mark,
    Probe,
    Quantity,
)
from jaxgate.model.calibration import FLOORS_SCHEMA, NoiseFloor, NoiseFloors
from jaxgate.model.checkup import Level, Remark, Surroundings
from jaxgate.model.decision import Decision, Status
from jaxgate.model.drift import Accepted, CaseChanges, Creep, Drift, DriftStart, FactDrift, Step
from jaxgate.model.figures import BaselineName, CallTimes, Figures
from jaxgate.model.history import HISTORY_OFF, HISTORY_PLACE, HistoryCase, HistoryPoint, HistoryRun, Source
from jaxgate.model.machines.chips import peak_flops, utilisation
from jaxgate.model.machines.gpus import GPUS, Gpu
from jaxgate.model.machines.hardware import HardwareKey, compiled_for
from jaxgate.model.machines.jax_defaults import COMPILE_OPTIONS, CORES, UNKNOWN_SETTINGS, JaxDefaults
from jaxgate.model.machines.rates import RATES, Rates
from jaxgate.model.machines.release_line import distance, folder_name, release_line, split_folder_name
from jaxgate.model.machines.target import CHIPS, Target
from jaxgate.model.measured.duel import (
    ACCELERATOR_BURST_NS,
    BURSTS,
    DUEL_BURST_NS,
    LONG_CALL_NS,
    BrokenDuelError,
    Duel,
    ReferenceDuel,
    RepeatOutcome,
)
from jaxgate.model.measured.energy import Counted, Energy, EnergyHalf, EnergyRatio, EnergyRun, NoEnergy
from jaxgate.model.measured.launched_program import (
    CALL_FACTS,
    LaunchedProgram,
    call_facts,
    changed_programs,
    pair_programs,
)
from jaxgate.model.measured.measurement import (
    EACH_TURN,
    ELSEWHERE,
    MAX_NAMED,
    NOT_CALLED,
    SHARED_CORES,
    Argument,
    Culprits,
    ExhaustedError,
    Fingerprints,
    InvalidCaseError,
    Leaf,
    Measured,
    MeasuredProgram,
    Measurement,
    ReferenceFacts,
)
from jaxgate.model.measured.numbers import (
    ARRIVAL_FACTS,
    CALLED_FACTS,
    COUNTED_FACTS,
    FACT_NAMES,
    WIDER_PRODUCTS,
    Contract,
    Facts,
    Phases,
    Samples,
)
from jaxgate.model.measured.opinion import SWITCHED_OFF, Opinion, OpinionBy, WrongResultError
from jaxgate.model.measured.profile import (
    MOST,
    Capture,
    Communication,
    Operation,
    OpRow,
    OpTable,
    OpTimes,
    Side,
    Span,
    StepTimes,
)
from jaxgate.model.measured.rank_measurement import RankMeasurement
from jaxgate.model.measured.roofline import RESOURCES, Demand, Resource, Roofline
from jaxgate.model.outcome import RESULTS_SCHEMA, GateExit, Outcome, Point, Review, Scaling, UsageError
from jaxgate.model.policy import FactPolicy
from jaxgate.model.repro import ABOUT, REDUCED_FACTS, AnonymousProgram, ArrayOf, Axes, MeshOf, Reduced
from jaxgate.model.run_diff import CaseDiff, DiffSide, QuantityDiff, RunDiff, SideCase, Way
from jaxgate.model.run_record import CaseRecord, FindingRecord, RunRecord, TimeRecord
from jaxgate.model.stored.baseline import BASELINE_SCHEMA, LATER_KEYS, Baseline, Launches, Provenance, StoredBaseline
from jaxgate.model.stored.inventory import Inventory, KeptCase, LogEntry, StoreChanges, StoredFile
from jaxgate.model.stored.stored_program import Match, ProgramRecord, StoredProgram
from jaxgate.model.stored.stored_times import TIMES_SCHEMA, StoredTimes, TimedSession
from jaxgate.model.stored.waiver import TIME, Waiver
from jaxgate.model.upgrade import (
    BLOCKING,
    Answer,
    CaseNote,
    Change,
    ClaimNote,
    Group,
    Section,
    SideNotes,
    SideRecord,
    TestNote,
    TimedCases,
    UpgradeReport,
    Warned,
)
from jaxgate.model.verdict import Cause, Finding, Origin, TimeVerdict, Verdict
from jaxgate.model.words import MAX_CHANGES_NAMED, cut, detectable, in_brackets, plural, shortlist
from jaxgate.model.workloads.case_names import case_name, namesakes, possible_names
from jaxgate.model.workloads.claim import ALTERNATIVES, Claim, KnownBreak, claim, split_claims
from jaxgate.model.workloads.collection import Collection
from jaxgate.model.workloads.computation import Alternative, Amount, Batch, Computation, MaxBatch
from jaxgate.model.workloads.contrast import (
    Contrast,
    ContrastCase,
    ContrastResult,
    ContrastSide,
    Difference,
    SideLaunch,
    SpeedClaim,
    Training,
    Traits,
)
from jaxgate.model.workloads.cost import Cost, Prediction
from jaxgate.model.workloads.workload import Case, Family, Size, Tolerance

__all__ = [
    "Alternative",
    "Amount",
    "Batch",
    "Case",
    "Claim",
    "Computation",
    "Contract",
    "Family",
    "InvalidCaseError",
    "KnownBreak",
    "Level",
    "MaxBatch",
    "Remark",
    "Size",
    "Surroundings",
    "Tolerance",
    "claim",
]
"""What workloads are written with; the other names are for the rooms of jaxgate."""
