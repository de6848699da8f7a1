"""Subjects turned into bytes: what the bytes hold, what is refused on the way out and on the way in, how state is fed."""

import contextlib
import getpass
import hashlib
import re
import socket
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax import export as jax_export
from jax.experimental import io_callback
from support.paths import REPOSITORY

from jaxgate.model.program import ProgramRecord, StoredProgram
from jaxgate.observe.arguments.feeder import on_device
from jaxgate.observe.duel.duel import prepare
from jaxgate.observe.program import export
from jaxgate.observe.program.export import (
    NotReplayableError,
    export_program,
    find_feeds,
    load_program,
    serves_as,
    split_call,
)
from jaxgate.observe.trace.lowering import lower
from jaxgate.observe.trace.stablehlo import read_structure
from jaxgate.observe.trace.stages import compiled_facts

W = jnp.arange(12.0).reshape(3, 4) / 10
OPTIMISER = optax.adamw(1e-3)
HELPERS = """
import jax

@jax.jit
def helper(x):
    return x * 2 + 1  # between us

def subject(x):
    return helper(x) + helper(x * 2)
"""


def lowered(subject, *args, **kwargs):
    call = on_device(args, kwargs)
    return lower(subject, *call, role="subject", clock=lambda: 0), call


def stored(subject, *args, **kwargs):
    """A subject's program."""
    stage, call = lowered(subject, *args, **kwargs)
    constants = read_structure(stage.stage.compiler_ir("stablehlo")).constant_bytes
    return export_program(stage, call, None, constants)


def sealed(content, **changes):
    record = ProgramRecord(digest=hashlib.sha256(content).hexdigest(), donated=(), feeds=None, why_not="")
    return StoredProgram(record=replace(record, **changes), content=content)


def from_file(path):
    """The subject of ``HELPERS`` as if its author kept it at a path."""
    names = {}
    exec(compile(HELPERS, path, "exec"), names)
    return names["subject"]


def adamw_step(params, state, batch):
    """A step through many nested jitted helpers of an installed package."""
    grads = jax.grad(lambda p: jnp.mean((batch @ p["w"] + p["b"]) ** 2))(params)
    updates, state = OPTIMISER.update(grads, state, params)
    return optax.apply_updates(params, updates), state


def adamw_arguments():
    params = {"w": W.T + 0, "b": jnp.zeros(3)}
    return params, OPTIMISER.init(params), jnp.ones((5, 4))


def private_words():
    words = {".py", "site-packages", str(Path.home()) + "/", str(REPOSITORY), "someone", "between us", "office"}
    return words | {word for word in (getpass.getuser(), socket.gethostname()) if len(word) > 3}


def nested(x):
    return jnp.sort(jnp.where(x > 0, x, 0)) + jax.nn.gelu(x) + jax.random.normal(jax.random.key(0), x.shape)


PUBLIC = {
    "adamw": (adamw_step, adamw_arguments()),
    "jax": (nested, (W,)),
    "own": (from_file("/home/someone/my office/plan.py"), (W,)),
}


@pytest.mark.jax_text
@pytest.mark.parametrize("before", [False, True], ids=["fresh", "lowered-before"])
@pytest.mark.parametrize(("subject", "args"), PUBLIC.values(), ids=PUBLIC)
def test_content_holds_nothing_private(subject, args, before):
    """No path, source text, user or host is in the bytes, even if JAX has lowered it with locations before."""
    if before:
        text = jax.jit(subject).lower(*args).as_text(debug_info=True)
        assert ".py" in text
        assert ".py" in jax_export.export(jax.jit(subject))(*args).mlir_module()
    content = stored(subject, *args).content
    assert content
    assert [word for word in sorted(private_words()) if word.encode() in content] == []
    assert ".py" not in load_program(sealed(content)).mlir_module()


def test_content_does_not_change_with_lines_and_files(monkeypatch):
    """The same function in another file, further down, gives the same bytes; locations come back afterwards."""
    before = jax.config.jax_traceback_in_locations_limit
    first = stored(from_file("/home/someone/plan.py"), W)
    monkeypatch.setitem(globals(), "HELPERS", "\n" * 7 + HELPERS)
    assert stored(from_file("/srv/other.py"), W) == first
    assert jax.config.jax_traceback_in_locations_limit == before


