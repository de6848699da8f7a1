"""Workloads: a JAX computation with a reason to exist, in the sizes that small and large hardware run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, get_args

from jaxgate.model.machines.target import Target
from jaxgate.model.measured.numbers import FACT_NAMES
from jaxgate.model.workloads.computation import Computation
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
