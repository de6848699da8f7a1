"""What a training step sends between devices, and how that grows from 1 to 256 of them: a table and a picture.

Usage: python ci/communication.py [PICTURE]   (default docs/communication.png; about 20 seconds on a 2-core CPU)

Compiles the catalogue's scaling steps, all of one network, for TPU v5e of 1 x 1 to 16 x 16 chips. No TPU is needed, only its
compiler: make ready VENV=.venv-tpu WITH=tpu. Prints a Markdown table of what one device hands over in one step, by mesh
axis, and in how many collectives; draws the same. Exit status 0.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import TargetProcess
from jaxgate.keep.files import write_atomic
from jaxgate.observe.hlo.collectives import read_collectives
from jaxgate.observe.hlo.parser import read_hlo
from jaxgate.observe.hlo.replica_groups import axes_of
from jaxgate.observe.machine.virtual_devices import give_cpu_devices
from jaxgate.observe.trace.clocks import CLOCKS
from jaxgate.observe.trace.lowering import lower
from jaxgate.report.units import show

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from workloads.parts import Extent, Tree, grid
from workloads.pjit.mlp import shapes, shardings
from workloads.scaling import network, sharded
from workloads.scaling.network import make_numbers

TOPOLOGIES = ("1x1", "1x2", "2x2", "2x4", "4x4", "8x8", "16x16")
CHIP = "v5e"
SIZE = Extent(samples=64, width=256, hidden=1024, pairs=network.PAIRS)
"""1.05 million parameters, 4.2 MB; each kernel can be divided by 256."""
TOGETHER = 4
"""Devices that share the kernels where the others share the samples."""
MARKERS = {"data": "s", "model": "^"}
COLORS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7")


class Sent(NamedTuple):
    """What one device sends over one axis in one step."""

    nbytes: int
    collectives: int


class Step(NamedTuple):
    """A step for a mesh: its jitted function, the shapes of its arguments, the mesh."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    mesh: Mesh


def numbers(samples: int) -> tuple[Tree, Any, Any]:
    """Shapes of state, inputs and targets: nothing is drawn."""
    found: tuple[Tree, Any, Any] = jax.eval_shape(lambda: make_numbers(SIZE, samples, draw=jnp.zeros))
    return found


def data_parallel(devices: int) -> Step:
    """A state on each device, and the same number of samples."""
    mesh, found = grid(data=devices), numbers(devices * SIZE.samples)
    state = jax.tree.map(lambda _: network.STATE, found[0])
    args = shapes(found, shardings(mesh, (state, network.SAMPLES, network.SAMPLES)))
    return Step(network.compiled(mesh), args, mesh)


def fully_sharded(devices: int) -> Step:
    """A part of the state on each device, and the same number of samples."""
    mesh = grid(data=devices)
    state, *batch = numbers(devices * SIZE.samples)
    stacked = {
        name: jax.tree.map(lambda *each: jax.ShapeDtypeStruct((len(each), *each[0].shape), each[0].dtype), *kernels)
        for name, kernels in state.items()
    }
    stored = sharded.state_in(sharded.SHARDS)
    args = shapes((stacked, *batch), shardings(mesh, (stored, sharded.SAMPLES, sharded.SAMPLES)))
    return Step(sharded.compiled(mesh, stored, sharded.collecting(mesh)), args, mesh)


def tensor_parallel(devices: int) -> Step:
    """A part of each kernel on each device, the same samples on all of them."""
    return _in_parts(grid(model=devices), SIZE.samples, None)


