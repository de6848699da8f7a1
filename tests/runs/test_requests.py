"""Requests of a list, brought into a few shapes: none may compile once those are there."""

import re

SERVER = """
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def score(x, count):
    return jnp.tanh(x).sum() + count
def answer(text, bucket):
    x = np.zeros(bucket, np.float32)
    x[:len(text)] = text
    return score(x, np.float32(len(text)))
def serve(text):
    return answer(text, 8 if len(text) <= 8 else 16)
def serve_one_as_it_is(text):
    return answer(text, 13 if len(text) == 13 else 8 if len(text) <= 8 else 16)
def text(length):
    return (np.ones(length, np.float32),)
REQUESTS = [text(length) for length in (12, 3, 16, 7, 9, 13)]
def test_buckets(gate):
    gate(serve, *text(5), eager=True, requests=REQUESTS, expected_traces=2)
def test_one_as_it_is(gate):
    gate(serve_one_as_it_is, *text(5), eager=True, requests=REQUESTS, expected_traces=2)
def test_that_fails(gate):
    gate(lambda text: serve(text[: 9 // (len(text) != 13)]), *text(5), eager=True, requests=REQUESTS, expected_traces=2)
def test_jitted(gate):
    gate(score, *text(5), 1.0, requests=[(1, 2)])
def test_too_many(gate):
    gate(serve, *text(5), eager=True, requests=REQUESTS * 4)
def test_of_other_arguments(gate):
    gate(serve, *text(5), eager=True, requests=[(1, 2)])
"""


def test_a_request_that_compiles_is_red_and_named(project):
    """Each is called, also the last; the buckets' own programs are expected, and not blamed."""
    project.write("test_model.py", SERVER)
    text = re.sub(" +", " ", project.run("--perf-profile=never", "--no-perf-strict").text)
    assert re.search(r"^NO_BASELINE model/buckets ", text, re.MULTILINE)
    red = re.search(r"^REGRESSED model/one_as_it_is .*?^ culprit (.*?)$", text, re.MULTILINE | re.DOTALL)
    assert red is not None
    assert re.match(r"step 7 retraced: score: x: float32\[(8|16)\] → float32\[13\] at test_model.py:\d+", red[1])
    assert re.search(r"^INVALID model/that_fails\b.*?^ found [^\n]*ZeroDivisionError", text, re.MULTILINE | re.DOTALL)
    assert "gate: expected eager=True with requests=" in text
    assert "gate: expected 1 to 19 requests beside the first, found 24" in text
    assert "gate: expected 1 arguments in each of requests=, as in the first call" in text
