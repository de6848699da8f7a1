"""Tells when a private name of JAX that jaxgate reads is gone: run on the oldest and the newest supported line."""

import logging
import socket
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest
from support.processes import python

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.observe.compat import (
    CACHE_LOGGERS,
    TRACING_LOGGER,
    compiled_call,
    compiler_options,
    cost_of_text,
    input_shardings,
    kept_arguments,
    lowered_devices,
    membership,
    native_address,
    newest_executable,
    open_profile,
    output_shardings,
    source_of_jitted,
    stop_trace,
    traced_call,
)
from jaxgate.observe.program.custom_call_libraries import _file_at
from jaxgate.observe.trace.compile_events import record

X = jnp.ones(3)
LIBRARY = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  ROOT c = f32[4] custom-call(p), custom_call_target="a_library"
}
"""
ASYNCHRONOUS = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  started = f32[4] all-reduce-start(n), replica_groups={}, to_apply=sum, output_to_operand_aliasing={{}: (0, {})}
  ROOT done = f32[4] all-reduce-done(started)
}
"""
"""As the compiler of GPUs prints it: XLA does not read the last attribute there."""


def test_a_call_of_a_jitted_function_tells_its_source():
    """By name, file and line; other equations have none, nor what another release calls otherwise."""

    def doubled(x):
        return x * 2

    call, product = jax.make_jaxpr(lambda x: jax.jit(doubled)(x) * 3)(X).jaxpr.eqns
    assert source_of_jitted(call) == ("doubled", __file__, doubled.__code__.co_firstlineno)
    assert source_of_jitted(product) is None
    assert source_of_jitted(SimpleNamespace(params={"jaxpr": SimpleNamespace()}, primitive=call.primitive)) is None


@pytest.mark.jax_text
def test_options_are_read_by_name_in_order():
    """Options come back sorted, as text, whatever order they were given in; none are an empty list."""
    assert compiler_options(jax.jit(lambda x: x + 1).lower(X)) == ()
    options = {"xla_embed_ir_in_executable": True, "xla_cpu_enable_fast_math": False}
    pairs = (("xla_cpu_enable_fast_math", "False"), ("xla_embed_ir_in_executable", "True"))
    assert compiler_options(jax.jit(lambda x: x + 1, compiler_options=options).lower(X)) == pairs
    reversed_options = dict(reversed(options.items()))
    assert compiler_options(jax.jit(lambda x: x + 1, compiler_options=reversed_options).lower(X)) == pairs


@pytest.mark.jax_text
def test_devices_are_those_that_a_function_was_lowered_for():
    assert lowered_devices(jax.jit(lambda x: x + 1).lower(X)) == (jax.devices()[0],)


def lowering(**parts):
    """What a release keeps of a lowered function, where another keeps more."""
    module = jax.jit(lambda x: x).lower(X).compiler_ir
    return SimpleNamespace(_lowering=SimpleNamespace(**parts), compiler_ir=module)


MOVED = {
    "no lowering": (compiler_options, SimpleNamespace(), None),
    "no options": (compiler_options, lowering(), None),
    "options of none": (compiler_options, lowering(_compiler_options_kvs=None), None),
    "options without values": (compiler_options, lowering(_compiler_options_kvs=(1,)), None),
    "options as text": (compiler_options, lowering(_compiler_options_kvs=("abc",)), None),
    "options in a mapping": (compiler_options, lowering(_compiler_options_kvs={"xla_fast_math": True}), None),
    "no devices": (lowered_devices, SimpleNamespace(), ()),
    "devices of none": (lowered_devices, lowering(_device_list=None), ()),
    "no arguments": (kept_arguments, lowering(), None),
    "more arguments than the module's": (kept_arguments, lowering(compile_args={"kept_var_idx": {0, 1}}), None),
}


@pytest.mark.parametrize("what", MOVED)
def test_what_a_release_keeps_elsewhere_is_unknown_and_not_empty(what):
    """Never "no options", nor all or none of the arguments; without devices no order is compared."""
    read, lowered, unknown = MOVED[what]
    assert read(lowered) == unknown


@pytest.mark.jax_text
def test_explanations_come_from_the_logger_that_is_listened_to(caplog):
    """The tracing cache's logger has the name and the header that causes are read from; the others exist too."""
    assert set(CACHE_LOGGERS) <= set(logging.Logger.manager.loggerDict)
    with jax.explain_cache_misses(True):
        jax.jit(lambda x: x + 2)(X)
    (entry,) = [entry for entry in caplog.records if entry.name == TRACING_LOGGER]
    assert entry.getMessage().startswith("TRACING CACHE MISS at ")
    assert entry.levelno == logging.WARNING


@pytest.mark.jax_text
def test_the_call_that_is_compiled_is_read_while_it_is():
    """Its function, and its arguments as they were given; afterwards, and without a call, there is none."""

    def step(state, n):
        return state["w"] * n

    jitted = jax.jit(step, static_argnums=1)
    with record(at_compile=compiled_call) as events:
        jitted({"w": X}, 3)
        jitted.lower({"w": X}, 4).compile()
    called, lowered = (event.found for event in events.log if event.phase == "compile" and event.function == "step")
    assert called == (step, ({"w": X}, 3), {})
    assert lowered is None
    assert compiled_call() is None


