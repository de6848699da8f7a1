"""Python that each call of an unchanged device program runs: counted, and red with the function that grew."""

import pytest
from support.fakes import judge_phases_by

from ci.attacks.gated_sources import DEAR_FLATTEN, DEAR_HASH, FLATTEN, HASHED, TREE
from jaxgate.judge.policy import STORED_PHASE_POLICIES
from jaxgate.model.numbers import Phases


@pytest.mark.parametrize(
    ("text", "old", "new", "shown"),
    [
        (
            HASHED,
            "    depth: int = 2\n",
            DEAR_HASH,
            ("python_calls 2,009 against 2", "test_model.Config.__hash__ 0 → 2000 at test_model.py:9"),
        ),
        (
            TREE,
            FLATTEN,
            DEAR_FLATTEN,
            (
                "python_calls",
                "_hashlib.openssl_sha256 0 → 30 at test_model.py:16",
                "str.encode 0 → 30 at test_model.py:16",
            ),
        ),
    ],
    ids=["the hash of a static argument", "the flattening of a pytree"],
)
def test_dear_python_around_an_identical_program_is_red(project, lab, text, old, new, shown):
    """The device program is the same; what each call runs to get there is counted, and who grew is named."""
    project.write("test_model.py", text).record()
    assert project.run().code == 0
    project.edit("test_model.py", old, new)
    result = project.run()
    assert (result.code, lab.duelled, lab.recorded) == (1, [], [])
    result.shows("REGRESSED  model/step", "culprit   Python in each call: ", *shown)
    result.shows("identical program, but each call of it runs more Python", "comes from: code")
    assert project.run("--perf-update").code == 0
    assert project.run().code == 0


@pytest.fixture
def judged_by_the_clock(project, lab, monkeypatch):
    """A recorded case of which Python's part takes 1 µs, and the only phase that is judged."""
    policies = [policy for policy in STORED_PHASE_POLICIES if policy.name == "dispatch_ns"]
    judge_phases_by(monkeypatch, *policies)
    return project.write("test_model.py", HASHED).record()


def test_what_no_count_sees_is_red_by_its_clock(judged_by_the_clock, lab):
    """A sleep in a hash is one call: where fresh processes find it too, the identical program is red."""
    judged_by_the_clock.edit(
        "test_model.py", "    depth: int = 2\n", "    depth: int = 2\n\n    def __hash__(self):\n        return 7\n"
    )
    lab.dispatch_ns, lab.phases = 400_000, [Phases(dispatch_ns=300_000)] * 2
    result = judged_by_the_clock.run()
    assert (result.code, len(lab.recorded)) == (1, 2)
    result.shows(
        "REGRESSED  model/step",
        "dispatch_ns 400 µs against 1 µs = 400 ×, allowed 52 µs (confirmed in 2 fresh processes)",
        "perhaps Python in each call: test_model.Config.__hash__ 0 → 1 at test_model.py:9",
        "identical program",
    )


@pytest.mark.parametrize(
    ("again", "why"),
    [(1_000, "was not confirmed by fresh process 1 of 2"), (None, "could not be timed in fresh process 1 of 2")],
    ids=["quick", "not to be timed"],
)
def test_a_clock_that_finds_it_once_is_undecided(judged_by_the_clock, lab, again, why):
    """A fresh process in which it is quick, or too unsteady to be timed, clears the case of red."""
    lab.dispatch_ns, lab.phases = 400_000, [Phases(dispatch_ns=again)] * 2
    result = judged_by_the_clock.run("--perf-max-undecided=1")
    assert (result.code, len(lab.recorded)) == (0, 1)
    result.shows("UNDECIDED", why)
