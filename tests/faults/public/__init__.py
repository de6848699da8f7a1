"""Regressions that people reported in public trackers, each rebuilt as a small program and the change that made it worse.

The programs are ours, written from the descriptions. What a report blames on a release of a compiler, with the program as it
was, is not rebuilt here: ``jaxgate upgrade`` and ``--perf-against`` see it (``NOT_REBUILT``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import distributions

from jaxgate.ext.targets.compilers import COMPILERS
from jaxgate.ext.targets.model import Target
from tests.faults.model import Fault

SOURCES = "tests/faults/public/sources"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """One of them."""

    fault: Fault  # the program, the change, and what must be said of it
    project: str  # whose it was
    url: str  # the report
    fixed: str  # what the fix, or the answer, changed
    target: str = ""  # the hardware whose compiler shows it; empty if that of any CPU does


def regression(
    project: str, number: int | str, name: str, case: str, *edits: tuple[str, str], moves: Iterable[str], culprit: str,
    fixed: str, at: tuple[str, ...] = (), target: str = "",
) -> Regression:  # fmt: skip
    """One regression: project as ``owner/name``, its issue or ``commit/hash``, what happened, the program, the edits."""
    kind = project.rpartition("/")[2]
    fault = Fault(
        name=name, case=case, file=f"{SOURCES}/{case}.py", kind=kind, edits=edits, moves=frozenset(moves), culprit=culprit, at=at
    )  # fmt: skip
    url = f"https://github.com/{project}/{number if '/' in str(number) else f'issues/{number}'}"
    return Regression(fault=fault, project=project, url=url, fixed=fixed, target=target)


def can_compile(one: Regression) -> bool:
    """Whether the compiler that shows it is installed."""
    if not one.target:
        return True
    installed = {distribution.name for distribution in distributions()}
    return not installed.isdisjoint(COMPILERS[Target.parse(one.target).platform].packages)


_TRACES = {"traces", "lowerings", "compiles"}
_EAGER = {"traces", "lowerings", "compiles", "launches", "python_calls"}

REGRESSIONS = (
    regression(
        "google-deepmind/optax", 1440,
        "the average of a plateau begins with a weak type",
        "plateau",
        ('"average": jnp.zeros((), jnp.float32)', '"average": jnp.asarray(0.0)'),
        moves=_TRACES, culprit=r"state\['average'\].*weak",
        fixed="the state begins with the type that the update gives",
    ),
    regression(
        "google-deepmind/optax", 1171,
        "a line search makes its condition anew in every step",
        "line_search",
        (
            "length = search(is_too_long, halved,",
            "length = search(lambda p, g, x, a: is_too_long(p, g, x, a), halved,",
        ),
        moves=_EAGER, culprit=r"search: condition: static <function .*> is a new object",
        fixed="the functions of the loop are made once",
    ),
    regression(
        "google/jaxopt", 451,
        "a solver begins with a Python number as its step size",
        "solver_state",
        ("stepsize=jnp.ones((), jnp.float32)", "stepsize=1.0"),
        moves=_TRACES, culprit=r"state\.stepsize: Python float",
        fixed="both states have the same types",
    ),
    regression(
        "pyro-ppl/numpyro", 463,
        "a model is compiled once for the warm-up and once for the samples",
        "sampler",
        ('"scale": jnp.float32(1.0)', '"scale": jnp.asarray(1.0)'),
        moves=_TRACES, culprit=r"z\['scale'\].*weak",
        fixed="positions lose their weak types before the first step",
    ),
    regression(
        "google-deepmind/optax", 577,
        "an optimiser that is made anew is another one to jit",
        "new_optimiser",
        (
            'class Sgd(NamedTuple):\n    """An optimiser by its numbers."""\n\n    rate: float\n    momentum: float\n',
            'class Sgd:\n    """An optimiser."""\n\n    def __init__(self, rate, momentum):\n        self.rate, self.momentum = rate, momentum\n',
        ),
        moves=_TRACES, culprit=r"optimiser: static",
        fixed="nothing yet: users compare optimisers by their numbers",
    ),
    regression(
        "google-deepmind/optax", 328,
        "the correction of Adam's bias compiles a power for each step",
        "bias_correction",
        ("jnp.float32(DECAY) ** jnp.float32(count)", "jnp.float32(DECAY) ** count"),
        moves=_EAGER, culprit=r"integer_pow: called with a new signature",
        fixed="the exponent is an array",
    ),
    regression(
        "patrick-kidger/equinox", 1062,
        "a number of a module that changes is part of its structure",
        "module_counter",
        (
            'data_fields=["weight", "steps"], meta_fields=[]',
            'data_fields=["weight"], meta_fields=["steps"]',
        ),
        ("Model(jnp.ones((8, 4)), jnp.int32(0))", "Model(jnp.ones((8, 4)), 0)"),
        moves=_TRACES, culprit=r"model: the tree changed",
        fixed="numbers that change are arrays",
    ),
    regression(
        "jax-ml/jax", 27748,
        "the checkpoint around a block of a scan has no effect any more",
        "blocked_scan",
        ("@jax.checkpoint\ndef block", "def block"),
        moves={"temp_bytes"}, culprit=r"remat is lost or keeps more",
        fixed="remat around the loop of a block",
    ),
    regression(
        "patrick-kidger/diffrax", 231,
        "an adjoint keeps every state on the way",
        "ode_adjoint",
        ("kept = jax.checkpoint(segment)", "kept = segment"),
        moves={"temp_bytes"}, culprit=r"remat is lost or keeps more",
        fixed="only some states are kept by default",
    ),
    regression(
        "marin-community/marin", 5394,
        "a ragged product becomes a dense one of all experts",
        "experts",
        (
            "return jax.lax.ragged_dot(tokens, weights, sizes)",
            "expert = jnp.repeat(jnp.arange(EXPERTS), sizes, total_repeat_length=TOKENS)\n"
            '    dense = jnp.einsum("td,edf->etf", tokens, weights)\n'
            "    return jnp.take_along_axis(dense, expert[None, :, None], axis=0)[0]",
        ),
        moves={"matmul_flops", "temp_bytes", "xla_flops"}, culprit=r"float32\[8,32,32\] x float32\[64,32\] 0 → 1",
        fixed="the setting that lowers ragged products in another way is off",
    ),
    regression(
        "instadeepai/flashbax", 6,
        "a replay buffer is copied in every step",
        "replay_buffer",
        ("jax.jit(add, donate_argnums=0)", "jax.jit(add)"),
        moves={"donated_bytes", "aliased_bytes"}, culprit=r"no longer donated: buffer\['data'\]",
        fixed="the buffer is donated on CPU as well",
    ),
    regression(
        "jax-ml/jax", 8192,
        "a write that is guarded by cond copies the whole array once it is batched",
        "guarded_write",
        (
            'return values.at[step].set(1.0, mode="drop"), None',
            "return jax.lax.cond(step < LENGTH + values[0], lambda: values.at[step].set(1.0), lambda: values), None",
        ),
        moves={"xla_bytes", "temp_bytes", "stablehlo_ops", "xla_flops"},
        culprit=r"^arrays are copied: copy float32\[64,64\] 1 → \d+",
        fixed="guards are written with select on the element",
    ),
    regression(
        "jax-ml/jax", 7159,
        "vmap of a cond multiplies by both matrices",
        "chosen_product",
        (
            "return jax.lax.map(lambda x: chosen(x, first, second), xs)",
            "return jax.vmap(chosen, (0, None, None))(xs, first, second)",
        ),
        moves={"matmul_flops", "xla_flops", "temp_bytes", "xla_bytes"}, culprit=r"a cond became a select",
        fixed="open: the report asks for products that share an operand",
    ),
    regression(
        "jax-ml/jax", 13012,
        "random numbers for an array on several devices are made in one order",
        "sharded_noise",
        (
            "    return x + jax.random.normal(key, x.shape)",
            "    with jax.threefry_partitionable(False):\n        return x + jax.random.normal(key, x.shape)",
        ),
        moves={"collectives", "collective_bytes", "temp_bytes", "xla_flops", "xla_bytes", "stablehlo_ops"},
        culprit=r"(all-gather|collective-permute) uint32.* \(inserted\)",
        fixed="each number by itself, by default since",
    ),
    regression(
        "blackjax-devs/blackjax", 711,
        "the jitted step of a sampler is not the one that is called",
        "sampling_loop",
        ("position, key = STEP(position, key)", "position, key = kernel(position, key)"),
        moves=_EAGER, culprit=r"programs started in a call: \w+ 0 → 8",
        fixed="the jitted step is called",
    ),
    regression(
        "google-deepmind/optax", 499,
        "a loss spreads its labels over all classes",
        "class_loss",
        (
            "right = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]",
            "right = jnp.sum(jax.nn.one_hot(labels, CLASSES) * logits, axis=-1)",
        ),
        moves={"xla_flops", "temp_bytes", "xla_bytes", "stablehlo_ops"}, culprit=r"stablehlo\.multiply 128x1024xf32", at=("jax.nn.one_hot",),
        fixed="the loss with whole numbers as labels",
    ),
    regression(
        "patrick-kidger/equinox", 1082,
        "a loop reads the buffer that it writes, so that each step copies it",
        "buffer_in_loop",
        (
            "state = jnp.sin(state) + 0.1\n        return state, buffer.at[number].set(state)",
            "state = jnp.sin(state) + 0.1\n        written = buffer.at[number].set(state)\n"
            "        return jnp.maximum(state, buffer[STEPS - 1 - number]), written",
        ),
        moves={"copied_bytes"}, culprit=r"^arrays are copied: copy float32\[64,256\] 0 → 128",
        fixed="the buffer is read before it is written",
    ),
    regression(
        "jax-ml/jax", 38145,
        "a cond that hands the weights on as they are copies all of them in each turn of a scan",
        "trained_at_times",
        (
            "    weights = jax.tree.map(lambda new, old: jnp.where(now, new, old), trained(weights, x), weights)\n",
            "    weights = jax.lax.cond(now, lambda w: trained(w, x), lambda w: w, weights)\n",
        ),
        moves={"copied_bytes"}, culprit=r"^arrays are copied: copy float32\[64,64\] 103 → 203",
        fixed="open; select in place of cond, which makes the new weights in every turn",
    ),
    regression(
        "google-deepmind/mujoco", 2306,
        "the time of a simulation begins with a weak type",
        "simulation",
        ('"time": jnp.zeros((), jnp.float32)', '"time": jnp.asarray(0.0)'),
        moves=_TRACES, culprit=r"state\['time'\].*weak",
        fixed="the state begins with the type that the step gives",
    ),
    regression(
        "patrick-kidger/equinox", 983,
        "a wrapper looks at the stack in every call",
        "wrapped_call",
        (
            '    return "user"',
            "    return [frame.name for frame in traceback.extract_stack()][-1]",
        ),
        ("import jax\nimport jax.numpy as jnp\n", "import traceback\n\nimport jax\nimport jax.numpy as jnp\n"),
        moves={"python_calls"}, culprit=r"Python in each call: traceback\.",
        fixed="a mark in the frame, which costs nothing",
    ),
    regression(
        "AI-Hypercomputer/maxtext", "commit/32b0a4f",
        "no array has the name that the policy of remat keeps",
        "remat_names",
        ('save_only_these_names("mlp")', 'save_only_these_names("mlp_out")'),
        moves={"unmatched_names", "matmul_flops", "xla_flops", "kernels"}, culprit=r"^no array has the name that a policy of jax\.checkpoint says: 'mlp_out'",
        fixed="the policy has the names of the model",
    ),
    regression(
        "AI-Hypercomputer/maxtext", "commit/655c636",
        "the weights of a scan with remat are among what each turn gives, and stacked anew",
        "stacked_weights",
        ("return jnp.tanh(x @ weights), None", "return jnp.tanh(x @ weights), weights"),
        moves={"output_bytes", "temp_bytes", "xla_bytes", "copied_bytes", "state_bytes"}, culprit=r"^more is returned: result\[1\] is float32\[12,128,128\]",
        fixed="the weights are not among the results of a turn",
    ),
    regression(
        "jax-ml/jax", 40041,
        "tracing looks through all that was traced before",
        "traced_layers",
        ("if name not in self.known:", "if not any(name == other for other in self.names):"),
        moves={"trace_calls"}, culprit=r"^tracing calls Register\.add",
        fixed="a set of what is known",
    ),
    regression(
        "jcmgray/autoray", 30,
        "tracing walks a nested tree again in each of its lists",
        "nested_tree",
        ("    factor, *inner = node\n", "    factor, *inner = node\n    assert depth_of(node) > 0\n"),
        moves={"trace_calls"}, culprit=r"^tracing calls depth_of",
        fixed="the tree is walked once",
    ),
    regression(
        "openxla/xla", 15207,
        "two layers ask for an array along different axes of the mesh",
        "two_shardings",
        ("jnp.sin(x), spread)", 'jnp.sin(x), jax.NamedSharding(mesh, jax.P("y", "x")))'),
        moves={"collectives", "collective_bytes", "temp_bytes", "xla_bytes", "kernels"},
        culprit=r"^(all-gather|collective-permute|all-to-all) .*\(inserted\) 0 → \d",
        fixed="both layers ask for the same",
    ),
    regression(
        "AI-Hypercomputer/maxtext", "commit/33a1d71",
        "a step is compiled ahead for a batch that lies elsewhere, and once more for the real one",
        "ahead_of_time",
        ("jnp.float32, sharding=spread)", "jnp.float32)"),
        moves={"first_programs"},
        culprit=r"^the first call compiles more programs of a function: loss_of 1 → 2 ",
        at=("step.lower(", "return step("),
        fixed="the batch that is described has the sharding of the real one",
    ),
    regression(
        "google/flax", 4336,
        "objects of a graph know their owner, so that only the collector frees them, in a pause now and then",
        "module_graph",
        ("Module(number) for number", "Module(graph) for number"),
        moves={"cyclic_objects"}, culprit=r"^each step makes reference cycles.*: 31 × Module",
        fixed="open; nothing that refers back, or `gc.freeze`",
    ),
    regression(
        "patrick-kidger/equinox", 973,
        "a library's own way to jit works in Python at each call; its release of today waits for the result, too",
        "filtered_call",
        ("jitted = jax.jit", "jitted = eqx.filter_jit"),
        moves={"python_calls"}, culprit=r"^waits for the device in each call: jax.Array.block_until_ready 0 → 1",
        fixed="fewer checks at each call (#983); `jax.jit` where all leaves are arrays",
    ),
    regression(
        "jax-ml/jax", 39959,
        "sums by segment write single numbers, far apart in the memory of a GPU",
        "column_sums",
        ("in_axes=1, out_axes=1", "in_axes=1, out_axes=0"),
        moves={"scattered_bytes"}, culprit=r"^elements are picked far apart in memory: scatter apart in float32\[64,512\] 0 → 1",
        fixed="open; sums whose columns lie side by side are fast", at=("jax.ops.segment_sum(",), target="gpu:h200:1",
    ),
)  # fmt: skip

NOT_REBUILT = {
    "https://github.com/jax-ml/jax/issues/20381": "today's partitioner leaves shuffled rows on their devices: nothing is gathered",
    "https://github.com/blackjax-devs/blackjax/issues/746": "the CPU runtime of jaxlib 0.4.32 made the same programs slower",
    "https://github.com/liesel-devs/liesel/issues/242": "the same change of jaxlib, seen by another library",
    "https://github.com/pyro-ppl/numpyro/issues/2225": "a GPU's routine for the same model became slow between two releases",
    "https://github.com/openxla/xla/issues/45912": "buffer assignment of jaxlib 0.7.2; releases before and after are not installed",
    "https://github.com/jax-ml/jax/issues/30627": "memory grew with a release, and the report has no small program",
    "https://github.com/jax-ml/jax/issues/21236": "a program that is another one in each process: tests/runs/test_second_process.py",
    "https://github.com/goodfire-ai/spd/issues/932": "a restored state that is not donated: tests/loop/test_watch.py",
    "https://github.com/google/orbax/issues/1640": "a save that needs several times the state: tests/loop/test_watch.py",
    "https://github.com/google/orbax/issues/2090": "a save that keeps memory: tests/loop/test_watch.py",
    "https://github.com/jax-ml/jax/issues/16649": "a start that compiles again what is cached: tests/runs/test_start.py",
    "https://github.com/jax-ml/jax/issues/25123": "a program that names a place in memory: tests/runs/test_second_process.py",
    "https://github.com/jax-ml/jax/issues/40312": "a program that earlier traces decide: tests/runs/test_second_process.py",
    "https://github.com/jax-ml/jax/issues/1130": "compiling became slower inside of JAX: phases show it, with a clock",
}
"""Reports whose program did not change, with what did."""
