"""The leaves of a call beside the arguments of its lowered program: static arguments left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxgate.model import InvalidCaseError

_VALUES = (jax.Array, np.ndarray, np.generic, bool, int, float, complex)


def dynamic_leaves(stage: jax.stages.Lowered, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """List what a call, static arguments included, gives to each argument of a program, in the program's own order.

    A static argument has no place in ``args_info``. Which ones are static is not public; but an array never
    is, and dynamic arguments keep their order, so that every array falls into its place. Of a static and a
    dynamic Python number side by side either may be taken: they hold no buffer.

    Raises:
        InvalidCaseError: If the call is not one of this program.
    """
    positional, keyword = stage.args_info
    found = _align(list(args), list(positional))
    if found is None or not set(keyword) <= set(kwargs):
        raise InvalidCaseError("pairing the arguments", "expected those that were lowered, found others")
    leaves: list[Any] = jax.tree.leaves((found, {name: kwargs[name] for name in keyword}))
    if len(leaves) != len(jax.tree.leaves((positional, keyword))):
        raise InvalidCaseError("pairing the arguments", "expected the trees that were lowered, found others")
    return leaves


def given_leaves(stage: jax.stages.Lowered, call: tuple[Sequence[Any], Mapping[str, Any]]) -> list[Any]:
    """What a program is given: a static argument stands in it already, and may have an address for a name."""
    try:
        return dynamic_leaves(stage, *call)
    except InvalidCaseError:  # trees that cannot be distinguished: all of them, then
        return list(jax.tree.leaves(tuple(call)))


def dynamic_places(stage: jax.stages.Lowered, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[int]:
    """Where the leaves that ``dynamic_leaves`` lists stand among all leaves of the call, static arguments included."""
    everything = enumerate(jax.tree.leaves((tuple(args), dict(kwargs))))
    return [next(place for place, leaf in everything if leaf is found) for found in dynamic_leaves(stage, args, kwargs)]


def _align(args: list[Any], infos: list[Any]) -> list[Any] | None:
    """The arguments that belong to ``infos``, in order; ``None`` if some array would be left over."""
    if len(args) == len(infos):
        return args
    if not args:
        return None
    head, *rest = args
    if infos and _fits(head, infos[0]):
        found = _align(rest, infos[1:])
        if found is not None:
            return [head, *found]
    if any(isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)) for leaf in jax.tree.leaves(head)):
        return None
    return _align(rest, infos)


def _fits(argument: Any, info: Any) -> bool:
    leaves, tree = jax.tree.flatten(argument)
    infos, expected = jax.tree.flatten(info)
    return bool(tree == expected) and all(
        (isinstance(leaf, _VALUES) or hasattr(leaf, "shape")) and np.shape(leaf) == found.shape
        for leaf, found in zip(leaves, infos, strict=True)
    )
