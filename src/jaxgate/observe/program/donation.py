"""Donation, leaf by leaf: asked for, reused or lost, and why; also where JAX says nothing.

JAX warns only of some donated buffers that found no result, and never of one whose result has another dtype
or that the program does not use. What became of a buffer is asked of the array itself after one call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.feeder import Call
from jaxgate.observe.arguments.signature import short
from jaxgate.observe.arguments.static import dynamic_leaves
from jaxgate.observe.compat import input_shardings, output_shardings
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.observe.trace.stages import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class DonatedLeaf:
    """What became of one argument whose buffer the function may reuse."""

    path: str  # where it is: `state['w']`
    aval: str  # dtype and shape: `float32[64,64]`
    nbytes: int  # its bytes on one device
    # whether the call took its buffer; `None` where a Python number or a NumPy array was fed, whose buffer is JAX's own
    reused: bool | None
    why: str = ""  # why it was not reused; empty if it was


@dataclass(frozen=True, slots=True)
class Lost:
    """What was donated and not reused."""

    nbytes: int | None = None  # bytes on one device; `None` if that is unknown
    lines: tuple[str, ...] = ()  # one line for each array, the largest first
    why_not: str = ""  # why it is unknown; empty if it is known

    @property
    def unknown(self) -> dict[str, str]:
        """The fact, if it is unknown, with the reason."""
        return {"lost_bytes": self.why_not} if self.why_not else {}


def refuse_shared_buffers(lowered: Lowered, call: Call) -> None:
    """Refuse a call, whose arguments nobody has copied yet, in which a donated buffer is given twice.

    The engine feeds copies, which hides the fault; the caller's own program raises, and with a sharded array
    jaxlib 0.10.2 was seen to end the process. An argument that the program does not use counts too: JAX
    lets it pass, and deletes it together with the donated one.

    Raises:
        InvalidCaseError: If a donated leaf and another one are the same buffer; names both.
    """
    if not any(leaf.donated for leaf in lowered.signature):
        return
    owners: dict[Any, int] = {}
    leaves = dynamic_leaves(lowered.stage, *call)
    donated = [leaf.donated for leaf in lowered.signature]
    # Donated ones first: then every clash with one of them is found when the later one comes.
    for index in sorted(range(len(leaves)), key=lambda i: not donated[i]):
        for buffer in _buffers(leaves[index]):
            owner = owners.setdefault(buffer, index)
            if owner == index or not donated[owner]:
                continue
            one, two = (lowered.signature[i].path for i in sorted((owner, index)))
            raise InvalidCaseError(
                f"looking at the arguments of the {lowered.role}",
                "expected a buffer of its own for each donated argument and all others, found that "
                f"{one} and {two} are one buffer",
            )


def _buffers(leaf: Any) -> list[Any]:
    """What names the memory of an array: itself, and the place of each shard on its device."""
    if not isinstance(leaf, jax.Array):
        return []
    found: list[Any] = [("array", id(leaf))]
    if leaf.is_deleted() or not leaf.size:  # arrays without elements may all lie at one address
        return found
    kind = leaf.sharding.memory_kind
    return found + [(shard.device.id, kind, shard.data.unsafe_buffer_pointer()) for shard in leaf.addressable_shards]


def read_donation(program: Program, fed: Call) -> tuple[DonatedLeaf, ...]:
    """Say for each donated argument, fed to one call that has ended, whether its buffer was reused, and why not.

    Returns:
        The donated arrays in the order of the signature. Their bytes, where reused, sum up to the program's
        ``aliased_bytes``, unless JAX had to move an argument to the program's devices first.
    """
    lowered = program.lowered
    leaves = dynamic_leaves(lowered.stage, *fed)
    infos = jax.tree.leaves(lowered.stage.args_info)
    shardings = input_shardings(program.executable)
    donated = [index for index, leaf in enumerate(lowered.signature) if leaf.donated]
    asked = Counter(_kind(infos[i], shardings[i]) for i in donated if shardings[i] is not None)
    infos_out = jax.tree.leaves(lowered.stage.out_info)
    results = [
        _kind(info, sharding) for info, sharding in zip(infos_out, output_shardings(program.executable), strict=True)
    ]
    found = []
    for index in donated:
        leaf, described = leaves[index], lowered.signature[index]
        if isinstance(leaf, (bool, int, float, complex)):
            continue  # the buffer is JAX's own, made for each call: the step of a TrainState
        reused = leaf.is_deleted() if isinstance(leaf, jax.Array) else None
        why = "" if reused else _why(leaf, infos[index], shardings[index], results, asked)
        found.append(
            DonatedLeaf(path=described.path, aval=described.aval, nbytes=described.nbytes, reused=reused, why=why)
        )
    return tuple(found)


_COMPILERS_CHOICE = "another layout, or the compiler did not reuse it"

Kind = tuple[str, tuple[int, ...], tuple[int, ...]]
"""What a buffer and the result it becomes have in common: dtype, shape, shape of the part on one device."""


def _kind(info: Any, sharding: Any) -> Kind:
    shape = tuple(info.shape)
    return str(info.dtype), shape, tuple(sharding.shard_shape(shape))


def _why(leaf: Any, info: Any, sharding: Any, results: Sequence[Kind], asked: Counter[Kind]) -> str:
    """Why a buffer was not reused. The fact is the array's own; this is the likeliest cause, looked for in order."""
    if sharding is None:
        return "unused by the program"
    if not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return f"a {type(leaf).__name__} was given, which is no array on a device"
    if leaf.sharding is not None and not leaf.sharding.is_equivalent_to(sharding, leaf.ndim):
        return "it was given in another sharding than the program's, and copied before the call"
    kind = dtype, shape, part = _kind(info, sharding)
    of_this_shape = [result for result in results if result[1] == shape]
    if not of_this_shape:
        return f"no result of this shape ({short(info)})"
    parts = [result[2] for result in of_this_shape if result[0] == dtype]
    if not parts:
        return f"the result of this shape is {of_this_shape[0][0]}, it is {dtype}"
    if part not in parts:
        here, there = (f"[{','.join(map(str, one))}]" for one in (part, parts[0]))
        return f"another sharding: {here} on each device, the result of this shape has {there}"
    if asked[kind] > parts.count(part):
        return f"more arguments than results have this shape and type ({asked[kind]} and {parts.count(part)})"
    return _COMPILERS_CHOICE


