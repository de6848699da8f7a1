"""Replica groups, in all their spellings: which devices take part in a collective, and along which mesh axes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

Groups = tuple[tuple[int, ...], ...]

MOST_DEVICES = 1 << 17
"""Devices of the largest groups that are written out: no machine has more, and a wrong digit must not fill the memory."""

_OF_REPLICAS = frozenset({"all-gather", "all-reduce", "reduce-scatter"})
"""Operations whose groups name replicas, each with all its partitions, unless they say ``use_global_device_ids=true``."""

_NUMBERS = r"[0-9]{1,6}(?:,[0-9]{1,6})*"
_END = r"(?=,|$)"
_LISTS = re.compile(rf"=\{{((?:\{{{_NUMBERS}\}}(?:,(?=\{{))?)*)\}}{_END}")
_IOTA = re.compile(rf"=\[({_NUMBERS})\]<=\[({_NUMBERS})\](?:T\(({_NUMBERS})\))?{_END}")
_MESH = re.compile(
    r"=mesh\[((?:'[^']+'=[0-9]{1,6},?)+)\]"
    rf"(?:, device_ids=\((?:\[({_NUMBERS})\](?:T\(({_NUMBERS})\))?|({_NUMBERS}))\))?"
    rf" \{{((?:'[^']+'(?::\([0-9]{{1,6}}\)[0-9]{{1,6}})?,?)*)\}}{_END}"
)


def read_groups(attributes: str, *, kind: str, replicas: int, partitions: int) -> Groups | None:
    """Read the groups of a collective.

    Returns:
        Device numbers (the positions in the device assignment), one tuple for each group; the pairs of a permutation;
        ``None`` if they are missing or spelled in a way that is not known.
    """
    match = re.search(r"(?<![\w-])(?:replica_groups|source_target_pairs)(?==)", attributes)
    groups = _spelled(attributes, match.end()) if match else None
    if match is None or groups is None or match[0] == "source_target_pairs":
        return groups
    if replicas * partitions > MOST_DEVICES:
        return None
    # XLA numbers replicas without a channel, partitions or both with one; ``{}`` means all of them.
    if "channel_id=" not in attributes:
        return groups or (tuple(range(replicas)),)
    if kind not in _OF_REPLICAS or "use_global_device_ids=true" in attributes:
        return groups or (tuple(range(partitions)),)
    groups = groups or (tuple(range(replicas)),)
    if any(replica >= replicas for group in groups for replica in group):
        return None
    return tuple(tuple(r * partitions + p for r in group for p in range(partitions)) for group in groups)


def _spelled(attributes: str, at: int) -> Groups | None:
    if match := _LISTS.match(attributes, at):
        return tuple(_numbers(group) for group in re.findall(r"\{([^{}]*)\}", match[1]))
    if match := _IOTA.match(attributes, at):
        shape = _numbers(match[1])
        devices = _arranged(_numbers(match[2]), match[3], shape)
        return None if devices is None or len(shape) != 2 else _rows(devices)  # noqa: PLR2004 - groups, members
    if match := _MESH.match(attributes, at):
        axes = {name: int(size) for name, size in re.findall(r"'([^']+)'=([0-9]+)", match[1])}
        shape = tuple(axes.values())
        if match[4] is not None:
            devices = _shaped(np.array(_numbers(match[4])), shape)
        else:
            devices = _arranged(_numbers(match[2]) if match[2] else shape, match[3], shape)
        if devices is not None and match[1].count("=") == len(axes):
            return _over(devices, [*axes], re.findall(r"'([^']+)'(?::\(([0-9]+)\)([0-9]+))?", match[5]))
    return None


def _over(devices: np.ndarray, names: Sequence[str], reduced: Sequence[tuple[str, str, str]]) -> Groups | None:
    """Groups over axes, or over parts of them: ``'x':(4)2`` is the second part of x = 4 x 2 x the rest.

    ``reduced`` has name, extent before the part and extent of the part, the last two empty for a whole axis.
    """
    kept = np.indices(devices.shape)  # what is left of the coordinates without the parts: it tells groups apart
    digits: list[np.ndarray] = []
    members = 1
    for name, before, extent in reduced:
        if name not in names:
            return None
        axis = names.index(name)
        size = int(extent or devices.shape[axis])
        span = int(before or 1) * size
        if not span or devices.shape[axis] % span:
            return None
        rest = devices.shape[axis] // span
        digits.append(kept[axis] // rest % size)
        kept[axis] -= digits[-1] * rest
        members *= size
    if len(set(zip(*(part.flat for part in digits), strict=True))) != members or devices.size % members:
        return None  # none is reduced, or parts overlap
    order = np.lexsort([key.ravel() for key in (*reversed(digits), *reversed(kept))])
    places = kept.reshape(len(names), -1)[:, order].reshape(len(names), -1, members)
    if (places != places[:, :, :1]).any():
        return None  # parts of an axis that cut it at places which do not fit
    return _rows(devices.ravel()[order].reshape(-1, members))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _arranged(extents: tuple[int, ...], order: str | None, shape: tuple[int, ...]) -> np.ndarray | None:
    """The devices in turn as ``extents``, transposed by ``order``, as ``shape``; nothing if these do not fit."""
    if not 0 < prod(extents) <= MOST_DEVICES:
        return None
    devices = np.arange(prod(extents)).reshape(extents)
    if order is not None:
        axes = _numbers(order)
        if sorted(axes) != list(range(len(extents))):
            return None
        devices = devices.transpose(axes)
    return _shaped(devices, shape)


def _shaped(devices: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    return devices.reshape(shape) if devices.size == prod(shape) else None


def _rows(devices: np.ndarray) -> Groups:
    return tuple(tuple(row) for row in devices.tolist())


def axes_of(groups: Groups, axis_names: Sequence[str], axis_sizes: Sequence[int]) -> str:
    """Name the mesh axes that groups reduce over, or along which a permutation sends.

    ``groups`` are device numbers, as :func:`read_groups` gives them: a program numbers its devices as the mesh lays
    them out, so that they count up, the last axis fastest.

    Returns:
        Such as ``"'data', 'model'"``, in the mesh's order; empty if no choice of axes gives these groups. Axes of one
        device are never named.
    """
    if not groups:
        return ""
    mesh = np.arange(prod(axis_sizes)).reshape(tuple(axis_sizes))
    wide = [axis for axis, size in enumerate(axis_sizes) if size > 1]
    members = [device for group in groups for device in group]
    if len(set(members)) < len(members):
        return _quoted(axis_names, _sent_along(groups, mesh))
    wanted = {frozenset(group) for group in groups}
    for count in range(1, len(wide) + 1):
        for chosen in combinations(wide, count):
            rows = np.moveaxis(mesh, chosen, range(-count, 0)).reshape(-1, prod(axis_sizes[axis] for axis in chosen))
            if wanted == {frozenset(row) for row in _rows(rows)}:
                return _quoted(axis_names, chosen)
    return ""


def _sent_along(pairs: Groups, mesh: np.ndarray) -> Sequence[int]:
    """The axes along which source and target differ in some pair."""
    where = {int(device): place for place, device in np.ndenumerate(mesh)}
    if not all(device in where for pair in pairs for device in pair):
        return ()
    return [
        axis for axis in range(mesh.ndim) if any(len({where[device][axis] for device in pair}) > 1 for pair in pairs)
    ]


def _quoted(names: Sequence[str], chosen: Sequence[int]) -> str:
    return ", ".join(f"'{names[axis]}'" for axis in chosen)
