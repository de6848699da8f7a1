"""Laws of growth, end to end: ten mistakes that no fact shows at the size of a test."""

import os
import re

from support.corpora import EVERY, nightly

HEAD = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jaxgate import Growth, grows
def array(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)
def dense(x, w):
    return jnp.tanh(x @ w)
def layers_at(layers):
    return [array(8, 8)] * layers, array(4, 8)
def ones(at, **sizes):
    return jax.tree.map(lambda leaf: jnp.ones(leaf.shape, leaf.dtype), at(**sizes))
"""
NET = """
def {name}(ws, x):
    for number, w in enumerate(ws):
        x = dense(x, w){extra}
    return x
def test_{name}(gate):
    gate({name}, *ones(layers_at, layers=1), grow=Growth(layers_at, layers=[4, 8, 16]))
"""
STEPS = """
def {name}_at(steps):
    return array(8), array(steps, 8)
def {name}(h, xs):
    {body}
def test_{name}(gate):
    gate({name}, *ones({name}_at, steps=2), grow=Growth({name}_at, steps=[16, 32, 64]))
"""
PLANTS = {
    "checks": (
        NET.format(name="checks", extra="") + "def same(w):\n    return w.ndim\n",
        "x = dense(x, w)",
        "x = dense(x, w); [same(other) for other in ws[:number]]",
        r"trace_calls over layers: quadratic, was linear",
        r"quadratic: same is called 6 → 28 → 120 at test_laws.py:\d+",
    ),
    "converts": (
        NET.format(name="converts", extra="")
        + "def shapes(ws, depth=0):\n    return (ws[0].shape, *shapes(ws[1:])) if ws else ()\n",
        "x = dense(x, w)",
        "x = dense(x, w); shapes(ws[number + 1:])",
        r"trace_calls over layers: quadratic, was linear",
        r"quadratic: shapes is called 10 → 36 → 136 at test_laws.py:\d+",
    ),
    "unrolled": (
        STEPS.format(name="unrolled", body="return jax.lax.scan(lambda h, x: (jnp.tanh(h + x), None), h, xs)[0]"),
        "return jax.lax.scan(lambda h, x: (jnp.tanh(h + x), None), h, xs)[0]",
        "return jax.lax.fori_loop(0, 1, lambda _, h: sum((jnp.tanh(h + x) for x in xs), h), h)",
        r"over steps: linear, was constant",
        r"linear: stablehlo\.\w+ .* at test_laws.py:\d+, with steps",
    ),
    "attends": (
        """
def attends_at(seq):
    return array(seq, 8), array(seq, 8)
