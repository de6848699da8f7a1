"""Machine code: equal for unchanged work, whoever compiles it and wherever its source lies; another where it is another."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.hlo import machine_code_fingerprint
from jaxgate.observe.hlo.machine_code import hash_code
from jaxgate.observe.hlo.protobuf import contents, read_delimited, read_message
from jaxgate.observe.program import same_executable

X = jax.ShapeDtypeStruct((64, 64), jnp.float32)
STEP = """
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    moved = jax.lax.scan(lambda c, _: (jnp.tanh(c @ x) * 2, None), x, None, length=4)[0]
    return jnp.sort(moved, axis=0), moved.sum(), jnp.exp(x) / 3
"""


def compiled(text=STEP, file="model.py", **options):
    """The function of a source, compiled anew."""
    names = {}
    exec(compile(text, file, "exec"), names)
    return names["step"].lower(X).compile(**options)


@pytest.mark.jax_text
def test_lines_and_folders_do_not_reach_the_code():
    """Several files of code, compiled side by side, moved down and into another folder."""
    first = machine_code_fingerprint(compiled())
    assert first is not None
    assert len(first) == 32
    moved = compiled("\n" * 40 + STEP.replace("    moved", "\n    # why\n    moved"), "/another/folder/of/models.py")
    assert [machine_code_fingerprint(compiled()), machine_code_fingerprint(moved)] == [first, first]


def test_other_code_of_the_same_optimised_program_is_seen():
    """Code that is not optimised leaves no trace in the optimised program's text."""
    plain, slow = compiled(), compiled(compiler_options={"xla_backend_optimization_level": 0})
    assert same_executable(plain, slow)
    assert None not in (machine_code_fingerprint(plain), machine_code_fingerprint(slow))
    assert machine_code_fingerprint(plain) != machine_code_fingerprint(slow)


@pytest.mark.usefixtures("persistent_cache")
def test_an_executable_out_of_the_cache_has_none():
    """It is loaded as machine code, which is not given out again: it is unknown, not another."""
    fresh = machine_code_fingerprint(compiled())
    jax.clear_caches()
    assert (fresh is None, machine_code_fingerprint(compiled())) == (False, None)


@pytest.mark.parametrize("content", [b"", b"\x05ab", b"\x01a\x07", b"\x00", b"\x00\x0a\x02\x42\x00"])
def test_what_is_no_executable_has_none(content):
    """Bytes that another release lays out otherwise are unknown."""
    executable = SimpleNamespace(runtime_executable=lambda: SimpleNamespace(serialize=lambda: content))
    assert machine_code_fingerprint(executable) is None


def test_a_runtime_that_does_not_give_it_out_has_none():
    """Neither does one without the name."""

    def refuse():
        raise NotImplementedError

    silent = SimpleNamespace(runtime_executable=lambda: SimpleNamespace(serialize=refuse))
    assert machine_code_fingerprint(silent) is None
    assert machine_code_fingerprint(SimpleNamespace()) is None


def test_files_count_in_any_order():
    """Threads finish in any; where one file ends and the next begins counts."""
    assert hash_code([b"a", b"bc"]) == hash_code([b"bc", b"a"])
    assert len({hash_code(codes) for codes in ([b"a", b"bc"], [b"ab", b"c"], [b"abc"], [b"a", b"bc", b"a"])}) == 4
    assert hash_code([]) is hash_code([b""]) is None


def test_a_message_is_parted_from_what_follows():
    """Its length comes first."""
    assert read_delimited(b"\x02abcd") == (b"ab", b"cd")
    assert contents(read_message(b"\x0a\x01x\x0a\x00"), 1) == [b"x", b""]
    with pytest.raises(ValueError, match="it ends within a message"):
        read_delimited(b"\x03ab")
