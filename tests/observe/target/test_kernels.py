"""Kernels that are interpreted where a program is traced are not those of a target."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from jaxgate.ext.targets.compilers import refuse_interpreted
from jaxgate.ext.targets.model import Target
from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.trace.lowering import lower

TARGET = Target.parse("tpu:v5e:2x4")


def doubled(x, *, interpret):
    """A kernel."""

    def kernel(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2

    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret)(x)


def lowered_of(function):
    """A function, lowered for a TPU."""
    x = jnp.ones((8, 128))
    return lower(jax.jit(function), (x,), {}, role="subject", clock=lambda: 0, platform="tpu")


@pytest.mark.jax_text
@pytest.mark.parametrize(
    "function",
    [
        partial(doubled, interpret=True),
        lambda x: jax.lax.scan(lambda c, _: (doubled(c, interpret=True), None), x, length=3)[0],
        lambda x: jax.lax.platform_dependent(x, cpu=jnp.sin, default=partial(doubled, interpret=True)),
    ],
    ids=["plain", "in a loop", "in the branch of the target"],
)
def test_an_interpreted_kernel_is_refused(function):
    with pytest.raises(InvalidCaseError, match=r"expected kernels for tpu:v5e:2x4, found .*platform_dependent"):
        refuse_interpreted(lowered_of(function), TARGET)


@pytest.mark.jax_text
@pytest.mark.parametrize(
    "function",
    [
        partial(doubled, interpret=False),
        lambda x: jax.lax.platform_dependent(
            x, cpu=partial(doubled, interpret=True), tpu=partial(doubled, interpret=False)
        ),
        lambda x: jax.lax.platform_dependent(x, cpu=partial(doubled, interpret=True), default=jnp.sin),
    ],
    ids=["compiled", "the branch of the target", "the branch of all others"],
)
def test_a_kernel_of_the_target_is_taken(function):
    """And the branch of another platform does not count."""
    refuse_interpreted(lowered_of(function), TARGET)
