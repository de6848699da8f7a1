"""Arguments within a static value: some libraries give JAX the leaves that are no arrays beside the tree that they stand in.

``eqx.filter_jit`` does: its one static argument has a pair of leaves and tree for each part of the call, the arrays in it
left out, and what is dynamic are tuples of those arrays. Put together they have the names that the caller knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax

from jaxgate.observe.arguments.signature import STATIC, ArgumentKey, argument_names, leaves_with_paths

_PLACE = re.compile(r"^(.*)\[(\d+)\]$")
_MAX_PARAMETERS = 64


@dataclass(frozen=True, slots=True)
class _Part:
    """One pair: leaves with ``None`` in the places of arrays, the tree they belong to, and its leaves' numbers in it."""

    leaves: tuple[Any, ...]
    tree: Any
    numbered: Any

    @property
    def is_call(self) -> bool:
        """Whether it is the arguments of a call, positional and by name."""
        kinds = (tuple, dict)
        return isinstance(self.numbered, tuple) and tuple(map(type, self.numbered)) == kinds


def open_static(seen: Sequence[ArgumentKey], fixed: Mapping[str, Any], function: str) -> tuple[ArgumentKey, ...]:
    """Give the leaves of a call under the names of its function's parameters.

    ``seen`` are its dynamic leaves, under the names that the library gave them; ``fixed`` its static values by name.
    """
    dynamic, found = list(seen), []
    for name, value in sorted(fixed.items()):
        parts = _parts(value)
        if not parts:
            found.append(ArgumentKey(name, f"{STATIC}{value!r}", False, "", False))
            continue
        for label, part, paths in _named(name, parts, function):
            dynamic = _renamed(dynamic, part, paths)
            found.append(ArgumentKey(f"the tree of {label}", f"{STATIC}{part.tree}", False, "", False))
            found += [
                ArgumentKey(path, f"{STATIC}{leaf!r}", False, "", False)
                for path, leaf in zip(paths, part.leaves, strict=True)
                if leaf is not None
            ]
    return (*dynamic, *found)


def _parts(value: Any) -> list[_Part]:
    """The pairs that a static value consists of; none if it has anything else in it."""
    if not isinstance(value, tuple) or not value:
        return []
    found = []
    for item in value:
        match item:
            case (tuple() as leaves, jax.tree_util.PyTreeDef() as tree) if tree.num_leaves == len(leaves):
                try:
                    found.append(_Part(leaves, tree, jax.tree.unflatten(tree, range(len(leaves)))))
                except Exception:  # noqa: BLE001 - somebody's own class, which checks what it is made of
                    return []
            case _:
                return []
    return found


def _named(name: str, parts: Sequence[_Part], function: str) -> Iterator[tuple[str, _Part, list[str]]]:
    """Each part with a name and the paths of its leaves: the function itself, leading arguments, the rest of the call."""
    leaves = (leaf for part in parts for leaf in part.leaves)
    own = next((leaf for leaf in leaves if callable(leaf) and getattr(leaf, "__name__", None) == function), None)
    names = () if own is None else argument_names(own, _MAX_PARAMETERS)
    place = 0
    for index, part in enumerate(parts):
        if own is not None and part.is_call:
            args, kwargs = part.numbered
            found = leaves_with_paths(args, kwargs, names[place : place + len(args)])
            yield "the arguments", part, [path for path, _ in found]
            continue
        label = f"{name}[{index}]"
        if own is not None:
            is_function = any(leaf is own for leaf in part.leaves)
            label = function if is_function else names[place]
            place += not is_function
        yield label, part, [path for path, _ in leaves_with_paths([part.numbered], {}, [label])]


def _renamed(seen: Sequence[ArgumentKey], part: _Part, paths: Sequence[str]) -> list[ArgumentKey]:
    """Dynamic leaves under their names in a part whose empty places are just theirs; not if two tuples fit."""
    places: dict[str, dict[int, int]] = {}
    for index, key in enumerate(seen):
        if match := _PLACE.match(key.path):
            places.setdefault(match[1], {})[int(match[2])] = index
    wanted = {place for place, leaf in enumerate(part.leaves) if leaf is None}
    fitting = [found for found in places.values() if set(found) == wanted]
    renamed = list(seen)
    if wanted and len(fitting) == 1:
        for place, index in fitting[0].items():
            renamed[index] = replace(seen[index], path=paths[place])
    return renamed
