"""Anybody's function as a case: names, donation and threading worked out from one line in a test."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import jax

from jaxgate.model import Batch, Case, Claim, Computation

MAX_NAME = 120
"""Characters of a name; file systems end at 255 bytes, and a part file needs some more."""

Names = str | int | Sequence[str | int]


def case_name(node_id: str, given: str | None) -> tuple[str, str]:
    """Name the case of a test: family from the file, sentence from the test.

    Args:
        node_id: pytest's id, for example ``perf/test_model.py::test_step[small]``.
        given: The name that the user gave: ``sentence`` or ``family/sentence``.

    Returns:
        Family and sentence, both fit for a file name. Where characters had to go, a short hash keeps two
        tests apart.
    """
    file, _, test = node_id.partition("::")
    family = PurePath(file).stem.removeprefix("test_")
    sentence = test.removeprefix("test_")
    if given is not None:
        first, slash, rest = given.partition("/")
        family, sentence = (first, rest) if slash else (family, given)
    return _fit(family), _fit(sentence)


def _fit(name: str) -> str:
    readable = re.sub(r"\[(.*)\]$", r"-\1", name)
    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", readable).lstrip("-._").rstrip("-.")[:MAX_NAME]
    if fit == readable and fit:
        return fit
    return f"{fit or 'case'}-{hashlib.blake2b(name.encode(), digest_size=3).hexdigest()}"


def function_case(
    function: Callable[..., Any],
    args: Sequence[Any],
    *,
    name: tuple[str, str],
    kwargs: Mapping[str, Any],
    donate: Names | None,
    carry: Names | None,
    reference: Callable[..., Any] | None,
    claims: Sequence[Claim],
    batch: Batch | None,
    options: Mapping[str, Any],
) -> Case:
    """Make a case of a function and its arguments.

    Args:
        function: Jitted, or a plain function that ``jax.jit`` can trace.
        args: Positional arguments.
        name: Family and sentence.
        kwargs: Keyword arguments.
        donate: Arguments of a plain function to donate, by name or position.
        carry: Arguments that the next step takes from the result; the donated ones by default.
        reference: The naive way to compute the same.
        claims: What must hold on any hardware.
        batch: Where the samples are.
        options: Further fields of ``Computation``.

    Raises:
        TypeError: If ``donate`` is given for a function that is jitted already.
        ValueError: If a name is not an argument.
    """
    if donate is not None and isinstance(function, jax.stages.Wrapped):
        raise TypeError(
            f"expected a plain function with donate={donate!r}, found one that is jitted already; "
            "put donate_argnames into its own jax.jit"
        )
    donated = _positions(function, args, donate)
    threaded = _positions(function, args, carry) if carry is not None else donated
    subject = jax.jit(function, donate_argnums=donated) if donated else function
    computation = Computation(
        subject=subject,
        args=tuple(args),
        kwargs=kwargs,
        reference=reference,
        next_args=_Carry(threaded, required=carry is not None) if threaded else None,
        batch=batch,
        **options,
    )
    return Case(family=name[0], sentence=name[1], build=lambda: computation, claims=tuple(claims))


def _positions(function: Callable[..., Any], args: Sequence[Any], wanted: Names | None) -> tuple[int, ...]:
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


class _Carry:
    """Feeds arguments from the result: from all of it, or from the element of a tuple that has their shape."""

    def __init__(self, positions: tuple[int, ...], *, required: bool) -> None:
        self._positions = positions
        self._required = required
        self._places: tuple[int | None, ...] | None = None  # found at the first step, then fixed

    def __call__(self, output: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
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
            free = [place for place, part in parts if _alike(part, args[position]) and place not in places]
            if not free:
                if self._required:
                    raise ValueError(
                        f"no part of the result has the structure and shapes of argument {position}, "
                        "which carry= wants to feed from it"
                    )
                return None
            places.append(free[0])
        return tuple(places)


def _alike(left: Any, right: Any) -> bool:
    """Whether two trees have one structure and equal shapes; dtypes may drift, that is what is looked for."""
    if jax.tree.structure(left) != jax.tree.structure(right):
        return False
    shapes = [[getattr(leaf, "shape", ()) for leaf in jax.tree.leaves(tree)] for tree in (left, right)]
    return shapes[0] == shapes[1]
