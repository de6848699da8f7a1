"""docs/architecture.md leads from a line in the terminal to a function: each file and function that it names is there."""

import ast
import re

import pytest
from support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = REPOSITORY / "src" / "jaxgate"
FILES = sorted(set(re.findall(r"(?<![\w/.])[a-z_/]+\.py\b", PAGE)))
FUNCTIONS = sorted(set(re.findall(r"([a-z_/]+\.py)(?:: | +)(\w+)", PAGE)))
"""``judge/order.py: conclude`` in the table, ``judge/order.py   conclude(...)`` in the way of one case."""


def test_the_page_names_something():
    """Else the tests below would have nothing to look at."""
    assert len(FILES) > 30
    assert len(FUNCTIONS) > 20


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_the_page_is_there(name):
    """Either of the engine by its room, or of the repository."""
    assert any(
        (place / name).is_file()
        for place in (SOURCE, SOURCE / "observe", SOURCE / "observe" / "trace", SOURCE.parent, REPOSITORY)
    )


@pytest.mark.parametrize(("file", "name"), FUNCTIONS)
def test_a_function_of_the_page_is_there(file, name):
    """At the top of its module, or the method of a class there."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
