"""Attacks 3 to 6, and the order of devices of 21: the device program is the same, and what a call of it costs is not."""

from __future__ import annotations

import shutil
import subprocess

from attack import Attack, CannotRunError, Change, Seen, one_file, seen_of
from gated_sources import (
    BATCH,
    DEAR_FLATTEN,
    DEAR_HASH,
    DONATED,
    DONATING,
    FLATTEN,
    HANDLER,
    HASHED,
    LOOP,
    TREE,
    TURNS,
    WRAPPERS,
)
from scratch_project import Workshop

EIGHT = {"pytest.ini": "[pytest]\nperf_cpu_devices = 8\n"}
PLACED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def sharding():
    return NamedSharding(Mesh(np.array(jax.devices()), ("data",)), P("data"))

def load(x):
    return jax.device_put(x, sharding())

def make():
    return jax.jit(lambda x: jnp.tanh(x) * 2, in_shardings=(sharding(),), out_shardings=sharding())

def test_case(gate):
    gate(make(), load(jnp.ones((4096, 512))))
"""
MESH = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

def mesh():
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))

def test_case(gate):
    x = jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh(), P("a", "b")))
    gate(jax.jit(lambda x: x @ x.T), x)
"""
ON_DEVICE = "jnp.ones((1024, 1024))"
LEAVES = """
import jax, jax.numpy as jnp

@jax.jit
def step(rates, x):
    return sum(rates) * x

def rates():
    return [jnp.asarray(float(n)) for n in range(400)]

def test_case(gate):
    gate(step, rates(), jnp.ones(8))
"""
DEAR_NE = """class Names(tuple):
    def __ne__(self, other):
        return [hashlib.sha256(key.encode()).digest() for key in self] != [
            hashlib.sha256(key.encode()).digest() for key in other
        ]
"""
AT_EACH_CALL = LOOP.replace("_inner(w, x)", "jax.jit(lambda w, x: jnp.tanh(x @ w))(w, x)\n        time.sleep(0.001)")
NATIVE = """
import ctypes, jax, jax.numpy as jnp

if SPLIT:
    ctypes.CDLL("./libturns.so", mode=ctypes.RTLD_GLOBAL)
library = ctypes.CDLL("./libscale.so")
jax.ffi.register_ffi_target("scale", jax.ffi.pycapsule(library.handle), platform="cpu")

def step(x):
    return jax.ffi.ffi_call("scale", jax.ShapeDtypeStruct(x.shape, x.dtype))(x) + 1

def test_case(gate):
    gate(step, jnp.ones(65536))
"""


def _decorated(*decorators: str) -> dict[str, str]:
    return {"test_case.py": WRAPPERS + "\n" + "".join(decorators) + DONATED}


def _build(workshop: Workshop, name: str, sources: list[str], *options: str) -> str:
    """Build a library in the workshop's folder, and give its bytes' place."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise CannotRunError("no C compiler (cc)")
    ask = [workshop.python, "-c", "import jax; print(jax.ffi.include_dir())"]
    include = subprocess.run(ask, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    for file, text in {"handler.c": HANDLER, "turns.c": TURNS}.items():
        (workshop.folder / file).write_text(text)
    target = workshop.folder / name
    command = [compiler, "-O1", "-shared", "-fPIC", "-DSIZE=65536", f"-I{include}", *options, "-o", target, *sources]
    built = subprocess.run(command, cwd=workshop.folder, capture_output=True, text=True, check=False, timeout=60)
    if built.returncode:
        raise CannotRunError(f"the library could not be built: {built.stderr}")
    return str(target)


def _native(workshop: Workshop, *, split: bool) -> Seen:
    """A library is built again, and takes thirty times as long; ``split``: it is one that the target's library calls."""
    project = workshop.project({"test_case.py": NATIVE.replace("SPLIT", str(split))})

    def build(turns: int) -> None:
        parts = (
            {"libturns.so": ["turns.c"], "libscale.so": ["handler.c"]}
            if split
            else {"libscale.so": ["handler.c", "turns.c"]}
        )
        for name, sources in parts.items():
            # Moved into its place, as a linker would: the old file is mapped by nobody here.
            shutil.move(_build(workshop, name, sources, f"-DTURNS={turns}"), project.path / name)

    build(1)
    project.record()
    project.control()
    build(60)
    run = project.gate("--perf-max-undecided=1")
    return seen_of(run, ("UNDECIDED", "SLOWER", "REGRESSED"))


ATTACKS = (
    Attack(
        "3a",
        "an argument that is no longer on its devices",
        Change(
            EIGHT | {"test_case.py": PLACED},
            {"test_case.py": PLACED.replace("return jax.device_put(x, sharding())", "return x")},
        ),
    ),
    Attack(
        "3b",
        "a batch that becomes NumPy float64",
        one_file(BATCH.replace("BATCH", ON_DEVICE), (ON_DEVICE, "np.ones((1024, 1024), np.float64)")),
    ),
    Attack("3c", "400 arrays that become Python floats", one_file(LEAVES, ("jnp.asarray(float(n))", "float(n)"))),
    Attack("4a", "the hash of a static argument", one_file(HASHED, ("    depth: int = 2\n", DEAR_HASH))),
    Attack("4b", "the flattening of a pytree", one_file(TREE, (FLATTEN, DEAR_FLATTEN))),
    Attack("4c", "the comparison of a pytree's names", one_file(TREE, ("class Names(tuple):\n    pass\n", DEAR_NE))),
    Attack(
        "5a",
        "a jitted function that is made anew at each call",
        Change({"test_case.py": LOOP}, {"test_case.py": AT_EACH_CALL}, expected=("jitted anew at each call",)),
    ),
    Attack(
        "5b",
        "donation that is lost within a decorator",
        Change(_decorated("@logged\n", DONATING), _decorated("@logged\n@jax.jit\n")),
    ),
    Attack(
        "5c",
        "a decorator that changes nothing",
        Change(_decorated(DONATING), _decorated("@logged\n", DONATING), harmless=True),
    ),
    Attack(
        "5d",
        "donation that is lost within a callable object",
        Change(_decorated("@Logged\n", DONATING), _decorated("@Logged\n@jax.jit\n")),
    ),
    Attack(
        "21m",
        "another order of the devices in a mesh",
        Change(
            EIGHT | {"test_case.py": MESH},
            {"test_case.py": MESH.replace("reshape(2, 4)", "reshape(4, 2).T[::-1]")},
            held=("UNDECIDED",),
        ),
    ),
    Attack("6a", "native code that is built anew", lambda workshop: _native(workshop, split=False)),
    Attack("6b", "native code that the called library calls", lambda workshop: _native(workshop, split=True)),
)
