"""Eleven slow-downs, each a small diff on ``programs.py`` and what its first culprit must say."""

from functools import partial

from tests.faults.model import faults_of

slowed = partial(faults_of("tests/faults/slowdowns/programs.py", kind="slow-down"), moves={"time"})

FAULTS = (
    slowed(
        "an extra sort",
        "ranked",
        ("    return y.sum(axis=0)\n", "    y = jnp.sort(y, axis=0)\n    return y.sum(axis=0)\n"),
        culprit=r"\bsort\b",
        at=("jnp.sort(y",),
    ),
    slowed(
        "a lost fusion",
        "chained",
        (
            "    for scale in (1.5, 0.5, 2.0, 0.25, 3.0, 0.125):\n        y = y * scale + 1\n    return y\n",
            "    scales = jnp.array((1.5, 0.5, 2.0, 0.25, 3.0, 0.125))\n"
            "    return jax.lax.fori_loop(0, 6, lambda i, y: y * scales[i] + 1, y)\n",
        ),
        at=("jax.lax.fori_loop",),
    ),
    slowed(
        "a transpose",
        "laid_out",
        ("    return y + 1\n", "    return (y + 1).T\n"),
        culprit=r"transpose",
        at=("(y + 1).T",),
    ),
    slowed(
        "float64",
        "precise",
        ("    y = x @ w\n    return jnp.tanh(y).sum()", "    y = x.astype(float) @ w\n    return jnp.tanh(y).sum()"),
        culprit=r"float64|f64",
    ),
    slowed(
        "a host callback",
        "observed",
        (
            "    return y.sum()\n\n\ndef test_observed",
            "    jax.debug.callback(lambda total: None, y.sum())\n    return y.sum()\n\n\ndef test_observed",
        ),
        culprit=r"callback",
    ),
    slowed("an unrolled loop", "recurrent", ("length=40)", "length=40, unroll=True)"), culprit=r"unrolled"),
    slowed(
        "a smaller step of an integration",
        "integrated",
        ("t + 0.05", "t + 0.01"),
        culprit=r"^a constant changed: 0\.05 → 0\.01",
    ),
    slowed(
        "attention that holds all scores",
        "attended",
        ("    return jax.lax.map(block, q.reshape(16, -1, q.shape[-1])).reshape(q.shape)\n", "    return block(q)\n"),
        at=("scores = ", "return scores @ v"),
    ),
    slowed(
        "an added all-gather",
        "summed",
        (
            '        return jax.lax.psum(y.sum(), "data")\n',
            '        y = jax.lax.all_gather(y, "data")\n        return jax.lax.pmean(y.sum(), "data")\n',
        ),
        culprit=r"all.gather",
        at=("jax.lax.all_gather",),
    ),
    slowed(
        "a loss fetched at every step",
        "trained",
        ("losses.append(loss)", "losses.append(float(loss))"),
        culprit=r"the host",
        at=("float(loss)",),
    ),
    slowed(
        "a doubled layer",
        "stacked",
        (
            "        x = jnp.tanh(x @ w[layer])\n",
            "        x = jnp.tanh(x @ w[layer])\n        x = jnp.tanh(x @ w[layer])\n",
        ),
        at=("x = jnp.tanh(x @ w[layer])",),
    ),
    slowed(
        "eigenvectors in place of a Cholesky factor",
        "whitened",
        (
            "    return jnp.linalg.cholesky(a) @ b\n",
            "    values, vectors = jnp.linalg.eigh(a)\n    return (vectors * jnp.sqrt(values)) @ (vectors.T @ b)\n",
        ),
        culprit=r"eigh",
        at=("jnp.linalg.eigh(a)",),
    ),
)