def test_locations_that_stay_are_refused(monkeypatch):
    """If JAX ever ignores the setting, the program is not stored; the record says why."""
    monkeypatch.setattr(export, "_without_locations", contextlib.nullcontext)
    program = stored(lambda x: x + 1, W)
    assert (program.content, program.record.digest, program.record.stored) == (b"", None, False)
    assert program.record.why_not == "its serialised form names source files, which a stored program must not"


PATHS = [
    "/home/someone/plan.py",
    "/home/someone/my plan.py",
    "/home/someone/plän.py",
    "C:\\Users\\someone\\plan.py",
    "/план/ы.py",
]


@pytest.mark.parametrize("path", PATHS)
def test_paths_are_found_however_they_are_spelt(monkeypatch, path):
    """A path in the bytes makes one more attempt with cold caches."""
    contents = [b"ML\x00" + path.encode() + b"\x00", b"ML\x00clean\x00"]
    cleared = []
    stage, call = lowered(lambda x: x + 1, W)
    exported = SimpleNamespace(serialize=lambda: contents.pop(0), module_kept_var_idx=(0,))
    fake = SimpleNamespace(export=lambda *_, **__: lambda *_: exported, DisabledSafetyCheck=None)
    monkeypatch.setattr(export, "export", fake)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(1))
    assert export_program(stage, call, None, 0).content == b"ML\x00clean\x00"
    assert cleared == [1]


def test_the_record_names_the_content():
    """Digest, donation by flat position, and feeds as they came."""
    stage, call = lowered(jax.jit(lambda s, x: {"a": s["a"] + x, "b": s["b"]}, donate_argnums=0), {"a": W, "b": W}, 1.0)
    program = export_program(stage, call, (0, 1, None), 0)
    digest = hashlib.sha256(program.content).hexdigest()
    assert program.record == ProgramRecord(digest=digest, donated=(0, 1), feeds=(0, 1, None), why_not="")


def captured(size):
    """A subject with an array of this many numbers in a nested helper."""
    weights = np.random.default_rng(0).random(size).astype(np.float32)
    inner = jax.jit(lambda c, x: (c + weights.sum() * x.sum() + jnp.asarray(weights)[:4], None))
    return lambda x: jax.lax.scan(inner, x, jnp.ones((2, 4)))[0]


def test_large_constants_stay_out():
    """A table of 64 kB is stored; one number more makes it weights, and the figure is named."""
    assert stored(captured(64 * 256 - 16), W[0]).record.why_not == ""
    program = stored(captured(40_000), W[0])
    assert program.content == b""
    reason = "it captures 160,000 bytes of constants, above the 65,536 that a stored program may"
    assert program.record.why_not == reason


def debug(x):
    jax.debug.print("{}", x.sum())
    return x


CALLBACKS = {
    "pure": lambda x: jax.pure_callback(lambda a: a, x, x),
    "print": debug,
    "io": lambda x: io_callback(lambda a: a, x, x),
    "io-ordered": lambda x: io_callback(lambda a: a, x, x, ordered=True),
}


@pytest.mark.parametrize("subject", CALLBACKS.values(), ids=CALLBACKS)
def test_callbacks_are_refused_in_one_line(subject):
    program = stored(subject, W)
    assert (program.content, program.record.stored) == (b"", False)
    assert program.record.why_not.startswith("jax.export refuses it: NotImplementedError: serialization of host_call")
    assert "\n" not in program.record.why_not


def test_compiler_options_are_carried():
    """They are no part of the exported program: they stand beside it, and the replay is compiled with them."""

    def subject(x):
        return jnp.tanh(x @ x.T + 1).sum(0)

    plain, tuned = jax.jit(subject), jax.jit(subject, compiler_options={"xla_disable_all_hlo_passes": True})
    programs = stored(plain, W), stored(tuned, W)
    assert [program.record.options for program in programs] == [{}, {"xla_disable_all_hlo_passes": "True"}]
    direct = [compiled_facts(function.lower(W).compile())["temp_bytes"] for function in (plain, tuned)]
    assert direct[0] < direct[1]
    assert [prepare(program, [W]).facts["temp_bytes"] for program in programs] == direct


