"""Compilers of targets: started once each, and no second time where that failed."""

import pytest

from jaxgate.ext.targets.model import Target
from jaxgate.ext.targets.process import OpenCompilers
from jaxgate.ext.targets.topology import NoTargetError

V5E, V4 = Target.parse("tpu:v5e:2x4"), Target.parse("tpu:v4:2x2x1")


class Compiler:
    """One that may not be installed."""

    def __init__(self, missing):
        self.missing, self.closed = missing, False

    @property
    def versions(self):
        if self.missing:
            raise NoTargetError("libtpu is not installed")
        return {"libtpu": "0"}

    def close(self):
        self.closed = True


@pytest.mark.parametrize("missing", [False, True])
def test_a_compiler_is_asked_once_whatever_came_of_it(missing):
    """One that could not start is not taken for an open one by the next gate; all processes are ended."""
    started = []

    def start(target):
        started.append(Compiler(missing and target == V5E))
        return started[-1]

    opened = OpenCompilers(start)
    for _ in range(2):
        if missing:
            with pytest.raises(NoTargetError, match="not installed"):
                opened.of(V5E)
        else:
            assert opened.of(V5E) is started[0]
    assert len(started) == 1
    assert opened.of(V4) is started[1]
    opened.close()
    assert all(one.closed for one in started)
