"""Plain Python around device programs: called as it is, never put under ``jax.jit``.

What stands between the programs is the subject too: eager operations, ``float(loss)``, NumPy inputs. Its steps
must not trace or compile after the first one, its warm calls are counted in a profile and timed as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from jaxgate.model import (
    Computation,
    Culprits,
    Facts,
    Fingerprints,
    InvalidCaseError,
    Leaf,
    Measurement,
    Phases,
    ReferenceFacts,
)
from jaxgate.observe.agreement import check_agreement, check_batch
from jaxgate.observe.calls import refuse_nan
from jaxgate.observe.compiling import Clock
from jaxgate.observe.failures import guarded
from jaxgate.observe.feeding import Call
from jaxgate.observe.hostcalls import (
    VALUES,
    HostSteps,
    HostSubject,
    host_call_time,
    learn,
    sample_host,
    take_host_steps,
)
from jaxgate.observe.jitted import jitted_functions
from jaxgate.observe.launches import Launched, count_launches
from jaxgate.observe.lines import at
from jaxgate.observe.shards import inputs_fingerprint, on_host
from jaxgate.observe.signature import leaves_with_paths, short
from jaxgate.observe.source import source_fingerprint
from jaxgate.observe.surroundings import environment, fingerprint, hardware_key
from jaxgate.observe.together import ALONE, Together, own_devices, processes_of
from jaxgate.observe.yardstick import read_yardstick

WHY_NOT = "plain Python around jitted calls cannot be stored"


def observe_host(
    computation: Computation,
    build: Callable[[], Computation],
    *,
    progress: Callable[[str], None],
    sampling: bool,
    clock: Clock,
    together: Together = ALONE,
) -> Measurement:
    """Measure a subject on the host.

    Args:
        computation: With ``host``.
        build: What made it; part of the source.
        progress: Told what is being done.
        sampling: Whether to time calls.
        clock: Monotonic nanoseconds.
        together: The ranks that call it.

    Raises:
        InvalidCaseError: If it cannot be called, its results are wrong, or it gives nothing to wait for.
    """
    call: Call = (tuple(computation.args), dict(computation.kwargs))
    subject = HostSubject(computation.subject, call, "subject")
    progress("running")
    stepped = take_host_steps(subject, computation.next_args, clock=clock)
    processes = processes_of(stepped.devices)
    if computation.batch is not None:
        progress("checking the batch")
        check_batch(subject.on_copies, call, computation.batch, donates=False, together=together)
    reference: ReferenceFacts | None = None
    if computation.reference is not None:
        progress("running the reference")
        reference, output = _observe_reference(
            computation.reference, call, sampling=sampling, clock=clock, together=together
        )
        check_agreement(stepped.first_output, output, rtol=computation.rtol, atol=computation.atol)
    progress("profiling")
    launched = _count(subject, stepped.devices, together)
    if launched.programs is not None and not launched.programs:
        raise InvalidCaseError("profiling a call of the subject", "expected device programs, found none launched")
    if sampling:
        progress("sampling")
    samples, events = sample_host(
        subject, stepped, computation.contract, single=not sampling, clock=clock, together=together
    )
    signature = _signature(subject, call, stepped.consumed)
    surroundings = environment(stepped.devices[0])
    return Measurement(
        hardware=hardware_key(stepped.devices[0], len(stepped.devices), processes),
        processes=processes,
        environment=surroundings,
        fingerprints=Fingerprints(
            source=source_fingerprint(computation.subject, build),
            program=_fingerprint(launched, signature),
            options=None,
            inputs=_inputs(call),
        ),
        signature=signature,
        facts=Facts(
            traces=1 + stepped.traces,
            lowerings=1 + stepped.lowerings,
            compiles=1 + stepped.compiles,
            sampled_traces=len(events.traces),
            sampled_compiles=len(events.compiles),
            donated_bytes=sum(leaf.nbytes for leaf in signature if leaf.donated),
            launches=_total(launched.programs),
            host_transfers=_total(launched.transfers),
        ),
        phases=Phases(
            first_call_ns=stepped.first_call_ns,
            host_ns=host_call_time(subject, stepped.call_ns, clock=clock, together=together) if sampling else None,
            yardstick_ns=read_yardstick(clock),
        ),
        operations={},
        matmuls={},
        samples=samples if sampling else None,
        expected_traces=computation.expected_traces,
        analytic_flops=computation.analytic_flops,
        amount=computation.amount,
        reference=reference,
        culprits=_culprits(computation.subject, stepped, launched),
        host=True,
        unknown=_unknown(launched),
        launched=launched.programs or {},
    )


def _observe_reference(
    function: Callable[..., Any], call: Call, *, sampling: bool, clock: Clock, together: Together
) -> tuple[ReferenceFacts, Any]:
    """What can be said of a reference, and its first result on the host; its first call need not be a cold one."""
    subject = HostSubject(function, call, "reference")
    with guarded("running the reference"):
        copies = subject.fresh()
        held = subject.arrays(None, copies)
        output = subject.call(copies)
    devices = learn(HostSteps(), subject, output, copies, held).devices
    refuse_nan(output, "the reference's result")
    found = jax.tree.map(on_host, output)
    with guarded("running the reference"):
        copies = subject.fresh()
        begin = clock()
        subject.call(copies)
        call_ns = clock() - begin
    launched = _count(subject, devices, together)
    facts = Facts(launches=_total(launched.programs), host_transfers=_total(launched.transfers))
    host_ns = host_call_time(subject, call_ns, clock=clock, together=together) if sampling else None
    phases = Phases(host_ns=host_ns)
    return ReferenceFacts(facts=facts, phases=phases, cached=False), found


def _count(subject: HostSubject, devices: tuple[jax.Device, ...], together: Together) -> Launched:
    def make_call() -> Callable[[], Any]:
        call = subject.fresh()
        return lambda: subject.call(call)

    with guarded(f"profiling a call of the {subject.role}"):
        return count_launches(make_call, own_devices(devices), together)


def _signature(subject: HostSubject, call: Call, consumed: frozenset[int]) -> tuple[Leaf, ...]:
    leaves = jax.tree.leaves(call)
    order = {id(leaf): index for index, leaf in enumerate(leaves)}
    return tuple(
        Leaf(
            path=path,
            aval=short(leaf) if _is_array(leaf) else f"Python {type(leaf).__name__}",
            nbytes=int(leaf.nbytes) if _is_array(leaf) else 0,
            donated=order[id(leaf)] in consumed,
        )
        for path, leaf in leaves_with_paths(*call, subject.names)
    )


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))


def _inputs(call: Call) -> str:
    """Hash the values; of other objects the type only, as their text may hold addresses."""
    values = jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, (jax.Array, *VALUES)) else f"object {type(leaf).__qualname__}", call
    )
    return inputs_fingerprint(*values)


def _fingerprint(launched: Launched, signature: tuple[Leaf, ...]) -> str:
    programs = "unknown" if launched.programs is None else sorted(launched.programs.items())
    return fingerprint("host", programs, [leaf.aval for leaf in signature])


def _culprits(function: Callable[..., Any], stepped: HostSteps, launched: Launched) -> Culprits:
    most = sorted((launched.transfers or {}).items(), key=lambda item: (-item[1], item[0]))
    return Culprits(
        retraces=tuple(stepped.retraces),
        transfers=tuple(f"{count} for {name}{at(launched.transfer_lines.get(name, ''))}" for name, count in most),
        lines={**jitted_functions(function), **launched.program_lines},
    )


def _unknown(launched: Launched) -> dict[str, str]:
    counts = {"launches": launched.programs, "host_transfers": launched.transfers}
    return {name: launched.why_not for name, found in counts.items() if found is None}


def _total(counts: Mapping[str, int] | None) -> int | None:
    return None if counts is None else sum(counts.values())