def test_reasons_name_no_folders():
    """Why a program was not stored is stored: JAX's words may hold source files, their folders are cut off."""
    inner = jax.jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True})
    stage, call = lowered(lambda x: x + 1, W)
    reason = export_program(replace(stage, function=inner), call, None, 0).record.why_not
    assert reason.startswith("jax.export refuses it: ValueError")
    assert "export.py" in reason
    assert "/" not in reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("xla_dump_to", "here"),
        ("xla_gpu_x", "/etc/passwd"),
        ("xla_gpu_kernel_cache_file", "conftest"),
        ("xla_gpu_cuda_data_dir", "tools"),
        ("xla_a", ".."),
        ("xla_a", "b c"),
        ("--xla", "1"),
    ],
)
def test_options_that_could_do_more_than_compile_are_refused(name, value):
    """A stored file is public: an option that writes or names a file is refused when stored and when read."""
    stage, call = lowered(lambda x: x + 1, W)
    reason = f"it is compiled with {name}, an option that a stored program must not carry"
    refused = export_program(replace(stage, options=((name, value),)), call, None, 0)
    assert (refused.content, refused.record.why_not, refused.record.options) == (b"", reason, {})
    good = stored(lambda x: x + 1, W)
    forged = replace(good, record=replace(good.record, options={name: value}))
    with pytest.raises(NotReplayableError) as error:
        load_program(forged)
    assert str(error.value) == reason
    unknown = export_program(replace(stage, options=None), call, None, 0)  # hidden by this JAX: a replay might differ
    assert (unknown.content, unknown.record.stored) == (b"", False)
    assert "options" in unknown.record.why_not


def test_static_arguments_beside_python_numbers_are_refused():
    program = stored(jax.jit(lambda x, n, f: x * n * f, static_argnums=1), W, 3, 2.0)
    assert program.record.why_not == "static arguments and Python numbers are mixed, and cannot be distinguished"


