"""Pallas kernels for GPUs, lowered and handed on where no GPU is attached."""

import jax
import jax.numpy as jnp
import pytest
from jax import export
from jax.experimental import pallas as pl

from jaxgate.observe.errors import NotOnTargetError
from jaxgate.observe.program.export import export_program, export_whole
from jaxgate.observe.trace.lowering import lower

triton = pytest.importorskip("jax.experimental.pallas.triton", reason="this jax has no Triton")


def sines(x_ref, out_ref):
    """One block."""
    out_ref[...] = jnp.sin(x_ref[...])


def step(x):
    """A kernel for Triton on a GPU, and no kernel on a CPU."""
    kernel = pl.pallas_call(
        sines, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), compiler_params=triton.CompilerParams()
    )
    return jax.lax.platform_dependent(x, cpu=jnp.sin, cuda=kernel)


@pytest.mark.jax_text
@pytest.mark.filterwarnings("ignore:The Pallas Triton backend is deprecated:DeprecationWarning")
def test_a_kernel_for_triton_is_handed_on_or_left_out():
    """Jax 0.10 lowers it anywhere, and its compiler gets it; 0.12 asks for a GPU, and the case is left out with the reason."""
    given = {"role": "subject", "clock": lambda: 0, "platform": "cuda"}
    try:
        lowered = lower(jax.jit(step), (jnp.ones((64, 64)),), {}, **given)
    except NotOnTargetError as error:
        assert "the subject has a Pallas kernel for Triton" in str(error)
        assert jax.__version_info__ >= (0, 11)
        return
    assert "gpu.triton" in str(export.deserialize(bytearray(export_whole(lowered))).mlir_module())
    stored = export_program(lowered, lowered.call, None, 0)
    assert "Cannot serialize code with custom calls" in stored.record.why_not
