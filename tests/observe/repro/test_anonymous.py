"""Programs that leave the house: nothing of their author is in them, and they stay the programs that they were."""

import hashlib
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.xla_metadata import set_xla_metadata
from support.stablehlo import readable

from jaxgate.ext.repro import modules
from jaxgate.ext.repro.anonymous import NotAnonymousError, anonymise
from jaxgate.ext.repro.standalone import draw
from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.arguments.feeder import on_device
from jaxgate.observe.program.export import export_program
from jaxgate.observe.trace.fingerprint import is_splat
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stablehlo import walk

SECRET = 1234.578125
"""A number of the author's that is easy to find."""


def stored(function, *args):
    """A function's program."""
    call = on_device(args, {})
    lowered = lower(function, *call, role="subject", clock=lambda: 0)
    found = export_program(lowered, call, None, 0)
    assert found.record.stored, found.record.why_not
    return found


def text(function, *args):
    """What the file would hold of a function, decoded, with locations."""
    return readable(anonymise(stored(function, *args)).payload)


@jax.custom_vjp
def acme_rule(x):
    """Double."""
    return jax.jit(lambda acme_inner: acme_inner * 2, inline=False)(x)


acme_rule.defvjp(lambda x: (acme_rule(x), None), lambda _, g: (2 * g,))


def acme_step(acme_state, acme_batch):
    """Use everything that has a name."""
    with jax.named_scope("acme_scope"):
        hidden = acme_rule(acme_batch @ acme_state["acme_kernel"])
    combined = jax.lax.composite(lambda x: jnp.sin(x) + 1, "acme.composite")(hidden)
    with set_xla_metadata(acme_key="1"):
        combined = jnp.tanh(combined) * 2.5
    return {"acme_result": combined, "acme_gradient": jax.grad(lambda x: acme_rule(x).sum())(acme_batch)}


@pytest.mark.jax_text
def test_no_name_is_left():
    """Of functions, arguments, results, scopes, composites and metadata, nor of the file that they stand in."""
    state = {"acme_kernel": jnp.ones((8, 4)), "acme_unused": jnp.ones(3)}
    program = anonymise(stored(acme_step, state, jnp.ones((2, 8))))
    decoded = readable(program.payload)
    assert "stablehlo.dot_general" in decoded
    for word in ("acme", "jit_", "test_anonymous", ".py"):
        assert word not in decoded
        assert word.encode() not in program.payload


def test_what_is_not_used_is_left_out_and_donation_follows():
    """Inputs are those that the program takes, with their places among the arguments."""
    found = stored(lambda x, _, y: (x + 1, y @ y), jnp.ones(3), jnp.ones(5), jnp.ones((4, 4)))
    donating = replace(found, record=replace(found.record, donated=(1, 2)))
    program = anonymise(donating)
    assert [(one.dtype, one.shape) for one in program.inputs] == [("float32", (3,)), ("float32", (4, 4))]
    assert program.places == (0, 2)
    assert program.donated == (1,)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "float8_e4m3fn"])
def test_captured_numbers_are_drawn(dtype):
    """Of the type and the shape that they had; what stands alone or fills an array stays."""
    captured = np.asarray([[1.5, 2.25, 3.75], [SECRET, 5, 6]]).astype(jnp.dtype(dtype))

    def function(x):
        return jnp.asarray(captured).astype(jnp.complex64) * x[:2, None] * 0.3125 + jnp.full(3, 7.5)

    program = anonymise(stored(function, jnp.ones(4)))
    decoded = readable(program.payload)
    assert program.seeded == 1
    assert len(re.findall(r"constant dense<(\[|\"0x)", decoded)) == 1
    for kept in ("3.125000e-01", "7.500000e+00"):
        assert kept in decoded
    for gone in ("2.250000e+00", "3.750000e+00", "1234.5", "1.23457"):
        assert gone not in decoded


def constant_of(function, *args):
    """The numbers of the only array that a program holds."""
    module = modules.parse(text(function, *args))
    found = [op for _, op in walk(module.operation) if op.name == "stablehlo.constant" and not is_splat(op)]
    assert len(found) == 1
    return np.array(found[0].attributes["value"])


