"""Changes of what the compiler never sees: comments, names, order, imports."""

from __future__ import annotations

import ast
import re

from tests.faults.programs.rewrites.trees import bodies, functions, helpers, parse, unparse


def comments_and_blank_lines(source: str) -> str:
    """A blank line and a comment above every assignment and every return."""
    starts = {node.lineno for node in ast.walk(parse(source)) if isinstance(node, (ast.Assign, ast.Return))}
    lines: list[str] = []
    for number, line in enumerate(source.split("\n"), 1):
        if number in starts:
            lines += ["", f"{' ' * (len(line) - len(line.lstrip()))}# as before"]
        lines.append(line)
    return "\n".join(lines)


def moved_down(source: str) -> str:
    """Forty lines of licence above everything; every line has another number."""
    return "# A licence.\n" * 40 + source


def docstrings(source: str) -> str:
    """A docstring in every function, longer where there is one."""
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            if ast.get_docstring(node):
                node.body.pop(0)
            node.body.insert(0, ast.Expr(ast.Constant("Do what it did, and say more about it.\n\nAt length.")))
    return unparse(tree)


def reformatted(source: str) -> str:
    """As ``ast.unparse`` writes it: no comments, no wrapped lines."""
    return unparse(parse(source))


def type_hints(source: str) -> str:
    """Every parameter and result annotated."""
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = ast.parse("object", mode="eval").body
            for arg in node.args.args:
                arg.annotation = ast.parse("jax.Array | object", mode="eval").body
    return unparse(tree)


def unused_imports(source: str) -> str:
    """Imports that nothing needs."""
    return source.replace("import jax\n", "import math\nimport itertools\n\nimport jax\nimport jax.scipy\n", 1)


def dead_code(source: str) -> str | None:
    """A function that nobody calls, a branch that is never taken, arrays that nobody reads."""
    if "eager=True" in source:
        return None  # what plain Python computes is computed, read or not
    tree = parse(source)
    for function in helpers(tree):
        dead = "if not True:\n    raise RuntimeError\nunread = jnp.ones(4) * 3.0"
        start = 1 if ast.get_docstring(function) else 0
        function.body[start:start] = ast.parse(dead).body
    tree.body += ast.parse("def nobody(x):\n    return jnp.sin(x) @ jnp.cos(x)").body
    return unparse(tree)


class _Rename(ast.NodeTransformer):
    def __init__(self, names: set[str], ending: str) -> None:
        self._new = {name: f"{name}_{ending}" for name in names}

    def visit_Name(self, node):
        node.id = self._new.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg = self._new.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node):
        node.name = self._new.get(node.name, node.name)
        return self.generic_visit(node)


def _parameters(tree: ast.Module) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _words(tree: ast.Module) -> set[str]:
    """Names that stand in strings or keywords, where a renaming would not reach."""
    strings = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return strings | {n.arg for n in ast.walk(tree) if isinstance(n, ast.keyword) and n.arg}


def locals_renamed(source: str) -> str:
    """Local variables under other names."""
    tree = parse(source)
    stored = {
        node.id
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return unparse(_Rename(stored - _parameters(tree) - {"_"}, "here").visit(tree))


def parameters_renamed(source: str) -> str | None:
    """Parameters under other names, and so other paths of arguments."""
    tree = parse(source)
    names = _parameters(tree) - _words(tree) - {"_"}
    return unparse(_Rename(names, "given").visit(tree)) if names else None


def functions_renamed(source: str) -> str:
    """Functions under other names, inner ones too."""
    tree = parse(source)
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} - {"build"}
    return unparse(_Rename(names, "anew").visit(tree))


def functions_reordered(source: str) -> str | None:
    """``build`` before what it builds, the undecorated functions the other way round."""
    tree = parse(source)
    plain = [node for node in functions(tree) if not node.decorator_list]
    if len(plain) < 2:
        return None
    order = iter(reversed(plain))
    tree.body = [next(order) if node in plain else node for node in tree.body]
    return unparse(tree)


def assignments_swapped(source: str) -> str | None:
    """Neighbouring assignments that do not need each other, the second first."""
    tree = parse(source)
    swapped = False
    for function in bodies(tree):
        index = 0
        while index + 1 < len(function.body):
            if _independent(function.body[index], function.body[index + 1]):
                function.body[index : index + 2] = function.body[index + 1], function.body[index]
                swapped, index = True, index + 1
            index += 1
    return unparse(tree) if swapped else None


def _independent(first: ast.stmt, second: ast.stmt) -> bool:
    if not (isinstance(first, ast.Assign) and isinstance(second, ast.Assign)):
        return False

    def names(node: ast.stmt, kind: type) -> set[str]:
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, kind)}

    (w1, r1), (w2, r2) = ((names(node, ast.Store), names(node, ast.Load)) for node in (first, second))
    return not (w1 & (w2 | r2) or w2 & r1)


def another_alias(source: str) -> str:
    """``import jax.numpy as xp`` in place of ``jnp``, ``from jax import lax``."""
    source = re.sub(r"\bjax\.lax\.", "lax.", re.sub(r"\bjnp\b", "xp", source))
    return source.replace("\nfrom jaxgate", "\nfrom jax import lax\n\nfrom jaxgate", 1)


def names_in_full(source: str) -> str | None:
    """``jnp.tanh`` as ``jax.numpy.tanh``."""
    full = re.sub(r"\bjnp\.", "jax.numpy.", source)
    return full if full != source else None


def numbers_inlined(source: str) -> str | None:
    """The module's named numbers written out where they are used."""
    tree = parse(source)
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = zip(target.elts, value.elts, strict=True) if isinstance(target, ast.Tuple) else [(target, value)]
            values |= {name.id: number for name, number in pairs if isinstance(number, ast.Constant)}

    class Inline(ast.NodeTransformer):
        def visit_Name(self, node):
            return values[node.id] if node.id in values and isinstance(node.ctx, ast.Load) else node

    for function in functions(tree):
        Inline().visit(function)
    return unparse(tree) if values else None


REWRITES = (
    comments_and_blank_lines, moved_down, docstrings, reformatted, type_hints, unused_imports, dead_code,
    locals_renamed, parameters_renamed, functions_renamed, functions_reordered, assignments_swapped, another_alias,
    names_in_full, numbers_inlined,
)  # fmt: skip