@pytest.mark.jax_text
def test_arguments_are_read_while_their_function_is_traced():
    """Leaves with their paths, static values by keyword and by position; of another function there are none."""
    seen = []

    def step(state, n, m):
        seen.append((traced_call("step"), traced_call("other")))
        return state["w"] * n * m

    jax.jit(step, static_argnums=1, static_argnames="m")({"w": X}, 3, m=4)
    ((own, other),) = seen
    assert [f"{one.path}: {one}" for one in own] == ["state['w']: float32[3]", "m: static 4", "n: static 3"]
    assert other == ()
    assert traced_call("step") == ()


@pytest.mark.jax_text
def test_a_profile_that_cannot_be_exported_is_over_all_the_same(tmp_path):
    """Jax 0.10 keeps it open, and every later one would fail."""
    jax.profiler.start_trace(str(tmp_path / "a"))
    (tmp_path / "a").write_text("in the way")
    with pytest.raises(Exception, match="a"):
        stop_trace()
    assert open_profile() is None
    jax.profiler.start_trace(str(tmp_path / "b"))
    assert open_profile() is not None
    stop_trace()
    assert list((tmp_path / "b").rglob("*.xplane.pb"))


@pytest.mark.jax_text
def test_the_coordination_service_is_found_without_a_device():
    """Which process this is, of how many, and a board for short texts; nothing before that."""
    assert membership() is None
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code = (
        "import jax, jaxgate.observe.compat as private\n"
        f"jax.distributed.initialize('127.0.0.1:{port}', 1, 0)\n"
        "found = private.membership()\n"
        "for name in ('1/a', '1/b', '10/a'): found.client.key_value_set(name, 'old')\n"
        "found.client.key_value_set('10/a', 'new', allow_overwrite=True)\n"
        "print(found.process, found.count, len(found.client.key_value_dir_get('1')))\n"
        "found.client.key_value_delete('1')\n"
        "print(found.client.key_value_dir_get('1'), found.client.blocking_key_value_get('10/a', 1000))\n"
    )
    assert python("-c", code).split() == ["0", "1", "2", "[]", "new"]


@pytest.mark.jax_text
def test_arguments_that_a_program_does_not_use_are_known():
    """By their places among the dynamic ones; also where other functions have arguments, too."""
    lowered = jax.jit(lambda x, _, key: (x, jax.random.split(key))).lower(X, X, jax.random.key(0))
    assert kept_arguments(lowered) == (0, 2)


@pytest.mark.jax_text
def test_shardings_are_read_without_the_users_tree():
    """One for each argument, in order, none for an unused one; one for each result."""
    compiled = jax.jit(lambda a, b: {"x": a["w"] + 1, "y": a["w"]}).lower({"w": X}, X).compile()
    first, unused = input_shardings(compiled)
    assert (first, unused) == (X.sharding, None)
    assert [one.is_equivalent_to(X.sharding, 1) for one in output_shardings(compiled)] == [True, True]


@pytest.mark.parametrize("read", [input_shardings, output_shardings], ids=["arguments", "results"])
def test_a_tree_that_takes_no_shardings_is_invalid_where_they_are_elsewhere(read):
    """A release that keeps them elsewhere gives the user's tree, whose code may look at them: a stage, and what to do."""

    def refuse(_):
        raise AttributeError("'SingleDeviceSharding' object has no attribute 'shape'")

    tree = SimpleNamespace(flatten_up_to=refuse)
    compiled = SimpleNamespace(in_tree=tree, out_tree=tree, input_shardings=(), output_shardings=())
    with pytest.raises(InvalidCaseError, match="must not look at them") as caught:
        read(compiled)
    assert caught.value.stage == "reading the shardings"


def test_the_users_tree_is_what_is_left():
    tree = jax.tree.structure([0, 0])
    compiled = SimpleNamespace(in_tree=tree, out_tree=tree, input_shardings=["a", "b"], output_shardings=["c", "d"])
    assert (input_shardings(compiled), output_shardings(compiled)) == (["a", "b"], ["c", "d"])


@pytest.mark.jax_text
def test_xla_counts_what_an_optimised_program_does():
    """By its text alone; of one that calls a library, or is none, nothing."""
    ones = jnp.ones((64, 32))
    compiled = jax.jit(lambda x: jnp.tanh(x @ x.T)).lower(ones).compile()
    found, counted = cost_of_text(compiled.as_text()), compiled.cost_analysis()
    for name in ("flops", "bytes accessed", "transcendentals"):
        assert found[name] == counted[name] > 0
    assert cost_of_text(LIBRARY) == {}
    assert cost_of_text("no program") == {}
    assert cost_of_text(ASYNCHRONOUS)["flops"] > 0


@pytest.mark.jax_text
def test_the_code_of_a_custom_call_is_found():
    """By the name that it is registered by: JAX's own lies in jaxlib."""
    path = _file_at(native_address("xla_ffi_python_cpu_callback", "cpu"))
    assert path is not None
    assert "jaxlib" in path.parts
    assert native_address("nobody registered this", "cpu") is None


def test_the_newest_program_is_the_one_that_was_compiled_last():
    def newest(x):
        return jnp.tanh(x) @ x

    compiled = jax.jit(newest).lower(jnp.ones((4, 4))).compile()
    assert newest_executable().hlo_modules()[0].name == "jit_newest"
    assert compiled is not None
