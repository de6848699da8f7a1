"""A program that calls a library: identity asks for the same library, whose code no program shows."""

import shutil
import subprocess

import jax
import pytest
from support.corpora import nightly

from ci.attacks.gated_sources import HANDLER, TURNS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc) to build a library with")

GATES = """
import ctypes, jax, jax.numpy as jnp

def twice(name):
    library = ctypes.CDLL(f"./lib{name}.so")
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(library.handle), platform="cpu")
    return lambda x: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x) + 1

def test_kept(gate):
    gate(twice("kept"), jnp.ones(4096))

def test_rebuilt(gate):
    gate(twice("rebuilt"), jnp.ones(4096))
"""


def build(project, name, *, turns):
    """Build a library in the project's folder."""
    library = project.path / f"lib{name}.so"
    library.unlink(missing_ok=True)
    (project.path / "handler.c").write_text(HANDLER + TURNS)
    options = ["-O1", "-shared", "-fPIC", f"-DTURNS={turns}", "-DSIZE=4096", f"-I{jax.ffi.include_dir()}"]
    subprocess.run(["cc", *options, "-o", library, "handler.c"], cwd=project.path, check=True)


@nightly
def test_a_library_that_was_built_anew_is_not_the_same(project):
    """Seen with identity by the program alone: 20 times slower, and SAME."""
    project.write("test_model.py", GATES)
    for name in ("kept", "rebuilt"):
        build(project, name, turns=1)
    recorded = project.alone("-m", "pytest", "--perf-update")
    assert recorded.returncode == 0, recorded.stdout
    build(project, "rebuilt", turns=30)
    shown = project.alone("-m", "pytest").stdout
    kept, rebuilt = (
        [line for line in shown.splitlines() if f"  model/{name}  " in line and not line.startswith("FAILED")][-1]
        for name in ("kept", "rebuilt")
    )
    assert kept.startswith("SAME")
    assert "identical program" in kept
    assert rebuilt.partition(" ")[0] in ("SLOWER", "UNDECIDED")  # a machine that is quiet enough to tell, or not
    assert "native code changed [librebuilt.so]" in shown
