"""Correct before fast: subject and reference agree, and every sample of the batch is really processed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxgate.model.computation import Batch
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.arguments.feeder import Call, Values, on_host, pieces, place_of, side_by_side
from jaxgate.observe.arguments.lockstep import ALONE, Lockstep
from jaxgate.observe.arguments.signature import leaves_with_paths, short, to_host
from jaxgate.observe.errors import guarded

ROUNDINGS = 4
"""How many roundings of its operands may show in a result, of its largest element: 1.2 of TensorFloat-32 did in eleven
cases of the catalogue on an H100 (jax 0.11.2, 2026-11-27), whose results are products, attention and 256 steps of an RNN."""
_TENSOR_FLOAT, _BFLOAT = 2.0**-11, 2.0**-9
_IN_FULL = 8.0
"""The first CUDA compute capability that multiplies float32 in TensorFloat-32 by default."""


@dataclass(frozen=True, slots=True)
class Closeness:
    """How far two results may lie apart: ``absolute + relative × |reference| + rounding × largest |reference|`` of a leaf."""

    relative: float
    absolute: float
    rounding: float = 0.0  # what the device itself may leave of float32 products

    @classmethod
    def on(cls, device: jax.Device, products: Iterable[str] | None, *, rtol: float, atol: float) -> Closeness:
        """What was asked for, on a device that may multiply float32 in fewer bits.

        ``products`` are types and shapes that are multiplied, ``float32[8,4] x float32[4,2]``; ``None`` if unknown.
        """
        usual = jax.config.jax_default_matmul_precision in (None, "default", "fastest")
        capability = re.fullmatch(r"\d+\.\d+", str(getattr(device, "compute_capability", "")))
        rounding = 0.0
        if usual and (products is None or any("float32[" in one for one in products)):
            if device.platform == "tpu":
                rounding = _BFLOAT
            elif device.platform == "gpu" and capability and float(capability[0]) >= _IN_FULL:
                rounding = _TENSOR_FLOAT
        return cls(rtol, atol, ROUNDINGS * rounding)

    def absolute_beside(self, reference: np.ndarray[Any, Any]) -> float:
        """What an element of this leaf may differ by, whatever its size."""
        if not self.rounding or not reference.size:
            return self.absolute
        sizes = np.abs(reference.astype(np.complex128 if reference.dtype.kind == "c" else np.float64))
        largest = float(np.max(sizes, where=np.isfinite(sizes), initial=0.0))
        return self.absolute + self.rounding * largest


def refuse_nan(output: Any, what: str) -> None:
    """Refuse an output that holds a NaN: its time and its agreement would mean nothing.

    Raises:
        InvalidCaseError: If a leaf holds one; names the leaf.
    """
    for path, leaf in leaves_with_paths((output,), {}, ("result",)):
        for _, values in pieces(on_host(leaf)):
            if values.dtype.kind not in "fcV":  # V: bfloat16, float8 and the like
                continue
            try:
                broken = int(np.isnan(values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)).sum())
            except (TypeError, ValueError):
                continue  # an opaque dtype that has no NaN
            if broken:
                raise InvalidCaseError(
                    f"checking {what}", f"expected numbers, found {broken} NaN of {values.size} in {path}"
                )


def check_agreement(
    subject: Any, reference: Any, closeness: Closeness, *, names: tuple[str, str] = ("subject", "reference")
) -> None:
    """Compare two output trees on the host, leaf by leaf; ``names`` are those of the two for the text.

    Integers and booleans must be equal: there is no tolerance between two token ids.

    Of an array that is spread over processes each compares the parts that it holds; together they hold all of it.

    Raises:
        InvalidCaseError: If trees, shapes or values differ; names the leaf and the worst element.
    """
    stage = "comparing subject and reference"
    trees = jax.tree.structure(subject), jax.tree.structure(reference)
    if trees[0] != trees[1]:
        raise InvalidCaseError(stage, f"expected results of one structure, found {trees[0]} and {trees[1]}")
    ours = leaves_with_paths((subject,), {}, ("result",))
    theirs = jax.tree.leaves(reference)
    for (path, left), right in zip(ours, theirs, strict=True):
        if left.shape != right.shape or left.dtype != right.dtype:
            raise InvalidCaseError(stage, f"{path}: {names[0]} gives {short(left)}, {names[1]} {short(right)}")
        for place, ours_here, theirs_here in side_by_side(left, right, stage=stage, what=path):
            a, b = _numbers(ours_here), _numbers(theirs_here)
            exact = a.dtype.kind in "biu"
            allowed = closeness.absolute_beside(b)
            close = a == b if exact else np.isclose(a, b, rtol=closeness.relative, atol=allowed)
            if close.all():
                continue
            with np.errstate(invalid="ignore"):  # ∞ - ∞ of elements that agree
                apart = np.where(close, -1.0, np.abs(_signed(a) - _signed(b)))
            worst = np.unravel_index(int(np.argmax(apart)), a.shape)
            begins = [begin for begin, _ in place] or [0] * len(worst)
            where = str([begin + int(index) for begin, index in zip(begins, worst, strict=True)]) if worst else ""
            raise InvalidCaseError(
                stage,
                f"{path}{where}: {names[0]} gives {_text(a[worst])}, {names[1]} {_text(b[worst])}; "
                f"{int((~close).sum()):,} of {a.size:,} elements differ by more than "
                f"{allowed:.3g} + {closeness.relative:g} × |reference|",
            )


def _numbers(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if array.dtype.kind in "biuc":
        return array.astype(np.complex128) if array.dtype.kind == "c" else array
    return array.astype(np.float64)


def _signed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.astype(np.float64) if array.dtype.kind in "biu" else array


def _text(value: Any) -> str:
    return f"{value:.6g}" if value.dtype.kind in "fc" else str(value)


def check_batch(function: Callable[..., Any], call: Call, batch: Batch, *, together: Lockstep = ALONE) -> None:
    """Change single samples and see the result change: a batch that is silently cut does not notice.

    The first, the middle and the last sample are tried; cutting drops a tail, and a wrong reshape a stride. A sample
    may influence what another rank holds (``together``). ``function`` leaves its arguments as they are.

    Raises:
        InvalidCaseError: If the argument holds another number of samples than declared, or one is ignored.
    """
    stage = "checking the batch"
    args, kwargs = call
    with guarded(stage):
        value = args[batch.argument] if isinstance(batch.argument, int) else kwargs[batch.argument]
    leaves, tree = jax.tree.flatten(value)
    for leaf in leaves:
        found = leaf.shape[batch.axis] if np.ndim(leaf) > batch.axis else None
        if found != batch.size:
            raise InvalidCaseError(
                stage,
                f"expected {batch.size} samples on axis {batch.axis}, found {found} in {short(leaf) if hasattr(leaf, 'shape') else repr(leaf)}",
            )

    def run(changed: list[Any]) -> list[Values]:
        argument = jax.tree.unflatten(tree, changed)
        if isinstance(batch.argument, int):
            now = (*args[: batch.argument], argument, *args[batch.argument + 1 :])
            inputs: Call = (now, kwargs)
        else:
            inputs = (args, {**kwargs, batch.argument: argument})
        with guarded(stage):
            output = [on_host(leaf) for leaf in jax.tree.leaves(function(*inputs[0], **inputs[1]))]
        return [part for values in output for _, part in pieces(values)]

    plain = run(leaves)
    for sample in sorted({0, 1 % batch.size, batch.size // 2, batch.size - 1}):
        changed = run([_disturb(leaf, batch.axis, sample) for leaf in leaves])
        seen = not all(np.array_equal(a, b) for a, b in zip(plain, changed, strict=True))
        if not together.anyone(f"sample {sample} influences the result", seen):
            raise InvalidCaseError(
                stage,
                f"sample {sample} of {batch.size} does not influence the result: the batch is cut, "
                f"or the declared batch argument is not the one that is processed",
            )


def _disturb(leaf: Any, axis: int, sample: int) -> Any:
    """Change one sample: numbers become NaN, which nothing on the way to the result can swallow; others flip."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return _disturb_parts(leaf, axis, sample)
    values = np.array(to_host(leaf))
    _change(values, axis, sample)
    if not isinstance(leaf, jax.Array):
        return values  # of a subject on the host, which is called with what it was given
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        values = jax.random.wrap_key_data(values, impl=jax.random.key_impl(leaf))
    return jax.device_put(values, leaf.sharding if leaf.committed else None)  # as the original: no recompile


def _change(values: Values, axis: int, sample: int) -> None:
    """Change one sample in place."""
    index = (slice(None),) * axis + (sample,)
    if values.dtype.kind in "fcV":
        values[index] = np.nan
    elif values.dtype.kind == "b":
        values[index] = ~values[index]
    else:
        other = np.roll(values, 1, axis=axis)[index]
        values[index] = np.where(other == values[index], values[index] ^ 1, other)


def _disturb_parts(leaf: jax.Array, axis: int, sample: int) -> jax.Array:
    """Change one sample of an array that is spread over processes: the process that holds the sample does it."""
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        raise InvalidCaseError(
            "checking the batch", f"{short(leaf)} is spread over processes: single random keys of it cannot be changed"
        )
    held = {place_of(shard.index, leaf.shape): to_host(shard.data) for shard in leaf.addressable_shards}

    def part(index: tuple[slice, ...]) -> Values:
        place = place_of(index, leaf.shape)
        values, (begin, end) = np.array(held[place]), place[axis]
        if begin <= sample < end:
            _change(values, axis, sample - begin)
        return values

    return jax.make_array_from_callback(leaf.shape, leaf.sharding, part)
