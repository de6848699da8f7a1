"""Faults of structure: the program is built otherwise, and more operations, more memory and larger products follow."""

from __future__ import annotations

from tests.faults.model import faults_of

structure = faults_of(kind="structure")

_WORK = frozenset({"matmul_flops", "xla_flops", "xla_bytes", "temp_bytes", "transcendentals", "stablehlo_ops"})
_MEMORY = frozenset({"temp_bytes", "xla_bytes"})

FAULTS = (
    structure(
        "a Cholesky factorisation becomes an LU factorisation",
        "linear_solve",
        ("jsl.cho_solve(jsl.cho_factor(kernel), targets)", "jnp.linalg.solve(kernel, targets)"),
        moves=_WORK,
        culprit=r"^a dearer library routine: Cholesky factorisation 48x48xf32 → LU factorisation",
        at=("return jnp.linalg.solve(",),
    ),
    structure(
        "the kernel is inverted",
        "linear_solve",
        ("jsl.cho_solve(jsl.cho_factor(kernel), targets)", "jnp.linalg.inv(kernel) @ targets"),
        moves=_WORK,
        culprit=r"^a dearer library routine: .* → LU factorisation 48x48xf32",
        at=("return jnp.linalg.inv(",),
    ),
    structure(
        "the kernel is taken apart into eigenvectors",
        "linear_solve",
        (
            "    return jsl.cho_solve(jsl.cho_factor(kernel), targets)\n",
            "    values, vectors = jnp.linalg.eigh(kernel)\n    return vectors @ ((vectors.T @ targets) / values[:, None])\n",
        ),
        moves=_WORK,
        culprit=r"^a dearer library routine: Cholesky factorisation 48x48xf32 → eigh 48x48xf32",
        at=("values, vectors = jnp.linalg.eigh(",),
    ),
    structure(
        "a pseudo-inverse, to be on the safe side",
        "linear_solve",
        ("jsl.cho_solve(jsl.cho_factor(kernel), targets)", "jnp.linalg.pinv(kernel) @ targets"),
        moves=_WORK,
        culprit=r"^a dearer library routine: Cholesky factorisation 48x48xf32 → SVD 48x48xf32",
        at=("return jnp.linalg.pinv(",),
    ),
    structure(
        "the best are found by sorting all",
        "linear_solve",
        (
            "best, places = jax.lax.top_k(predicted.T, BEST)",
            "places = jnp.argsort(-predicted.T, axis=-1)[:, :BEST]\n    best = jnp.take_along_axis(predicted.T, places, axis=-1)",
        ),
        moves=_WORK,
        culprit=r"^a dearer library routine: top_k 4x8xf32 → sort 4x256xf32",
        at=("places = jnp.argsort(",),
    ),
    structure(
        "a norm by singular values",
        "linear_solve",
        ("    return best, places", "    return best / jnp.linalg.norm(kernel, ord=2), places"),
        moves=_WORK,
        culprit=r"^a library routine that was not called before: SVD 48x48xf32 0 → 1",
        at=("jnp.linalg.norm(kernel, ord=2)",),
    ),
    structure(
        "numbers for a log that is gone are still computed",
        "linear_solve",
        (
            "    return best, places",
            "    for _ in range(60):\n        norm = jnp.sum(kernel * 2)\n    return best, places",
        ),
        moves={"trace_equations"},
        culprit=r"^traced and thrown away.*: 60 × (mul|reduce_sum)",
        at=("norm = jnp.sum(kernel * 2)",),
    ),
    structure(
        "every row is looked at, and the last one kept",
        "rnn_scan",
        (
            "    return params, loss\n",
            "    for row in [xs[0, 0, 0] for _ in range(BATCH * BATCH)]:\n        extra = row * 0\n    return params, loss + extra\n",
        ),
        moves={"trace_equations"},
        culprit=r"^traced and thrown away.*: \d+ × ",
        at=("for row in [xs[0, 0, 0]", "extra = row * 0"),
    ),
    structure(
        "what is asked for is checked for each pair of targets",
        "linear_solve",
        (
            "import numpy as np",
            "import numpy as np\n\n\ndef check(one, other):\n    assert one is not None and other is not None\n",
        ),
        (
            "    return best, places",
            "    for one in range(80):\n        for other in range(80):\n            check(one, other)\n    return best, places",
        ),
        moves={"trace_calls"},
        culprit=r"^tracing calls check 0 → 6400 at",
        at=("def check(one, other)",),
    ),
    structure(
        "a schedule is found by a recursion without a memory",
        "rnn_scan",
        (
            "RATE = 0.05",
            "RATE = 0.05\n\n\ndef rate_of(step):\n    return RATE if step < 2 else min(rate_of(step - 1), rate_of(step - 2))\n",
        ),
        ("lambda p, g: p - RATE * g", "lambda p, g: p - rate_of(18) * g"),
        moves={"trace_calls"},
        culprit=r"^tracing calls rate_of 0 → \d+",
        at=("def rate_of(step)",),
    ),
    structure(
        "the names of all layers are sorted by a function in each trace",
        "blocks",
        (
            "def forward(params, x):",
            "NAMES = [f'layer{number}' for number in range(9000)]\n\n\ndef rank(name):\n    return len(name)\n\n\ndef forward(params, x):",
        ),
        ("    body = jax.checkpoint(block)", "    NAMES.sort(key=rank)\n    body = jax.checkpoint(block)"),
        moves={"trace_calls"},
        culprit=r"^tracing calls rank 0 → 9000 at",
        at=("def rank(name)",),
    ),
    structure(
        "a solver goes on until nothing moves",
        "fixed_point",
        ("change > 1e-4", "change > 1e-6"),
        moves={"loop_turns"},
        culprit=r"^a loop takes more turns: while float32\[32,32\] \d+ → \d+",
        at=("jax.lax.while_loop(",),
    ),
    structure(
        "a solver starts far away",
        "fixed_point",
        ("args=(matrix, start)", "args=(matrix * 40, start * 0.01)"),
        ("matrix / jnp.linalg.norm(matrix)", "matrix / 40 / jnp.sqrt(jnp.float32(SIZE))"),
        moves={"loop_turns"},
        culprit=r"^a loop takes more turns, given other values of matrix, other values of start: while float32\[32,32\] \d+ → \d+",
        at=("jax.lax.while_loop(",),
    ),
    structure(
        "a table that is written in place is read in the same turn",
        "table",
        ("jnp.sum(row)", "jnp.sum(table[place - 1])"),
        moves={"copied_bytes"},
        culprit=r"^arrays are copied: copy float32\[2000,8\] 1 → 129",
        at=("jax.lax.scan(write",),
    ),
    structure(
        "two tables change places at each turn",
        "table",
        (
            "    return jax.lax.scan(write, table, (places, rows))",
            "    turn = lambda pair, given: ((pair[1], write(pair[0], given)[0]), jnp.sum(given[1]))\n"
            "    pair, sums = jax.lax.scan(turn, (table, table), (places, rows))\n    return pair[0], sums",
        ),
        moves={"copied_bytes"},
        culprit=r"^arrays are copied: copy float32\[2000,8\] 1 → 25\d",
        at=("jax.lax.scan(",),
    ),
    structure(
        "a table lies the other way round in a loop",
        "table",
        ("(table, changed, place, 0)", "(table.T, changed, place, 1).T"),
        moves={"copied_bytes"},
        culprit=r"^arrays are copied: copy float32\[(8,2000|2000,8)\] \d+ → ",
        at=("jax.lax.dynamic_update", "jax.lax.scan("),
    ),
    structure(
        "a scan is unrolled in part",
        "rnn_scan",
        ("None), first, xs)", "None), first, xs, unroll=8)"),
        moves=_WORK,
        culprit=r"^a loop is unrolled in part: stablehlo\.dot_general 32x32xf32 1 → 8",
        at=("return jnp.tanh(x @",),
    ),
    structure(
        "each token chooses its way, and takes both",
        "routing",
        (
            "lambda x: refined(routed(x, params, busy), rounds))(xs)",
            "lambda x, g: refined(routed(x, params, g > 0), rounds))(xs, gate)",
        ),
        moves=_WORK,
        culprit=r"^a cond became a select, as under vmap, and all its branches run: stablehlo\.case 1 → 0",
        at=("jax.lax.cond(busy",),
    ),
    structure(
        "the ways become a switch over the tokens",
        "routing",
        (
            "return jax.lax.cond(busy, lambda x: expert(x, params), lambda x: x, x)",
            "return jax.lax.switch((x[0] > 0).astype(int) + busy, [lambda x: x, lambda x: expert(x, params), jnp.cos], x)",
        ),
        moves=_WORK,
        culprit=r"^a cond became a select, as under vmap, and all its branches run: stablehlo\.case 1 → 0",
        at=("return jax.lax.switch(",),
    ),
    structure(
        "each token says how often it is refined",
        "routing",
        ("rounds))(xs)", "jnp.sum(x > 0)))(xs)"),
        moves=_WORK,
        culprit=r"^a while_loop, as under vmap, goes on until all of its batch are done: stablehlo\.select 24x32xf32",
        at=("return jax.lax.while_loop(",),
    ),
    structure(
        "the steps of an oscillator are all kept",
        "oscillator",
        ("nothing_saveable", "everything_saveable"),
        moves=_MEMORY,
        culprit=r"^less is recomputed, so more is kept: remat is lost or keeps more",
    ),
    structure(
        "the steps of an oscillator are not recomputed",
        "oscillator",
        ("step = jax.checkpoint(advance, policy=kept, prevent_cse=False)", "step = advance"),
        moves=_MEMORY,
        culprit=r"^less is recomputed, so more is kept: remat is lost or keeps more",
    ),
    structure(
        "blocks save their products",
        "blocks",
        ("jax.checkpoint(block)", "jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)"),
        moves=_MEMORY,
        culprit=r"^less is recomputed, so more is kept: remat is lost or keeps more",
    ),
    structure(
        "the samples are classified one by one",
        "inference",
        ("scores = scores_of(params, x)", "scores = jax.lax.map(lambda one: scores_of(params, one), x)"),
        moves={"kernels", "stablehlo_ops", "temp_bytes", "trace_calls", "xla_bytes"},
        culprit=r"^steps that were done all at once follow each other in a loop: stablehlo.while 0 → 1",
    ),
    structure(
        "each block draws a mask of its own",
        "dropout",
        ("x + jnp.where(mask, ", "x + jnp.where(mask_of(mask), "),
        ("    mask = mask_of(key)\n", "    mask = key\n"),
        moves=_WORK | {"random_bits"},
        culprit=r"^more random bits are drawn, now \d+ × uint32\[32,64\]",
    ),
    structure(
        "a mask is drawn by comparing two draws",
        "dropout",
        (
            "jax.random.bernoulli(key, SHARE, (BATCH, WIDTH))",
            "jnp.abs(jax.random.normal(key, (2, BATCH, WIDTH))).min(axis=0) < 2",
        ),
        moves={"random_bits"},
        culprit=r"^more random bits are drawn, now 1 × uint32\[2,32,64\]",
    ),
    structure(
        "a unit is drawn among all classes, and one of them stays",
        "dropout",
        (
            "jax.random.bernoulli(key, SHARE, (BATCH, WIDTH))",
            "jax.random.categorical(key, jnp.ones((BATCH, WIDTH, 10))) > 0",
        ),
        moves=_WORK | {"random_bits"},
        culprit=r"^more random bits are drawn, now 1 × uint32\[32,64,10\]",
    ),
    structure(
        "the policy of remat keeps a name that is no more",
        "dropout",
        ('weights["down"], "hidden")', 'weights["down"], "states")'),
        moves=_WORK | {"unmatched_names"},
        culprit=r"^no array has the name that a policy of jax.checkpoint says: 'hidden'",
    ),
    structure(
        "nothing has a name any more",
        "dropout",
        (
            'checkpoint_name(jnp.tanh(x @ weights["up"]) @ weights["down"], "hidden")',
            'jnp.tanh(x @ weights["up"]) @ weights["down"]',
        ),
        moves=_WORK | {"unmatched_names"},
        culprit=r"^no array has the name that a policy of jax.checkpoint says: 'hidden'",
    ),
    structure(
        "the policy of remat keeps all but a name that is written otherwise",
        "dropout",
        ('save_only_these_names("hidden")', 'save_any_names_but_these("Hidden")'),
        moves={"unmatched_names"},
        culprit=r"^no array has the name that a policy of jax.checkpoint says: 'Hidden'",
    ),
    structure(
        "the samples are padded to a power of two",
        "inference",
        (
            "    scores = scores_of(params, x)\n",
            "    scores = scores_of(params, jnp.pad(x, ((0, 128 - BATCH), (0, 0))))[:BATCH]\n",
        ),
        moves=_WORK,
        culprit=r"^arrays are padded: stablehlo\.pad 128x32xf32 0 → 1",
        at=("scores = scores_of(params, jnp.pad",),
    ),
    structure(
        "the samples are filled up with zeros",
        "inference",
        (
            "    scores = scores_of(params, x)\n",
            "    x = jnp.concatenate([x, jnp.zeros((4, FEATURES))])\n    scores = scores_of(params, x)[:BATCH]\n",
        ),
        moves=_WORK,
        culprit=r"^arrays are padded: stablehlo\.concatenate 64x32xf32 0 → 1",
        at=("x = jnp.concatenate(",),
    ),
)
