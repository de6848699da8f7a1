"""Both programs of a case for a command that looks at them; what is not there is said in a line, with what to do."""

from dataclasses import replace

import pytest
from support.factories import CASE, FINGERPRINTS, OTHER_CPU, PROGRAM, TEST, baseline

from jaxgate.ext.repro.program_pair import find_pair
from jaxgate.keep.baselines import save_baseline
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.outcome import UsageError

OTHER = replace(FINGERPRINTS, program="b" * 32)


def keep(root, content, **changes):
    """Store a baseline with its program; none where there is no content."""
    found = baseline(**changes)
    digest = ProgramStore(root).save(found.fingerprints.program, content) if content else None
    program = replace(PROGRAM, digest=digest, why_not="" if content else "it captures 70,000 bytes")
    return save_baseline(root, replace(found, program=program))


def recorder(content=b"today", **changes):
    """Stands for the process that records the case as it is now; remembers what it was asked for."""

    def record(side, chosen, into):
        record.asked = side, chosen
        if content is not None:
            keep(into, content, **changes)
        return {} if content is not None else {TEST: "ValueError: no such layer"}

    return record


def find(root, record=None, case=CASE, environ=None):
    """The pair."""
    return find_pair(case, root, project=root.parent, environ=environ or {}, record=record or recorder())


def test_both_programs_are_found(tmp_path, monkeypatch):
    """Today's out of what was recorded aside, the baseline's out of the store."""
    keep(tmp_path, b"accepted")
    record = recorder(fingerprints=OTHER)
    monkeypatch.setenv("JAXGATE_SIZE", "small")
    pair = find(tmp_path, record, environ={"PYTEST_ADDOPTS": "-x", "JAXGATE_STRICT": "1", "HOME": "h"})
    assert pair.baseline[1].content == b"accepted"
    assert pair.now[1].content == b"today"
    assert pair.baseline[0].fingerprints.program != pair.now[0].fingerprints.program
    side, chosen = record.asked
    assert chosen.paths == (TEST,)
    assert side.environment["PYTEST_ADDOPTS"] == "-x --benchmark-disable"
    assert side.environment["JAXGATE_SIZE"] == "small"
    assert "JAXGATE_STRICT" not in side.environment


def test_one_program_on_both_sides_is_the_same(tmp_path):
    keep(tmp_path, b"accepted")
    pair = find(tmp_path)
    assert pair.baseline[0].fingerprints.program == pair.now[0].fingerprints.program


def refused(root, *parts, **asked):
    """The error has all of these parts, in one line."""
    with pytest.raises(UsageError) as caught:
        find(root, **asked)
    text = str(caught.value)
    assert "\n" not in text
    for part in parts:
        assert part in text


def test_an_unknown_case_names_its_neighbour(tmp_path):
    keep(tmp_path, b"accepted")
    refused(tmp_path, f"none named `{CASE}x`", f"did you mean `{CASE}`?", "jaxgate baselines --cases", case=f"{CASE}x")


def test_a_case_that_fails_now_says_why(tmp_path):
    keep(tmp_path, b"accepted")
    refused(tmp_path, "could not be recorded as it is now: ValueError: no such layer", "pytest", record=recorder(None))


def test_a_test_that_gates_something_else_now_is_told(tmp_path):
    keep(tmp_path, b"accepted")
    refused(tmp_path, "gates no case of this name any more", record=recorder(case="model/other"))


def test_an_eager_case_has_no_program(tmp_path):
    keep(tmp_path, None, eager=True)
    refused(
        tmp_path, "plain Python around jitted calls", "gate the jitted function itself", record=recorder(eager=True)
    )


def test_a_program_that_was_not_stored_says_why_and_what_else_there_is(tmp_path):
    """Large captured arrays stay out of public files."""
    keep(tmp_path, None)
    refused(tmp_path, "the baseline's program", "it captures 70,000 bytes", "--perf-against=merge-base")


def test_a_program_that_is_gone_is_restored_with_git(tmp_path):
    keep(tmp_path, b"accepted", fingerprints=OTHER)
    ProgramStore(tmp_path).path(OTHER.program).unlink()
    refused(tmp_path, "missing or damaged; restore it with git")


def test_a_baseline_of_other_hardware_is_not_compared(tmp_path):
    """Of another platform: another CPU's is borrowed."""
    keep(tmp_path, b"accepted", hardware=replace(OTHER_CPU, platform="tpu"))
    refused(tmp_path, "has baselines of", "--perf-update")


def test_a_program_alone_needs_no_baseline(tmp_path):
    """Another environment, or another way to compile it, is what it is held against; a test may stand for its case."""
    pair = find_pair(TEST, tmp_path, project=tmp_path, alone=True, environ={}, record=recorder())
    assert pair.case == CASE
    assert pair.baseline == pair.now
    with pytest.raises(UsageError, match="none named"):
        find_pair(TEST, tmp_path, project=tmp_path, environ={}, record=recorder())
