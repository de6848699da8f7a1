"""The suite's own workloads through the real plugin: a planted mistake is red with its culprit, an unchanged program green.

The other mistakes are planted without the plugin (``catalogue``).
"""

from support.corpora import compiled_quickly
from support.paths import REPOSITORY
from support.processes import python


def test_the_corpora_are_run_by_a_command_of_their_own(monkeypatch):
    """It starts from the repository's folder alone, without pytest's paths."""
    monkeypatch.chdir(REPOSITORY)
    assert "plant every fault" in python("-m", "tests.faults", "--help")


def test_a_planted_mistake_turns_its_case_red(project):
    """The case fails and says why."""
    project.catalogue()
    command = ("perf/test_donation.py", "-k", "adamw-step-donated")
    with compiled_quickly():
        assert project.run(*command, "--perf-update").code == 0
        project.edit("workloads/donation.py", "jax.jit(step, donate_argnums=0)", "jax.jit(step)")
        result = project.run(*command)
    result.counts(failed=1)
    result.shows(
        "REGRESSED  donation/adamw-step-donated-vs-copied",
        "donated_bytes",
        "no longer donated: state[0][0]['bias'], state[0][0]['kernel']",
        "(2,368,516 bytes)",
        "comes from: code",
        "reproduce: pytest 'perf/",
    )


SAME_PROGRAM = {
    "hidden, xs)\n    return last": "hidden, xs)\n    return last  # as before",
    '"""Run the network over xs': '# moved\n    #\n    # down\n    """Run the network over xs',
    "def cell(": "def one_step(",
    "(cell(params, h, x), None)": "(one_step(params, h, x), None)",
    "hidden = cell(": "hidden = one_step(",
    'return jnp.tanh(x @ params["input"] + hidden @ params["recurrent"] + params["bias"])': (
        'right = hidden @ params["recurrent"]\n    left = x @ params["input"]\n'
        '    return jnp.tanh(left + right + params["bias"])'
    ),
}
"""A helper is renamed, lines are moved, and independent lines change places."""


def test_what_leaves_the_program_alone_stays_same_by_identity(project):
    """All of it together is no change of the program."""
    project.catalogue()
    command = ("perf/test_scan.py", "-k", "forward-over-32")
    with compiled_quickly():
        assert project.run(*command, "--perf-update").code == 0
        for old, new in SAME_PROGRAM.items():
            project.edit("workloads/scan/rnn.py", old, new)
        result = project.run(*command)
    result.counts(passed=1)
    assert result.line("scan/rnn-forward-over-32").startswith("SAME")
    result.shows("identical program")
