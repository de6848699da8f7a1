"""Which part of a result feeds which argument of the next step."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxgate.model.computation import Computation
from jaxgate.observe.arguments.feeder import Call

Names = str | int | Sequence[str | int]
"""Arguments, by position or name; one may stand alone."""

NextArgs = Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None]
"""Makes the positional arguments of the next step of a result and the last ones; ``None`` where it holds none."""


def advance(next_args: NextArgs | None, output: Any, call: Call) -> Call | None:
    """The call that follows one, its state threaded; ``None`` if nothing is. Keyword arguments stay what they are."""
    following = None if next_args is None else next_args(output, call[0])
    return None if following is None else (tuple(following), call[1])


def with_next_args(computation: Computation) -> Computation:
    """The computation with ``next_args`` made of ``carry``, where it has one.

    Raises:
        ValueError: If ``carry`` names what is no argument.
    """
    if computation.carry is None:
        return computation
    positions = positions_of(computation.subject, computation.args, computation.carry)
    return replace(computation, carry=None, next_args=Carry(positions, required=True))


def positions_of(function: Callable[..., Any], args: Sequence[Any], wanted: Names | None) -> tuple[int, ...]:
    """Positions of the arguments that somebody named, in order.

    Raises:
        ValueError: If one is not an argument.
    """
    if wanted is None:
        return ()
    names = list(inspect.signature(function).parameters)
    count = max(len(names), len(args))  # *args has one name only
    found = []
    for item in [wanted] if isinstance(wanted, (str, int)) else wanted:
        if isinstance(item, str) and item not in names:
            raise ValueError(f"expected one of the arguments {', '.join(names)}, found {item!r}")
        place = names.index(item) if isinstance(item, str) else item
        if not -count <= place < count:
            raise ValueError(f"expected one of {count} positional arguments, found position {place}")
        found.append(place % count)
    return tuple(sorted(found))


class Carry:
    """Feeds arguments from the result: from all of it, or from the element of a tuple that has their shape.

    If it is ``required``, a result that holds nothing of their shape is an error.
    """

    def __init__(self, positions: tuple[int, ...], *, required: bool) -> None:
        self._positions = positions
        self._required = required
        self._places: tuple[int | None, ...] | None = None  # found at the first step, then fixed

    def __call__(self, output: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The arguments of the next step; ``None`` if the result does not hold them.

        Raises:
            ValueError: If it must hold them and does not.
        """
        if max(self._positions) >= len(args):
            if self._required:
                raise ValueError("carry= feeds positional arguments; found one that is passed by keyword")
            return None
        if self._places is None:
            found = self._find(output, args)
            if found is None:
                return None
            self._places = found
        following = list(args)
        for position, place in zip(self._positions, self._places, strict=True):
            following[position] = output if place is None else output[place]
        return tuple(following)

    def _find(self, output: Any, args: tuple[Any, ...]) -> tuple[int | None, ...] | None:
        parts: list[tuple[int | None, Any]] = [(None, output)]
        if isinstance(output, (tuple, list)):
            parts += enumerate(output)
        places: list[int | None] = []
        for position in self._positions:
            alike = [(place, part) for place, part in parts if _alike(part, args[position]) and place not in places]
            same = [place for place, part in alike if _dtypes(part) == _dtypes(args[position])]
            free = same or [place for place, _ in alike]
            if not free:
                if self._required:
                    raise ValueError(
                        f"no part of the result has the structure and shapes of argument {position}, "
                        "which carry= wants to feed from it"
                    )
                return None
            places.append(free[0])
        return tuple(places)


def carry_donated(lowered: jax.stages.Lowered, args: tuple[Any, ...]) -> Carry | None:
    """Thread the arguments that a function donates, as a training loop would; none if some are static."""
    infos = lowered.args_info[0]
    if len(infos) != len(args):
        return None
    donated = tuple(i for i, info in enumerate(infos) if any(leaf.donated for leaf in jax.tree.leaves(info)))
    return Carry(donated, required=False) if donated else None


def undeclared_state(
    output: Any, args: tuple[Any, ...], names: Sequence[str]
) -> tuple[tuple[Any, ...] | None, str, str]:
    """Find a tree among the arguments that the result continues undeclared, with other weak types.

    Only trees count: arrays of one shape are everywhere. Where nothing differs, JAX has the program of the next step.

    Returns:
        The arguments with it in place, and its name; ``None`` and no name where there is none, or several could be it.
        Then, in words, that nothing is threaded.
    """
    parts: list[Any] = [output, *(output if isinstance(output, (tuple, list)) else ())]
    found = [
        (position, part)
        for position, arg in enumerate(args)
        for part in parts
        if not jax.tree_util.treedef_is_leaf(jax.tree.structure(arg))
        and jax.tree.leaves(arg)
        and _alike(part, arg)
        and _numbers(part) == _numbers(arg)
    ]
    if all(_weak(part) == _weak(args[position]) for position, part in found):
        return None, "", ""
    if len(found) == 1:
        ((position, part),) = found
        return (*args[:position], part, *args[position + 1 :]), names[position], ""
    said = " or ".join(dict.fromkeys(f"carry={names[position]!r}" for position, _ in found))
    return None, "", f"nothing is threaded ({said})"


def _alike(left: Any, right: Any) -> bool:
    """Whether two trees have one structure and equal shapes; dtypes may differ, as their drift is looked for.

    Random keys have no numbers to drift to: they match only keys of the same kind.
    """
    if jax.tree.structure(left) != jax.tree.structure(right):
        return False
    shapes = [[getattr(leaf, "shape", ()) for leaf in jax.tree.leaves(tree)] for tree in (left, right)]
    return shapes[0] == shapes[1] and _keys(left) == _keys(right)


def _dtypes(tree: Any) -> list[Any]:
    return [getattr(leaf, "dtype", None) for leaf in jax.tree.leaves(tree)]


def _numbers(tree: Any) -> list[Any]:
    """Dtypes, those that numbers of Python become among them."""
    return [
        jnp.result_type(leaf) if isinstance(leaf, (bool, int, float, complex)) else getattr(leaf, "dtype", None)
        for leaf in jax.tree.leaves(tree)
    ]


def _weak(tree: Any) -> list[bool]:
    return [
        bool(getattr(leaf, "weak_type", isinstance(leaf, (bool, int, float, complex))))
        for leaf in jax.tree.leaves(tree)
    ]


def _keys(tree: Any) -> list[Any]:
    extended = jax.dtypes.extended
    return [dtype if dtype is not None and jax.dtypes.issubdtype(dtype, extended) else None for dtype in _dtypes(tree)]


class Requests:
    """Feeds one request after the other, and begins again after the last.

    Attributes:
        count: How many steps it takes until each was fed.

    Raises:
        TypeError: If one has another number of arguments.
        ValueError: If there are none, or more than a case has steps.
    """

    def __init__(self, first: Sequence[Any], others: Sequence[Sequence[Any]], most: int) -> None:
        self._all = [tuple(first), *map(tuple, others)]
        self.count, self._at = len(self._all), 0
        if not 1 < self.count <= most:
            raise ValueError(f"expected 1 to {most - 1} requests beside the first, found {self.count - 1}")
        if {len(one) for one in self._all} != {len(first)}:
            raise TypeError(f"expected {len(first)} arguments in each of requests=, as in the first call")

    def __call__(self, _output: Any, _args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the next step."""
        self._at = (self._at + 1) % self.count
        return self._all[self._at]
