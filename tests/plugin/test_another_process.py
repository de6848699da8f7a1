"""A gate that asks another process to show its case."""

from types import SimpleNamespace

import pytest

from jaxgate.model.measurement import InvalidCaseError
from jaxgate.plugin import another_process


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("FAILED test_a.py::test_a - it broke\n1 failed\n", "test_a.py::test_a - it broke"),
        ("Fatal error\n", "Fatal error"),
        ("", "it said nothing"),
        (TimeoutError("python took more than 300.0 s"), "python took more than 300.0 s"),
    ],
)
def test_a_process_that_shows_nothing_is_the_reason(tmp_path, monkeypatch, said, reason):
    """For which the case is not judged."""

    def run_test(*_):
        if isinstance(said, Exception):
            raise said
        return SimpleNamespace(stdout=said, stderr="")

    monkeypatch.setattr(another_process, "run_test", run_test)
    with pytest.raises(InvalidCaseError, match=f"resuming: {reason}"):
        another_process.ask(SimpleNamespace(again=None), "test_a.py", "a/b[c=1]", tmp_path, "resuming", timeout_s=1)
