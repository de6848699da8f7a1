"""What a reproduction file does. Its text goes into that file as it is, so it may need nothing but jax and NumPy."""

# mypy: ignore-errors
# Without annotations, and short: whoever gets the file wants to read it whole before it is run.
# fmt: off
# -- from here on: the file --
import base64
import collections
import dataclasses
import difflib
import platform
import re
import time
import zlib

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

SEED, ROUNDS, SECONDS, LINES = 1, 40, 4.0, 60  # of inputs; most rounds and seconds of timing; lines of the difference


def draw(seat, dtype, shape, seed=SEED):  # floats scaled by their fan-in; whole numbers below 8
    random, kind = np.random.default_rng((seed, seat)), jnp.dtype(dtype)
    drawn = random.integers(0, 2 if kind.itemsize == 1 else 8, shape)
    if jnp.issubdtype(kind, jnp.inexact):
        drawn = random.standard_normal(shape) * max(shape[-2] if len(shape) > 1 else 1, 1) ** -0.5
    return np.asarray(drawn).astype(kind)


class Side:
    """A program, compiled here. Of inputs: place among the arguments, type, shape, division over the mesh."""

    def __init__(self, payload, inputs, outputs, *, donated=(), options=None, mesh=None, devices=1, convention=10):
        self.donated, self.devices, self.mesh = donated, devices, mesh
        self.given = [jax.device_put(draw(*one), self.on(spec)) for *one, spec in inputs]
        module = zlib.decompress(base64.b85decode("".join(payload.split())))
        shell = jax.export.export(jax.jit(lambda *_: [jnp.zeros(shape, dtype) for dtype, shape, _ in outputs]))
        exported = dataclasses.replace(
            shell(*self.given), mlir_module_serialized=module, module_kept_var_idx=tuple(range(len(inputs))),
            nr_devices=devices, calling_convention_version=convention)
        self.text, self.size = exported.mlir_module(), len(module)
        lie = [None if spec is None else self.on(spec) for *_, spec in outputs] if mesh else None
        jitted = jax.jit(exported.call, donate_argnums=donated, out_shardings=lie)
        self.run = jitted.lower(*self.given).compile(compiler_options=options)

    def on(self, spec):
        if self.mesh is None:
            return jax.devices()[0]
        names, sizes, kinds = self.mesh
        devices, types = np.array(jax.devices()[: self.devices]), tuple(getattr(AxisType, kind) for kind in kinds)
        return NamedSharding(Mesh(devices.reshape(sizes), names, axis_types=types), PartitionSpec(*(spec or ())))

    def facts(self):
        memory, cost = self.run.memory_analysis(), self.run.cost_analysis() or {}
        found = {f"{kind} bytes": getattr(memory, f"{kind}_size_in_bytes") for kind in ("temp", "argument", "output", "alias")}
        found |= {name: cost.get(name, 0) for name in ("flops", "transcendentals", "bytes accessed")}
        sent = re.findall(r" (?:(?:ragged-)?all-(?:gather|reduce|to-all)|collective-\w+|reduce-scatter)(?:-start)?\(", self.run.as_text())
        return {**found, "program bytes": self.size, "instructions": self.run.as_text().count(" = "), "collectives": len(sent)}

    def call(self):  # each is waited for: launches on several devices must not queue
        given = jax.block_until_ready([jnp.copy(one) if at in self.donated else one for at, one in enumerate(self.given)])
        begin = time.perf_counter()
        results = jax.block_until_ready(self.run(*given))
        return time.perf_counter() - begin, results


def compare(theirs, ours):
    wide = [[np.asarray(one).astype(np.result_type(one.dtype, np.float32)) for one in side] for side in (theirs, ours)]
    pairs = [(a, b) for a, b in zip(*wide, strict=False) if a.shape == b.shape and a.size]
    lost = sum(int((np.isfinite(a) != np.isfinite(b)).sum()) for a, b in pairs)
    apart = [abs(a - b).max() / (abs(a).max() or 1) for a, b in pairs if np.isfinite(a).all() and np.isfinite(b).all()]
    if lost or not apart:
        return f"results: {lost:,} numbers are finite on one side only; {len(apart)} of {len(theirs)} results can be compared"
    return f"results: {max(apart):.2g} of the largest value apart at most, in {len(apart)} of {len(theirs)}"


def main(*sides):
    print(f"jax {jax.__version__}, NumPy {np.__version__}, Python {platform.python_version()}, {jax.devices()[0].device_kind}")
    print(f"{'':<30}{'baseline':>16}{'now':>16}")
    for (name, theirs), ours in zip(sides[0].facts().items(), sides[1].facts().values(), strict=True):
        print(f"{name:<30}{theirs:>16,.0f}{ours:>16,.0f}{f'{ours / (theirs or 1):10.2f} x' if ours != theirs else ''}")
    print(compare(*[side.call()[1] for side in sides]))
    took, end = ([], []), time.perf_counter() + SECONDS
    while len(took[0]) < ROUNDS and (time.perf_counter() < end or len(took[0]) < 3):
        for at in (0, 1) if len(took[0]) % 2 else (1, 0):
            took[at].append(sides[at].call()[0])
    low, ratio, high = np.quantile(np.divide(took[1], took[0]), [0.1, 0.5, 0.9])
    usual = [np.median(side) * 1e6 for side in took]
    print(f"{'microseconds a call':<30}{usual[0]:>16,.0f}{usual[1]:>16,.0f}{ratio:10.2f} x; {low:.2f} to {high:.2f} in 8 of 10 rounds")
    counts = [collections.Counter(re.findall(r"\b(?:stablehlo|chlo|sdy)\.\w+", side.text)) for side in sides]
    for name in sorted(name for name in counts[0] | counts[1] if counts[0][name] != counts[1][name]):
        print(f"{name:<30}{counts[0][name]:>16,}{counts[1][name]:>16,}")
    texts = [re.sub(r"#loc.*\n| loc\(.*?\)(?=[\s,)]|$)|(?<=%)[\w#:]+", "", side.text).splitlines() for side in sides]
    changes = list(difflib.unified_diff(*texts, "baseline", "now", n=0, lineterm="")) or ["programs: the same"]
    print("\n".join(changes[:LINES]), f"\n... {len(changes) - LINES:,} more lines" if len(changes) > LINES else "")
