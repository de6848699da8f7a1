"""A case at several sizes: traced and lowered at each, compiled where its program is new, and never called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import prod
from typing import Any

import jax
import numpy as np

from jaxgate.ext.growth.model import COMPILED, FACTS, Grown, Growth
from jaxgate.model.computation import Alternative, Computation
from jaxgate.model.measurement import Measurement
from jaxgate.observe.arguments.lockstep import ALONE
from jaxgate.observe.errors import NotOnTargetError, guarded
from jaxgate.observe.machine.environment import fingerprint
from jaxgate.observe.program.communication import read_communication
from jaxgate.observe.program.trace_calls import count_trace_calls, traced_function
from jaxgate.observe.tools import Tools
from jaxgate.observe.trace.jaxpr_cost import count_work
from jaxgate.observe.trace.lowering import Lowered, lower
from jaxgate.observe.trace.stablehlo import read_structure
from jaxgate.observe.trace.stages import compile_program, devices_of

MOST = 20
"""Parts of a kind that are kept: the largest at the largest size."""
_ARRAY = re.compile(r"((?:\d+x)*)[a-z]+(\d+)$")
_SENT = re.compile(r"[a-z]+(\d+)\[([\d,]*)\]")
_CAPTURED = "captured arrays"
_SIZE = re.compile(r"\d+")
_NEVER_CALLED = {"xla_backend_optimization_level": 0}
"""LLVM spends half of a CPU's compile time on machine code, on which no fact of ``COMPILED`` depends."""

_PLAIN = (jax.ShapeDtypeStruct, bool, int, float, str)
_Python = tuple[str, Any, list[Any]]
"""What is traced at a size: its program's key, the function, and what it is called with."""
Known = Mapping[str, int | None]
Compiled = tuple[Known, Mapping[str, int]]
"""Facts, and bytes of collectives by kind."""
Parts = Mapping[str, Counter[str]]


def observe_growth(
    computation: Computation, growth: Growth, base: Measurement, tools: Tools
) -> tuple[dict[str, Grown], dict[str, str], dict[str, str]]:
    """Look at the case at each size. ``base`` is of its own size, where it runs.

    Returns:
        By name of a size what the case has there; by name of a part the source line of one; and by name, such as ``temp_bytes over
        layers``, why a target's compiler does not say a fact.

    Raises:
        InvalidCaseError: If it cannot be compiled at one of them.
    """
    surroundings = fingerprint(base.hardware, sorted(base.environment.items()))
    baseline = None if tools.recording else tools.accepted(base.hardware)
    beside = tools.target is None and tools.together is ALONE
    compile_one = _quickly if tools.target is None and base.hardware.platform == "cpu" else tools.compiler
    lines: dict[str, str] = {}
    traced: dict[str, list[tuple[Known, Parts]]] = {}
    compiled: dict[str, Compiled] = {}
    waiting: dict[str, tuple[Lowered, Callable[[Lowered], Any]]] = {}
    refused: dict[str, str] = {}
    keys: dict[str, list[str]] = {}
    seen: list[tuple[_Python, tuple[Known, Parts]]] = []
    with ThreadPoolExecutor(max_workers=2) as compiler:  # it works without Python, while the next size is traced
        for name, sizes in growth.sizes.items():
            accepted = None if baseline is None else baseline.growth.get(name)
            keys[name], traced[name] = [], []
            for size in sizes:
                stage = f"{name} = {size:,}"
                tools.progress(f"looking at {stage}")
                subject, args, kwargs = _made(computation, partial(growth.at, **{name: size}), stage)
                lowered = lower(
                    subject,
                    args,
                    kwargs,
                    role=f"subject at {stage}",
                    clock=tools.clocks.thread,
                    cold=False,
                    platform=tools.platform,
                )
                unreadable = lowered.options is None
                key = stage if unreadable else fingerprint("growth", lowered.fingerprint, lowered.options, surroundings)
                keys[name].append(key)
                if key not in compiled and key not in waiting:
                    known = None if unreadable else _own(lowered, base) or _remembered(key, tools, accepted)
                    # Compiling may be something that all processes of a job must do at once.
                    if tools.together.anyone(f"looking at {stage}: not remembered", known is None) or known is None:
                        begun = compiler.submit(compile_one, lowered) if beside else None
                        waiting[key] = lowered, compile_one if begun is None else partial(_end, begun)
                    else:
                        compiled[key] = known
                # Other Python may write the same program; where two sizes cross it is the same Python.
                python = (key, traced_function(lowered), [args, kwargs])
                again = (read for other, read in seen if _alike(python, other))
                traced[name].append(next(again, None) or _read(lowered, lines))
                seen.append((python, traced[name][-1]))
    nameless = {key for key, (lowered, _) in waiting.items() if lowered.options is None}
    for key, (lowered, made) in waiting.items():
        tools.progress(f"compiling the {lowered.role}")
        try:
            compiled[key] = _compiled(lowered, made, "" if key in nameless else key, tools)
        except NotOnTargetError as error:
            compiled[key], refused[key] = ({}, {}), str(error)
    unknown = {
        f"{fact} over {name}": f"at {size:,} {refused[key]}"
        for name, sizes in growth.sizes.items()
        for size, key in zip(sizes, keys[name], strict=True)
        if key in refused
        for fact in COMPILED
    }
    found = {}
    for name, sizes in growth.sizes.items():
        each = list(zip(traced[name], (compiled[key] for key in keys[name]), strict=True))
        known_at = [{**read[0], **made[0]} for read, made in each]
        parts_at = [{**read[1], "collectives": Counter(made[1])} for read, made in each]
        facts = {fact: tuple(known.get(fact) for known in known_at) for fact in FACTS}
        found[name] = Grown(
            sizes=sizes,
            programs=tuple("" if key in nameless else key for key in keys[name]),
            facts={fact: counts for fact, counts in facts.items() if None not in counts},  # type: ignore[misc]  # it is in none
            parts={kind: _largest([one[kind] for one in parts_at]) for kind in parts_at[0]},
        )
    return found, lines, unknown


