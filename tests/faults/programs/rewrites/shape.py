"""The same computation cut into functions in another way."""

from __future__ import annotations

import ast
import re

from tests.faults.programs.rewrites.trees import functions, helpers, parse, unparse


def bodies_moved(source: str) -> str | None:
    """The body of every function of the module in a helper that it calls."""
    tree = parse(source)
    out: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name != "build" and not node.args.kwonlyargs:
            inner = ast.FunctionDef(name=f"_{node.name}_body", args=node.args, body=node.body, decorator_list=[])
            names = [ast.Name(arg.arg, ast.Load()) for arg in node.args.args]
            call = ast.Call(ast.Name(inner.name, ast.Load()), names, [])
            outer = ast.FunctionDef(
                name=node.name, args=node.args, body=[ast.Return(call)], decorator_list=node.decorator_list
            )
            for made in (inner, outer):
                made.type_params = []
            out += [inner, outer]
        else:
            out.append(node)
    tree.body = out
    return unparse(tree)


def results_named(source: str) -> str:
    """Every result under a name before it is returned."""

    class Name(ast.NodeTransformer):
        def visit_Return(self, node):
            return [
                ast.Assign([ast.Name("result_", ast.Store())], node.value),
                ast.Return(ast.Name("result_", ast.Load())),
            ]

    return unparse(Name().visit(parse(source)))


def terms_named(source: str) -> str | None:
    """The left side of every product of matrices under a name of its own, where it is a product already."""

    class Split(ast.NodeTransformer):
        def __init__(self) -> None:
            self.count = 0

        def visit_Assign(self, node):
            operand = node.value.args[0] if isinstance(node.value, ast.Call) and len(node.value.args) == 1 else None
            if not isinstance(operand, ast.BinOp):
                return node
            self.count += 1
            name = f"term_{self.count}"
            node.value.args[0] = ast.Name(name, ast.Load())
            return [ast.Assign([ast.Name(name, ast.Store())], operand), node]

    tree, split = parse(source), Split()
    for function in helpers(tree):
        split.visit(function)
    return unparse(tree) if split.count else None


def lambdas_as_functions(source: str) -> str | None:
    """Every lambda of a simple statement as a function before it."""
    tree = parse(source)
    count = 0

    class Hoist(ast.NodeTransformer):
        def visit_FunctionDef(self, node):
            self.generic_visit(node)
            body: list[ast.stmt] = []
            for statement in node.body:
                body += [*self._made(statement), statement]
            node.body = body
            return node

        def _made(self, statement):
            nonlocal count
            if not isinstance(statement, (ast.Assign, ast.Return)) or _in_comprehension(statement):
                return []
            made = []

            class Replace(ast.NodeTransformer):
                def visit_Lambda(self, node):
                    nonlocal count
                    count += 1
                    function = ast.FunctionDef(f"named_{count}", node.args, [ast.Return(node.body)], [])
                    function.type_params = []
                    made.append(function)
                    return ast.Name(function.name, ast.Load())

            Replace().visit(statement)
            return made

    Hoist().visit(tree)
    return unparse(tree) if count else None


def _in_comprehension(statement: ast.stmt) -> bool:
    """Whether a lambda stands where the names of a comprehension are visible."""
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return any(isinstance(node, kinds) for node in ast.walk(statement))


def functions_as_lambdas(source: str) -> str | None:
    """Undecorated functions of one expression as lambdas."""
    tree = parse(source)
    count = 0

    class Shorten(ast.NodeTransformer):
        def visit_FunctionDef(self, node):
            nonlocal count
            self.generic_visit(node)
            body = node.body[1:] if ast.get_docstring(node) else node.body
            if len(body) != 1 or not isinstance(body[0], ast.Return) or node.decorator_list or node.name == "build":
                return node
            count += 1
            return ast.Assign([ast.Name(node.name, ast.Store())], ast.Lambda(node.args, body[0].value))

    Shorten().visit(tree)
    return unparse(tree) if count else None


def _subject_wrapped(source: str, wrapper: str) -> str | None:
    found = re.search(r"jax\.jit\((\w+(?:\(\w+\))?)(?=[,)])", source)
    if found is None or "static_arg" in source:
        return None
    return source[: found.start(1)] + wrapper.format(found[1]) + source[found.end(1) :]


def subject_as_partial(source: str) -> str | None:
    """The jitted function under ``functools.partial``."""
    wrapped = _subject_wrapped(source, "functools.partial({})")
    return wrapped and wrapped.replace("import jax\n", "import functools\n\nimport jax\n", 1)


def subject_as_closure(source: str) -> str | None:
    """The jitted function under a lambda that hides the names of its arguments."""
    return _subject_wrapped(source, "lambda *arguments: {}(*arguments)")


def helpers_jitted(source: str) -> str | None:
    """Every helper whose arguments are all arrays under a ``jax.jit`` of its own."""
    tree = parse(source)
    named = ("predict", "loss_of", "cell", "attend", "block", "average", "chunk_loss", "scores_of", "convolve", "clipped", "local_grads")  # fmt: skip
    found = [f for f in helpers(tree) if f.name in named and not f.decorator_list]
    for function in found:
        function.decorator_list = [ast.parse("jax.jit", mode="eval").body]
    return unparse(tree) if found else None


def in_a_class(source: str) -> str:
    """``build`` as a static method of a class that the module calls."""
    tree = parse(source)
    build = next(f for f in functions(tree) if f.name == "build")
    tree.body.remove(build)
    build.decorator_list = [ast.Name("staticmethod", ast.Load())]
    holder = ast.ClassDef("Model", [], [], [build], [])
    holder.type_params = []
    tree.body += [holder, *ast.parse("build = Model.build").body]
    return unparse(tree)


REWRITES = (
    bodies_moved, results_named, terms_named, lambdas_as_functions, functions_as_lambdas, subject_as_partial,
    subject_as_closure, helpers_jitted, in_a_class,
)  # fmt: skip
