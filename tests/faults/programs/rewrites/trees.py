"""Programs as syntax trees: what may be changed of them, and how it becomes text again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator


def parse(source: str) -> ast.Module:
    """Read a program."""
    return ast.parse(source)


def unparse(tree: ast.AST) -> str:
    """Write a program out, its comments gone, ``jnp`` imported where the change brought it in."""
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    if "jnp." in text and "import jax.numpy as jnp\n" not in text:
        text = text.replace("import jax\n", "import jax\nimport jax.numpy as jnp\n", 1)
    return text


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """List the module's functions."""
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def helpers(tree: ast.Module) -> list[ast.FunctionDef]:
    """The module's functions without ``build``, whose random draws have an order."""
    return [function for function in functions(tree) if function.name != "build"]


def bodies(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Every function of the computation, inner ones too."""
    for function in helpers(tree):
        yield from (node for node in ast.walk(function) if isinstance(node, ast.FunctionDef))


def replaced(source: str, kind: type, change: Callable[[ast.AST], ast.AST | None]) -> str | None:
    """Replace every node of a kind in the computation's functions, bottom up, where ``change`` gives another."""
    tree = parse(source)
    count = 0

    class Change(ast.NodeTransformer):
        def generic_visit(self, node):
            nonlocal count
            super().generic_visit(node)
            new = change(node) if isinstance(node, kind) else None
            count += new is not None
            return node if new is None else new

    for index, node in enumerate(tree.body):
        if isinstance(node, ast.FunctionDef) and node.name != "build":
            tree.body[index] = Change().visit(node)
    return unparse(tree) if count else None


def call(name: str, *args: ast.expr) -> ast.Call:
    """Make a call of a function by its dotted name."""
    return ast.Call(ast.parse(name, mode="eval").body, list(args), [])
