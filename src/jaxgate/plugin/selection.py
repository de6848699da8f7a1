"""What a run was asked to collect."""

from __future__ import annotations

import pytest

from jaxgate.processes.pytest_child import Selection


def selection(config: pytest.Config) -> Selection:
    """The paths and expressions of the command line, for another process that runs the same tests."""
    paths = []
    for argument in config.args:
        file, separator, rest = argument.partition("::")
        path = (config.invocation_params.dir / file).resolve()
        if path.is_relative_to(config.rootpath):
            paths.append(path.relative_to(config.rootpath).as_posix() + separator + rest)
    return Selection(tuple(paths), config.option.keyword, config.option.markexpr)
