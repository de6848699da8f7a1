"""Other spellings of the same operations."""

from __future__ import annotations

import ast

from tests.faults.programs.rewrites.trees import call, helpers, parse, replaced


def matmul_spelled(source: str) -> str | None:
    """``a @ b`` as ``jnp.matmul(a, b)``."""

    def change(node):
        return call("jnp.matmul", node.left, node.right) if isinstance(node.op, ast.MatMult) else None

    return replaced(source, ast.BinOp, change)


def sums_the_other_way(source: str) -> str | None:
    """``a + b`` as ``b + a``, and ``a * b`` as ``b * a``."""

    def change(node):
        plain = not isinstance(node.left, (ast.List, ast.Tuple)) and not isinstance(node.right, (ast.List, ast.Tuple))
        return ast.BinOp(node.right, node.op, node.left) if plain and isinstance(node.op, (ast.Add, ast.Mult)) else None

    return replaced(source, ast.BinOp, change)


def squares_spelled(source: str) -> str | None:
    """``x ** 2`` as ``jnp.square(x)``."""

    def change(node):
        two = isinstance(node.right, ast.Constant) and node.right.value == 2
        return call("jnp.square", node.left) if isinstance(node.op, ast.Pow) and two else None

    return replaced(source, ast.BinOp, change)


def methods_of_arrays(source: str) -> str | None:
    """``jnp.sum(x)`` as ``x.sum()``, and so for mean, max and reshape."""

    def change(node):
        name = ast.unparse(node.func)
        if name not in ("jnp.sum", "jnp.mean", "jnp.max", "jnp.argmax", "jnp.cumsum"):
            return None
        return ast.Call(ast.Attribute(node.args[0], name[4:], ast.Load()), node.args[1:], node.keywords)

    return replaced(source, ast.Call, change)


def functions_of_arrays(source: str) -> str | None:
    """``x.reshape(a, b)`` as ``jnp.reshape(x, (a, b))``, ``x.astype(t)`` as ``jnp.astype(x, t)``."""

    def change(node):
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("reshape", "astype"):
            return None
        rest = ast.Tuple(node.args, ast.Load()) if node.func.attr == "reshape" else node.args[0]
        return call(f"jnp.{node.func.attr}", node.func.value, rest)

    return replaced(source, ast.Call, change)


def tree_map_spelled(source: str) -> str | None:
    """``jax.tree.map`` as ``jax.tree_util.tree_map``."""
    return source.replace("jax.tree.map", "jax.tree_util.tree_map") if "jax.tree.map" in source else None


def arguments_by_keyword(source: str) -> str | None:
    """Helpers of the module called by keyword."""
    parameters = {
        f.name: [a.arg for a in f.args.args] for f in helpers(parse(source)) if f.args.args and not f.args.vararg
    }

    def change(node):
        names = parameters.get(node.func.id) if isinstance(node.func, ast.Name) else None
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        if not names or not node.args or starred:
            return None
        return ast.Call(node.func, [], [*map(ast.keyword, names, node.args), *node.keywords])

    return replaced(source, ast.Call, change)


REWRITES = (
    matmul_spelled, sums_the_other_way, squares_spelled, methods_of_arrays, functions_of_arrays, tree_map_spelled,
    arguments_by_keyword,
)  # fmt: skip
