"""A plain function around jitted ones: gated as the one that it hands on to, or the line says what is not seen."""

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


def test_a_loop_of_jitted_calls_says_what_is_not_seen(changed):
    """A pause is in no program: never ``identical program`` alone."""
    status, reason, _ = changed(LOOP, LOOP.replace("_inner(w, x)", "_inner(w, x)\n        time.sleep(0.001)"))
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
    """It hands on to a jitted function of which it makes a new one at every call."""
    anew = decorated("@logged\n@jax.jit\n").replace("return function(*", "return jax.jit(lambda *a: function(*a))(*")
    status, _, text = changed(decorated("@logged\n@jax.jit\n"), anew)
    assert status == "REGRESSED"
    assert "jitted anew at each call, and traced: <lambda> at test_model.py:" in text


def test_python_within_a_decorator_is_counted(changed):
    """The call of the loop is what is counted, not that of the program within."""
    busy = decorated("@logged\n@jax.jit\n").replace(
        "return function(", "[str(n) for n in range(200)]\n        return function("
    )
    status, _, text = changed(decorated("@logged\n@jax.jit\n"), busy)
    assert status == "REGRESSED", text
    assert "python_calls" in text