def _made(computation: Computation, make: Callable[[], Any], stage: str) -> tuple[Any, Any, Any]:
    """What is called at a size with which arguments, shapes in the place of arrays."""
    with guarded(f"making the arguments at {stage}"):
        subject, *call = _call(make(), computation)
        args, kwargs = jax.tree.map(_shape, tuple(call))
    return subject, args, kwargs


def _alike(one: _Python, other: _Python) -> bool:
    """Whether tracing does the same: what is neither a shape nor a plain value is another one each time."""
    leaves, others = (jax.tree.leaves(python[2]) for python in (one, other))
    return (
        (one[0], jax.tree.structure(one[2])) == (other[0], jax.tree.structure(other[2]))
        and one[1] is other[1]
        and all(type(a) is type(b) and isinstance(a, _PLAIN) and a == b for a, b in zip(leaves, others, strict=True))
    )


def _read(lowered: Lowered, lines: dict[str, str]) -> tuple[Known, Parts]:
    """Facts and parts of a traced program; ``lines`` gets those of its parts."""
    structure = read_structure(lowered.stage.compiler_ir("stablehlo"), lines=True)
    work, traced = count_work(lowered.traced.jaxpr), count_trace_calls(lowered)
    known = {
        "trace_calls": traced.count,
        "trace_equations": work.equations,
        "stablehlo_ops": sum(structure.operations.values()),
        "matmul_flops": work.matmul_flops,
        "constant_bytes": structure.constant_bytes,
        "random_bits": work.random_bits,
    }
    operations, made_bytes = Counter[str](), Counter[str]()
    for label, count in structure.operations.items():
        operations[_first(label)] += count
        made_bytes[_first(label)] += count * bytes_of(label)
    if structure.constants:
        lines.setdefault(_CAPTURED, structure.constants[-1].text.rpartition(" at ")[2])
    arguments = Counter[str]()
    for leaf in lowered.signature:
        arguments[_SIZE.sub("…", leaf.path)] += leaf.nbytes
    lines |= {_first(label): line for label, line in structure.lines.items()} | dict(traced.lines)
    parts = {
        "operations": operations,
        "bytes": made_bytes,
        "functions": Counter(traced.functions),
        "arguments": arguments,
        "constants": Counter({_CAPTURED: structure.constant_bytes}),
    }
    return known, parts


