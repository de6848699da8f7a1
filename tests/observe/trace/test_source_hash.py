"""The source fingerprint: words about the code do not count, the code does, as far as the project goes."""

import functools
import importlib.util
import itertools
import linecache
from pathlib import Path
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest

from jaxgate.observe.trace import source
from jaxgate.observe.trace.source import source_fingerprint

_numbers = itertools.count()


@pytest.fixture
def load(tmp_path):
    """Import a text as a module of the project, each time from a file of its own."""

    def load_text(text, **scope):
        path = tmp_path / f"module_{next(_numbers)}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        vars(module).update(scope)
        spec.loader.exec_module(module)
        return module

    return load_text


LIBRARY = """
import dataclasses
import jax

@dataclasses.dataclass
class Kept:
    attribute: object

class Slotted:
    __slots__ = ("inner",)
    def __init__(self, inner):
        self.inner = inner
    def __call__(self):
        return self.inner

@jax.tree_util.register_pytree_node_class
class Tree:
    def __init__(self, static):
        self.static = static
    def tree_flatten(self):
        return (), self.static
    @classmethod
    def tree_unflatten(cls, static, _):
        return cls(static)

def closing(inner):
    return lambda x: inner
"""
PLAIN = "def step(x):\n    y = x * 2\n    return y + 1\n"
WORDS = {
    "comment": PLAIN.replace("* 2", "* 2  # twice"),
    "docstring": PLAIN.replace("(x):\n", '(x):\n    """Double."""\n'),
    "moved": "\n\nimport math\n\n\n" + PLAIN,
    "spaces": PLAIN.replace("x * 2", "( x*2 )"),
    "blank-lines": PLAIN.replace("2\n", "2\n\n\n"),
    "other-functions": PLAIN + "\ndef unrelated(x):\n    return x\n",
}


CODE = {
    "operator": PLAIN.replace("* 2", "+ 2"),
    "constant": PLAIN.replace("+ 1", "+ 1.5"),
    "default": PLAIN.replace("(x)", "(x, rate=1)"),
    "name": PLAIN.replace("y", "z"),
    "decorator": "import jax\n@jax.jit\n" + PLAIN,
    "string-that-is-no-docstring": PLAIN.replace("    return", "    print('done')\n    return"),
}


HELPED = "def helper(x):\n    return x * 2\n"
WAYS = {
    "globals": HELPED + "def step(x):\n    return helper(x)\n",
    "a-default-argument": HELPED + "def step(x, f=helper):\n    return f(x)\n",
    "a-keyword's-default": HELPED + "def step(x, *, f=helper):\n    return f(x)\n",
    "recursion": HELPED + "def step(x):\n    return step(x - 1) if x else helper(x)\n",
    "closure": "def make():\n    def helper(x):\n        return x * 2\n    return lambda x: helper(x)\nstep = make()\n",
    "inside-a-nested-function": HELPED
    + "def step(x):\n    def body(y):\n        return helper(y)\n    return body(x)\n",
    "jitted": "import jax\n@jax.jit\n" + HELPED + "@jax.jit\ndef step(x):\n    return helper(x)\n",
    "transformed": "import jax\n" + HELPED + "step = jax.jit(jax.vmap(helper), donate_argnums=0)\n",
    "gradient-of-a-helper": "import jax\n" + HELPED + "slope = jax.grad(helper)\ndef step(x):\n    return slope(x)\n",
    "partial": "from functools import partial\n" + HELPED + "step = partial(helper)\n",
    "argument-of-a-partial": "from functools import partial\n"
    + HELPED
    + "def apply(f, x):\n    return f(x)\nstep = partial(apply, helper)\n",
    "bound-method": "class Model:\n    def step(self, x):\n        return x * 2\nstep = Model().step\n",
    "other-method": "class Model:\n    def step(self, x):\n        return self.helper(x)\n"
    "    def helper(self, x):\n        return x * 2\nstep = Model().step\n",
    "callable-object": "class Model:\n    def __call__(self, x):\n        return x * 2\nstep = Model()\n",
    "method-of-a-captured-object": "class Model:\n    def apply(self, x):\n        return x * 2\nmodel = Model()\n"
    "def step(x):\n    return model.apply(x)\n",
    "class": "class Layer:\n    def __init__(self, x):\n        self.y = x * 2\ndef step(x):\n    return Layer(x).y\n",
    "wrapped-by-a-decorator": "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def call(x):\n"
    "        return f(x) * 2\n    return call\n@twice\ndef step(x):\n    return x\n",
    "under-a-decorator": "import functools\ndef same(f):\n    @functools.wraps(f)\n    def call(x):\n"
    "        return f(x)\n    return call\n@same\ndef step(x):\n    return x * 2\n",
    "custom-derivative": "import jax\n@jax.custom_vjp\ndef helper(x):\n    return x\n"
    "def backward(kept, g):\n    return (g * 2,)\nhelper.defvjp(lambda x: (x, None), backward)\n"
    "def step(x):\n    return helper(x)\n",
    "list-of-functions": HELPED + "layers = [helper]\ndef step(x):\n    return layers[0](x)\n",
}


