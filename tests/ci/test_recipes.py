"""docs/recipes.md: every block runs as it stands there, so that whoever copies one starts from a green line."""

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.corpora import nightly, one_of
from support.git import commit
from support.paths import REPOSITORY
from support.processes import outside_variables

from jaxgate.model.measurement import NOT_CALLED

PAGE = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")
RECIPES = {part.split("\n")[0]: part for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
"""What stands below each heading."""
START, NOTEBOOK = "From nothing to a green line", "A notebook"
"""The recipes that define no test; each has its own below."""
LOOPS = "Training loops"
"""It records nothing; docs/loops.md has another block of its kind."""
CONFTEST = "# conftest.py\n"
"""How a block begins that is no test; it acts before anything is imported, so it wants a process of its own."""


def blocks(recipe, language="python"):
    """The blocks of code of a recipe, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", RECIPES[recipe], flags=re.MULTILINE | re.DOTALL)


def cases_of(block):
    """The cases that a block defines, by their names: of tests, or of their gates."""
    tests = re.findall(r"^def test_(\w+)\((?:gate|gate_loop|gate_start)\):$", block, flags=re.MULTILINE)
    return re.findall(r"^    gate\(.*name=\"(\w+)\"\)$", block, flags=re.MULTILINE) or tests


def require(block):
    """Skip where a library is missing that a block imports."""
    for node in ast.walk(ast.parse(block)):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            if find_spec(name.partition(".")[0]) is None:
                pytest.skip(f"could not import {name}: it is not installed")


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_heading_has_a_block_that_is_run(recipe):
    """No recipe without code, no code in another language, and none that only looks like a test."""
    found = blocks(recipe) or blocks(recipe, "sh")
    assert found
    assert RECIPES[recipe].count("```") == 2 * len(found)
    if recipe not in {START, NOTEBOOK}:
        assert all(cases_of(block) for block in found if not block.startswith(CONFTEST))


def loops():
    """The training loops of both pages, and the start of a job, by their tests."""
    page = "".join((REPOSITORY / f"docs/{name}.md").read_text(encoding="utf-8") for name in ("loops", "start"))
    found = [*re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL), *blocks(LOOPS)]
    return [pytest.param(block, id=cases_of(block)[0]) for block in found]


@pytest.mark.parametrize("block", one_of(loops(), 4))
def test_a_training_loop_is_green(project, block):
    """As it stands there; its restored state is the saved one, and nothing is left behind."""
    require(block)
    project.write("test_train.py", block)
    found = project.run()
    assert found.code == 0
    assert f" {2 if 'gate_start' in block else 21} claims hold" in found.text


@pytest.mark.parametrize("recipe", one_of([recipe for recipe in RECIPES if recipe not in {START, NOTEBOOK, LOOPS}], 14))
def test_a_recipe_is_recorded_and_found_again(project, monkeypatch, recipe):
    """It is recorded, and SAME by its program in the next run, as CI makes it."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-W default")  # what a library warns of is its own
    names, alone = [], False
    for block in blocks(recipe):
        require(block)
        alone |= block.startswith(CONFTEST)
        project.write("conftest.py" if block.startswith(CONFTEST) else "test_recipe.py", block)
        names += cases_of(block)
    project.record(alone=alone)
    if alone:
        done = project.alone("-m", "pytest", "--benchmark-disable", CI="true")
        code, text = done.returncode, done.stdout
    else:
        monkeypatch.setenv("CI", "true")
        result = project.run("--benchmark-disable")
        code, text = result.code, result.text
    assert code == 0, text
    for name in names:
        assert re.search(
            rf"^SAME +recipe/{name} .* identical programs?(; {re.escape(NOT_CALLED)})?$", text, flags=re.MULTILINE
        ), text


@nightly
def test_diffrax_without_its_conftest_is_undecided_once_it_changed(project, monkeypatch):
    """As its recipe says: facts gate, the time of a changed program does not, and that alone is not red."""
    block = blocks("Diffrax")[0]
    require(block)
    project.write("test_recipe.py", block).record()
    monkeypatch.setenv("CI", "true")
    result = project.run("--benchmark-disable")
    assert result.code == 0, result.text
    result.shows("SAME  recipe/solve", "its error checks call Python (EQX_ON_ERROR=nan leaves them out)")
    project.edit("test_recipe.py", "-rate * state", "state * -rate")
    result = project.run("--benchmark-disable")
    assert result.code == 0, result.text
    result.shows("UNDECIDED  recipe/solve", "program changed and its error checks call Python")


def test_weakly_typed_parameters_are_red(project):
    """As the first recipe says of parameters that are made of a Python number."""
    (block,) = blocks("Plain JAX")
    drawn = "jax.random.normal(second, (32, 1))"
    assert block.count(drawn) == 1
    result = project.write("test_recipe.py", block.replace(drawn, "jnp.full((32, 1), 0.1)")).run()
    assert result.code == 1
    result.shows("step 2 retraced: params['second']: float32[32,1] (weak type) → float32[32,1]")


@pytest.mark.parametrize(
    ("stage", "found"),
    [
        ("@eqx.filter_jit", "step 2 retraced: step: model.steps: static 0 → static 1"),
        ("", "found Model.steps 0 → 1: make it an array, or gate the function under eqx.filter_jit"),
    ],
    ids=["filter_jit", "plain"],
)
def test_a_number_that_a_step_changes_is_red(project, stage, found):
    require("import equinox")
    text = f"""
import equinox as eqx, jax, jax.numpy as jnp

class Model(eqx.Module):
    weights: jax.Array
    activation: object
    steps: int

{stage}
def step(model, x):
    return Model(model.weights * x, model.activation, model.steps + 1)

def test_step(gate):
    gate(step, Model(jnp.ones(4), jnp.tanh, 0), jnp.ones(4), carry="model")
"""
    result = project.write("test_recipe.py", text).run()
    assert result.code == 1
    result.shows(found)


def test_the_way_from_nothing_ends_green(project):
    """Its commands after those that install, in a shell, in a new repository with the first recipe."""
    (script,) = blocks(START, "sh")
    (file,) = re.findall(r"saved as `(\w+\.py)`", RECIPES[START])
    (shown,) = re.findall(r"^    (SAME  .*)$", RECIPES[START], flags=re.MULTILINE)
    environment, install, *commands = script.splitlines()
    assert "-m venv" in environment
    assert install.startswith("pip install ")
    project.write(".gitignore", "__pycache__/\n")
    commit(project.path)
    project.write(file, blocks("Plain JAX")[0])
    environ = outside_variables()
    environ |= {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", "\n".join(commands)],
        cwd=project.path,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    case, reason = re.split(r"  \S+ \S+  ", shown)
    assert re.search(rf"^{re.escape(case)} .*{re.escape(reason)}$", done.stdout, flags=re.MULTILINE), done.stdout
    assert "NEEDS COMMIT" not in done.stdout.partition("1 CREATED")[2].partition("NEEDS COMMIT")[2]


def test_the_notebook_prints_a_comparison(capsys):
    """Guards pass where nothing is wrong, and the two functions give the same numbers."""
    (block,) = blocks(NOTEBOOK)
    require(block)
    exec(compile(block, "notebook", "exec"), {"__name__": "__main__"})
    time, result, fact = capsys.readouterr().out.splitlines()[:3]
    assert time.startswith("time   ")
    assert result == "result the same within tolerance"
    assert fact.startswith("fact   ")
