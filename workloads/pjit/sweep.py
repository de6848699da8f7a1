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

from jaxgate.model import Case, Claim, Computation, at_most
from workloads.pjit import layer, mlp
from workloads.pjit.meshes import mesh_of, on_meshes, trained

FACTORISATIONS = ("8x1", "4x2", "2x4", "1x8")


def others(mesh: str) -> Iterable[str]:
    """The factorisations that are not advised."""
    return (name for name in FACTORISATIONS if name != mesh)


def build_mlp(size: mlp.Size, mesh: str) -> Computation:
    """The perceptron on the advised mesh."""
    return _against(mlp.build(size, "hybrid", mesh), mesh, partial(mlp.alternative, size=size))


def build_layer(size: layer.Size, mesh: str) -> Computation:
    """The transformer layer on the advised mesh."""
    return _against(layer.build(size, "hybrid", mesh), mesh, partial(layer.alternative, size=size))


def _against(found: Computation, mesh: str, alternative: Any) -> Computation:
    alternatives = {name: alternative("hybrid", mesh_of(name), args=found.args) for name in others(mesh)}
    return replace(found, alternatives=alternatives)


def claims(mesh: str) -> tuple[Claim, ...]:
    """How far the advised factorisation may be from the best one, on any hardware."""
    del mesh
    return (
        *trained(),
        at_most(1.1, "collective_bytes", of="alternatives", why="it moves hardly more than the best"),
        at_most(1.25, "peak_bytes", of="alternatives", why="it holds hardly more than the best"),
        at_most(1.1, "xla_flops", of="alternatives", why="it computes hardly more than the best"),
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


CASES: tuple[Case, ...] = tuple(
    case
    for what, build, mesh, samples, sizes in (
        ("mlp", build_mlp, "8x1", "many-samples", mlp_sizes(1024, 16384)),
        ("mlp", build_mlp, "2x4", "some-samples", mlp_sizes(256, 4096)),
        ("mlp", build_mlp, "1x8", "few-samples", mlp_sizes(64, 1024)),
        ("transformer-layer", build_layer, "8x1", "many-tokens", layer_sizes(64, 64)),
        ("transformer-layer", build_layer, "2x4", "some-tokens", layer_sizes(8, 8)),
    )
    for case in on_meshes(
        f"pjit-{what}-train-step-advised-{{mesh}}-for-{samples}-vs-gathered", build, ({"mesh": mesh},), claims, sizes
    )
)
