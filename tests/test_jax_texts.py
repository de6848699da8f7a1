"""The page of what JAX promises to nobody: every row leads to code and to tests that are there and carry the mark."""

import ast
import re
from functools import cache

import pytest
from support.paths import REPOSITORY

TESTS = REPOSITORY / "tests"


def rows():
    """What is read, file, name and tests of each row."""
    text = (REPOSITORY / "docs/jax-texts.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[1].startswith("`"):
            what, file, name, _, tests = cells
            yield what, file.strip("`"), name.strip("`"), re.findall(r"`([^`]+)`", tests)


@cache
def marked():
    """Every test that carries the mark, as the page names it."""
    found = set()
    for file in sorted(TESTS.rglob("test_*.py")):
        text = file.read_text(encoding="utf-8")
        if "mark.jax_text" in text:
            for node in ast.walk(ast.parse(text)):
                marks = [ast.unparse(each) for each in getattr(node, "decorator_list", [])]
                if isinstance(node, ast.FunctionDef) and "pytest.mark.jax_text" in marks:
                    found.add(f"{file.relative_to(TESTS).as_posix()}::{node.name}")
    return found


def defined(file):
    """The names that a module defines."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


@pytest.mark.parametrize(("file", "name", "tests"), [row[1:] for row in rows()], ids=[row[0] for row in rows()])
def test_a_row_leads_to_code_and_to_marked_tests(file, name, tests):
    """The file is there and defines the name, and there is a test, which carries the mark."""
    assert name in set(defined(REPOSITORY / "src/jaxgate" / file))
    assert tests
    assert set(tests) <= marked()


def test_no_marked_test_is_left_out():
    """Whoever tries a new JAX finds each test that fails on the page."""
    assert marked() == {test for *_, tests in rows() for test in tests}
