"""Attacks 3 to 6, and the order of devices of 21: the device program is the same, and what a call of it costs is not."""

from __future__ import annotations

import shutil
import subprocess

from attack import Attack, CannotRunError, Change, Seen, seen_of
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
BATCH = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(w, x):
    return (x[:8, :8] * w).sum()

def batch():
    return jnp.ones((1024, 1024))

def test_case(gate):
    gate(step, jnp.float32(2.0), batch())
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
HASHED = """
import dataclasses, functools, hashlib, json
import jax, jax.numpy as jnp

@dataclasses.dataclass(frozen=True)
class Config:
    depth: int = 2

@functools.partial(jax.jit, static_argnums=0)
def step(config, w, x):
    for _ in range(config.depth):
        x = jnp.tanh(x @ w)
    return x

def test_case(gate):
    gate(step, Config(), jnp.eye(64), jnp.ones((64, 64)))
"""
DEAR_HASH = """    depth: int = 2

    def __hash__(self):
        text = json.dumps({str(i): self.depth for i in range(2000)}).encode()
        return int(hashlib.sha256(text).hexdigest()[:8], 16)
"""
TREE = """
import hashlib
import jax, jax.numpy as jnp

class Names(tuple):
    pass

@jax.tree_util.register_pytree_node_class
class State:
    def __init__(self, parts):
        self.parts = parts

    def tree_flatten(self):
        keys = tuple(sorted(self.parts))
        return tuple(self.parts[key] for key in keys), Names(keys)

    @classmethod
    def tree_unflatten(cls, keys, values):
        return cls(dict(zip(keys, values)))

@jax.jit
def step(state, x):
    return sum(state.parts.values()) + x

def test_case(gate):
    gate(step, State({f"k{i}": jnp.ones(4) for i in range(30)}), jnp.ones(4))
"""
FLATTEN = "        keys = tuple(sorted(self.parts))\n"
DEAR_FLATTEN = FLATTEN + "        for key in keys:\n            hashlib.sha256(key.encode()).hexdigest()\n"
DEAR_NE = """class Names(tuple):
    def __ne__(self, other):
        return [hashlib.sha256(key.encode()).digest() for key in self] != [
            hashlib.sha256(key.encode()).digest() for key in other
        ]
"""
HEAD = """
import functools, time, jax, jax.numpy as jnp

def logged(function):
    @functools.wraps(function)
    def calls_through(*args, **kwargs):
        return function(*args, **kwargs)
    return calls_through

class Logged:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)
"""
LOOP = (
    HEAD
    + """
_inner = jax.jit(lambda w, x: jnp.tanh(x @ w))

def step(w, x):
    for _ in range(3):
        x = _inner(w, x)
    return x

def test_case(gate):
    gate(step, jnp.eye(8), jnp.ones((4, 8)))
"""
)
AT_EACH_CALL = LOOP.replace("_inner(w, x)", "jax.jit(lambda w, x: jnp.tanh(x @ w))(w, x)\n        time.sleep(0.001)")
STEP = "def step(w, x):\n    return w + x.sum()\n\ndef test_case(gate):\n    gate(step, jnp.eye(128), jnp.ones(8))\n"
DONATING = "@functools.partial(jax.jit, donate_argnums=0)\n"
HANDLER = """
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "xla/ffi/api/c_api.h"

int turns(void);

XLA_FFI_Error *handle(XLA_FFI_CallFrame *frame) {
  if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *about = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
    about->api_version.major_version = XLA_FFI_API_MAJOR;
    about->api_version.minor_version = XLA_FFI_API_MINOR;
    return NULL;
  }
  const float *from = ((XLA_FFI_Buffer *)frame->args.args[0])->data;
  volatile float *to = ((XLA_FFI_Buffer *)frame->rets.rets[0])->data;
  for (int turn = 0; turn < turns(); turn++)
    for (int i = 0; i < 65536; i++) to[i] = from[i] * 2;
  return NULL;
}
"""
TURNS = "int turns(void) { return TURNS; }\n"
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
    return {"test_case.py": HEAD + "\n" + "".join(decorators) + STEP}


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
    command = [compiler, "-O1", "-shared", "-fPIC", f"-I{include}", *options, "-o", target, *sources]
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


def _file(before: str, *changes: tuple[str, str], **options: object) -> Change:
    """A change of the one test file."""
    after = before
    for old, new in changes:
        if after.count(old) != 1:
            raise ValueError(f"expected {old!r} once")
        after = after.replace(old, new)
    return Change({"test_case.py": before}, {"test_case.py": after}, **options)  # type: ignore[arg-type]


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
        _file(BATCH, ("jnp.ones((1024, 1024))", "np.ones((1024, 1024), np.float64)")),
    ),
    Attack("3c", "400 arrays that become Python floats", _file(LEAVES, ("jnp.asarray(float(n))", "float(n)"))),
    Attack("4a", "the hash of a static argument", _file(HASHED, ("    depth: int = 2\n", DEAR_HASH))),
    Attack("4b", "the flattening of a pytree", _file(TREE, (FLATTEN, DEAR_FLATTEN))),
    Attack("4c", "the comparison of a pytree's names", _file(TREE, ("class Names(tuple):\n    pass\n", DEAR_NE))),
    Attack(
        "5a",
        "a jitted function that is made anew at each call",
        Change({"test_case.py": LOOP}, {"test_case.py": AT_EACH_CALL}, held=("SAME",), expected=("calls jitted",)),
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