HANDLER = (  # a logger leads to every handler of a process, and none of them is in a program
    "import logging\nclass Handler(logging.Handler):\n    def emit(self, record):\n        return record * 2\n"
    "LOG = logging.Logger('x')\nLOG.addHandler(Handler())\ndef step(x):\n    LOG.info('step')\n    return x\n"
)
CHANGES = {
    **{f"words: {name}": (PLAIN, text, False) for name, text in WORDS.items()},
    **{f"code: {name}": (PLAIN, text, True) for name, text in CODE.items()},
    **{f"helper: {name}": (text, text.replace("* 2", "* 3"), True) for name, text in WAYS.items()},
    "logger": (HANDLER, HANDLER.replace("* 2", "* 3"), False),
}


@pytest.mark.parametrize(("before", "after", "counts"), CHANGES.values(), ids=CHANGES)
def test_what_counts(load, before, after, counts):
    """Whatever Python would compile otherwise, here or in what is called of this project, however it is reached."""
    first, moved, changed = (source_fingerprint(load(text).step) for text in (before, f"\n{before}", after))
    assert before != after
    assert first == moved is not None
    assert (first != changed) is counts


@pytest.mark.parametrize(
    "text",
    ["from_module", "helpers.from_module", "package.helpers.from_module"],
    ids=["imported-name", "attribute-of-a-module", "attribute-of-a-submodule"],
)
def test_a_helper_in_another_module_counts(load, text):
    """Helpers reached through a module are followed, through packages too."""

    def build(helper):
        helpers = load(helper.replace("helper", "from_module"))
        scope = {"from_module": helpers.from_module, "helpers": helpers, "package": load("", helpers=helpers)}
        first = text.split(".")[0]
        return load(f"def step(x):\n    return {text}(x)\n", **{first: scope[first]}).step

    assert source_fingerprint(build(HELPED)) == source_fingerprint(build("\n" + HELPED))
    assert source_fingerprint(build(HELPED)) != source_fingerprint(build(HELPED.replace("* 2", "* 3")))


def test_the_builder_counts(load):
    """Donation, sizes and options stand where the subject is built."""
    text = PLAIN + "import jax\ndef build():\n    return jax.jit(step, donate_argnums=0)\n"
    one, other = load(text), load(text.replace("donate_argnums=0", "donate_argnums=()"))
    assert source_fingerprint(one.step) == source_fingerprint(other.step)
    assert source_fingerprint(one.step, one.build) != source_fingerprint(other.step, other.build)


def test_lambdas(load):
    """A lambda counts by its text, alone on its line or inside a longer statement."""
    texts = [
        "step = lambda x: x * 2\n",
        "step = lambda x: x * 3\n",
        "import jax\nstep = jax.jit(\n    lambda x: x * 2,\n)\n",
        "import jax\nstep = jax.jit(\n    lambda x: x * 3,\n)\n",
    ]
    found = [source_fingerprint(load(text).step) for text in texts]
    assert None not in found
    assert len(set(found)) == 4


def test_unknown_source_is_none():
    """Code without a file, built-in functions, and library code alone have no source to compare."""
    scope = {}
    exec(PLAIN, scope)
    assert source_fingerprint(scope["step"]) is None
    assert source_fingerprint(len) is None
    assert source_fingerprint(jnp.sin) is None
    assert source_fingerprint(jax.jit(jax.nn.gelu)) is None
    assert source_fingerprint(functools.partial(max, 1)) is None


def test_a_helper_without_source_makes_the_whole_unknown(load):
    """A project file that has gone cannot be compared; a hash of half would pass for one of all."""
    assert source_fingerprint(load(PLAIN).step, len) is None
    module = load(HELPED + "def step(x):\n    return helper(x)\n")
    assert source_fingerprint(module.step) is not None
    outer = load("def step(x):\n    return other(x)\n", other=module.step)
    Path(module.__file__).unlink()
    linecache.clearcache()
    assert source_fingerprint(outer.step) is None


