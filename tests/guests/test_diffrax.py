"""Diffrax: an adaptive solve, and a step that trains through it."""

from support.corpora import nightly

from guests.plants import plant, test_planted, test_unchanged_in_a_recipe

pytestmark = nightly

ODE = """
import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

WIDTH = 16
RTOL = 1e-3


def field(t, y, params):
    up, down = params
    return jnp.tanh(y @ up) @ down


def solve(params, y, dt=0.1):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=1.0,
        dt0=dt,
        y0=y,
        args=params,
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=1e-6),
        saveat=diffrax.SaveAt(t1=True),
        max_steps=16,
        throw=False,
    )
    return solution.ys[0]


def solve_all(params, ys):
    return jax.vmap(lambda y: solve(params, y))(ys)


OPTIMIZER = optax.adam(1e-3)


@eqx.filter_jit(donate="all-except-first")
def train_step(ys, params, state, dt):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean(jax.vmap(lambda y: solve(p, y, dt))(ys) ** 2))(params)
    updates, state = OPTIMIZER.update(grads, state)
    return optax.apply_updates(params, updates), state, loss


def step(params, state, ys):
    params, state, loss = train_step(ys, params, state, 0.1)
    return params, state, loss
"""

TESTS = """
import jax.numpy as jnp
from ode import OPTIMIZER, WIDTH, solve_all, step

PARAMS = (jnp.full((WIDTH, 2 * WIDTH), 0.1, jnp.float32), jnp.full((2 * WIDTH, WIDTH), 0.1, jnp.float32))
YS = jnp.linspace(0.0, 1.0, 8 * WIDTH).reshape(8, WIDTH)


def test_solve_all(gate):
    gate(solve_all, PARAMS, YS)


def test_step(gate):
    gate(step, PARAMS, OPTIMIZER.init(PARAMS), YS, eager=True, carry=("params", "state"))
"""

FILES = {"ode.py": ODE, "test_ode.py": TESTS}

PLANTS = [
    plant(
        "donation dropped",
        "test_step",
        ("ode.py", '@eqx.filter_jit(donate="all-except-first")', "@eqx.filter_jit"),
        finds="donated_bytes",
        culprit=r"^no longer donated: params\[0\], params\[1\]",
    ),
    plant(
        "every step of the solver is kept for the gradient",
        "test_step",
        ("ode.py", "        max_steps=16,\n", "        max_steps=16,\n        adjoint=diffrax.DirectAdjoint(),\n"),
        finds="matmul_flops",
        culprit=r"^float32\[8,32\] x float32\[(32,16|16,32)\] 0 → \d\d+",
    ),
    plant(
        "the loss is printed at each step",
        "test_step",
        (
            "ode.py",
            "    return params, state, loss\n",
            '    print(f"loss {loss.item():.3f}")\n    return params, state, loss\n',
        ),
        finds="host_reads",
        culprit=r"^read back in each call: .*item",
        at="loss.item()",
    ),
    plant(
        "the solver is a Python loop of Euler steps",
        "test_solve_all",
        (
            "ode.py",
            "    return solution.ys[0]\n",
            "    for _ in range(16):\n        y = y + field(0.0, y, params) / 16\n    return y + 0 * solution.ys[0]\n",
        ),
        finds="matmul_flops",
        culprit=r"^float32\[8,32\] x float32\[32,16\] 0 → 16",
        at="jnp.tanh",
    ),
    plant(
        "a solver of higher order",
        "test_solve_all",
        ("ode.py", "diffrax.Tsit5()", "diffrax.Dopri8()"),
        finds="matmul_flops",
        culprit=r"^the same products of larger arrays: float32\[7\] x float32\[8,7,16\] each turn → float32\[14\]",
    ),
    plant(
        "all steps are returned",
        "test_solve_all",
        ("ode.py", "SaveAt(t1=True)", "SaveAt(t1=True, steps=True)"),
        ("ode.py", "return solution.ys[0]", "return solution.ys"),
        finds="output_bytes",
        culprit=r"^more is returned: .*float32\[8,1\d,16\]",
        wrong="a guess at operations comes before the result that grew, as it explains more facts",
    ),
    plant(
        "vmap becomes a Python loop",
        "test_solve_all",
        ("ode.py", "jax.vmap(lambda y: solve(params, y))(ys)", "jnp.stack([solve(params, y) for y in ys[:4]] * 2)"),
        finds="stablehlo_ops",
        culprit=r"stablehlo\.scatter 7x16xf32 0 → 8",
        at="solution = diffrax",
    ),
    plant(
        "the field is evaluated twice",
        "test_solve_all",
        (
            "ode.py",
            "return jnp.tanh(y @ up) @ down",
            "return (jnp.tanh(y @ up) @ down + jnp.tanh(1.01 * y @ up) @ down) / 2",
        ),
        finds="matmul_flops",
        culprit=r"^float32\[8,(16|32)\] x float32\[(16,32|32,16)\] each turn 1 → 2",
        at="jnp.tanh",
    ),
    plant(
        "a tighter tolerance takes more steps",
        "test_solve_all",
        ("ode.py", "RTOL = 1e-3", "RTOL = 1e-7"),
        finds="time",
        culprit=r"1e-0?7|0\.001",
        wrong="missed without a clock: no fact counts the turns of a loop of unknown length",
    ),
]
