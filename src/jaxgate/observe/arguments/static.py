"""The leaves of a call beside the arguments of its lowered program, and what differs between two static values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import jax
import numpy as np

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.model.words import cut, shortlist

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
    """The leaves that a program is given: static arguments stand in it already, and may have an address for a name."""
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


SHORT = 60
"""Characters of a value that is shown whole."""
MAX_PLACES = 2
"""Places that are shown of one value: a message has up to three values."""
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_WORD = re.compile(r"[\w.+-]+|\s+|.", re.DOTALL)
_MAX_WORDS = 4_000
"""Words that are compared at most; of longer values only what is before the first and after the last difference is left out."""


def static_change(old: str, new: str) -> str:
    """``static 1.0 → static 0.5``; addresses, which are others in each process, do not count."""
    before, after = (_ADDRESS.sub("", text) for text in (old, new))
    if before == after:
        return f"static {cut(after, SHORT)} is a new object"
    if max(len(before), len(after)) <= SHORT:
        return f"static {before} → static {after}"
    changes = _changes(_WORD.findall(before), _WORD.findall(after))
    shown = [
        f"static {cut(gone, SHORT) or 'nothing'} → static {cut(come, SHORT) or 'nothing'}" for gone, come in changes
    ]
    return shortlist(shown, MAX_PLACES, phrases=True)


def _changes(before: list[str], after: list[str]) -> list[tuple[str, str]]:
    if max(len(before), len(after)) > _MAX_WORDS:
        begin = _alike(before, after)
        end = _alike(before[begin:][::-1], after[begin:][::-1])
        return [("".join(before[begin : len(before) - end]), "".join(after[begin : len(after) - end]))]
    found = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [
        ("".join(before[start:stop]), "".join(after[first:last]))
        for kind, start, stop, first, last in found
        if kind != "equal"
    ]


def _alike(before: list[str], after: list[str]) -> int:
    """How many words two lists begin with alike."""
    return next(
        (place for place, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
