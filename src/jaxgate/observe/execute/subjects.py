"""How a subject is called: a jitted function on device arrays, or plain Python around device programs as it is."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxgate.model.measurement import Argument, InvalidCaseError
from jaxgate.observe.arguments.arrival import Given, add_arrivals, describe_next
from jaxgate.observe.arguments.feeder import Call, Feeder, on_device
from jaxgate.observe.arguments.signature import argument_names
from jaxgate.observe.compat import argument_leaf_names, input_shardings
from jaxgate.observe.trace.lowering import Lowered
from jaxgate.observe.trace.stages import Program

WHY_NOT = "plain Python around jitted calls cannot be stored"
VALUES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)
"""Leaves, besides device arrays, whose values are known; of other objects only the type is."""

_COPIED_WHOLE = (type, FunctionType, BuiltinFunctionType, ModuleType, jax.Array, *VALUES)
"""Types that a deep copy does not look into."""
_FUNCTIONS = (jax.stages.Wrapped, jax.stages.Compiled, jax.custom_jvp, jax.custom_vjp)
"""Functions that are no functions of Python."""


class JittedSubject:
    """A jitted function, lowered; its arguments lie on the device.

    Attributes:
        function: What is called.
        role: ``subject`` or ``reference``, for messages.
        name: Its name in JAX's events; empty where whatever it calls counts.
        names: Names of its positional arguments.
        static: Names of the arguments whose values are part of the program.
        given: The arguments that it was made with.
        devices: Where it runs, by their numbers, as far as they were given; of plain Python once it has been called.
        reads_results: Whether Python reads its results anyway, so that those of every step may be looked at.
        consumes: Whether a call eats arguments, so that one that threads nothing needs fresh ones.
        first_fed: Arguments of the first call, as it left them: some are consumed.
        following: How the leaves of the second call were given, by ``describe_next``; empty if nothing is threaded.
    """

    reads_results = False

    def __init__(self, lowered: Lowered, feeder: Feeder, devices: tuple[jax.Device, ...] = ()) -> None:
        self.function, self.role, self.name = lowered.called, lowered.role, lowered.name
        self.names, self.static = lowered.names, _static_names(lowered, feeder.call[1])
        self.fresh, self.consumes, self.given = feeder.fresh, feeder.copies, feeder.call
        self.devices, self._jitted = devices, lowered.function
        self.first_fed: Call = ((), {})
        self.following: list[int | Given] = []

    @classmethod
    def of(cls, lowered: Lowered, call: Call, devices: tuple[jax.Device, ...] = ()) -> JittedSubject:
        """The subject of a function and its arguments."""
        return cls(lowered, Feeder(call, donates=any(leaf.donated for leaf in lowered.signature)), devices)

    def again(self, _: Call) -> Call:
        """The arguments of the next call where nothing of a call is threaded into it."""
        return self.fresh()

    def placed(self, call: Call) -> Call:
        """Put threaded arguments on their devices and wait; note how those of the first threaded call arrived."""
        self.following = self.following or describe_next(call, self.first_fed)
        placed = on_device(*call)
        jax.block_until_ready(self.arrays(None, placed))
        return placed

    def arrays(self, output: Any, call: Call) -> list[jax.Array]:
        """The arrays that a call can change or make: those of its arguments and its result."""
        return _alive((output, call))

    def learn(self, _output: Any, call: Call, _held: Sequence[jax.Array]) -> None:
        """Keep what the first call was fed with."""
        self.first_fed = call

    def arguments(self, program: Program, given: Call) -> tuple[Argument, ...]:
        """The arguments of its program, each with how it arrives where a project gives them like this."""
        lowered = program.lowered
        return add_arrivals(
            lowered.signature,
            lowered.stage,
            input_shardings(program.executable),
            given=given,
            call=self.given,
            following=self.following,
        )

    def wait(self, output: Any, _: Call) -> None:
        """Wait for everything that a call started."""
        jax.block_until_ready(output)

    def call(self, call: Call) -> Any:
        """Call it once and wait."""
        return jax.block_until_ready(self.function(*call[0], **call[1]))

    def on_copies(self, *args: Any, **kwargs: Any) -> Any:
        """Call the jitted function with other arguments; with copies, where it consumes them."""
        if self.consumes:
            args, kwargs = jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, (args, kwargs))
        return self._jitted(*args, **kwargs)


def _alive(tree: Any) -> list[jax.Array]:
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array) and not leaf.is_deleted()]


def _leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, of dicts as well whose keys JAX cannot sort (Keras keeps layers as keys)."""
    try:
        yield from jax.tree.leaves(tree)
    except ValueError:
        parts = (
            tree.values() if isinstance(tree, dict) else jax.tree.leaves(tree, is_leaf=lambda part: part is not tree)
        )
        for part in parts:
            yield from _leaves(part)


def _static_names(lowered: Lowered, kwargs: Mapping[str, Any]) -> frozenset[str]:
    """Names of the arguments that JAX did not trace; none where that cannot be known."""
    dynamic = argument_leaf_names(lowered.traced)
    named = [name for name in (*lowered.names, *kwargs) if name.isidentifier()]
    return frozenset(named) - dynamic if dynamic else frozenset()


