"""Test files of projects that several tests gate, and their settings."""

NO_OTHERS = ("-p", "no:hypothesispytest", "-p", "no:jaxtyping", "-p", "no:unraisableexception")
"""Without other people's plugins: they say nothing in these projects, and import what takes a process 0.3 s. Without pytest's search
for exceptions that nobody raised: it collects garbage ten times at the end of a process, for 0.5 s among all that JAX holds."""
SETTINGS = f'[tool.pytest]\npythonpath = ["."]\naddopts = {[*NO_OTHERS]}\n'


def model(arguments: str = "jnp.ones(8)", /, **functions: str) -> str:
    """A test file: for each name a function of ``x`` that returns this expression, and a test that gates it."""
    tests = (
        f"\ndef {name}(x):\n    return {result}\n\ndef test_{name}(gate):\n    gate({name}, {arguments})\n"
        for name, result in functions.items()
    )
    return "\nimport jax, jax.numpy as jnp\n" + "".join(tests)


TWO = model(first="x * 2", second="x + 1")
TALK = model("jnp.ones((8, 8))", talk="jnp.exp(-x)").replace(
    "    return", "    jax.debug.callback(lambda value: None, x[0, 0])\n    return"
)
"""A program that calls Python."""
STOPPED = "any(request.session.shouldstop or time.sleep(0.01) for _ in range(6000))"
"""A line of a test, which imports ``time``: wait until its run is to end."""


def time_is_over(test: str) -> str:
    """A conftest: the time limit is over when the test of this name begins, however fast or busy this machine is."""
    return f"""
import threading
from jaxgate.plugin.time_limit import Deadline

BEGUN, WATCH = threading.Event(), Deadline._watch

def watch(deadline, session):
    BEGUN.wait()
    deadline._until = 0.0
    WATCH(deadline, session)

def pytest_configure():
    Deadline._watch = watch

def pytest_unconfigure():
    Deadline._watch = WATCH

def pytest_runtest_logstart(nodeid):
    if nodeid.endswith({test!r}):
        BEGUN.set()
"""