def attends(q, k):
    def block(at):
        return jax.nn.softmax(jax.lax.dynamic_slice_in_dim(q, at * 8, 8) @ k.T) @ k
    return jax.lax.map(block, jnp.arange(q.shape[0] // 8)).reshape(q.shape)
def test_attends(gate):
    gate(attends, *ones(attends_at, seq=8), grow=Growth(attends_at, seq=[64, 128, 256], claims=[grows("temp_bytes", "seq") <= 1]))
""",
        "    return jax.lax.map(block, jnp.arange(q.shape[0] // 8)).reshape(q.shape)",
        "    return jax.nn.softmax(q @ k.T) @ k",
        r"temp_bytes over seq: quadratic, was (at most )?linear",
        r"quadratic: stablehlo\.\w+, bytes of results .* at test_laws.py:\d+, with seq",
    ),
    "gathers": (
        """
def gathers_at(devices):
    mesh = jax.make_mesh((devices,), ("d",), devices=jax.devices()[:devices])
    return (jax.ShapeDtypeStruct((devices * 8, 16), jnp.float32, sharding=NamedSharding(mesh, PartitionSpec("d"))),)
def gathers(x):
    mesh = x.sharding.mesh if hasattr(x, "sharding") and x.sharding.mesh.shape else jax.typeof(x).sharding.mesh
    inner = lambda block: jax.lax.psum(block.sum(0), "d")
    return jax.shard_map(inner, mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec(), check_vma=False)(x)
def test_gathers(gate):
    gate(gathers, *gathers_at(1), grow=Growth(gathers_at, devices=[2, 4, 8]))
""",
        'jax.lax.psum(block.sum(0), "d")',
        'jax.lax.all_gather(block.sum(0), "d").sum(0)',
        r"collective_bytes over devices: linear, was constant",
        r"linear: stablehlo.all_gather, bytes of results 128 → 256 → 512 at test_laws.py:\d+, with devices",
    ),
    "carries": (
        STEPS.format(name="carries", body="return jax.lax.scan(lambda h, x: (jnp.tanh(h + x), None), h, xs)[0]"),
        "return jax.lax.scan(lambda h, x: (jnp.tanh(h + x), None), h, xs)[0]",
        "return jax.lax.scan(lambda c, x: ((jnp.tanh(c[0] + x + c[1][-1]), jnp.roll(c[1], 1, 0).at[0].set(x)), None), (h, 0 * xs), xs)[0][0]",
        r"copied_bytes over steps: quadratic, was linear",
        r"linear: stablehlo\.\w+, bytes of results .* at test_laws.py:\d+, with steps",
    ),
    "remats": (
        """
def remats_at(layers):
    return array(layers, 8, 8), array(1024, 8)
def remats(ws, x):
    def step(y, w):
        return jnp.tanh(jnp.tanh(y @ w) @ w), None
    def loss(ws):
        return jax.lax.scan(jax.checkpoint(step), x, ws)[0].sum()
    return jax.grad(loss)(ws)
def test_remats(gate):
    gate(remats, *ones(remats_at, layers=2), grow=Growth(remats_at, layers=[8, 16, 32]))
""",
        "jax.checkpoint(step)",
        "jax.checkpoint(step, policy=jax.checkpoint_policies.everything_saveable if len(ws) > 16 else None)",
        r"copied_bytes over layers: steeper than cubic, was linear",
        r"steeper than cubic: stablehlo\.\w+.* at test_laws.py:\d+, with layers",
    ),
    "captures": (
        """
def captures_at(batch):
    return (array(batch, 8),)
def captures(x):
    return x + jnp.arange(x.shape[0], dtype=jnp.float32)[:, None]
def test_captures(gate):
    gate(captures, *ones(captures_at, batch=2), grow=Growth(captures_at, batch=[16, 32, 64]))
""",
        "jnp.arange(x.shape[0], dtype=jnp.float32)[:, None]",
        "np.arange(x.shape[0], dtype=np.float32)[:, None]",
        r"constant_bytes over batch: linear, was constant",
        r"linear: captured arrays, bytes 64 → 128 → 256.*, with batch",
    ),
    "walks": (
        NET.format(name="walks", extra="") + "def is_large(leaf):\n    return leaf.size > 100\n",
        "x = dense(x, w)",
        "x = dense(x, w); any(map(is_large, jax.tree.leaves(ws)[: number + 1]))",
        r"trace_calls over layers: quadratic, was linear",
        r"quadratic: is_large is called 10 → 36 → 136 at test_laws.py:\d+",
    ),
    "sorts": (
        """
def sorts_at(tokens):
    return (array(4, tokens),)
def sorts(x):
    return jax.lax.top_k(x, 2)[0]
def test_sorts(gate):
    gate(sorts, *ones(sorts_at, tokens=8), grow=Growth(sorts_at, tokens=[64, 128, 256]))
""",
        "jax.lax.top_k(x, 2)[0]",
        "-jnp.sort(-x)[:, :2]",
        r"over tokens: linear, was constant",
        r"linear: stablehlo\.\w+.*, with tokens",
    ),
}


UNTIMED = "from jaxgate.judge.timing import phases\nphases.STORED_PHASE_POLICIES = ()\n"
"""A machine that runs two suites compiles 100 ms more slowly."""
OVER_DEVICES = ("gathers",)


def are_red_by_their_laws(project, tried, gate):
    """Record these, plant the mistakes: each is red with the part that carries the new term, and what is unchanged is the same."""
    same = HEAD + NET.format(name="same_law", extra="")
    project.write("test_laws.py", same + "".join(PLANTS[name][0] for name in tried))
    code, text = gate("--perf-update")
    assert code == 0, text
    mistaken = [good.replace(old, new) for good, old, new, *_ in map(PLANTS.get, tried)]
    project.write("test_laws.py", same + "".join(mistaken))
    _, text = gate()
    assert re.search(r"SAME +laws/same_law ", text), text
    parts = re.split(r"^_+ test_(\w+) _+$", text, flags=re.MULTILINE)[1:]
    texts = dict(zip(parts[::2], parts[1::2], strict=True))
    wrong = [name for name in tried if not says(texts.get(name, ""), *PLANTS[name][3:])]
    assert not wrong, "\n".join(texts.get(name, f"{name} is not red") for name in wrong)


def test_mistakes_are_red_by_their_laws(project):
    """A third of them by day."""

    def gate(*arguments):
        found = project.run("--benchmark-disable", *arguments)
        return found.code, found.text

    here = [name for name in PLANTS if name not in OVER_DEVICES]
    are_red_by_their_laws(project, here if os.environ.get(EVERY) else here[::3], gate)


@nightly
def test_a_mistake_over_devices_is_red_by_its_law(project):
    """In a process that has eight of them."""
    project.write("pyproject.toml", '[tool.pytest]\npythonpath = ["."]\nperf_cpu_devices = "8"\n')
    project.write("conftest.py", UNTIMED)

    def gate(*arguments):
        command = ("-m", "pytest", "-p", "no:cacheprovider", "--benchmark-disable", "--perf-profile=never")
        done = project.alone(*command, *arguments)
        return done.returncode, done.stdout

    are_red_by_their_laws(project, OVER_DEVICES, gate)


def says(text, found, culprit):
    """Whether a red text has the law that got worse, and begins its culprits with what carries it."""
    return bool(re.search(found, text) and re.search(f"culprit +{culprit}", text))


ARGUMENTS = """
import jax, jax.numpy as jnp
from jaxgate import Growth
def rows(n):
    return jax.ShapeDtypeStruct((n,), jnp.float32)
def test_donated(gate):
    grow = Growth(lambda n: (rows(n), rows(n)), n=[8, 16, 32])
    gate(lambda state, by: state - by, jnp.ones(8), jnp.ones(8), donate="state", grow=grow)
def test_named(gate):
    gate(lambda x, *, by: x - by, jnp.ones(8), kwargs={"by": jnp.ones(())}, grow=Growth(lambda n: (rows(n),), n=[8, 16, 32]))
def test_static(gate):
    gate(lambda x, axis: x.sum(axis), jnp.ones(8), "", grow=Growth(lambda n: (rows(n), ""), n=[8, 16, 32]))
"""


def test_arguments_are_taken_as_those_of_the_gate(project):
    """Donated ones, those by name, and what is no array."""
    project.write("test_model.py", ARGUMENTS.replace("x.sum(axis)", "x.sum() if not axis else x"))
    assert project.run("--perf-update", "--benchmark-disable").code == 0
    told = project.run("--benchmark-disable", "-v").text
    assert told.count("growth over n: argument_bytes linear") == 3


def test_a_broken_claim_is_not_recorded(project):
    broken = ARGUMENTS.replace("n=[8, 16, 32])", "n=[8, 16, 32], claims=[grows('argument_bytes', 'n') <= 0])").replace(
        "import Growth", "import Growth, grows"
    )
    result = project.write("test_model.py", broken).run("--perf-update", "--benchmark-disable", "-k", "named")
    assert (result.code, project.baselines()) == (1, {})
    result.shows(
        "argument_bytes over n ≤ 0: linear: 36 → 68 → 132", "culprit   perhaps linear: x, bytes 32 → 64 → 128, with n"
    )
