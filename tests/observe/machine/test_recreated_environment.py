"""The variables that give a process an environment again."""

from dataclasses import replace

import jax
import pytest
from support.jax_settings import settings_restored

from jaxgate.observe.machine.environment import read_environment
from jaxgate.observe.machine.jax_settings import know_defaults, known_defaults
from jaxgate.observe.machine.recreated_environment import NotRecreatedError, recreate, variables_of
from jaxgate.processes.jax_query import find_defaults

FLAG = "--xla_dump_to=/some/where"


def test_what_sets_something_is_that_of_the_environment_and_the_rest_stays():
    """A flag of today must not reach the baseline's side; where it lies and which devices it takes must."""
    base = {"PATH": "/bin", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_today=1", "NCCL_PROTO": "LL", "OMP_PATH": "x"}
    found = variables_of({"jax": "0.10", "CUBLAS_MODE": "2", "NCCL_PROTO": "Simple"}, base, "cpu")
    assert found == {
        "PATH": "/bin",
        "JAX_PLATFORMS": "cpu",
        "OMP_PATH": "x",
        "CUBLAS_MODE": "2",
        "NCCL_PROTO": "Simple",
    }


def test_a_path_is_had_from_here_or_not_at_all(monkeypatch):
    device = jax.devices()[0]  # XLA ends the process that asks for the first one under a flag that it does not know
    monkeypatch.setenv("XLA_FLAGS", f"  {FLAG}  --xla_other=1 ")
    shown = read_environment(device)["XLA_FLAGS"]
    assert "/some/where" not in shown
    assert variables_of({"XLA_FLAGS": shown}, {}, "cpu")["XLA_FLAGS"].split() == [FLAG, "--xla_other=1"]
    monkeypatch.delenv("XLA_FLAGS")
    assert variables_of({"XLA_FLAGS": shown}, {"XLA_FLAGS": f"{FLAG} --xla_other=1"}, "cpu")["XLA_FLAGS"].startswith(
        FLAG
    )
    with pytest.raises(NotRecreatedError, match=r"^XLA_FLAGS names a path, of which a hash is stored$"):
        variables_of({"XLA_FLAGS": shown}, {"XLA_FLAGS": "--xla_dump_to=/else/where --xla_other=1"}, "cpu")


@pytest.fixture
def restored():
    """JAX's defaults are known; afterwards this process has its settings back."""
    known = known_defaults()
    know_defaults(find_defaults())
    with settings_restored():
        yield
    know_defaults(known)


@pytest.mark.usefixtures("restored")
def test_it_runs_where_the_case_ran():
    """A conftest may have chosen that since: on a machine with accelerators a process of its own would take one."""
    assert variables_of({}, {}, "cpu")["JAX_PLATFORMS"] == "cpu"
    assert variables_of({}, {"JAX_PLATFORMS": "cuda,cpu"}, "cpu")["JAX_PLATFORMS"] == "cpu"
    jax.config.update("jax_platforms", "cuda,cpu")
    assert variables_of({}, {"JAX_PLATFORMS": "cpu"}, "gpu")["JAX_PLATFORMS"] == "cuda,cpu"
    jax.config.update("jax_platforms", None)
    assert "JAX_PLATFORMS" not in variables_of({}, {"JAX_PLATFORMS": "cpu"}, "gpu")


@pytest.mark.usefixtures("restored")
def test_settings_are_had_again():
    """Numbers, truth values, nothing and words; and it is seen whether it came out so."""
    usual = read_environment(jax.devices()[0])
    wanted = {"jax_default_matmul_precision": "bfloat16", "jax_enable_x64": "True", "jax_default_prng_impl": "rbg"}
    recreate(usual | wanted, "cpu")
    assert (jax.config.jax_default_matmul_precision, jax.config.jax_enable_x64) == ("bfloat16", True)
    recreate(usual, "cpu")
    assert (jax.config.jax_default_matmul_precision, jax.config.jax_enable_x64) == (None, False)
    recreate(usual | {"cores": "1 of 64"}, "cpu")  # both sides of a duel have today's
    with pytest.raises(NotRecreatedError, match=r"^python was 2\.7, a process of its own has 3"):
        recreate(usual | {"python": "2.7"}, "cpu")
    with pytest.raises(NotRecreatedError, match=r"^a process of its own would run on cpu$"):
        recreate(usual, "tpu")


@pytest.mark.usefixtures("restored")
def test_what_nobody_set_is_as_jax_has_it():
    """The defaults that the other process knew count; without any, nothing tells what the other process had."""
    known, usual = known_defaults(), read_environment(jax.devices()[0])
    other = not jax.config.jax_softmax_custom_jvp
    know_defaults(replace(known, config=known.config | {"jax_softmax_custom_jvp": str(other)}))
    recreate(usual, "cpu")
    assert jax.config.jax_softmax_custom_jvp is other
    know_defaults(None)
    with pytest.raises(NotRecreatedError, match=r"^JAX's defaults are not known, so no process can have the settings"):
        recreate(usual, "cpu")
