"""Both programs of a case for a command that looks at them; what is not there is said in a line, with what to do."""

from dataclasses import replace

import pytest
from support.factories import CASE, FINGERPRINTS, OTHER_CPU, PROGRAM, TEST, baseline

from jaxgate.ext.repro.program_pair import find_pair
from jaxgate.keep.baselines import save_baseline
from jaxgate.keep.programs import ProgramStore
from jaxgate.model.outcome import UsageError

OTHER = replace(FINGERPRINTS, program="b" * 32)


def keep(root, content=b"accepted", **changes):
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


def find(root, record=None, case=CASE, environ=None, **about):
    """The pair."""
    return find_pair(case, root, project=root.parent, environ=environ or {}, record=record or recorder(), **about)


def test_both_programs_are_found(tmp_path, monkeypatch):
    """Today's out of what was recorded aside, the baseline's out of the store."""
    keep(tmp_path)
    record = recorder(fingerprints=OTHER)
    monkeypatch.setenv("JAXGATE_SIZE", "small")
    pair = find(tmp_path, record, environ={"PYTEST_ADDOPTS": "-x", "JAXGATE_STRICT": "1", "HOME": "h"})
    assert (pair.baseline[1].content, pair.now[1].content) == (b"accepted", b"today")
    assert pair.baseline[0].fingerprints.program != pair.now[0].fingerprints.program
    side, chosen = record.asked
    assert chosen.paths == (TEST,)
    assert side.environment["PYTEST_ADDOPTS"] == "-x --benchmark-disable"
    assert side.environment["JAXGATE_SIZE"] == "small"
    assert "JAXGATE_STRICT" not in side.environment


@pytest.mark.parametrize(
    ("kept", "asked", "parts"),
    [
        ({}, {"case": f"{CASE}x"}, [f"none named `{CASE}x`", f"did you mean `{CASE}`?", "jaxgate baselines --cases"]),
        ({}, {"record": recorder(None)}, ["recorded as it is now: ValueError: no such layer", "pytest"]),
        ({}, {"record": recorder(case="model/other")}, ["gates no case of this name any more"]),
        (
            {"content": None, "eager": True},
            {"record": recorder(eager=True)},
            ["plain Python around jitted calls", "gate the jitted function itself"],
        ),
        ({"content": None}, {}, ["the baseline's program", "it captures 70,000 bytes", "--perf-against=merge-base"]),
        ({"hardware": replace(OTHER_CPU, platform="tpu")}, {}, ["has baselines of", "--perf-update"]),
    ],
    ids=["unknown", "fails now", "gates something else", "eager", "not stored", "other hardware"],
)
def test_what_cannot_be_had_is_one_line_that_says_why_and_what_else_there_is(tmp_path, kept, asked, parts):
    keep(tmp_path, **kept)
    with pytest.raises(UsageError) as caught:
        find(tmp_path, **asked)
    assert "\n" not in str(caught.value)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_program_that_is_gone_is_restored_with_git(tmp_path):
    keep(tmp_path, fingerprints=OTHER)
    ProgramStore(tmp_path).path(OTHER.program).unlink()
    with pytest.raises(UsageError, match="missing or damaged; restore it with git"):
        find(tmp_path)


def test_a_program_alone_needs_no_baseline(tmp_path):
    """Another environment, or another way to compile it, is what it is held against; a test may stand for its case."""
    pair = find(tmp_path, case=TEST, alone=True)
    assert pair.case == CASE
    assert pair.baseline == pair.now
    with pytest.raises(UsageError, match="none named"):
        find(tmp_path, case=TEST)