def test_a_missing_serialiser_is_a_dependency():
    """``jax.export`` needs flatbuffers, which JAX does not install: without it nothing would ever be stored."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert [name for name in project["dependencies"] if name.startswith("flatbuffers")]


GOOD = stored(lambda x: jnp.sort(x) * 2, W)


HALF = len(GOOD.content) // 2
FLIPPED = GOOD.content[:HALF] + bytes([GOOD.content[HALF] ^ 1]) + GOOD.content[HALF + 1 :]


@pytest.mark.parametrize("content", [FLIPPED, b"", GOOD.content[:-1], GOOD.content + b"\0", b"garbage"])
def test_other_content_is_damage(content):
    """It must be what the baseline says: no bit flipped, nothing cut off or added."""
    with pytest.raises(NotReplayableError, match=r"^its file is damaged: the content is not what the baseline says$"):
        load_program(replace(GOOD, content=content))


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(100), GOOD.content[:50], GOOD.content[:-20]])
def test_garbage_that_the_baseline_vouches_for_is_refused(content):
    """Whatever the reader trips over is one line that names this JAX and the way out."""
    with pytest.raises(NotReplayableError) as caught:
        load_program(sealed(content))
    assert str(caught.value).startswith(f"jax {jax.__version__} cannot read it (")
    assert str(caught.value).endswith("); record it again with --perf-update")


def test_a_fingerprint_only_says_why():
    program = StoredProgram(record=ProgramRecord(digest=None, donated=(), feeds=None, why_not="too big"), content=b"")
    with pytest.raises(NotReplayableError, match=r"^it was not stored: too big$"):
        load_program(program)


OTHERS = [
    ({"platforms": ("tpu",)}, "it was exported for tpu, this is {here}"),
    ({"platforms": ("rocm", "tpu")}, "it was exported for rocm, tpu, this is {here}"),
    ({"nr_devices": 512}, "it needs 512 devices, here are {count}"),
]


@pytest.mark.parametrize(("changes", "reason"), OTHERS, ids=["tpu", "two", "devices"])
def test_programs_for_other_machines_are_refused(changes, reason):
    content = bytes(replace(load_program(GOOD), **changes).serialize())
    with pytest.raises(NotReplayableError) as caught:
        load_program(sealed(content))
    assert str(caught.value) == reason.format(here=jax.default_backend(), count=jax.device_count())


CALLS = ["evil", "xla_python_cpu_callback", "xla_ffi_python_cpu_callback", "Qr evil", " evil", '"evil"', "évil", "QrX"]


@pytest.mark.jax_text
@pytest.mark.parametrize("target", CALLS)
def test_unknown_custom_calls_are_refused(target):
    """However the target is spelt; an address in another process is the worst of them."""

    def subject(x):
        return jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    checks = [jax_export.DisabledSafetyCheck.custom_call(target)]
    content = bytes(jax_export.export(jax.jit(subject), disabled_checks=checks)(W).serialize())
    with pytest.raises(NotReplayableError, match=r"^it calls .+, which a stored program must not$"):
        load_program(sealed(content))


def pair(first, second):
    """A subject of two arguments with two results of their types."""
    return first + 1, second + 1


def by_name(first, second):
    return {"n": second + 1, "w": first + 1}


N = jnp.int32(0)
FEEDS = {
    "tuple": (pair, (W, N), lambda output, args: output, (0, 1)),
    "dict": (by_name, (W, N), lambda output, args: (output["w"], output["n"]), (1, 0)),
    "partial": (pair, (W, N), lambda output, args: (output[0], args[1]), (0, None)),
    "nothing-moves": (pair, (W, N), lambda output, args: args, (None, None)),
    "tree": (lambda s: {2: s[10], 10: s[2]}, ({10: W, 2: W},), lambda output, args: (output,), (0, 1)),
    "arithmetic": (pair, (W, N), lambda output, args: (output[0] * 2, output[1]), None),
    "numpy": (pair, (W, N), lambda output, args: (jnp.asarray(output[0]), output[1]), None),
    "new-array": (pair, (W, N), lambda output, args: (output[0], N), None),
    "dtype-drift": (lambda a, b: (a.astype(jnp.bfloat16), b), (W, N), lambda output, args: output, None),
    "shape-drift": (lambda a, b: (a[:2], b), (W, N), lambda output, args: output, None),
    "swapped-arguments": (pair, (W, W), lambda output, args: (args[1], args[0]), None),
    "dropped": (pair, (W, N), lambda output, args: (output[0],), None),
    "none": (pair, (W, N), lambda output, args: None, None),
    "raises": (pair, (W, N), lambda output, args: output[2], None),
    "no-next": (pair, (W, N), None, None),
}


@pytest.mark.parametrize(("subject", "args", "next_args", "expected"), FEEDS.values(), ids=FEEDS)
def test_feeds(subject, args, next_args, expected):
    """Where each argument comes from, if ``next_args`` only moves things of the right types; else nothing."""
    assert find_feeds(*lowered(subject, *args), next_args) == expected


def test_feeds_beside_keywords_and_static_arguments():
    """Keywords stay, static arguments are passed on and take no position."""
    stage, call = lowered(jax.jit(lambda x, n, *, b: (x * n + b, n), static_argnums=1), W, 3, b=W)
    assert find_feeds(stage, call, lambda output, args: (output[0], args[1])) == (0, None)
    leaves, rebuild = split_call(stage, call)
    args, kwargs = rebuild(["x", "b"])
    assert (len(leaves), args, kwargs) == (2, ("x", 3), {"b": "b"})


def test_an_older_format_does_not_serve():
    """Recording again with a newer jax keeps the newer bytes: the months for which they can be read start again."""
    version = re.search(rb"StableHLO_v(\d+)\.(\d+)", GOOD.content)
    older = GOOD.content.replace(version[0], b"StableHLO_v%s.%02d" % (version[1], int(version[2]) - 1))
    assert serves_as(GOOD.content, GOOD.content)
    assert serves_as(older, older)
    assert not serves_as(older, GOOD.content)
    unnamed = GOOD.content.replace(b"StableHLO_v", b"StableHLOxv")  # may be of any age
    assert not serves_as(unnamed, unnamed)
