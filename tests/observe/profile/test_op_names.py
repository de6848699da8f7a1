"""Names of operations as their author wrote them."""

import gzip
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from jax import export
from support.paths import DATA

from jaxgate.ext.profile.op_names import lines_of, operations, plain, scope_of

HLO = DATA / "hlo"


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("jit(step)/attention/softmax/exp", "attention/softmax/exp"),
        ("jit(step)/jit(main)/dot_general", "dot_general"),
        ("jit(call)/call_exported/jit(flat)/attention/softmax/exp", "attention/softmax/exp"),
        ("jit(f)/jvp(attention)/while/body/closed_call/inner/tanh", "attention/while/body/inner/tanh"),
        ("jit(f)/jvp(attention)/while/body/eval_jaxpr/inner/tanh", "attention/while/body/inner/tanh"),
        ("jit(f)/transpose(jvp(attention))/while/body/mul", "backward(attention)/while/body/mul"),
        ("jit(f)/transpose(jvp())/mul", "backward/mul"),
        ("jit(f)/jvp()/gt", "gt"),
        ("jit(f)/jvp(jit(_where))/select_n", "_where/select_n"),
        ("jit(f)/jit(sort)/sort", "sort"),
        ("jit(f)/vmap(jit(sort))/sort", "vmap(jit(sort))/sort"),
        ("jit(total)/shard_map/all_gather", "shard_map/all_gather"),
        ("jit(f)", "f"),
        ("x[0]", "x[0]"),
        ("", ""),
    ],
)
def test_what_jax_adds_goes(op_name, scope):
    """Wrappers, helpers and the call of a stored program go; the author's scopes and the primitive stay."""
    assert scope_of(op_name) == scope


@pytest.mark.parametrize(
    ("name", "short"), [("copy.6", "copy"), ("sort", "sort"), ("add.3.clone", "add.3.clone"), ("a.1.2", "a")]
)
def test_numbers_of_the_compiler_go(name, short):
    assert plain(name) == short


def step(x):
    """A named scope and a loop."""
    with jax.named_scope("mixing"):
        x, _ = jax.lax.scan(lambda c, _: (jnp.tanh(c @ c), None), x, None, length=3)
    return jnp.sort(x, axis=0)


@pytest.mark.jax_text
def test_a_stored_program_has_the_same_names():
    """So that its rows stand beside today's: the two are compiled from different functions."""
    x = jnp.ones((8, 8))
    now = operations(jax.jit(step).lower(x).compile())
    exported = export.deserialize(bytearray(export.export(jax.jit(lambda *a: step(*a)))(x).serialize()))
    then = operations(jax.jit(lambda *a: exported.call(*a)).lower(x).compile())
    wanted = {"sort", "mixing/while/body/tanh", "mixing/while/body/dot_general"}
    assert wanted <= {operation.name for operation in now.values()}
    assert wanted <= {operation.name for operation in then.values()}


def test_lines_are_the_projects():
    """The line of an operation is where the project asked for it."""
    found = lines_of(operations(jax.jit(step).lower(jnp.ones((8, 8))).compile()))
    assert found["sort"].startswith("tests/observe/profile/test_op_names.py:")


@pytest.mark.parametrize(
    ("text", "moving"),
    [
        ("cpu-0.12/summed", {"psum_invariant.12", "psum_invariant.14"}),
        ("tpu-0.10/summed", {"psum_invariant.17", "psum_invariant.15"}),
        ("cuda-0.12/summed", {"all-reduce-start", "all-reduce-done", "all-reduce-start.1", "all-reduce-done.1"}),
        ("cuda-0.12/layers", {"reduce-scatter-start", "reduce-scatter-done"}),  # async-start of a computation
    ],
)
def test_collectives_are_known_by_what_they_do(text, moving):
    """Whatever they are called: an operation is named after JAX's primitive, or after the compiler's."""
    content = gzip.decompress((HLO / f"{text}.hlo.gz").read_bytes()).decode()
    found = operations(SimpleNamespace(as_text=lambda: content))
    collective = {name for name, operation in found.items() if operation.collective}
    assert moving <= collective
    assert not any("fusion" in name or "dot" in name or "copy" in name for name in collective)