@pytest.mark.parametrize(
    "table",
    [[3, 9, 4, 1], [1, 4, 7, 40], [5, 5, 2, 2, 9, 5], [-3, -1, 6]],
    ids=["once", "rising", "repeated", "negative"],
)
def test_whole_numbers_stay_good_for_what_they_are_used_for(table):
    """They lie in the same range, rise where they did, and none comes twice where none did."""
    table = np.asarray(table, np.int32)
    drawn = constant_of(lambda x: x + jnp.asarray(table), jnp.ones(len(table), jnp.int32))
    assert drawn.shape == table.shape
    assert table.min() <= drawn.min() <= drawn.max() <= table.max()
    assert (np.diff(drawn) >= 0).all() or (np.diff(table) < 0).any()
    assert len(set(drawn.tolist())) == len(table) or len(set(table.tolist())) < len(table)


def test_whole_numbers_are_not_those_of_the_author():
    """A table of many numbers comes out as another one."""
    table = np.random.default_rng(0).integers(0, 10_000, 200).astype(np.int32)
    drawn = constant_of(lambda x: x + jnp.asarray(table), jnp.ones(200, jnp.int32))
    assert (drawn == table).mean() < 0.1


def test_drawing_is_the_same_every_time():
    """A file that is written again is the same file."""
    table = jnp.arange(12.0).reshape(3, 4)
    first, second = (anonymise(stored(lambda x: x @ table, jnp.ones((2, 3)))) for _ in range(2))
    assert first == second


def with_text(found, change):
    """A stored program whose text was changed by somebody."""
    exported = jax.export.deserialize(bytearray(found.content))
    changed = change(modules.text_of(modules.parse(exported.mlir_module())))
    content = bytes(replace(exported, mlir_module_serialized=modules.portable(changed)).serialize())
    digest = hashlib.sha256(content).hexdigest()
    return StoredProgram(record=replace(found.record, digest=digest), content=content)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("stablehlo.sine %arg0", 'stablehlo.sine %arg0 {acme_note = "of acme"}'),
        ("stablehlo.sine %arg0", 'stablehlo.sine %arg0 {mhlo.sharding = "acme"}'),
        ("stablehlo.sine %arg0", "stablehlo.sine %arg0 {acme_note}"),
    ],
    ids=["a note", "an attribute of XLA", "a bare word"],
)
def test_a_text_that_nobody_thought_of_is_refused(old, new):
    """It is not given away because no rule drops it."""
    found = with_text(stored(jnp.sin, jnp.ones(3)), lambda text: text.replace(old, new))
    with pytest.raises(NotAnonymousError, match="acme"):
        anonymise(found)


def test_a_kernel_is_refused():
    """Its configuration is a program of its own, with names."""
    call = (
        '%0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = "{}"} : (tensor<3xf32>) -> tensor<3xf32>'
    )
    found = stored(jnp.sin, jnp.ones(3))
    found = with_text(found, lambda text: re.sub(r"%0 = stablehlo\.sine.*", call, text))
    with pytest.raises(NotAnonymousError, match="tpu_custom_call, a kernel"):
        anonymise(found)


def test_the_oldest_supported_line_reads_it():
    """Custom calls of the newer line fail there unless they are written in its form."""
    payload = anonymise(stored(jnp.linalg.cholesky, jnp.eye(4))).payload
    assert f"StableHLO_v{modules.OLDEST_FORMAT}".encode() in payload


def test_a_program_that_was_not_stored_says_why():
    """The reason of the baseline is the reason here."""
    record = ProgramRecord(digest=None, donated=(), feeds=None, why_not="it captures too much")
    with pytest.raises(Exception, match="it was not stored: it captures too much"):
        anonymise(StoredProgram(record=record, content=b""))


def test_what_is_empty_has_no_numbers_to_draw():
    table = np.zeros((0,), np.int32)
    program = anonymise(stored(lambda x, none: (x + 1, jnp.asarray(table), none * 2), jnp.ones(3), jnp.ones((0, 4))))
    assert draw(1, program.inputs[-1].dtype, program.inputs[-1].shape).shape == (0, 4)