def test_methods_of_what_it_is_given_count(load):
    """A model arrives as an argument: its class is the project's where it is, and nothing where it is a library's."""
    model = "class Model:\n    def __call__(self, x):\n        return x * 2\n"
    step = load("def step(model, x):\n    return model(x)\n").step
    alone, one, same = (
        source_fingerprint(step, given=classes) for classes in ([], [load(model).Model], [load(model).Model])
    )
    assert one == same != alone
    assert source_fingerprint(step, given=[load(model.replace("* 2", "* 3")).Model]) != one
    assert source_fingerprint(step, given=[Path]) == alone


KEPT = {
    "method bound to a model": "library.Kept(attribute=Model().__call__)",
    "closure of a library": "library.closing(Model().__call__)",
    "closures within closures": "library.closing((library.closing(Model()), library.closing(len)))",
    "class in a definition": "library.Kept(attribute=[{'node': Model}])",
    "slots": "library.Slotted(Model())",
    "static part of a tree": "library.Tree(Model())",
}


@pytest.mark.parametrize("made", KEPT.values(), ids=KEPT)
def test_what_a_library_keeps_of_the_project_counts(load, made, monkeypatch):
    """A state that has a model's method, a chain of transformations, a definition that names classes: given or closed over."""
    library = ModuleType("library")
    exec(compile(LIBRARY, "library.py", "exec", dont_inherit=True), vars(library))
    monkeypatch.setattr(source, "is_project_file", lambda file: "module_" in file)
    found = {}
    for number in (2, 2, 3):
        text = f"class Model:\n    def __call__(self, x):\n        return x * {number}\n"
        held = load(
            f"{text}kept = {made}\ndef step(x):\n    return x\ndef closed(x):\n    return kept", library=library
        )
        seen = (source_fingerprint(held.step, given=held.kept), source_fingerprint(held.closed))
        assert found.setdefault(number, seen) == seen
    assert not set(found[2]) & set(found[3])


def test_library_code_is_not_followed(load, monkeypatch):
    """What an installed package does is the environment's business."""
    text = "import jax\ndef step(x):\n    return jax.nn.relu(x)\n"
    before = source_fingerprint(load(text).step)
    monkeypatch.setattr(jax.nn, "relu", jax.nn.gelu)
    assert source_fingerprint(load(text).step) == before is not None


BUILDER = """
import jax
from jaxgate.model.computation import Computation; from jaxgate.model.workload import Family; from jaxgate.model.claim import claim

CASES = Family("rows")


def step(x):
    return x * 2


@CASES.workload("rows", sweep=[{}])
def build():
    return Computation(subject=jax.jit(step), args=(1.0,), claims=[claim("temp_bytes <= 8", "why")])
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ('"rows", sweep=[{}]', '"columns", devices=2', False),
        ('claims=[claim("temp_bytes <= 8", "why")]', 'claims=[claim("temp_bytes <= 9", "another")]', False),
        (', claims=[claim("temp_bytes <= 8", "why")]', "", False),
        ("args=(1.0,)", "args=(2.0,)", True),
        ("jax.jit(step)", "jax.jit(step, donate_argnums=0)", True),
        ("x * 2", "x * 3", True),
        (
            '@CASES.workload("rows", sweep=[{}])\ndef build',
            '@jax.tree_util.Partial\n@CASES.workload("rows")\ndef build',
            True,
        ),
    ],
    ids=["decorator", "claim", "no claim", "arguments", "donation", "subject", "another decorator"],
)
def test_what_is_judged_is_not_what_runs(load, old, new, counts):
    """A workload's name, sweep and claims may be edited without another source; all else of its builder counts."""
    assert old in BUILDER
    before, after = load(BUILDER), load(BUILDER.replace(old, new))
    (first,), (second,) = before.CASES, after.CASES
    hashes = [source_fingerprint(one.build().subject, one.build) for one in (first, second)]
    assert None not in hashes
    assert (hashes[0] != hashes[1]) is counts


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from jaxgate.model.computation import Computation; from jaxgate.model.workload import Family; from jaxgate.model.claim import claim", "from jaxgate.model.workload import Family; from jaxgate.model.claim import claim\nfrom jaxgate.model.computation import Computation as C\n\n\ndef Computation(claims=(), **more):\n    return C(**more)"),
        ('CASES = Family("rows")', "class Mine:\n    def workload(self, name, sweep=()):\n        return lambda build: build\n\n\nCASES = Mine()"),
    ],
    ids=["another Computation", "another family"],
)  # fmt: skip
def test_names_alone_are_not_believed(load, old, new):
    """Where the names stand for something else, what is written there counts."""
    assert old in BUILDER
    text = BUILDER.replace(old, new)
    changed = text.replace("temp_bytes <= 8", "temp_bytes <= 9").replace('"rows", sweep=[{}]', '"columns", sweep=[{}]')
    assert source_fingerprint(load(text).build) != source_fingerprint(load(changed).build)
