"""What somebody set is told from what JAX does by itself."""

from dataclasses import replace

import jax
import pytest

from jaxgate.model.machine import COMPILE_OPTIONS, UNKNOWN_SETTINGS
from jaxgate.observe.machine import jax_settings as module
from jaxgate.observe.machine.jax_settings import (
    HARMLESS,
    SETTINGS,
    all_settings,
    know_defaults,
    read_defaults,
    settings_of,
    unusual_settings,
)


@pytest.fixture
def usual():
    """This process as it is, taken for one that nobody told anything."""
    before = module._known[0]
    found = read_defaults()
    know_defaults(found)
    yield found
    know_defaults(before)


def test_nothing_is_unusual_where_nothing_was_set(usual):
    assert unusual_settings() == {}
    assert usual.jax == jax.__version__


def test_what_was_set_is_named_with_its_value(usual):
    """By its name, and by the options of the compiler that follow from it."""
    with jax.numpy_dtype_promotion("strict"):
        assert unusual_settings() == {"jax_numpy_dtype_promotion": "strict"}


@pytest.mark.jax_text
def test_what_the_compiler_is_given_is_seen(usual, monkeypatch):
    """A setting that leaves no trace in the executable on CPU is in its options."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        found = unusual_settings()
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    assert set(found) == {"jax_disable_most_optimizations", COMPILE_OPTIONS}
    assert found[COMPILE_OPTIONS] not in ("", "unknown", usual.compile_options)
    monkeypatch.setattr("jax.extend.backend.get_compile_options", lambda *_: object())
    assert unusual_settings() == {COMPILE_OPTIONS: "unknown"}


@pytest.mark.parametrize("known", [None, {"jax": "0.0.1"}, {"file": "elsewhere/jax/__init__.py"}])
def test_without_the_defaults_nothing_is_called_usual(usual, known):
    know_defaults(known and replace(usual, **known))
    assert set(unusual_settings()) == {UNKNOWN_SETTINGS}


def test_logging_is_excused(usual):
    """With a reason, and never an option that every environment names."""
    know_defaults(replace(usual, config=usual.config | {"jax_log_compiles": "True"}))
    assert unusual_settings() == {}
    assert not set(SETTINGS) & frozenset().union(*HARMLESS.values())


def test_settings_are_asked_for_a_fixed_number_of_times(monkeypatch):
    """JAX makes a dictionary of all of them for each question: one for each option took 1.3 ms of every case."""
    asked, values = [], type(jax.config).values

    def counted(config):
        asked.append(config)
        return values.fget(config)

    there = all_settings()
    monkeypatch.setattr(type(jax.config), "values", property(counted))
    with settings_of(there):
        pass
    assert len(asked) == 3
