"""The variables that give a process an environment again."""

from __future__ import annotations

import os

import jax
import pytest

from jaxgate.observe.machine import NotRecreatedError, read_environment, recreate, variables_of

FLAG = "--xla_dump_to=/some/where"


def test_what_sets_something_is_that_of_the_environment_and_the_rest_stays():
    """A flag of today must not reach the baseline's side; where it lies and which devices it takes must."""
    base = {"PATH": "/bin", "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_today=1", "NCCL_PROTO": "LL", "OMP_PATH": "x"}
    found = variables_of({"jax": "0.10", "CUBLAS_MODE": "2", "NCCL_PROTO": "Simple"}, base)
    assert found == {
        "PATH": "/bin",
        "JAX_PLATFORMS": "cpu",
        "OMP_PATH": "x",
        "CUBLAS_MODE": "2",
        "NCCL_PROTO": "Simple",
    }


def test_a_path_is_had_from_here_or_not_at_all(monkeypatch):
    """The environment has its hash alone."""
    monkeypatch.setenv("XLA_FLAGS", f"  {FLAG}  --xla_other=1 ")
    shown = read_environment(jax.devices()[0])["XLA_FLAGS"]
    assert "/some/where" not in shown
    assert variables_of({"XLA_FLAGS": shown}, {})["XLA_FLAGS"].split() == [FLAG, "--xla_other=1"]
    monkeypatch.delenv("XLA_FLAGS")
    assert variables_of({"XLA_FLAGS": shown}, {"XLA_FLAGS": f"{FLAG} --xla_other=1"})["XLA_FLAGS"].startswith(FLAG)
    with pytest.raises(NotRecreatedError, match=r"^XLA_FLAGS names a path, of which a hash is stored$"):
        variables_of({"XLA_FLAGS": shown}, {"XLA_FLAGS": "--xla_dump_to=/else/where --xla_other=1"})


@pytest.fixture
def restored():
    """This process has its settings and its cores back."""
    cores, settings = os.sched_getaffinity(0), dict(jax.config.values)
    yield
    os.sched_setaffinity(0, cores)
    for name, value in settings.items():
        if jax.config.values[name] != value:
            jax.config.update(name, value)


@pytest.mark.usefixtures("restored")
def test_settings_and_cores_are_had_again():
    """Numbers, truth values, nothing and words; and it is seen whether it came out so."""
    usual = read_environment(jax.devices()[0])
    wanted = {"jax_default_matmul_precision": "bfloat16", "jax_enable_x64": "True", "jax_default_prng_impl": "rbg"}
    recreate(usual | wanted, "cpu")
    assert (jax.config.jax_default_matmul_precision, jax.config.jax_enable_x64) == ("bfloat16", True)
    recreate(usual, "cpu")
    assert (jax.config.jax_default_matmul_precision, jax.config.jax_enable_x64) == (None, False)
    if (count := os.cpu_count() or 1) > 1:
        recreate(usual | {"cores": f"1 of {count}"}, "cpu")
        assert len(os.sched_getaffinity(0)) == 1
    with pytest.raises(NotRecreatedError, match=r"^python was 2\.7, a process of its own has 3"):
        recreate(usual | {"python": "2.7"}, "cpu")
    with pytest.raises(NotRecreatedError, match=r"^100000 cores cannot be had|^cores was 100000 of 1"):
        recreate(usual | {"cores": "100000 of 1"}, "cpu")
    with pytest.raises(NotRecreatedError, match=r"^a process of its own would run on cpu$"):
        recreate(usual, "tpu")
