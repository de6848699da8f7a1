"""All ways to divide eight devices into data x model, the advised one against the others.

What travels in a step: gradients of one device's share of the parameters (parameters / model) where the batch is split,
and activations of its samples (samples / data), summed three times, where kernels are split. So samples decide: many of
them want the batch split, few the kernels, and in between both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from jaxgate import Computation, Family, KnownBreak, claim
from workloads.parts import fused_on_gpu
from workloads.pjit import layer, mlp
from workloads.pjit.meshes import TRAINED, mesh_of, on_meshes

CASES = Family("pjit")

NAMED = "pjit-{}-train-step-advised-{{mesh}}-for-{}-vs-gathered"
FACTORISATIONS = ("8x1", "4x2", "2x4", "1x8")


def others(mesh: str) -> Iterable[str]:
    """The factorisations that are not advised."""
    return (name for name in FACTORISATIONS if name != mesh)


def advised(found: Computation, mesh: str, alternative: Any, least: KnownBreak | None = None) -> Computation:
    """A step on the advised mesh, beside the same step on each other factorisation."""
    return replace(
        found,
        alternatives={name: alternative("hybrid", mesh_of(name), args=found.args) for name in others(mesh)},
        claims=[
            *TRAINED,
            claim("collective_bytes <= 1.1 * alternatives", "it moves hardly more than the best"),
            claim("peak_bytes <= 1.25 * alternatives", "it holds hardly more than the best", known_break=least),
            claim("xla_flops <= 1.1 * alternatives", "it computes hardly more than the best"),
        ],
    )


def mlp_sizes(small: int, full: int) -> dict[str, mlp.Size]:
    """Sizes for a number of samples."""
    return {
        "small": mlp.Size(batch=small, width=64, hidden=256, pairs=2),
        "full": mlp.Size(batch=full, width=1024, hidden=4096, pairs=2),
    }


def layer_sizes(small: int, full: int) -> dict[str, layer.Size]:
    """Sizes for a number of sequences."""
    return {
        "small": layer.Size(batch=small, time=16, width=64, heads=8, hidden=256),
        "full": layer.Size(batch=full, time=256, width=1024, heads=8, hidden=4096),
    }


@on_meshes(CASES, NAMED.format("mlp", "many-samples"), ({"mesh": "8x1"},), mlp_sizes(1024, 16384))
@on_meshes(CASES, NAMED.format("mlp", "some-samples"), ({"mesh": "2x4"},), mlp_sizes(256, 4096))
@on_meshes(CASES, NAMED.format("mlp", "few-samples"), ({"mesh": "1x8"},), mlp_sizes(64, 1024))
def build_mlp(size: mlp.Size, mesh: str) -> Computation:
    """The perceptron on the advised mesh."""
    least = fused_on_gpu() if mesh == "2x4" else None
    return advised(mlp.build(size, "hybrid", mesh), mesh, partial(mlp.alternative, size=size), least)


@on_meshes(CASES, NAMED.format("transformer-layer", "many-tokens"), ({"mesh": "8x1"},), layer_sizes(64, 64))
@on_meshes(CASES, NAMED.format("transformer-layer", "some-tokens"), ({"mesh": "2x4"},), layer_sizes(8, 8))
def build_layer(size: layer.Size, mesh: str) -> Computation:
    """The transformer layer on the advised mesh."""
    return advised(layer.build(size, "hybrid", mesh), mesh, partial(layer.alternative, size=size))
