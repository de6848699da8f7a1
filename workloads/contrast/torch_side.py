"""A training step in PyTorch with weights that come from elsewhere. Imported by builders alone: not everybody has PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from workloads.contrast.contrast import Training

_AXES = {4: (2, 3, 1, 0), 2: (1, 0)}
"""From PyTorch's weights [outputs, inputs, ...] to JAX's kernels [..., inputs, outputs], by the number of axes."""


def training(
    module: nn.Module,
    weights: Mapping[str, np.ndarray[Any, Any]],
    load: Callable[[], np.ndarray[Any, Any]],
    labels: np.ndarray[Any, Any],
    *,
    compiled: bool,
) -> Training:
    """The step of a module that starts from these weights.

    Args:
        module: The model.
        weights: Arrays by name, in JAX's layout.
        load: Makes the inputs in the layout that the module takes.
        labels: An index of a class for each of its logits.
        compiled: Whether forward and backward pass and the optimiser are compiled.
    """
    torch.backends.cudnn.allow_tf32 = False  # convolutions of float32 in float32, as products are by default
    device = "cuda" if torch.cuda.is_available() else "cpu"
    module = module.to(device)
    optimiser = adamw(module)
    begin(optimiser)
    fill(module, weights)

    def loss_of(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return cross_entropy(module(inputs), labels)

    forward, update = loss_of, optimiser.step
    if compiled:
        forward, update = torch.compile(loss_of, fullgraph=True), torch.compile(optimiser.step)

    def step(inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        optimiser.zero_grad()
        loss = forward(inputs, labels)
        loss.backward()
        update()
        return loss

    return Training(
        framework="torch",
        state=(module, optimiser),
        inputs=torch.from_numpy(load()).to(device),
        labels=torch.from_numpy(np.array(labels, np.int64)).to(device),
        step=step,
        logits=module,
        loss=cross_entropy,
        load=lambda: torch.from_numpy(load()),
        weights=named,
        compiled=compiled,
    )


def cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean over all labels [...], each the index of a class; logits [..., classes]."""
    return functional.cross_entropy(logits.flatten(0, -2), labels.flatten())


def adamw(module: nn.Module) -> torch.optim.Optimizer:
    """AdamW that leaves biases, scales and embeddings alone, with the figures of ``workloads.training.states.adamw``."""
    kernels = [parameter for name, parameter in module.named_parameters() if shared(module, name).endswith("kernel")]
    others = [parameter for name, parameter in module.named_parameters() if not shared(module, name).endswith("kernel")]
    groups = [{"params": kernels, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, eps=1e-4)


def begin(optimiser: torch.optim.Optimizer) -> None:
    """Make the optimiser's state, all zeros: PyTorch does so in the first step, which its compiler does not take."""
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    for state in optimiser.state.values():
        for value in state.values():
            value.zero_()


def fill(module: nn.Module, weights: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Copy arrays in JAX's layout into a module."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            array = np.asarray(weights[shared(module, name)])
            if shared(module, name).endswith("kernel"):
                array = np.transpose(array, np.argsort(_AXES[array.ndim]))
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(array)))


def named(module: nn.Module) -> dict[str, np.ndarray[Any, Any]]:
    """The parameters of a module under the names, and in the layout, of JAX."""
    found = {}
    for name, parameter in module.named_parameters():
        array = parameter.detach().cpu().numpy()
        is_kernel = shared(module, name).endswith("kernel")
        found[shared(module, name)] = np.transpose(array, _AXES[array.ndim]) if is_kernel else array
    return found


def shared(module: nn.Module, name: str) -> str:
    """The name that Flax gives a parameter: ``blocks.0.qkv.weight`` is ``blocks.0.qkv.kernel``."""
    path, _, last = name.rpartition(".")
    if last != "weight":
        return name
    owner = module.get_submodule(path)
    word = {nn.LayerNorm: "scale", nn.Embedding: "embedding"}.get(type(owner), "kernel")
    return f"{path}.{word}"
