"""What observations of these tests leave: references in memory, and bytes of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from jaxgate.model.computation import Computation
from jaxgate.model.measurement import Measurement
from jaxgate.model.numbers import Contract
from jaxgate.observe.arguments.carry import NextArgs
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.execute.samples import Sampled, sample
from jaxgate.observe.execute.steps import Stepped
from jaxgate.observe.execute.subjects import JittedSubject, Subject
from jaxgate.observe.measure import observe
from jaxgate.observe.observation import Observation
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.clocks import CLOCKS, Clock, Clocks
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stages import compile_program


class Store(dict[Any, Any]):
    """What was measured of references, in memory."""

    def load(self, key: Any) -> Any:
        """What is known of one."""
        return self.get(key)

    def save(self, key: Any, facts: Any, outputs: Any) -> None:
        """Keep it."""
        self[key] = facts, outputs


def observed(subject: Any, *args: Any, tools: Mapping[str, Any] | None = None, **computation: Any) -> Observation:
    """Observe a computation, without a clock and with nothing remembered unless ``tools`` say otherwise."""
    given = {"store": Store(), "sampling": False, **(tools or {})}
    return observe(lambda: Computation(subject=subject, args=args, **computation), Tools(**given))


def measured(subject: Any, *args: Any, **how: Any) -> Measurement:
    """What is measured of a computation, observed in the same way."""
    return observed(subject, *args, **how).measurement


def ready(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> JittedSubject:
    """A compiled subject."""
    call = args, dict(kwargs or {})
    lowered = lower(function, *call, role="subject", clock=CLOCKS.thread)
    compile_program(lowered, clocks=CLOCKS)
    return JittedSubject.of(lowered, call)


def sample_of(
    subject: Subject,
    next_args: NextArgs | None,
    *,
    call_ns: int,
    clock: Clock,
    apart: bool = False,
    contract: Contract = "throughput",
    together: Lockstep = ALONE,
) -> Sampled:
    """A sample of a subject whose steps took so long."""
    tools = Tools(store=Store(), clocks=Clocks(wall=clock), together=together)
    return sample(subject, Stepped(next_args=next_args, call_ns=call_ns), tools, apart=apart, contract=contract)


def alive() -> int:
    """Bytes of all arrays that are alive, and not donated."""
    return sum(array.nbytes for array in jax.live_arrays() if not array.is_deleted())
