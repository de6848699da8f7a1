"""A training step in PyTorch, run for a contrast; the only module that imports PyTorch."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from workloads.contrast.contrast import Training, Traits

logging.getLogger("torch.__trace").propagate = False  # thousands of empty records under a test that fails
_COPIES = frozenset({"clone", "copy_", "_to_copy", "contiguous"})
_CONVOLUTIONS = frozenset({"convolution", "convolution_backward"})
_PRODUCTS = _CONVOLUTIONS | {"mm", "addmm", "bmm", "baddbmm"}
_FUSED = ("attention", "flash", "fmha")
_WRITTEN_OUT = "_scaled_dot_product_attention_math"
_BY_COMPILER = "written by PyTorch's compiler"
"""Stands for kernels of attention that the source does not have."""


class TorchRunner:
    """One side in PyTorch: starts steps, waits for them, says what they do."""

    def __init__(self, training: Training) -> None:
        self._training = training
        self._module, self._optimiser = training.state
        self._weights = copy.deepcopy(self._module.state_dict())

    def reset(self) -> None:
        """Begin again from the first weights, in the same memory: a compiled step would be compiled again for other."""
        self._module.load_state_dict(self._weights)
        with torch.no_grad():
            for kept in self._optimiser.state.values():
                for value in kept.values():
                    if isinstance(value, torch.Tensor):
                        value.zero_()
        if self._training.inputs.is_cuda:
            torch.cuda.synchronize()

    def logits(self) -> np.ndarray[Any, Any]:
        """What the model makes of the batch."""
        with torch.no_grad():
            return _array(self._training.logits(self._training.inputs))

    def loss_of(self, logits: np.ndarray[Any, Any]) -> float:
        """The loss of these logits and the batch's labels."""
        device = self._training.labels.device
        with torch.no_grad():
            return float(
                self._training.loss(torch.tensor(logits, dtype=torch.float32, device=device), self._training.labels)
            )

    def step(self) -> Any:
        """Start one step; gives what to wait for."""
        return self._training.step(self._training.inputs, self._training.labels)

    def wait(self, loss: Any) -> float:
        """Wait for a step; gives its loss."""
        if loss.is_cuda:
            torch.cuda.synchronize()
        return float(loss.detach())

    def weights(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """The parameters as they are now, under the shared names."""
        return {name: np.array(array, np.float64) for name, array in self._training.weights(self._module).items()}

    def _fused_by_compiler(self) -> set[str]:
        """Compile the step anew, nothing remembered, and ask the compiler's own counters what it has put in its place."""
        import torch._functorch.config as functorch  # noqa: PLC0415 - what only a compiled step has
        import torch._inductor.config as inductor  # noqa: PLC0415 - likewise
        from torch._dynamo.utils import counters  # noqa: PLC0415 - likewise

        torch.compiler.reset()
        counters.clear()
        with inductor.patch(fx_graph_cache=False), functorch.patch(enable_autograd_cache=False):
            self.wait(self.step())
        if not counters["stats"]["unique_graphs"]:
            raise RuntimeError("expected a compiled step, found that PyTorch compiled nothing (TORCHDYNAMO_DISABLE?)")
        return {_BY_COMPILER} if counters["inductor"]["fuse_attention"] else set()

    def peak_bytes(self) -> int | None:
        """The device's peak; ``None`` on a CPU, where PyTorch keeps none."""
        return torch.cuda.max_memory_allocated() if self._training.inputs.is_cuda else None

    def traits(self) -> Traits:
        """What one step does, seen operation by operation as it is written; and what the compiler puts in its place.

        Raises:
            RuntimeError: If the step is said to be compiled, and nothing was.
        """
        with (
            torch.compiler.set_stance("force_eager"),
            FlopCounterMode(display=False) as counter,
            _Watching(self._training.inputs) as seen,
        ):
            self.wait(self.step())
        fused = seen.fused | self._fused_by_compiler() if self._training.compiled else seen.fused
        self.reset()
        return Traits(
            matmul_flops=counter.get_total_flops(),
            products=frozenset(seen.products),
            fused_attention=tuple(sorted(fused)),
            relayout_bytes=seen.copied_bytes,
        )


def import_compiler() -> None:
    """Import what the first optimiser, or the first compiled step, would import while its time is taken."""
    import torch._dynamo  # noqa: PLC0415 - two seconds, which only a process of one side must not count
    import torch._inductor.compile_fx  # noqa: F401, PLC0415 - likewise


class _Watching(TorchDispatchMode):  # type: ignore[misc]  # PyTorch is an extra, and Any where it is not installed
    """Notes products, kernels of attention, and copies of the inputs."""

    def __init__(self, inputs: torch.Tensor) -> None:
        super().__init__()
        self._storage = inputs.untyped_storage().data_ptr()
        self.products: set[str] = set()
        self.fused: set[str] = set()
        self.copied_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if name in _PRODUCTS and tensors:
            self.products.add(_product(name, tensors[0]))
        if any(word in name for word in _FUSED) and not name.startswith(_WRITTEN_OUT):
            self.fused.add(name)
        if name in _COPIES and any(self._is_turned(one, result) for one in tensors):
            self.copied_bytes += result.numel() * result.element_size()
        return result

    def _is_turned(self, one: torch.Tensor, result: Any) -> bool:
        """Whether a copy of the inputs has another order of axes than they had there; a change of type alone has not."""
        ours = one.untyped_storage().data_ptr() == self._storage
        return ours and isinstance(result, torch.Tensor) and one.stride() != result.stride()


def _product(name: str, operand: torch.Tensor) -> str:
    """The type of its operands, and whether fewer bits may be used: ``float32``, ``float32 by fewer bits``."""
    dtype = str(operand.dtype).removeprefix("torch.")
    if dtype != "float32":
        return dtype
    if name not in _CONVOLUTIONS:
        fewer = torch.get_float32_matmul_precision() != "highest" or torch.backends.cuda.matmul.allow_tf32
    elif operand.is_cuda:
        fewer = torch.backends.cudnn.allow_tf32
    else:
        fewer = torch.backends.mkldnn.conv.fp32_precision in ("bf16", "tf32")
    return f"{dtype} by fewer bits" if fewer else dtype


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = tensor.detach().to(torch.float64).cpu().numpy()
    return found