class EagerSubject:
    """Plain Python and its arguments, which it may donate and change: each series has copies of its own.

    Attributes are those of ``JittedSubject``, and:
        consumed: Places, among the leaves of the arguments, of the arrays that the first call donated.
    """

    name, static, reads_results = "", frozenset[str](), True

    def __init__(self, function: Callable[..., Any], call: Call, role: str) -> None:
        self.function, self.role, self.names = function, role, argument_names(function, len(call[0]))
        self.given = call
        self._kept = {id(item): item for item in _identified(call)}
        self.consumed: frozenset[int] = frozenset()
        self.devices: tuple[jax.Device, ...] = ()

    @property
    def consumes(self) -> bool:
        """Whether the first call donated something."""
        return bool(self.consumed)

    def fresh(self) -> Call:
        """Deep copies of the arguments; arrays keep dtype, weak type and placement.

        Raises:
            InvalidCaseError: If one of them cannot be copied.
        """
        (args, kwargs), memo = self.given, dict(self._kept)

        def copied(name: str, value: Any) -> Any:
            try:
                return copy.deepcopy(value, memo)
            except Exception as error:
                raise InvalidCaseError(
                    "copying the arguments",
                    "expected arguments that copy.deepcopy can copy, as a call may change them; found for "
                    f"{name}: {error}; let the function close over what it may share",
                ) from error

        positional = tuple(copied(name, value) for name, value in zip(self.names, args, strict=True))
        call = positional, {name: copied(name, value) for name, value in kwargs.items()}
        self.wait(None, call)
        return call

    def again(self, call: Call) -> Call:
        """The same objects, as a loop would give them, unless they are consumed."""
        return self.fresh() if self.consumed else call

    def placed(self, call: Call) -> Call:
        """The arguments as they are: plain Python places them."""
        return call

    def arrays(self, output: Any, call: Call) -> list[jax.Array]:
        """The arrays that a call can change or make, those of the object that a method belongs to among them."""
        owner = getattr(getattr(self.function, "__self__", None), "__dict__", {})
        return _alive((output, call, [*_leaves(list(owner.values()))]))

    def wait(self, output: Any, call: Call) -> None:
        """Wait for the result, and for what the call changed in its arguments and its object."""
        jax.block_until_ready(self.arrays(output, call))

    def call(self, call: Call) -> Any:
        """Call it once and wait."""
        output = self.function(*call[0], **call[1])
        self.wait(output, call)
        return output

    def on_copies(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with copies of other arguments."""
        args, kwargs = copy.deepcopy((args, kwargs), dict(self._kept))
        return self.function(*args, **kwargs)

    def learn(self, output: Any, call: Call, held: Sequence[jax.Array]) -> None:
        """Note what the first call consumed, and where it ran; ``held`` are the arrays that were there before.

        Raises:
            InvalidCaseError: If it gives nothing to wait for.
        """
        numbers = [leaf for leaf in jax.tree.leaves(output) if isinstance(leaf, VALUES)]
        arrays, old = self.arrays(output, call), {id(array) for array in held}
        if not numbers and all(id(array) in old for array in arrays):
            raise InvalidCaseError(
                f"step 1 of the {self.role}",
                "expected something to wait for, found no new array in the result, the arguments and the method's "
                "object; return the loss or the new state",
            )
        given = {index: leaf for index, leaf in enumerate(jax.tree.leaves(call)) if isinstance(leaf, jax.Array)}
        self.consumed = frozenset(index for index, leaf in given.items() if leaf.is_deleted())
        sets = (array.sharding.device_set for array in (*arrays, *given.values()))
        widest = max(sets, key=len, default=set(jax.local_devices()[:1]))
        self.devices = tuple(sorted(widest, key=lambda device: device.id))


def _identified(value: Any) -> Iterator[Any]:
    """Functions inside a value that a deep copy must not copy: JAX knows them by identity, and would compile a copy again.

    A method is one of them if the object that it belongs to holds no arrays, as ``apply`` of a Flax module in a ``TrainState``.
    """
    seen: set[int] = set()
    pending = [value]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, _COPIED_WHOLE):
            continue
        seen.add(id(item))
        if isinstance(item, _FUNCTIONS) or (isinstance(item, (partial, MethodType)) and not _holds_arrays(item)):
            yield item
        else:
            pending += gc.get_referents(item)


def _holds_arrays(function: partial[Any] | MethodType) -> bool:
    if isinstance(function, partial):
        return any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((function.args, function.keywords)))
    seen: set[int] = set()
    pending = [function.__self__]
    while pending:
        item = pending.pop()
        if isinstance(item, (jax.Array, np.ndarray)):
            return True
        if id(item) not in seen and not isinstance(item, _COPIED_WHOLE):
            seen.add(id(item))
            pending += gc.get_referents(item)
    return False


Subject = JittedSubject | EagerSubject
"""Either kind: steps and samples call both in the same way."""
