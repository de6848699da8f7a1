"""Workloads, the names of their cases, and which of their tests pytest collected.

A case is found by its name in every process: family from the file, sentence from the test.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar, get_args

from jaxgate.ext.targets.model import Target
from jaxgate.model.computation import Computation
from jaxgate.model.numbers import FACT_NAMES
from jaxgate.settings import Size

Builder = TypeVar("Builder", bound=Callable[..., Computation])


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How far one fact of one workload may move, in place of the policy for all: see ``docs/policy.md``.

    Attributes:
        fact: The fact.
        relative: Share of the baseline that it may move.
        absolute: Units that it may move besides.
        why: Why this workload needs it.
    """

    fact: str
    relative: float = 0.0
    absolute: int = 0
    why: str

    def __post_init__(self) -> None:
        """Refuse a tolerance that nobody can account for, or that lets anything pass."""
        if self.fact not in FACT_NAMES:
            raise ValueError(f"expected a fact such as temp_bytes, found {self.fact!r}")
        if not self.why.strip():
            raise ValueError(f"expected the reason why {self.fact} may move here (why=...), found none")
        if not (0 <= self.relative < math.inf and 0 <= self.absolute < math.inf):
            raise ValueError(f"expected tolerances of {self.fact} that are finite and not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload with concrete parameters.

    Attributes:
        family: Name of the family; also a folder under ``baselines/<hardware>/``.
        sentence: The pytest id; reads as a sentence, words joined by hyphens.
        build: Makes the computation. Called inside the test, never at import: it may touch devices.
        tolerances: Facts that may move further, or less far, than the policy says.
        sizes: Builders for each size of hardware; empty where there is one size. ``build`` is one of them.
        devices: How many devices it uses.
        target_sizes: The sizes in which it is compiled for hardware that is not there; empty for any.
    """

    family: str
    sentence: str
    build: Callable[[], Computation]
    tolerances: tuple[Tolerance, ...] = ()
    sizes: Mapping[Size, Callable[[], Computation]] = field(default_factory=dict)
    devices: int = 1
    target_sizes: tuple[Size, ...] = ()

    def __post_init__(self) -> None:
        """Refuse names that cannot be a file name or a ``-k`` word."""
        for name in (self.family, self.sentence):
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
                raise ValueError(f"{name!r} cannot name a case: expected letters, digits, '.', '_' and '-'")
        if len({tolerance.fact for tolerance in self.tolerances}) < len(self.tolerances):
            raise ValueError(f"{self.sentence}: expected one tolerance for each fact, found two for one")

    @property
    def name(self) -> str:
        """The name in reports and in the baseline: ``family/sentence``."""
        return f"{self.family}/{self.sentence}"

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that it has in some size on some hardware."""
        return (self.name, *(f"{self.name}.{size}" for size in self.sizes))

    def sized(self, size: Size, *, usual: Size) -> Case:
        """The case in one size; in another than the hardware's usual one it has a name, and a baseline, of its own."""
        if not self.sizes:
            return self
        sentence = self.sentence if size == usual else f"{self.sentence}.{size}"
        return replace(self, build=self.sizes[size], sentence=sentence, sizes={})

    def on(self, target: Target) -> Case:
        """The case as compiled for hardware that is not there, in a run for other hardware: it has a name of its own."""
        return replace(self, sentence=f"{self.sentence}.{target.slug}")


class Family:
    """The cases of one topic: ``workload`` above a builder adds one for each set of its parameters.

    Iterating gives the cases, in the order of the file.
    """

    def __init__(self, name: str) -> None:
        """``name`` is also a folder under ``baselines/<hardware>/``."""
        self.name = name
        self._cases: list[Case] = []

    def __iter__(self) -> Iterator[Case]:
        return iter(self._cases)

    def __len__(self) -> int:
        return len(self._cases)

    def workload(
        self,
        sentence: str,
        *,
        sweep: Iterable[Mapping[str, Any]] = ({},),
        sizes: Mapping[Size, Any] | None = None,
        devices: int = 1,
        tolerances: Sequence[Tolerance] = (),
        target_sizes: Sequence[Size] = (),
    ) -> Callable[[Builder], Builder]:
        """Add a case for each set of parameters; the builder stays a function that others may call.

        Args:
            sentence: Template of the pytest id, filled with the parameters: ``scan-over-{steps}-steps-vs-loop``.
            sweep: The sets of parameters; the builder is called with one of them, inside the test.
            sizes: What the builder is given for ``small`` and for ``full`` hardware, as its first argument.
            devices: How many devices each case uses.
            tolerances: Facts of each case that may move further, or less far, than the policy says.
            target_sizes: The sizes in which each case is compiled for hardware that is not there, where a size says nothing
                of such hardware; any by default.

        Raises:
            ValueError: If a size is missing, the sweep is empty, or a name cannot be one.
        """
        sets = list(sweep)
        if not sets:
            raise ValueError(f"{self.name}/{sentence}: expected at least one set of parameters in sweep=, found none")
        if sizes is not None and set(sizes) != set(get_args(Size)):
            raise ValueError(f"{self.name}: expected the sizes {', '.join(get_args(Size))}, found {', '.join(sizes)}")

        def add(build: Builder) -> Builder:
            for params in sets:
                builders = {size: partial(build, chosen, **params) for size, chosen in (sizes or {}).items()}
                case = Case(
                    family=self.name,
                    sentence=sentence.format(**params),
                    build=builders.get("small", partial(build, **params)),
                    tolerances=tuple(tolerances),
                    sizes=builders,
                    devices=devices,
                    target_sizes=tuple(target_sizes),
                )
                self._cases.append(case)
            return build

        return add


MAX_NAME = 120
"""Characters of a name; file systems end at 255 bytes, and a part file needs some more."""


def case_name(node_id: str, given: str | None) -> tuple[str, str]:
    """Name the case of a test: family from the file, sentence from the test.

    ``given`` is ``sentence`` or ``family/sentence``.

    Returns:
        Family and sentence, both fit for a file name. Where characters had to go, a short hash keeps two
        tests apart.
    """
    return possible_names(node_id, given)[0]


def possible_names(node_id: str, given: str | None) -> tuple[tuple[str, str], ...]:
    """All names that the case of a test may have, the one that it has by itself first.

    It keeps another one that it was recorded under, and has its folder in the family where a file of the same name in
    another folder has tests that gate.
    """
    file, _, test = node_id.partition("::")
    path = PurePosixPath(file)
    stem = path.stem.removeprefix("test_")
    families = [_fit(name, name) for name in (stem, ".".join([*path.parent.parts, stem]))]
    sentence, whole = _sentence(test), test.removeprefix("test_")
    if given is not None:
        family, slash, rest = given.partition("/")
        families, sentence = ([_fit(family, family)], rest) if slash else (families, given)
        whole = sentence
    sentences = [_fit(_plain(sentence), whole), _fit(whole, whole)]
    return tuple(dict.fromkeys((family, sentence) for family in families for sentence in sentences))


def namesakes(tests: Iterable[str]) -> frozenset[str]:
    """The files of these tests that share their name with a file in another folder."""
    files = {test.partition("::")[0] for test in tests}
    names = [PurePosixPath(file).name for file in files]
    return frozenset(file for file in files if names.count(PurePosixPath(file).name) > 1)


def _sentence(test: str) -> str:
    """The classes and the name of a test: ``TestTrain::test_step[small]`` is ``TestTrain.step[small]``."""
    names, bracket, parameters = test.partition("[")
    *classes, function = names.split("::")
    return ".".join([*classes, function.removeprefix("test_")]) + bracket + parameters


def _plain(text: str) -> str:
    """The text in ASCII, as far as letters have a plain one: also those that pytest escapes."""
    read = re.sub(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", lambda found: chr(int(found[1][1:], 16)), text)
    parts = unicodedata.normalize("NFKD", read.replace("ß", "ss"))
    return "".join(part for part in parts if not unicodedata.combining(part))


def _fit(name: str, whole: str) -> str:
    """A name fit for a file; with a hash of the whole text where it lacks some of its characters."""
    readable = re.sub(r"\[(.*)\]$", r"-\1", name)
    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", readable).lstrip("-._").rstrip("-.")[:MAX_NAME]
    if fit == readable and fit and whole.isascii() and "\\" not in whole:
        return fit
    return f"{fit or 'case'}-{hashlib.blake2b(whole.encode(), digest_size=3).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Wall time of the gates of one test, in seconds."""

    unchanged_s: float  # everything but duels
    duel_s: float | None  # duels with the baselines' programs; `None` where none has been run yet

    def __add__(self, other: Cost) -> Cost:
        """The cost of both."""
        duels = [duel_s for duel_s in (self.duel_s, other.duel_s) if duel_s is not None]
        return Cost(unchanged_s=self.unchanged_s + other.unchanged_s, duel_s=sum(duels) if duels else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a test is expected to cost."""

    test: str  # pytest node id
    unchanged_s: float | None = None  # seconds if the program is the baseline's; `None` if nothing is known
    changed_s: float | None = None  # seconds if it is duelled with; `None` if nothing is known
    unchanged_estimated: bool = False  # whether the first is worked out from a baseline instead of remembered
    changed_estimated: bool = False  # whether the second is worked out from a baseline, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """The tests of a run."""

    tests: frozenset[str]  # node ids of all tests, before any was deselected
    gates: frozenset[str]  # node ids of the tests that gate
    selected: frozenset[str]  # node ids of the gating tests that were to run
    roots: tuple[str, ...]  # files and folders that were collected whole, relative to the root folder
    elsewhere: frozenset[str] = frozenset()  # node ids of those that another shard has
    certain: bool = True  # whether a test that is not among them is gone: errors while collecting end the run
    whole: bool = True  # whether nobody left tests of these roots out on the command line