def _own(lowered: Lowered, base: Measurement) -> Compiled | None:
    """What the compiler decided of this very program where it is the case's own."""
    if (lowered.fingerprint, lowered.options_text) != (base.fingerprints.program, base.fingerprints.options):
        return None
    return {fact: getattr(base.facts, fact) for fact in COMPILED}, _sent(base.collectives)


def _remembered(key: str, tools: Tools, accepted: Grown | None) -> Compiled | None:
    """What a compiler decided of it here before, or for the baseline at some size, in the same surroundings."""
    if known := tools.store.load(key):
        return known[0]["facts"], known[0]["collectives"]
    if accepted is None or key not in accepted.programs:
        return None
    place = accepted.programs.index(key)
    facts = {fact: accepted.facts[fact][place] for fact in COMPILED if fact in accepted.facts}
    if not facts:  # at some size its compiler said nothing
        return None
    return facts, {kind: counts[place] for kind, counts in accepted.parts["collectives"].items()}


def _quickly(lowered: Lowered) -> jax.stages.Compiled:
    return lowered.stage.compile(_NEVER_CALLED)


def _end(begun: Future[Any], _: Lowered) -> Any:
    return begun.result()


def _compiled(lowered: Lowered, compiler: Callable[[Lowered], Any], key: str, tools: Tools) -> Compiled:
    """Ask the compiler; remember its answer under a key, if there is one."""
    program = compile_program(lowered, clocks=tools.clocks, compiler=compiler)
    sent = read_communication(program, devices_of(program.executable))
    facts = {fact: getattr(program.facts, fact) for fact in COMPILED}
    facts |= {"collectives": sent.count, "collective_bytes": sent.nbytes}
    kinds = _sent(sent.counts)
    if key:
        tools.store.save(key, {"facts": facts, "collectives": dict(kinds)}, [])
    return facts, kinds


def _sent(collectives: Mapping[str, int]) -> Counter[str]:
    """Bytes of collectives by kind."""
    kinds = Counter[str]()
    for label, count in collectives.items():
        kinds[_first(label)] += count * sent_bytes(label)
    return kinds


def _call(made: Any, computation: Computation) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """What is called with what at a size: the case's own function, unless the size brings another."""
    if isinstance(made, Alternative):
        return made.function, made.args, {}
    if isinstance(made, Computation):
        return made.subject, made.args, made.kwargs
    if not isinstance(made, (tuple, list)):
        raise TypeError(f"expected the positional arguments in a tuple, found {made!r}")
    return computation.subject, tuple(made), computation.kwargs


def _shape(leaf: Any) -> Any:
    """An array as its shape: nothing of that size need be there."""
    if isinstance(leaf, jax.Array):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding if leaf.committed else None)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if isinstance(leaf, np.ndarray) else leaf


def _first(label: str) -> str:
    return label.partition(" ")[0]


def bytes_of(label: str) -> int:
    """Of the result of an operation as the histogram writes it, ``stablehlo.add 8x64xf32``; 0 where it has none, or several."""
    found = _ARRAY.fullmatch(label.partition(" ")[2])
    return 0 if found is None else prod(int(size) for size in found[1].split("x") if size) * int(found[2]) // 8


def sent_bytes(label: str) -> int:
    """Of a collective as its histogram writes it, ``all-gather float32[8,16] over 'd'``."""
    return sum(prod(map(int, filter(None, shape.split(",")))) * int(bits) // 8 for bits, shape in _SENT.findall(label))


def _largest(each: Sequence[Counter[str]]) -> Mapping[str, tuple[int, ...]]:
    most = sorted(each[-1], key=lambda name: (-each[-1][name], name))[:MOST]
    return {name: tuple(one[name] for one in each) for name in sorted(most)}