def lost_of(donation: Sequence[DonatedLeaf]) -> Lost:
    """What a call lost; its bytes are unknown where those of one array are."""
    lost = sorted((leaf for leaf in donation if not leaf.reused), key=lambda leaf: -leaf.nbytes)
    lines = tuple(f"{leaf.path} ({leaf.aval}, {leaf.nbytes:,} bytes): {leaf.why}" for leaf in lost)
    unseen = next((leaf for leaf in donation if leaf.reused is None), None)
    if unseen is None:
        return Lost(sum(leaf.nbytes for leaf in lost), lines)
    advice = "give jnp.asarray of it, or do not donate it"
    return Lost(None, lines, f"{unseen.path} is donated, but {unseen.why}; {advice}")


def lost_by_size(program: Program, call: Call, reused: Sequence[int] | None = None) -> Lost:
    """What donation loses in a program that is never called: what was donated, less what the compiler says it reuses.

    Shapes may stand for arrays in ``call``. ``reused`` are positions of arguments; ``None`` where only their bytes are
    known.
    """
    if reused is not None:
        taken = {program.lowered.signature[place].path for place in reused}
        left = [replace(leaf, reused=leaf.path in taken) for leaf in read_donation(program, call)]
        return lost_of(left)
    donated, aliased = program.facts.donated_bytes, program.facts.aliased_bytes
    if donated is None or aliased is None:
        return Lost(why_not="this backend does not report what is reused")
    lost = max(0, donated - aliased)
    given = read_donation(program, call) if lost else ()
    return Lost(lost, lost_of([leaf for leaf in given if leaf.why != _COMPILERS_CHOICE]).lines)
