"""The largest arrays alive at the peak, by the schedule: in words, and not at all where the estimate is far off."""

from __future__ import annotations

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.hlo import largest_allocations, rows_of
from jaxgate.observe.hlo.scheduled_allocations import NEAR, scheduled_allocations

TEXT = """HloModule jit_flat, is_scheduled=true

ENTRY %main (leaves_0_.1: f32[256], leaves_1_.1: f32[512]) -> f32[8] {
  %leaves_0_.1 = f32[256]{0} parameter(0), metadata={op_name="leaves[0]"}
  %leaves_1_.1 = f32[512]{0} parameter(1), metadata={op_name="leaves[1]"}
  %b = f32[1024]{0} broadcast(%leaves_0_.1), metadata={op_name="jit(call)/call_exported/jit(flat)/jit(step)/mul"}
  ROOT %c = f32[8]{0} reduce(%b, %leaves_1_.1)
}
"""
NEEDED = 1024 + 2048 + 4096 + 32


def memory(temp=4096, alias=0):
    """What the compiler says of it."""
    return SimpleNamespace(
        argument_size_in_bytes=3072, output_size_in_bytes=32, alias_size_in_bytes=alias, temp_size_in_bytes=temp
    )


def test_arrays_go_by_their_makers_and_arguments_by_their_paths():
    """Without the names that an export puts around them."""
    found = scheduled_allocations(TEXT, memory(), 10, ["state['w']", "batch"])
    assert rows_of(found.largest) == (
        "4.1 kB temp broadcast jit(step)/mul, alive at the peak (estimated from the schedule)",
        "2.0 kB argument parameter batch, alive at the peak (estimated from the schedule)",
        "1.0 kB argument parameter state['w'], alive at the peak (estimated from the schedule)",
        "32 B output reduce c, alive at the peak (estimated from the schedule)",
    )
    unnamed = scheduled_allocations(TEXT, memory(), 2)
    assert [each.op_name for each in unnamed.largest] == ["jit(step)/mul", "leaves[1]"]


@pytest.mark.parametrize("factor", [1 + 2 * NEAR, 1 - 2 * NEAR])
def test_what_the_schedule_does_not_explain_is_not_listed(factor):
    """More or less than the compiler says that it needs: the list would accuse the wrong array."""
    found = scheduled_allocations(TEXT, memory(temp=round(NEEDED / factor) - 3072 - 32), 10)
    assert found.largest == ()
    assert "by its schedule 7.2 kB are alive at once, of" in found.why_not


def test_what_has_no_schedule_has_no_list():
    """And says that it has none."""
    found = scheduled_allocations(TEXT.replace("is_scheduled=true", ""), memory(), 10)
    assert found.why_not == "this backend does not list its allocations, and the program is not scheduled"


@pytest.mark.jax_text
def test_a_program_compiled_here_is_near_its_compilers_list():
    """A gradient through a scan keeps what each turn computes; both lists begin with that array and its line."""

    def loss(weights, x):
        return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, weights)[0].sum()

    compiled = jax.jit(jax.grad(loss)).lower(jnp.ones((16, 64, 64)), jnp.ones((512, 64))).compile()
    listed = largest_allocations(compiled).largest[0]
    estimated = scheduled_allocations(compiled.as_text(), compiled.memory_analysis(), 10)
    assert estimated.why_not == ""
    assert (estimated.largest[0].nbytes, estimated.largest[0].kind) == (listed.nbytes, listed.kind)
    assert re.sub(r":\d+$", "", estimated.largest[0].line) == "tests/observe/hlo/test_scheduled_allocations.py"
