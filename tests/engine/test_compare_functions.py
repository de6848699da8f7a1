"""``jaxgate.compare``: two functions, here and now, without pytest."""

import jax
import jax.numpy as jnp
import pytest
from support.fakes import duel

import jaxgate
from jaxgate.engine import compare_functions as module
from jaxgate.model.decision import Status
from jaxgate.model.measurement import InvalidCaseError

X = jnp.ones((64, 64)) / 32


@pytest.fixture
def timed(monkeypatch):
    """Lets every duel find a ratio, in place of a clock; ``None`` if there must not be one."""

    def give(ratio):
        found = None if ratio is None else lambda *_, **__: duel(ratio)
        monkeypatch.setattr(module, "run_duel", found)

    return give


def test_a_doubled_body_is_seen_in_facts_and_time(timed):
    """The first function does twice the work: the fact says so, the duel says so, the text shows both."""
    timed(2.0)
    found = jaxgate.compare(lambda x: x @ x @ x, lambda x: x @ x, X)
    assert found.decision.status is Status.SLOWER
    assert not found.agrees
    text = str(found)
    assert (
        "SLOWER: 20 ms against 10 ms, median of pairs 2.000 × [2.000, 2.000]: 20 of 20 pairs were more than 3.0% slower"
        in text
    )
    assert "result DIFFERENT beyond tolerance" in text
    assert "REGRESSED matmul_flops 1.05 MFLOP against 524 kFLOP = 2.00 ×, allowed 524 kFLOP" in text


def test_the_same_function_does_not_differ(timed):
    """Programs that differ only in what costs nothing: same facts, same results, SAME by duel."""
    timed(1.0)
    found = jaxgate.compare(lambda x: jnp.tanh(x) + 0, jnp.tanh, X)
    assert found.decision.status is Status.SAME
    assert found.agrees
    assert "fact   all the same within tolerance" in repr(found)


def test_a_real_duel_runs():
    """With the real clock there is a decision on real pairs; which one is not asserted."""
    found = jaxgate.compare(lambda x: x @ x + x, lambda x: x + x @ x, X)
    assert found.decision.pairs in (20, 40, 60)
    assert found.agrees


def test_an_identical_program_needs_no_duel(timed):
    """The same structure under another name is SAME without a clock."""
    timed(None)
    found = jaxgate.compare(jnp.tanh, lambda y: jnp.tanh(y), X)
    assert (found.decision, found.agrees) == (None, True)
    assert "time   SAME: identical program" in str(found)


def test_what_cannot_be_exported_has_facts_but_no_duel():
    """A host callback cannot be run again: facts are compared, time says why not."""

    def with_callback(x):
        return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    found = jaxgate.compare(with_callback, lambda x: x, X)
    assert found.decision is None
    assert "UNDECIDED: it was not stored: jax.export refuses it" in str(found)
    assert any(finding.name == "host_callbacks" and finding.status is Status.REGRESSED for finding in found.facts)


def test_a_function_that_fails_says_so():
    """An error is one clear exception, not half a comparison."""
    with pytest.raises(InvalidCaseError, match="tracing the subject: ValueError: no"):
        jaxgate.compare(fail, lambda x: x, X)


def fail(x):
    """Fail to trace."""
    raise ValueError("no")


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jaxgate.nothing  # noqa: B018 - the access is the test
