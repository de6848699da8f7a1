"""Planted mistakes, through the real plugin: each turns the right case red and names its culprit."""

from __future__ import annotations

import shutil

import pytest
from support.corpora import compiled_quickly, one_of

pytestmark = pytest.mark.usefixtures("short_duels")

SCANNED = "last, _ = jax.lax.scan(lambda h, x: (cell(params, h, x), None), hidden, xs)\n    return last"

PLANTS = {
    "the scan is unrolled": (
        "forward-over-32",
        "workloads/scan/rnn.py",
        SCANNED,
        "return unrolled(params, hidden, xs)",
        ["REGRESSED  scan/rnn-forward-over-32-steps-scan-vs-loop", "stablehlo_ops", "workloads/scan/rnn.py:"],
    ),
    "donation is dropped": (
        "adamw-step-donated",
        "workloads/donation/steps.py",
        "jax.jit(step, donate_argnums=0)",
        "jax.jit(step)",
        [
            "REGRESSED  donation/adamw-step-donated-vs-copied",
            "donated_bytes",
            "no longer donated: state[0][0]['bias'], state[0][0]['kernel']",
            "(2,368,516 bytes)",
        ],
    ),
    "the state drifts to another dtype": (
        "sgd-step-donated",
        "workloads/donation/steps.py",
        "return (optax.apply_updates(params, updates), opt_state), loss",
        "return (jax.tree.map(lambda p: p.astype('bfloat16'), optax.apply_updates(params, updates)), opt_state), loss",
        [
            "REGRESSED  donation/sgd-step-donated-vs-copied",
            "traces 2 against 1 = 2.00 ×, allowed 1",
            "step 2 retraced: state[0][0]['bias']: float32[256] → bfloat16[256]",
        ],
    ),
    "a large array is captured": (
        "sgd-step-donated",
        "workloads/donation/steps.py",
        "    def step(state: State",
        "    table = jax.random.normal(jax.random.key(9), (1024, 2048))\n\n    def step(state: State",
        [
            "REGRESSED  donation/sgd-step-donated-vs-copied",
            "constant_bytes 8.39 MB against 0 B",
            "1024x2048xf32 (8,388,608 bytes) used by stablehlo.",
            "workloads/donation/steps.py:",
        ],
    ),
    "a second forward pass": (
        "sgd-step-donated",
        "workloads/donation/steps.py",
        "return (optax.apply_updates(params, updates), opt_state), loss",
        "params = optax.apply_updates(params, updates)\n"
        "        return (params, opt_state), squared_error(mlp(params, x), y)",
        [
            "REGRESSED  donation/sgd-step-donated-vs-copied",
            "matmul_flops",
            "67.1 MFLOP",
            "92.3 MFLOP",
            "float32[64,256] x float32[256,256] 5 → 8 at workloads/parts.py:",
        ],
    ),
}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Baselines by the word that selects their cases: what several mistakes start from is recorded once."""
    with compiled_quickly():
        yield tmp_path_factory.mktemp("recorded")


def _record(project, family, select, recorded):
    project.catalogue()
    if not (recorded / select).exists():
        assert project.run(f"perf/test_{family}.py", "-k", select, "--perf-update").code == 0
        shutil.copytree(project.path / "baselines", recorded / select)
    shutil.copytree(recorded / select, project.path / "baselines", dirs_exist_ok=True)


@pytest.mark.parametrize("plant", one_of([*PLANTS], 3))
def test_a_planted_mistake_turns_its_case_red(project, recorded, plant):
    """The mistake is made in the suite's own workload; its case fails and says why."""
    select, file, old, new, pieces = PLANTS[plant]
    family = file.split("/")[1]
    _record(project, family, select, recorded)
    project.edit(file, old, new)
    if plant == "a large array is captured":
        project.edit(
            file, "squared_error(mlp(p, x), y)", "squared_error(mlp(p, x), y) + 1e-9 * table[x.shape[0]].sum()"
        )
    result = project.run(f"perf/test_{family}.py", "-k", select)
    result.counts(failed=1)
    result.shows(*pieces, "comes from: code", "reproduce: pytest 'perf/")


SAME_PROGRAM = {
    "a variable is renamed": [("hidden, xs)\n    return last", "hidden, xs)\n    return last  # as before")],
    "a helper is renamed": [
        ("def cell(", "def one_step("),
        ("(cell(params, h, x), None)", "(one_step(params, h, x), None)"),
        ("hidden = cell(", "hidden = one_step("),
    ],
    "lines are moved": [('"""Run the network over xs', '# moved\n    #\n    # down\n    """Run the network over xs')],
    "independent lines change places": [
        (
            'return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"] + params["bias"])',
            'right = hidden @ params["recurrent"]\n    left = x @ params["input"]\n'
            '    return jnp.tanh(left + right + params["bias"])',
        )
    ],
}


@pytest.mark.parametrize("change", SAME_PROGRAM)
def test_what_leaves_the_program_alone_stays_same_by_identity(project, recorded, change):
    """Renames, moved lines and reordered independent lines are not a change of the program."""
    _record(project, "scan", "forward-over-32", recorded)
    for old, new in SAME_PROGRAM[change]:
        project.edit("workloads/scan/rnn.py", old, new)
    result = project.run("perf/test_scan.py", "-k", "forward-over-32")
    result.counts(passed=1)
    assert result.line("scan/rnn-forward-over-32").startswith("SAME")
    result.shows("identical program")
