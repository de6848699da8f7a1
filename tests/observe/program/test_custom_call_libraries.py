"""Native code: whose it is, and which file holds it."""

import ctypes

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.program.custom_call_libraries import _file_at, _library, find_native_code
from jaxgate.observe.trace.stablehlo import read_structure


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (["stablehlo.custom_call @my_scale 64xf32", "stablehlo.add 64xf32"], ["my_scale"]),
        (["stablehlo.custom_call @lapack_spotrf_ffi 64xf32", "stablehlo.custom_call @Sharding 8xf32"], []),
        (
            [
                "stablehlo.custom_call @xla_ffi_python_cpu_callback f32",
                "stablehlo.custom_call @xla.sdy.FuncResultSharding",
            ],
            [],
        ),
        (["stablehlo.custom_call @b", "stablehlo.custom_call @a f32", "stablehlo.custom_call @a i32"], ["a", "b"]),
        ([], []),
    ],
)
def test_native_code_of_somebody_elses_is_named(operations, found):
    """What comes with JAX and XLA is in the environment by its version; of what nobody registered no library is known."""
    assert find_native_code(operations, "cpu") == dict.fromkeys(found, "")


def test_a_call_of_a_library_is_found_in_a_program():
    """As ``jax.ffi`` writes it, without the library."""
    call = jax.ffi.ffi_call("my_scale", jax.ShapeDtypeStruct((4,), jnp.float32))
    module = jax.jit(lambda x: call(x) + 1).lower(jnp.ones(4)).compiler_ir("stablehlo")
    assert find_native_code(read_structure(module, lines=False).operations, "cpu") == {"my_scale": ""}


@pytest.mark.parametrize("platform", ["cpu", "tpu", "no such platform"])
def test_a_platform_without_registered_targets_has_none(platform):
    """It is asked by its name alone; whether there is such a device does not matter."""
    assert find_native_code(["stablehlo.custom_call @nowhere"], platform) == {"nowhere": ""}


def test_who_holds_an_address():
    """The file that is loaded there; nobody at address 0."""
    function = ctypes.pythonapi.Py_IsInitialized
    path = _file_at(ctypes.cast(function, ctypes.c_void_p).value)
    assert path is not None
    assert "python" in path.name
    assert _file_at(0) is None


def test_a_system_that_does_not_tell_knows_no_library(monkeypatch, tmp_path):
    monkeypatch.setattr("jaxgate.observe.program.custom_call_libraries._MAPPED", tmp_path / "none")
    assert _file_at(1) is None


def test_a_file_that_was_replaced_since_it_was_loaded_is_not_hashed(monkeypatch, tmp_path):
    """Its content is not what runs. Linux says that the loaded one is gone."""
    maps, library = tmp_path / "maps", tmp_path / "libscale.so"
    library.write_text("new")
    monkeypatch.setattr("jaxgate.observe.program.custom_call_libraries._MAPPED", maps)
    for end, found in (("", library), (" (deleted)", None)):
        maps.write_text(f"1000-2000 r-xp 00000000 00:00 0\n2000-3000 r-xp 00000000 fe:00 1234    {library}{end}\n")
        assert _file_at(0x2FFF) == found
        assert _file_at(0x1000) is None


def test_a_library_that_cannot_be_read_is_not_known(monkeypatch):
    """The case is UNDECIDED by that; what was measured is not lost."""

    def refuse(*_):
        raise PermissionError("on purpose")

    monkeypatch.setattr("jaxgate.observe.program.custom_call_libraries._digest", refuse)
    assert _library("xla_ffi_python_cpu_callback", "cpu") == ""
    monkeypatch.undo()
    assert _library("xla_ffi_python_cpu_callback", "cpu")
