"""Pallas kernels of a TPU: where they stand is no part of what they do."""

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.trace.fingerprint import without_locations
from jaxgate.observe.trace.lowering import lower

KERNEL = """
from jax.experimental import pallas as pl
import jax

def kernel(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2

def step(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def fingerprint(folder, source):
    """Of a file with a kernel, lowered for a TPU."""
    folder.mkdir()
    file = folder / "kernels.py"
    file.write_text(source)
    scope = {}
    exec(compile(source, str(file), "exec"), scope)
    x = jnp.ones((8, 128))
    return lower(jax.jit(scope["step"]), (x,), {}, role="subject", clock=lambda: 0, platform="tpu").fingerprint


@pytest.mark.jax_text
def test_a_kernel_is_the_same_wherever_it_stands(tmp_path):
    """In another folder, further down; not where it does something else."""
    here = fingerprint(tmp_path / "here", KERNEL)
    assert fingerprint(tmp_path / "there", f"# moved\n\n{KERNEL}") == here
    assert fingerprint(tmp_path / "changed", KERNEL.replace("* 2", "* 3")) != here


@pytest.mark.parametrize("config", ["", "{}", "[1]", '{"custom_call_config": {"body": "TUzvUg=="}}', "no json"])
def test_what_is_written_otherwise_stays_as_it_is(config):
    """Then it is compared as it is: never more equal than it was."""
    assert without_locations(config) == config
