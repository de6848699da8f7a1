"""Texts of projects that the attacks and the tests of whole runs both gate. Text alone: neither needs the other."""

DOUBLE = """
import jax.numpy as jnp, pytest

def step(x):
    return x * 2

def test_step(gate):
    gate(step, jnp.ones(64))
"""
FUSED = """
import jax.numpy as jnp

def step(x):
    y = x
    for _ in range(12):
        y = y * x + 0.5 - y * y * 0.1
    return y
"""
"""One fusion; without it every operation writes 4 MB."""
BATCH = """
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(w, x):
    return (x[:8, :8] * w).sum()

def batch():
    return BATCH

def test_step(gate):
    gate(step, jnp.float32(2.0), batch())
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

def test_step(gate):
    gate(step, Config(), jnp.eye(8), jnp.ones((8, 8)))
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

def test_step(gate):
    gate(step, State({f"k{i}": jnp.ones(4) for i in range(30)}), jnp.ones(4))
"""
FLATTEN = "        keys = tuple(sorted(self.parts))\n"
DEAR_FLATTEN = FLATTEN + "        for key in keys:\n            hashlib.sha256(key.encode()).hexdigest()\n"
WRAPPERS = """
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
    WRAPPERS
    + """
_inner = jax.jit(lambda w, x: jnp.tanh(x @ w))

def step(w, x):
    for _ in range(3):
        x = _inner(w, x)
    return x

def test_step(gate):
    gate(step, jnp.eye(8), jnp.ones((4, 8)))
"""
)
DONATING = "@functools.partial(jax.jit, donate_argnums=0)\n"
DONATED = "def step(w, x):\n    return w + x.sum()\n\ndef test_step(gate):\n    gate(step, jnp.eye(64), jnp.ones(8))\n"
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
    for (int i = 0; i < SIZE; i++) to[i] = from[i] * 2;
  return NULL;
}
"""
TURNS = "int turns(void) { return TURNS; }\n"
LOADED = """
import threading
import jax, jax.numpy as jnp
import loader

@jax.tree_util.register_pytree_node_class
class Batch:
    def __init__(self, x):
        self.x = x

    def tree_flatten(self):
        thread = threading.Thread(target=loader.load)
        thread.start()
        thread.join()
        return (self.x,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

@jax.jit
def step(batch):
    return jnp.tanh(batch.x)

def test_step(gate):
    gate(step, Batch(jnp.ones((64, 64))))
"""
"""Each call waits for the thread of a loader, which does what stands in ``loader.py``: a thread at work is always met."""
WIDTH = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--width", type=int, default=8)

@pytest.fixture
def width(request):
    return request.config.getoption("width")
"""
WIDE = """
import jax.numpy as jnp

def step(x):
    return jnp.tanh(x @ x)

def test_wide(gate, width):
    gate(step, jnp.ones((width, width)))
"""
