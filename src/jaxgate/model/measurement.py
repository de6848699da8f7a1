"""A measurement: everything that one observation of one case saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxgate.ext.energy.model import EnergyRun, NoEnergy
from jaxgate.ext.growth.model import Grown, Growth
from jaxgate.model.computation import STEPS, Amount
from jaxgate.model.launched import LaunchedProgram
from jaxgate.model.machine import HardwareKey, compiled_for, folder_name, release_line
from jaxgate.model.numbers import Contract, Facts, Phases, Samples, Strict
from jaxgate.model.roofline import Demand

SHARED_CORES = "virtual CPU devices share their cores, so no clock judges them"
"""Why nothing is timed on virtual devices."""
NOT_CALLED = "compiled for shapes (jax.ShapeDtypeStruct), never called"
"""Why the calls of a case cannot be measured."""
LOOP = "stablehlo.while"
"""The operation of every loop."""
APART = " apart in "
"""Within the label of a gather or scatter that takes single elements, far from each other in the array that it names."""
BRANCHES = ("stablehlo.case", "stablehlo.if")
"""The operations of conditions."""
EACH_TURN = " each turn"
"""Ends a label of what stands in a loop of unknown length: it counts once."""
ELSEWHERE = " on other devices"
"""Ends the arrival of a device array that is not where its program takes it: it is moved at every call."""
WAITS = frozenset({"block_until_ready", "effects_barrier"})
"""Functions that wait for arrays, by the last part of their names."""
_STOPS = frozenset({"time.sleep", "threading.Thread.start", "threading.Thread.join"})
"""Functions in which Python stands still until time has gone by or the system has done something, by their names."""
MAX_FUNCTIONS = 20
"""Functions of Python that a histogram keeps: those that are called most."""
MAX_NAMED = 3
"""Arguments, functions, operations that a message names; the rest is counted."""


def is_wait(function: str) -> bool:
    """Whether a function that is called in a step waits, for arrays or for something else."""
    return function in _STOPS or function.rpartition(".")[2] in WAITS


class InvalidCaseError(Exception):
    """The case cannot be judged: it raised, disagreed with its reference, gave NaN.

    Attributes:
        stage: What was being done, as a participle phrase: "tracing the subject".
        reason: What was expected and what was found.
    """

    def __init__(self, stage: str, reason: str) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage = stage
        self.reason = reason


class ExhaustedError(InvalidCaseError):
    """The case needs more memory than there is.

    Attributes:
        largest: The largest allocations by the compiler's or allocator's own list, one line each.
    """

    def __init__(self, stage: str, reason: str, largest: tuple[str, ...] = ()) -> None:
        super().__init__(stage, reason)
        self.largest = largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprints(Strict):
    """Hashes that say what changed, and so where a difference can come from."""

    source: str | None  # the subject's source and that of the project functions it reaches; `None` if unknown
    # structure of the StableHLO module, blind to names, locations and order of independent lines. Of a subject on the
    # host: of all programs that a call launches, with their numbers, and types of its arguments.
    program: str
    options: str | None  # compiler options of the subject; `None` if they could not be read
    inputs: str  # values of the arguments
    executable: str | None = None  # what the compiler made of the program, on CPU; `None` if unknown
    # device assignment of a program on several devices, as positions among all; `None` if unknown
    devices: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf(Strict):
    """One array among the arguments or results."""

    path: str  # where it is, for people: `state['w']`
    aval: str  # dtype, shape and weak type: `float32[64,64]`
    nbytes: int  # its bytes on one device, as `Facts.argument_bytes` and `aliased_bytes` count them
    donated: bool  # whether the subject asked to reuse its buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument(Leaf):
    """An array among the arguments, and how it arrives at every call; older baselines do not know that."""

    arrival: str | None = None  # what the project gives: `device array`, `NumPy float64`, `Python float`
    # what JAX has to send to devices for it, or to move between them; of host data before it is converted
    sent_bytes: int | None = None
    value: str | None = None  # a number as it is, of an array a hash

    def __post_init__(self) -> None:
        """Refuse an arrival of which only a part is known."""
        if (self.arrival is None) != (self.sent_bytes is None):
            raise ValueError(f"{self.path}: expected arrival and sent_bytes, found one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprits:
    """Explanations taken from today's program and calls. They never gate and never reach a file."""

    begins: str = ""  # the source line where the subject begins, with its decorators
    retraces: tuple[str, ...] = ()  # one line per retrace or recompile: which argument differed and how
    constants: tuple[str, ...] = ()  # the large captured constants, with size, origin and place of use
    lost: tuple[str, ...] = ()  # one line per donated array that was not reused: its path and why
    callbacks: tuple[str, ...] = ()  # the Python functions that the program calls
    # what plain Python puts on devices or reads back: what it is for, to the source lines
    transfer_lines: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[str, ...] = ()  # how and where plain Python reads the memory of arrays, and how often
    thrown_away: str = ""  # what was traced in vain, where that is most of it
    drawn: tuple[str, ...] = ()  # arrays of random bits that it draws
    blocks: str = ""  # what that kernel holds at once which holds most
    unmatched: tuple[str, ...] = ()  # names that a policy of `jax.checkpoint` says and no array has
    remade: tuple[str, ...] = ()  # the functions that a plain one jits anew at each call
    kept: str = ""  # the arrays that each of its steps leaves behind
    cycles: str = ""  # what is in the reference cycles that each makes
    allocations: tuple[str, ...] = ()  # the largest buffers of the program; read only when memory is red
    # operation, product, collective, cast, launched program or called function, as named in the histograms, to the
    # source line of one
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFacts:
    """What is known of the reference: facts and phases of its program. ``cached`` if compiled in an earlier run."""

    facts: Facts
    phases: Phases
    cached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What is kept of a case whoever measured it: this process, another rank, or the recorder of its baseline."""

    hardware: HardwareKey  # where it ran
    environment: Mapping[str, str]  # what may change a program or its speed besides the code: versions, flags, driver
    fingerprints: Fingerprints
    facts: Facts
    phases: Phases
    samples: Samples | None  # `None` when sampling was switched off, or nothing was called
    eager: bool = False  # whether the subject is plain Python around device programs, called as it is

    @property
    def contract(self) -> Contract | None:
        """What the time of a call means; ``None`` where none was taken."""
        return None if self.samples is None else self.samples.contract

    @property
    def line(self) -> str:
        """The release line of its jax.

        Raises:
            ValueError: If the environment has no version of jax.
        """
        return release_line(self.environment.get("jax", ""))

    @property
    def folder(self) -> str:
        """The folder of its baseline, for example ``cpu-amd-epyc-1-jax-0.12``."""
        return folder_name(self.hardware.slug, self.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredProgram(Measured):
    """What is kept of a case, with arrays and histograms of its program, which explain a difference and never gate."""

    signature: tuple[Argument, ...]  # the arguments, leaf by leaf
    operations: Mapping[str, int]  # StableHLO operations of the program, by name and type of the result
    matmuls: Mapping[str, int]  # matrix multiplications of one call, by operand shapes, loops counted by their length
    results: tuple[Leaf, ...] = ()  # the arrays that a call returns, leaf by leaf
    # communication of one call by kind, array and mesh axes, loops counted where known
    collectives: Mapping[str, int] = field(default_factory=dict)
    # what a device starts in one call of the optimised program; copies by their arrays: `copy float32[64,64]`
    kernels: Mapping[str, int] = field(default_factory=dict)
    widened: Mapping[str, int] = field(default_factory=dict)  # casts to a wider float type in one call
    # turns of loops whose length the arguments decide, and runs of branches, in one call; empty where unknown
    turns: Mapping[str, int] = field(default_factory=dict)
    # functions outside of JAX that tracing once more calls most, by name; empty where unknown
    traced: Mapping[str, int] = field(default_factory=dict)
    # device programs that one warm call of plain Python launches, by name; empty where unknown
    launched: Mapping[str, int] = field(default_factory=dict)
    # these programs one by one, in the order of their first calls; empty where they are not all known
    launched_programs: tuple[LaunchedProgram, ...] = ()
    # how many programs of each function its first call compiles, by name
    first: Mapping[str, int] = field(default_factory=dict)
    # what its steps after the first three compiled for the first time, to the step; and the last step that was taken
    later: Mapping[str, int] = field(default_factory=dict)
    steps: int = 0
    # arrays and numbers that it moves, by the program that they are for, or `the host`; empty where unknown
    transferred: Mapping[str, int] = field(default_factory=dict)
    # functions that one warm call calls most, with their turns of loops, by name; empty where unknown
    called: Mapping[str, int] = field(default_factory=dict)
    # by target of its program's custom calls, the library whose code is called, with a hash; an empty text where that
    # is not known. What comes with JAX or XLA is not in it.
    native_code: Mapping[str, str] = field(default_factory=dict)
    # versions of the packages whose functions made operations of its program, but for those of the environment
    libraries: Mapping[str, str] = field(default_factory=dict)
    growth: Mapping[str, Grown] = field(default_factory=dict)  # what it has at other sizes, by name of a size

    @property
    def sent_bytes(self) -> int | None:
        """What JAX has to send or move for all arguments at every call; unknown of a subject on the host."""
        sent = [leaf.sent_bytes for leaf in self.signature]
        return None if self.eager or None in sent else sum(size or 0 for size in sent)

    @property
    def sent_arguments(self) -> int | None:
        """Arguments that are sent from the host at every call, each on its own."""
        if self.sent_bytes is None:
            return None
        return sum(bool(leaf.sent_bytes) and not (leaf.arrival or "").endswith(ELSEWHERE) for leaf in self.signature)

    @property
    def moved_arrays(self) -> int | None:
        """Device arrays among the arguments that are moved to other devices at every call."""
        if self.sent_bytes is None:
            return None
        return sum((leaf.arrival or "").endswith(ELSEWHERE) for leaf in self.signature)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(MeasuredProgram):
    """Everything that one observation of one case saw; raw, so that numbers are derived when shown."""

    # facts, and explanations that were asked for, that could not be had, each with the reason
    unknown: Mapping[str, str] = field(default_factory=dict)
    expected_traces: int = 1
    analytic_flops: int | None = None
    reference: ReferenceFacts | None = None
    amount: Amount | None = None  # what one call gets done, in its natural unit
    # facts and phases of other ways of doing the same, which claims are held against
    alternatives: Mapping[str, ReferenceFacts] = field(default_factory=dict)
    culprits: Culprits = field(default_factory=Culprits)
    processes: int = 1  # how many processes its devices belong to
    # what the calls that are made do not show of a loop around it, in words; empty if there is nothing
    unseen: str = ""
    # whether its arguments are shapes: it was compiled, and nothing is known that only calls show
    compiled_only: bool = False
    # operations of its program whose work may depend on the values of its arguments; `None` if unknown
    depends_on_values: tuple[str, ...] | None = None
    # whether the Python that its program calls does nothing but raise an error: unless it does, nothing of it runs
    only_raises: bool = False
    demand: Demand | None = None  # what one call asks of one device, where it was compiled for a target
    # what the counters of its devices said of a run of calls, or why nothing; `None` where nobody asked
    energy: EnergyRun | NoEnergy | None = None
    growing: Growth | None = None  # what was asked of its growth

    @property
    def traces_each_call(self) -> bool:
        """Whether it is by design that each call traces."""
        return self.expected_traces >= STEPS

    @property
    def why_not_called(self) -> str:
        """Why nothing is known that only calls show; empty if it was called."""
        if not self.compiled_only:
            return ""
        return compiled_for(self.hardware.target) if self.hardware.target else NOT_CALLED