def both(devices: int) -> Step:
    """A part of each kernel on each of four devices, samples of their own for each four."""
    model = min(devices, TOGETHER)
    return _in_parts(grid(data=devices // model, model=model), devices // model * SIZE.samples, "data")


def _in_parts(mesh: Mesh, samples: int, across: str | None) -> Step:
    spread = P(across) if across else network.WHOLE
    layout = shardings(mesh, (network.PARTS, spread, spread))
    return Step(network.compiled_parts(mesh, across), shapes(numbers(samples), layout), mesh)


STEPS: Mapping[str, Callable[[int], Step]] = {
    "data parallel, weak": data_parallel,
    "fully sharded, weak": fully_sharded,
    "tensor parallel, strong": tensor_parallel,
    f"data × tensor parallel on {TOGETHER}, weak": both,
}
AXES = {
    name: ("data", "model") if step is both else ("model" if step is tensor_parallel else "data",)
    for name, step in STEPS.items()
}


def sent(step: Step, compiler: TargetProcess) -> dict[str, Sent]:
    """Compile a step, and add up what it sends, by axis."""
    lowered = lower(step.function, step.args, {}, role="step", clock=CLOCKS.thread, platform="tpu")
    found = read_collectives(read_hlo(compiler.compile(lowered).as_text()))
    if found.unread:
        raise SystemExit(f"the optimised program has what is not understood: {found.unread[0]}")
    nbytes, count = Counter[str](), Counter[str]()
    names, extents = step.mesh.axis_names, tuple(step.mesh.shape.values())
    for one in found.inserted:
        axes = axes_of(one.groups or (), names, extents)
        nbytes[axes] += one.nbytes * one.runs.times
        count[axes] += one.runs.times
    return {axes.replace("'", ""): Sent(nbytes[axes], count[axes]) for axes in count}


def measure() -> dict[tuple[str, str], dict[int, Sent]]:
    """Compile everything: step and axis to number of devices to what is sent."""
    rows: dict[tuple[str, str], dict[int, Sent]] = {(name, axis): {} for name, axes in AXES.items() for axis in axes}
    for topology in TOPOLOGIES:
        devices = prod(map(int, topology.split("x")))
        compiler = TargetProcess(Target(chip=CHIP, topology=topology))
        try:
            for name, step in STEPS.items():
                print(f"{compiler.target}: {name}", file=sys.stderr, flush=True)
                found = sent(step(devices), compiler)
                for axis in {*AXES[name], *found}:
                    rows.setdefault((name, axis), {})[devices] = found.get(axis, Sent(0, 0))
        finally:
            compiler.close()
    return rows


def table(rows: Mapping[tuple[str, str], Mapping[int, Sent]]) -> str:
    """The figures, in Markdown: bytes and, in brackets, collectives."""
    counts = sorted({devices for row in rows.values() for devices in row})
    heads = ["step", "axis", *map(str, counts)]
    lines = [heads, ["---", "---", *["--:"] * len(counts)]]
    for (name, axis), row in rows.items():
        cells = [row.get(devices, Sent(0, 0)) for devices in counts]
        lines.append(
            [
                name,
                f"`{axis}`",
                *(f"{show('sent_bytes', c.nbytes)} ({c.collectives})" if c.collectives else "–" for c in cells),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(rows: Mapping[tuple[str, str], Mapping[int, Sent]], where: str) -> bytes:
    """Draw the figures: megabytes on the left, collectives on the right; a PNG."""
    figure = Figure(figsize=(10, 4.8), dpi=130)
    left, right = figure.subplots(1, 2)
    counts = sorted({devices for row in rows.values() for devices in row})
    for (name, axis), row in rows.items():
        points = [(devices, one) for devices, one in sorted(row.items()) if one.collectives]
        alone = len(AXES[name]) == 1
        style: dict[str, Any] = {
            "color": COLORS[list(STEPS).index(name)],
            "linestyle": "-" if alone else "--",
            "marker": "o" if alone else MARKERS[axis],
            "markersize": 4,
            "label": f"{name}: over {axis}",
        }
        left.plot([devices for devices, _ in points], [one.nbytes / 1e6 for _, one in points], **style)
        right.plot([devices for devices, _ in points], [one.collectives for _, one in points], **style)
    left.set_yscale("log")
    left.set_ylim(bottom=0.1)
    left.yaxis.set_major_formatter("{x:g}")
    right.set_ylim(bottom=0)
    for axes, title in ((left, "MB that one device hands over in a step"), (right, "collectives in a step")):
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_xlim(0.85, counts[-1] * 1.2)
        axes.set_xlabel("devices; one sends nothing")
        axes.grid(axis="y", linewidth=0.4, alpha=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"A training step on {counts[0]} to {counts[-1]} {where}, compiled and never called",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower left", bbox_to_anchor=(0.03, 0.0), ncols=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.15, 1, 1.0), w_pad=2.5)
    buffer = BytesIO()
    FigureCanvasAgg(figure).print_png(buffer)
    return buffer.getvalue()


def main(picture: Path) -> None:
    """Compile, print and draw."""
    give_cpu_devices(max(prod(map(int, topology.split("x"))) for topology in TOPOLOGIES), alone=True)
    rows = measure()
    print(table(rows))
    write_atomic(picture, draw(rows, f"TPU {CHIP}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs" / "communication.png")
