"""The reference interpreter in a process of its own: what it answers, how it may end, and that the next program finds a new one."""

import os

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxgate.ext.opinion.interpreter import NotInterpretedError
from jaxgate.ext.opinion.process import InterpreterProcess, pack, unpack

X = np.linspace(0.0, 1.0, 6, dtype=np.float32).reshape(2, 3)
TALKING = """
import json, sys
print("{}", flush=True)
for line in sys.stdin:
    print("I0000 a library of C writes here", flush=True)
    print(json.dumps({"results": []}), flush=True)
"""


def program(function):
    """The StableHLO of a function of X."""
    return str(jax.jit(function).lower(jnp.asarray(X)).compiler_ir("stablehlo")).encode()


@pytest.fixture
def interpreter():
    """The real one; its process ends with the test."""
    process = InterpreterProcess()
    yield process
    process.close()


def test_programs_are_run_one_after_another(interpreter):
    (doubled,) = interpreter.interpret(program(lambda x: x * 2), [X], limit_s=60)
    np.testing.assert_array_equal(doubled, X * 2)
    first = interpreter._worker.live.pid
    found = interpreter.interpret(program(lambda x: (x > 0.5, x.astype(jnp.bfloat16))), [X], limit_s=60)
    assert [one.dtype for one in found] == [bool, ml_dtypes.bfloat16]
    assert interpreter._worker.live.pid == first


@pytest.mark.parametrize(
    ("function", "limit_s", "why"),
    [
        (lambda x: jnp.linalg.cholesky(x @ x.T), 60, "a process of its own ended"),
        (lambda x: jax.lax.fori_loop(0, 10**9, lambda _, y: y * 2, x), 0.5, "exit status -9"),
    ],
    ids=["an operation that it does not know", "too long a loop"],
)
def test_a_program_that_ends_it_is_refused_and_the_next_one_is_run(interpreter, function, limit_s, why):
    """By a new process."""
    with pytest.raises(NotInterpretedError, match=why):
        interpreter.interpret(program(function), [X], limit_s=limit_s)
    (found,) = interpreter.interpret(program(lambda x: x + 1), [X], limit_s=60)
    np.testing.assert_array_equal(found, X + 1)


def test_a_program_that_cannot_be_run_is_refused_and_the_process_stays(interpreter):
    with pytest.raises(NotInterpretedError, match="a result of type complex<f32> cannot be read"):
        interpreter.interpret(program(lambda x: x + 1j), [X], limit_s=60)
    assert interpreter._worker is not None


def test_a_worker_that_writes_what_is_no_answer_is_ended(tmp_path):
    """Its next line would answer that question, not the next one."""
    (tmp_path / "talking.py").write_text(TALKING)
    process = InterpreterProcess({**os.environ, "PYTHONPATH": str(tmp_path)}, module="talking")
    with pytest.raises(NotInterpretedError, match="wrote what is no answer: I0000 a library of C writes here"):
        process.interpret(b"", [], limit_s=60)
    assert process._worker is None


def test_one_that_was_never_asked_has_no_process():
    process = InterpreterProcess()
    process.close()
    assert process._worker is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bool", "uint32", "float8_e5m2"])
def test_arrays_travel_as_they_are(dtype):
    values = X.astype(getattr(ml_dtypes, dtype, dtype))
    found = unpack(pack(values))
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
