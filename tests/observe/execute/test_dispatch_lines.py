"""Lines in a profile: what a line of the project starts lies within it, and whoever traces already is left alone."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgate.observe.execute import dispatches
from jaxgate.observe.execute.dispatches import BACK, count_launches, marking_lines

FILE = "tests/observe/execute/test_dispatch_lines.py"
X = np.ones(8, np.float32)

_double = jax.jit(lambda x: x * 2)


def _loop(x):
    total = 0.0
    for _ in range(3):
        x = _double(x)
        total += float(jnp.sum(x))
    return x, total


def _line(offset):
    return f"{FILE}:{_loop.__code__.co_firstlineno + offset}"


@pytest.mark.parametrize("most", [dispatches.MAX_SPANS, 4], ids=["enough", "too few"])
def test_launches_and_transfers_have_their_lines(monkeypatch, most):
    """Programs, numbers that are put and values that are read are placed at their lines; counts need no room."""
    monkeypatch.setattr(dispatches, "MAX_SPANS", most)
    _loop(X)
    counted = count_launches(lambda: lambda: jax.block_until_ready(_loop(X)), jax.devices()[:1])
    assert counted.why_not == ""
    assert counted.programs["<lambda>"] == 3
    assert counted.program_lines["<lambda>"] == _line(3)
    assert counted.transfers == {"<lambda>": 1, BACK: 3}
    if most > 4:
        assert counted.transfer_lines == {"<lambda>": _line(3), BACK: _line(4)}


@pytest.mark.parametrize(
    ("read", "reads"),
    [(float, 1), (bool, 1), (str, 1), (jax.device_get, 1), (jax.block_until_ready, 0), (lambda x: x, 0)],
    ids=["float", "bool", "str", "device_get", "wait", "nothing"],
)
def test_reading_a_value_back_is_a_transfer(read, reads):
    """What stops the program to fetch a value is counted; waiting is no reading."""
    total = jax.jit(jnp.sum)
    x = jnp.ones(8)

    def call():
        read(total(x))

    call()
    counted = count_launches(lambda: call, jax.devices()[:1])
    assert counted.transfers == ({BACK: reads} if reads else {})


def test_who_traces_already_is_left_alone():
    """Under a debugger or a coverage tool nothing is marked, everything is counted, and its tracer stays."""

    def tracer(*_):
        return None

    _loop(X)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        counted = count_launches(lambda: lambda: jax.block_until_ready(_loop(X)), jax.devices()[:1])
        kept = sys.gettrace()
    finally:
        sys.settrace(before)
    assert kept is tracer
    assert counted.programs["<lambda>"] == 3
    assert counted.program_lines == {}


def test_an_exception_closes_what_is_open():
    def fails():
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"), marking_lines():
        fails()
    assert sys.gettrace() is None


@pytest.mark.jax_text
def test_a_launch_on_a_gpu_is_counted_once():
    """As an H100 shows it (jax 0.11.2, 2026-11-27): the part of one device lies in the whole. A callback's launch counts, too."""
    plugin = "PjRtCApiLoadedExecutable::Execute"
    part = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
    outer, whole = ("the span", "PjitFunction(square)"), "CommonPjRtLoadedExecutable::Execute (jit_square)"
    names = [
        ("the span", ()),
        (plugin, outer),
        (whole, (*outer, plugin)),
        (part, (*outer, plugin, whole)),
        (part, (*outer, plugin, whole, part, "PjitFunction(called_back)")),
    ]
    events = [dispatches._Event(name, at, 99 - at, 0, within) for at, (name, within) in enumerate(names)]
    assert dispatches._count(events, "the span").programs.totals == {"square": 1, "called_back": 1}
