"""A plain function around jitted ones: gated as the one that it hands on to, or the line says what is not seen."""

from __future__ import annotations

import pytest

from ci.attacks.gated_sources import DONATED, DONATING, LOOP, WRAPPERS


def decorated(*decorators, step=DONATED):
    """A test file whose step is under these decorators."""
    return WRAPPERS + "\n" + "".join(decorators) + step


@pytest.fixture
def changed(project):
    """Records a file and runs another one: status and reason of its case, and what was printed."""

    def record_and_change(before, now):
        project.write("test_model.py", before).record()
        project.write("test_model.py", now)
        found = project.run("--benchmark-disable")
        (row,) = project.results()["cases"]
        return row["status"], row["time"]["reason"], found.text

    return record_and_change


@pytest.mark.parametrize(
    "call", ["jax.jit(lambda w, x: jnp.tanh(x @ w))(w, x)", "_inner(w, x)"], ids=["anew", "as it was"]
)
def test_a_loop_of_jitted_calls_says_what_is_not_seen(changed, call):
    """A jitted function that is made at each call, and a pause, are in no program: never ``identical program`` alone."""
    status, reason, _ = changed(LOOP, LOOP.replace("_inner(w, x)", f"{call}\n        time.sleep(0.001)"))
    assert status == "SAME"
    assert reason.startswith(
        "identical program; calls jitted <lambda>(): gated as one program; what Python does between"
    )
    assert "eager=True" in reason


def test_donation_that_is_lost_within_a_decorator_is_seen(changed):
    """What the loop calls donated its state, and does not any more."""
    status, _, text = changed(decorated("@logged\n", DONATING), decorated("@logged\n@jax.jit\n"))
    assert status == "REGRESSED", text
    assert "no longer donated: w" in text


@pytest.mark.parametrize(
    "step", [DONATED, DONATED.replace("jnp.ones(8))", "kwargs={'x': jnp.ones(8)})")], ids=["position", "keyword"]
)
def test_a_decorator_that_only_calls_through_changes_nothing(changed, step):
    """Neither its donation nor the words of its line."""
    status, reason, text = changed(decorated(DONATING, step=step), decorated("@logged\n", DONATING, step=step))
    assert (status, reason) == ("SAME", "identical program"), text


def test_a_retrace_within_a_decorator_is_seen(changed):
    """It hands on to a jitted function of which it makes a new one at every call: found by no name, so it is said."""
    anew = decorated("@logged\n@jax.jit\n").replace("return function(*", "return jax.jit(lambda *a: function(*a))(*")
    status, reason, _ = changed(decorated("@logged\n@jax.jit\n"), anew)
    assert (status, reason.partition(":")[0]) == ("SAME", "identical program; calls jitted <lambda>()")


def test_python_within_a_decorator_is_counted(changed):
    """The call of the loop is what is counted, not that of the program within."""
    busy = decorated("@logged\n@jax.jit\n").replace(
        "return function(", "[str(n) for n in range(200)]\n        return function("
    )
    status, _, text = changed(decorated("@logged\n@jax.jit\n"), busy)
    assert status == "REGRESSED", text
    assert "python_calls" in text
